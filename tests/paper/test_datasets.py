"""Every dataset of the paper has a reader that makes a task of files in their true format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from readbench.benchmark.protocol import PAPER_COMPOSITION, load_task
from readbench.benchmark.sources._mit_bih import BEATS
from tests.benchmark.sources import road_files, test_ctsr, test_mit_bih, test_petrobras_3w
from tests.benchmark.sources.test_damadics import root as damadics  # noqa: F401 - a fixture
from tests.benchmark.sources.test_exathlon import root as exathlon  # noqa: F401
from tests.benchmark.sources.test_hai import official as hai  # noqa: F401
from tests.benchmark.sources.test_rats40k import root as rats40k  # noqa: F401
from tests.benchmark.sources.test_rcaeval import root as rcaeval  # noqa: F401
from tests.benchmark.sources.test_telecomts import root as telecomts  # noqa: F401
from tests.benchmark.sources.test_tennessee_eastman import tables as tennessee_eastman  # noqa: F401
from tests.benchmark.sources.test_voraus import root as voraus  # noqa: F401


def ctsr(root: Path) -> None:
    """Two classes of twenty series."""
    rng = np.random.default_rng(0)
    for part in ("TRAIN", "TEST"):
        rows = [[label, *rng.standard_normal(30).round(3) + label] for label in (1, 2) for _ in range(20)]
        test_ctsr.write(root, f"Wafer_{part}.tsv", "".join("\t".join(map(str, row)) + "\n" for row in rows))


def mit_bih(root: Path) -> None:
    """Five patients with beats of two kinds."""
    codes = {symbol: code for code, symbol in BEATS.items()}
    marks = [(at, codes["V" if at < 1500 else "A"]) for at in range(200, 2800, 150)]
    for record in ("100", "101", "103", "105", "106"):
        test_mit_bih.write_record(root / "mit_bih", record, marks)


def petrobras_3w(root: Path) -> None:
    """Five wells with the same event."""
    for well in range(5):
        name = f"dataset/7/WELL-0000{well + 1}_20170218210311.parquet"
        codes = [0] * 300 + [107] * 300 + [7] * 300
        test_petrobras_3w.put(root, name, test_petrobras_3w.parquet(test_petrobras_3w.v2_table(codes)))


def road(root: Path) -> None:
    """Two captures of one attack, and two of another."""
    names = [f"{kind}_attack_{k}" for kind in ("max_speedometer", "reverse_light_off") for k in (1, 2)]
    road_files.write_layout(root)
    entry = {"injection_interval": [1.0, 5.0], "elapsed_sec": 5.97}
    road_files.write_metadata(root, **dict.fromkeys(names, entry))
    for name in names:
        road_files.write(root, f"attacks/{name}.log", road_files.log(road_files.drive()))


WRITERS: dict[str, Callable[[Path], None]] = {
    "ctsr": ctsr,
    "mit_bih": mit_bih,
    "petrobras_3w": petrobras_3w,
    "road": road,
}
"""The others have a fixture that is named as they are."""


@pytest.mark.parametrize("name", PAPER_COMPOSITION)
def test_a_dataset_becomes_a_task(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if write := WRITERS.get(name):
        root = tmp_path / "data"
        write(root)
    else:
        root = request.getfixturevalue(name)
    task = load_task(name, root=root, cache=tmp_path / "cache")
    assert len(task.queries)
    assert np.isin(task.queries.labels, task.corpus_at(0).labels).all()
    assert task.info.name == name


def test_there_are_twelve() -> None:
    assert len(PAPER_COMPOSITION) == 12
