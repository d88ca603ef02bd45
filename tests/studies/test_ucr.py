from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from readbench.benchmark.sources import Ctsr
from readbench.cli import app
from readbench.engine.method import Method
from readbench.studies._ucr import accuracy, read_archive_set

SETS = ("Hills", "Valleys")


def written(root: Path, name: str, side: str, series: NDArray[np.float64], labels: list[int]) -> None:
    folder = root / "ctsr" / "UCRArchive_2018" / name
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        "\t".join([str(label), *(f"{v:.6f}" for v in values)]) for label, values in zip(labels, series, strict=True)
    ]
    (folder / f"{name}_{side}.tsv").write_text("\n".join(rows) + "\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two datasets of sines (1) and ramps (2); in the second, the labels of one test series of four are wrong."""
    time = np.linspace(0, 1, 40)
    series = np.array([np.sin(9 * time), 3 * time, np.sin(9 * time + 0.1), 3 * time + 0.1])
    for name in SETS:
        written(tmp_path, name, "TRAIN", series[:2], [1, 2])
        written(
            tmp_path, name, "TEST", np.concatenate([series[2:], series[:2]]), [1, 2, 1, 2 if name == "Hills" else 1]
        )
    written(tmp_path, "Alone", "TRAIN", series, [1, 2, 1, 2])
    return tmp_path


def test_datasets_with_both_sides_keep_the_archives_division(root: Path) -> None:
    assert Ctsr().divided(root) == list(SETS)
    found = [read_archive_set(name, root) for name in SETS]
    assert [(len(train), len(test)) for train, test in found] == [(2, 4)] * 2
    assert len(set(found[0][0].labels.tolist())) == 2


@pytest.mark.parametrize("method", ["euclidean", "dtw-i", "sonde(reference=none)"])
def test_accuracy_is_the_share_of_right_neighbours(method: str, root: Path) -> None:
    assert [accuracy(Method(method), *read_archive_set(name, root)) for name in SETS] == [1.0, 0.75]


def test_the_command_writes_every_dataset(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = [
        "study",
        "ucr",
        "--methods",
        "euclidean",
        "--methods",
        "dtw-i(band=0.2)",
        "--root",
        str(root),
        "--out",
        str(out),
    ]
    for jobs in ("2", "1"):  # the second time from the cells of the first
        result = CliRunner().invoke(app, [*arguments, "--jobs", jobs])
        assert result.exit_code == 0, result.output
        assert "0.875" in result.output
    assert len(list((out / "cells").glob("*.json"))) == 4
    assert (out / "ucr.csv").read_text().splitlines() == [
        "dataset,euclidean,dtw-i(band=0.2)",
        "Hills,1.000000,1.000000",
        "Valleys,0.750000,0.750000",
    ]
