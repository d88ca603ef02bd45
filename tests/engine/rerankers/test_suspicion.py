"""Labels that look wrong: in a toy archive, and how many of them are wrong in simulated and real data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.benchmark.protocol import Task, load_task
from readbench.benchmark.runs._budget import add_label_noise
from readbench.engine.method import Method
from readbench.engine.protocols import View, unit_vectors
from readbench.engine.rerankers import sharpen, suspects
from readbench.engine.rerankers._active_learning import Suspects
from readbench.engine.rerankers._ridge import FittedVerdict, fit_verdict
from readbench.engine.spec import build_source
from readbench.engine.windows import NORMAL, WindowSet

WRONG = 10
"""Percent of wrong labels."""
SEEDS = (0, 1, 2)


def archive(labels: NDArray[np.int32], true: NDArray[np.int32]) -> FittedVerdict:
    """What labels teach of cases that show what they truly are; recordings of two cases."""
    rng = np.random.default_rng(0)
    centres = 2.0 * rng.standard_normal((5, 12))
    items = unit_vectors((centres[true] + rng.standard_normal((len(true), 12))).astype(np.float32))
    return fit_verdict((View(items[:0], items),), np.arange(len(true)), labels, np.arange(len(true)) // 2)


def test_wrong_labels_come_first_with_what_they_should_be() -> None:
    true = np.repeat(np.array([1, 2, 3], np.int32), 12)
    labels = true.copy()
    labels[[4, 20]] = 3, 1
    found = suspects(archive(labels, true), 1.0)
    assert set(found.positions[:2].tolist()) == {4, 20}
    assert dict(zip(found.positions.tolist(), found.labels.tolist(), strict=True)).items() >= {4: 1, 20: 2}.items()
    assert (np.diff(found.own) >= 0).all()
    assert (found.own < found.others).all()


def test_probabilities_are_those_of_held_out_recordings_calibrated() -> None:
    true = np.tile(np.repeat(np.array([1, 2, 3], np.int32), 2), 6)
    labels = true.copy()
    labels[7] = 3
    judgement = archive(labels, true)
    found, held_out = suspects(judgement, 0.8), sharpen(judgement.held_out, 0.8)
    contradicted = [x for x in range(len(labels)) if held_out[x].argmax() != labels[x] - 1]
    assert found.positions.tolist() == sorted(contradicted, key=lambda x: held_out[x, labels[x] - 1])
    assert found.positions[0] == 7
    assert found.own.tolist() == [held_out[x, labels[x] - 1] for x in found.positions]
    assert found.others.tolist() == [held_out[x].max() for x in found.positions]


def test_the_only_case_of_a_type_is_not_doubted() -> None:
    true = np.append(np.repeat(np.array([1, 2, 3], np.int32), 12), np.array([1, 1], np.int32))
    labels = true.copy()
    last, labels[-1] = len(true) - 1, 4
    assert last not in suspects(archive(labels, true), 1.0).positions
    labels[0] = 4
    assert {0, last} <= set(suspects(archive(labels, true), 1.0).positions.tolist())


def test_one_fault_type_cannot_be_doubted() -> None:
    same = np.full(6, 2, np.int32)
    assert not len(suspects(archive(same, same), 1.0).positions)


@pytest.mark.parametrize(("name", "precision", "share"), [("sim_tanks", 0.80, 0.55), ("skab", 0.90, 0.71)])
def test_wrong_labels_are_found_as_the_documentation_says(
    request: pytest.FixtureRequest, private_cache: Path, name: str, precision: float, share: float
) -> None:
    """Means over three splits: wrong ones among the first twenty, and the share of them among the first tenth."""
    root = None if name.startswith("sim_") else request.getfixturevalue("real_data")
    if root and not (root / name).is_dir():
        pytest.skip(f"READBENCH_DATA has no {name}")
    found = []
    for seed in SEEDS:
        task = load_task(build_source(name), seed=seed, root=root, cache=private_cache)
        faults = np.flatnonzero(task.corpus.labels > NORMAL)
        labels, true = add_label_noise(task, WRONG)[faults], task.corpus.labels[faults]
        doubtful = suspected(task, replace(task.corpus[faults], labels=labels)).positions
        wrong = (labels != true)[doubtful]
        found.append((wrong[:20].mean(), wrong[: len(labels) // 10].sum() / (labels != true).sum()))
    measured = np.mean(found, axis=0)
    assert measured[0] == pytest.approx(precision, abs=0.05)
    assert measured[1] == pytest.approx(share, abs=0.03)


def suspected(task: Task, corpus: WindowSet) -> Suspects:
    """Cases whose label `rocket+verdict` doubts."""
    lesson = Method("rocket+verdict").fit(corpus, task.normals).lesson()
    assert lesson is not None
    return suspects(lesson.judgement, lesson.calibration.exponent)
