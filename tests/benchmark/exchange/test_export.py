"""Tasks go out and come back: the same fingerprint, the same scores, and layouts that other loaders read."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from readbench.benchmark.exchange import Form, _exported, check_unchanged, draft_dataset, export_task, read_ready_task
from readbench.benchmark.exchange._exported import lowest_levels, number_names
from readbench.benchmark.protocol import Built, Composition, Task, compose_task, load_task
from readbench.benchmark.runs import Plan, run
from readbench.engine.spec import build_source
from readbench.errors import DataError, UsageError
from tests.benchmark.exchange.test_divided import archive, counted, task_of
from tests.benchmark.exchange.test_measured import INFO

SETTINGS = Composition(rho=(0, 10, 20))
FORMS: tuple[Form, ...] = ("hf", "beir")


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Task:
    """As it is composed, with the names that its source gives."""
    return load_task(
        build_source("sim_ecg(runs=80)"), seed=3, cache=tmp_path_factory.mktemp("cache"), settings=SETTINGS
    )


@pytest.fixture(scope="module")
def task(named: Task) -> Task:
    """As it goes out."""
    return number_names(named)


@pytest.fixture(scope="module")
def folders(named: Task, tmp_path_factory: pytest.TempPathFactory) -> dict[Form, Path]:
    root = tmp_path_factory.mktemp("exported")
    for form in FORMS:
        export_task(named, root / form, form)
    return {form: root / form for form in FORMS}


def imported(folder: Path, name: str = "again") -> Built:
    found = read_ready_task(folder, replace(INFO, name=name))
    with draft_dataset(found.info, found.write) as made:
        built = made.source.built()
        check_unchanged(built, found)
        return replace(built, windows=built.windows.compact())


@pytest.mark.parametrize("form", FORMS)
def test_a_task_comes_back_as_it_was(task: Task, folders: dict[Form, Path], form: Form) -> None:
    built = imported(folders[form])
    again = compose_task(built, seed=0, settings=SETTINGS)
    assert again.fingerprint() == task.fingerprint()
    assert again.corpus.ids.tolist() == task.corpus.ids.tolist()
    assert {rho: items.tolist() for rho, items in again.levels.items()} == {
        rho: items.tolist() for rho, items in task.levels.items()
    }
    assert again.corpus.stats is not None
    assert task.corpus.stats is not None
    assert again.corpus.stats.fingerprint() == task.corpus.stats.fingerprint()
    assert replace(built.info, name=task.info.name) == task.info


@pytest.mark.parametrize("form", FORMS)
def test_ids_and_groups_do_not_name_the_fault(named: Task, form: Form, tmp_path: Path) -> None:
    """Numbers follow the places in the task, so that whoever makes it again knows which window is which."""
    telling = named.queries.ids.astype(object) + " leak"
    task = replace(named, queries=replace(named.queries, ids=telling.astype(str), groups=telling.astype(str)))
    export_task(task, tmp_path / form, form)
    again = compose_task(imported(tmp_path / form), seed=0, settings=SETTINGS)
    assert again.queries.ids.tolist() == [f"query-{place:05d}" for place in range(1, len(task.queries) + 1)]
    assert all(name.startswith("group-") for part in (again.queries, again.corpus) for name in part.groups.tolist())
    assert (again.queries.labels == task.queries.labels).all()
    facts = json.loads((tmp_path / form / "task.json").read_text())
    assert facts["made_from"] == task.fingerprint() != facts["fingerprint"]
    assert not any(
        b" leak" in path.read_bytes() for path in (tmp_path / form).rglob("*.*") if path.suffix != ".parquet"
    )


def told_arrays() -> dict[str, NDArray[Any]]:
    """Of a task of which some windows bring context."""
    return counted() | {
        "units": np.array(["m3/h", ""]),
        "corpus_before": np.arange(20 * 2 * 8).reshape(20, 2, 8) % 13,
        "corpus_before_length": np.array([8, 0] * 10),
        "corpus_rate": np.array(50.0),
        "queries_before": np.ones((4, 2, 3)),
        "queries_fact.speed": np.array([1.5, np.nan, 2.0, 3.0]),
    }


def told(tmp_path: Path) -> Task:
    return task_of(archive(tmp_path / "told.npz", told_arrays()))


@pytest.mark.parametrize("form", FORMS)
def test_context_goes_out_and_comes_back(tmp_path: Path, form: Form) -> None:
    task = told(tmp_path)
    export_task(task, tmp_path / form, form, private=True)
    again = compose_task(imported(tmp_path / form), seed=0, settings=Composition(rho=(0, 20)))
    assert again.fingerprint() == number_names(task).fingerprint()
    assert again.fingerprint() != task_of(archive(tmp_path / "plain.npz", counted())).fingerprint()
    assert again.queries[0].facts == {"speed": 1.5}
    card = (tmp_path / form / "README.md").read_text()
    assert "| context of the corpus | the time before 10 of 25 windows (8 steps); rate 50 Hz; units: m3/h |" in card
    assert "| context of the queries | the time before 4 of 4 windows (3 steps); units: m3/h; facts: speed |" in card
    assert "`before_length` steps" in card


def test_files_of_one_configuration_have_the_same_columns(tmp_path: Path) -> None:
    export_task(told(tmp_path), tmp_path / "out", "hf", private=True)
    schemas = [pq.read_schema(path) for path in sorted((tmp_path / "out").glob("corpus-*.parquet"))]
    assert len(schemas) == 2
    assert schemas[0] == schemas[1]


def test_what_was_exported_before_there_was_context_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it went out with the names of its source."""
    monkeypatch.setattr(_exported, "number_names", lambda task: task)
    task = task_of(archive(tmp_path / "t.npz", counted()))
    export_task(task, tmp_path / "out", "hf", private=True)
    assert "ontext" not in (tmp_path / "out" / "README.md").read_text()
    facts = json.loads((tmp_path / "out" / "task.json").read_text())
    for name in ("before", "before_steps"):
        del facts["info"]["protocol"][name]
    del facts["made_from"]
    (tmp_path / "out" / "task.json").write_text(json.dumps(facts))
    again = compose_task(imported(tmp_path / "out"), seed=0, settings=Composition(rho=(0, 20)))
    assert again.fingerprint() == task.fingerprint()


def test_fewer_levels_are_the_nested_part(task: Task, folders: dict[Form, Path]) -> None:
    again = compose_task(imported(folders["hf"]), seed=0, settings=Composition(rho=(0, 10)))
    assert again.corpus.ids.tolist() == task.corpus_at(10).ids.tolist()


def scores(plan: Plan, tmp_path: Path, name: str) -> list[dict[str, str]]:
    """Every number of a run but its times, in a cache of its own."""
    run(plan, tmp_path / name, cache=tmp_path / f"{name}-cache")
    with (tmp_path / name / "scores.csv").open() as file:
        return [
            {key: text for key, text in row.items() if key != "dataset" and not key.endswith("_s")}
            for row in csv.DictReader(file)
        ]


def test_every_score_is_the_same(folders: dict[Form, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READBENCH_IMPORTED", str(tmp_path / "imported"))
    found = read_ready_task(folders["hf"], replace(INFO, name="again"))
    with draft_dataset(found.info, found.write) as made:
        made.keep()
    plan = Plan(("sim_ecg(runs=80)",), ("euclidean", "rocket(features=84)+nr", "random"), seeds=(3,))
    before = scores(plan, tmp_path, "before")
    after = scores(replace(plan, datasets=("again",)), tmp_path, "after")
    assert before == after
    assert {row["status"] for row in before} == {"ok"}


def test_a_real_task_comes_back_as_it_was(real_data: Path, private_cache: Path, tmp_path: Path) -> None:
    task = load_task(build_source("skab"), seed=0, root=real_data, cache=private_cache)
    export_task(task, tmp_path / "skab", "hf")
    again = compose_task(imported(tmp_path / "skab"), seed=0, settings=Composition())
    assert again.fingerprint() == number_names(task).fingerprint()


@pytest.mark.parametrize("rho", [0, 10, 20])
def test_the_datasets_library_reads_each_level(
    task: Task, folders: dict[Form, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rho: int
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets", reason="the datasets library is not installed")
    datasets.disable_progress_bars()

    def load(config: str) -> Any:  # noqa: ANN401 - an optional package
        folder = str(folders["hf"])
        (split,) = datasets.get_dataset_split_names(folder, config)
        return datasets.load_dataset(folder, config, split=split, cache_dir=str(tmp_path / "hub"))

    corpus, queries, qrels = (load(f"rho-{rho}-{part}") for part in ("corpus", "queries", "qrels"))
    assert sorted(corpus["_id"]) == sorted(task.corpus_at(rho).ids.tolist())
    assert queries["_id"][:] == task.queries.ids.tolist()
    row = queries[1]
    values = np.array(row["values"], np.float32).reshape(len(row["channels"]), row["length"])
    np.testing.assert_array_equal(values, task.queries.values(1))
    assert set(qrels.column_names) == {"query-id", "corpus-id", "score"}
    check_judgments(task, {(row["query-id"], row["corpus-id"]) for row in qrels})


def check_judgments(task: Task, pairs: set[tuple[str, str]]) -> None:
    """Slow and plain: every query with every item."""
    expected = {
        (str(query.id), str(item.id))
        for query in task.queries
        for item in task.corpus_at(0)
        if query.label == item.label
    }
    assert pairs == expected


def beir_loader(folder: Path) -> tuple[dict[str, dict[str, str]], dict[str, str], dict[str, dict[str, int]]]:
    """What BEIR's loader does: JSON lines by `_id`, and a TSV whose first line is skipped."""
    with (folder / "corpus.jsonl").open(encoding="utf8") as file:
        lines = [json.loads(line) for line in file]
    corpus = {line["_id"]: {"text": line["text"], "title": line["title"]} for line in lines}
    with (folder / "queries.jsonl").open(encoding="utf8") as file:
        queries = {line["_id"]: line["text"] for line in map(json.loads, file)}
    qrels: dict[str, dict[str, int]] = {}
    with (folder / "qrels" / "test.tsv").open(encoding="utf-8") as file:
        reader = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_MINIMAL)
        next(reader)
        for query, item, score in reader:
            qrels.setdefault(query, {})[item] = int(score)
    return corpus, queries, qrels


@pytest.mark.parametrize("rho", [0, 10, 20])
def test_a_beir_loader_reads_each_level(task: Task, folders: dict[Form, Path], rho: int) -> None:
    corpus, queries, qrels = beir_loader(folders["beir"] / f"rho-{rho:02d}")
    assert list(corpus) == task.corpus_at(rho).ids.tolist()
    assert list(queries) == task.queries.ids.tolist()
    assert all(text and text.count("\n") + 1 == len(task.queries.channels(0)) for text in queries.values())
    check_judgments(task, {(query, item) for query, items in qrels.items() for item in items})


def test_levels_lie_in_files_of_their_own(task: Task, folders: dict[Form, Path]) -> None:
    counts = {level: int((lowest_levels(task) == level).sum()) for level in (0, 10, 20)}
    for level, count in counts.items():
        assert pq.read_metadata(folders["hf"] / f"corpus-{level:02d}.parquet").num_rows == count
    assert counts[0] == len(task.levels[0])


def test_the_card_says_what_a_stranger_must_know(task: Task, folders: dict[Form, Path]) -> None:
    text = (folders["hf"] / "README.md").read_text()
    for fact in (
        "license: apache-2.0",
        task.fingerprint(),
        task.info.citation,
        "split seed",
        "All values are simulated",
    ):
        assert fact in text
    assert "rho-20-qrels" in text
    assert "Private copy" not in text


def test_what_may_not_be_passed_on_is_refused(task: Task, tmp_path: Path) -> None:
    closed = replace(task, info=replace(task.info, redistributable=False, licence="not established"))
    with pytest.raises(UsageError, match=r"not established.*--private"):
        export_task(closed, tmp_path / "out", "hf")
    assert not (tmp_path / "out").exists()
    export_task(closed, tmp_path / "out", "hf", private=True)
    text = (tmp_path / "out" / "README.md").read_text()
    assert "**Private copy.**" in text
    assert 'license_name: "not established"' in text


def test_a_folder_that_is_in_use_is_refused(task: Task, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="not empty"):
        export_task(task, tmp_path, "hf")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_changed_files_are_noticed(folders: dict[Form, Path], task: Task, tmp_path: Path) -> None:
    export_task(task, tmp_path / "out", "hf")
    table = pq.read_table(tmp_path / "out" / "queries.parquet")
    pq.write_table(table.slice(1), tmp_path / "out" / "queries.parquet")
    with pytest.raises(DataError, match="its files were changed"):
        imported(tmp_path / "out")
    (tmp_path / "out" / "task.json").write_text('{"info": 1}')
    with pytest.raises(DataError, match="Export the task again"):
        imported(tmp_path / "out")
    assert imported(folders["hf"]).parts is not None


def test_only_known_licences_may_be_passed_on() -> None:
    for name in ("ctsr", "damadics", "dbsherlock", "itu_5gc", "rats40k", "rcaeval", "telecomts"):
        assert not build_source(name).info.redistributable
    for name in (
        "exathlon", "hai", "haizhe_auv", "mit_bih", "petrobras_3w", "road", "robot_failures", "skab",
        "tennessee_eastman",
    ):  # fmt: skip
        assert build_source(name).info.redistributable
