"""Ready-made tasks: read, checked, composed as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from readbench.benchmark.exchange import draft_dataset, is_ready_task, read_ready_task
from readbench.benchmark.protocol import Composition, Task, compose_task
from readbench.engine.window_tables import read_windows, write_windows
from readbench.errors import DataError, UsageError
from tests.benchmark.exchange.test_measured import INFO

RNG = np.random.default_rng(0)


def arrays() -> dict[str, NDArray[Any]]:
    """20 faults in the corpus, 4 queries, 40 normals; two channels, 16 steps."""
    return {
        "channels": np.array(["flow", "heat"]),
        "corpus_values": RNG.normal(size=(20, 2, 16)),
        "corpus_label": np.array(["leak", "jam"] * 10),
        "queries_values": RNG.normal(size=(4, 2, 16)),
        "queries_label": np.array(["leak", "jam"] * 2),
        "normals_values": RNG.normal(size=(40, 2, 16)),
    }


def counted() -> dict[str, NDArray[Any]]:
    """The same in whole numbers, with assets."""
    parts = {"corpus": (20, 0), "queries": (4, 3), "normals": (40, 5)}
    values = {name: (np.arange(n * 32).reshape(n, 2, 16) * 7 + shift) % 23 for name, (n, shift) in parts.items()}
    return arrays() | {
        **{f"{name}_values": cube for name, cube in values.items()},
        "corpus_asset": np.array(["P", "Q"] * 10),
        "queries_asset": np.array(["P"] * 4),
        "normals_asset": np.array(["P", "Q"] * 20),
    }


def archive(path: Path, content: dict[str, NDArray[Any]]) -> Path:
    np.savez(path, **content)  # type: ignore[arg-type]
    return path


def task_of(path: Path, rho: tuple[int, ...] = (0, 20), seed: int = 0) -> Task:
    found = read_ready_task(path, INFO)
    with draft_dataset(found.info, found.write) as made:
        return compose_task(made.source.built(), seed=seed, settings=Composition(rho=rho))


def test_an_archive_becomes_a_task_whole_and_in_order(tmp_path: Path) -> None:
    content = arrays()
    path = archive(tmp_path / "t.npz", content)
    assert is_ready_task(path)
    task = task_of(path)
    assert task.info.classes == ("normal", "jam", "leak")
    assert sorted(task.corpus_at(0).ids.tolist()) == sorted(f"corpus_{i}" for i in range(20))
    np.testing.assert_array_equal(task.queries.values(3), content["queries_values"][3].astype(np.float32))
    assert [task.info.classes[label] for label in task.queries.labels] == ["leak", "jam"] * 2
    assert len(task.corpus_at(20)) == 25
    assert (task.normals.labels == 0).all()


def test_a_task_without_context_has_the_fingerprint_that_it_had_before_there_was_any(tmp_path: Path) -> None:
    task = task_of(archive(tmp_path / "t.npz", counted()))
    assert task.fingerprint() == "7579f9bcbd74882b"
    assert task.queries.context is None  # cases are lent normals of their assets, which is no part of a fingerprint


def test_context_comes_with_its_windows(tmp_path: Path) -> None:
    content = counted() | {
        "units": np.array(["m3/h", "K"]),
        "corpus_before": np.ones((20, 2, 8)),
        "corpus_before_length": np.array([8, 0] * 10),
        "queries_rate": np.array(50.0),
        "queries_fact.speed": np.arange(4.0),
    }
    task = task_of(archive(tmp_path / "t.npz", content))
    assert task.corpus.context is not None
    own = {window.id: window for window in task.corpus.with_context(task.corpus.context.without_lent())}
    assert own["corpus_0"].before is not None
    assert own["corpus_1"].before is None
    assert own["corpus_1"].units == ("m3/h", "K")
    assert [(w.rate, w.facts) for w in task.queries] == [(50.0, {"speed": float(i)}) for i in range(4)]
    assert [channel.unit for channel in task.info.channels] == ["m3/h", "K"]


def test_normals_are_drawn_by_seed_where_no_levels_are_given(tmp_path: Path) -> None:
    path = archive(tmp_path / "t.npz", arrays())
    assert task_of(path, seed=0).fingerprint() != task_of(path, seed=1).fingerprint()
    assert task_of(path, seed=1).queries.ids.tolist() == task_of(path, seed=0).queries.ids.tolist()


def test_levels_of_its_own_are_kept(tmp_path: Path) -> None:
    content = arrays()
    labels = ["leak", "jam"] * 10
    for i in (3, 7, 11):
        labels[i] = "normal"
    content["corpus_label"] = np.array(labels)
    content["corpus_level"] = np.array([10 if i in {3, 7} else 20 if i == 11 else 0 for i in range(20)])
    path = archive(tmp_path / "t.npz", content)
    task = task_of(path, rho=(0, 10, 20))
    assert task.corpus.ids.tolist() == [f"corpus_{i}" for i in range(20)]
    assert {rho: len(items) for rho, items in task.levels.items()} == {0: 17, 10: 19, 20: 20}
    assert task_of(path, rho=(0, 10), seed=5).corpus.ids.tolist() == [f"corpus_{i}" for i in range(20) if i != 11]
    with pytest.raises(DataError, match=r"no corpus with a pollution of 30 %. Ask for its own levels: --rho 0,10,20"):
        task_of(path, rho=(0, 30))


def test_normals_in_a_corpus_without_levels_join_the_others(tmp_path: Path) -> None:
    content = arrays()
    content["corpus_label"] = np.array(["leak", "jam"] * 9 + ["normal"] * 2)
    found = read_ready_task(archive(tmp_path / "t.npz", content), INFO)
    assert (len(found.corpus), len(found.normals)) == (18, 42)


def test_a_folder_of_parquet_files_is_the_same_task(tmp_path: Path) -> None:
    path = archive(tmp_path / "t.npz", arrays())
    folder = tmp_path / "task"
    folder.mkdir()
    for part in ("corpus", "queries", "normals"):
        write_windows(read_windows(path, part=f"{part}_"), folder / f"{part}.parquet")
    assert is_ready_task(folder)
    assert task_of(folder).fingerprint() == task_of(path).fingerprint()
    (folder / "normals.parquet").unlink()
    assert len(task_of(folder, rho=(0,)).normals) == 0


def test_a_split_by_assets_is_refused(tmp_path: Path) -> None:
    found = read_ready_task(archive(tmp_path / "t.npz", arrays()), INFO)
    with draft_dataset(found.info, found.write) as made, pytest.raises(DataError, match="split already"):
        compose_task(made.source.built(), seed=0, settings=Composition(split_by="asset"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"queries_label": np.array(["leak", "jam", "leak", "normal"])}, "'queries_3' has no fault"),
        ({"queries_label": np.array(["leak", "jam", "leak", ""])}, "'queries_3' has no fault"),
        ({"queries_label": np.array(["leak", "jam", "leak", "new"])}, "no corpus item with the same fault"),
        ({"corpus_label": np.array(["leak", "jam"] * 9 + ["", ""])}, "'corpus_18' has no label"),
        ({"normals_label": np.array(["leak"] * 40)}, "among the normals but is a fault"),
        ({"queries_id": np.array(["a", "b", "c", "corpus_0"])}, "is the id of a query and of a corpus item"),
        ({"queries_values": np.full((4, 2, 16), np.nan)}, "nan"),
        ({"corpus_level": np.full(20, 100)}, "whole percent from 0 to 99"),
        ({"corpus_label": np.array(["leak"] * 3)}, "but there are 20 windows"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(tmp_path: Path, change: dict[str, NDArray[Any]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_ready_task(archive(tmp_path / "t.npz", arrays() | change), INFO)


def test_another_name_of_normal_operation(tmp_path: Path) -> None:
    content = arrays() | {"normals_label": np.array(["ok"] * 40)}
    found = read_ready_task(archive(tmp_path / "t.npz", content), INFO, normal="ok")
    assert found.info.classes == found.corpus.classes == ("normal", "jam", "leak")
    content["corpus_label"] = np.array(["leak", "normal"] * 10)
    with pytest.raises(DataError, match="'normal' is a fault here"):
        read_ready_task(archive(tmp_path / "t.npz", content), INFO, normal="ok")


def test_other_things_are_no_task(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    assert not is_ready_task(tmp_path / "a.csv")
    assert not is_ready_task(tmp_path)
    with pytest.raises(UsageError, match=r"folder of Parquet files or an \.npz"):
        read_ready_task(tmp_path / "a.csv", INFO)
    with pytest.raises(DataError, match=r"needs corpus\.parquet and queries\.parquet"):
        read_ready_task(tmp_path, INFO)
