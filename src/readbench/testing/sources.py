"""Checks that every registered source passes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np

from readbench.data import Composition, Recording, Source, build, compose_task
from readbench.windows import NORMAL, UNLABELLED

SourceCheck = Callable[[Source, Path | None], None]
"""Takes a source and the data root and raises AssertionError where the source breaks the contract."""
FEW = 8


def facts_are_complete(source: Source, root: Path | None) -> None:  # noqa: ARG001
    """Everything a table or a prompt says about a source is there."""
    info = source.info
    for name in ("name", "title", "description", "split_unit", "licence", "citation"):
        assert getattr(info, name).strip(), f"{info.name}: {name} is empty"
    assert info.simulated or info.url, f"{info.name}: where to get the data?"
    assert 3 <= info.description.count(".") - info.description.count("..") <= 12, (
        "describe it in three to five sentences"
    )
    assert len(set(info.classes)) == len(info.classes)
    assert len({c.name for c in info.channels}) == len(info.channels)


def recordings_are_valid(source: Source, root: Path | None) -> None:
    """Labels are in the vocabulary, groups are named, ids are unique."""
    onset = {code for code, _ in source.info.protocol.onset_codes}
    allowed = {UNLABELLED, *range(len(source.info.classes)), *onset}
    seen: set[str] = set()
    for recording in _few(source, root):
        assert set(np.unique(recording.labels).tolist()) <= allowed, f"{recording.id}: labels outside the vocabulary"
        assert recording.group, f"{recording.id}: no group"
        assert recording.id not in seen, f"{recording.id}: used twice"
        assert recording.step > 0
        seen.add(recording.id)
    assert seen, "no recordings"


def recordings_repeat(source: Source, root: Path | None) -> None:
    """Read twice, it gives the same bytes in the same order under the same fingerprint."""
    assert source.fingerprint(root) == source.fingerprint(root)
    for one, two in zip(_few(source, root), _few(source, root), strict=True):
        assert one.id == two.id
        assert one.values.tobytes() == two.values.tobytes()
        assert one.labels.tobytes() == two.labels.tobytes()


def a_task_can_be_composed(source: Source, root: Path | None) -> None:
    """Windows, split and composition keep the protocol's promises."""
    with tempfile.TemporaryDirectory() as cache:
        built = build(source, root, Path(cache))
        task = compose_task(built, seed=0, settings=Composition())
        assert not set(task.queries.groups) & set(task.corpus.groups), "a group is on both sides"
        assert set(task.queries.labels) <= set(task.corpus.labels), "a query without relevant item"
        assert NORMAL not in task.queries.labels
        assert (task.normals.labels == NORMAL).all()
        assert (task.corpus_at(0).labels != NORMAL).all()
        task.corpus.require_finite()


SOURCE_CHECKS: tuple[SourceCheck, ...] = (
    facts_are_complete,
    recordings_are_valid,
    recordings_repeat,
    a_task_can_be_composed,
)


def _few(source: Source, root: Path | None) -> list[Recording]:
    return list(islice(source.recordings(root), FEW))
