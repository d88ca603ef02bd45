"""Many cases at once: what workers read and encode is what the library would have, whoever dies on the way."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from readbench.benchmark.runs import InOrder, RayCluster
from readbench.cases import Library, _bulk as bulk, encode_cases, join_windows, read_files
from readbench.cases._bulk import Item, Result
from readbench.cli import app
from readbench.engine.spec import parse
from readbench.engine.window_tables import Roles
from readbench.errors import DataError
from tests.benchmark.runs.test_cluster import workers_at_work
from tests.cases.samples import CHANNELS, filled, normals, windows

METHOD = "raw|dtw-i"
"""An encoder whose vectors are kept, and a leg that needs none."""


def vectors(library: Library) -> dict[str, dict[str, bytes]]:
    """All filed vectors, by encoder and window."""
    rows = library.store._tables["vectors"].to_arrow().to_pylist()  # type: ignore[attr-defined]
    found: dict[str, dict[str, bytes]] = {}
    for row in rows:
        found.setdefault(row["encoder"], {})[row["digest"]] = np.array(row["vector"], np.float32).tobytes()
    return found


def answers(library: Library) -> list[list[tuple[str, float]]]:
    found = library.search_many(windows(3, seed=5, labelled=False, prefix="q"), method=METHOD)
    return [[(hit.case.id, hit.score) for hit in answer.hits] for answer in found]


def csv_files(folder: Path, count: int = 6) -> list[Path]:
    """Files of two cases each, with a column that names the case and one for its fault."""
    own = windows(2 * count)
    folder.mkdir()
    for i in range(count):
        rows = ["step,case,fault," + ",".join(CHANNELS)]
        for k in (2 * i, 2 * i + 1):
            fault = own.classes[own.labels[k]]
            rows += [
                f"{t},{own.ids[k]},{fault}," + ",".join(map(str, v)) for t, v in enumerate(own.values(k).T.tolist())
            ]
        (folder / f"{i}.csv").write_text("\n".join(rows) + "\n")
    return sorted(folder.iterdir())


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "BLOCK", 2)


@pytest.mark.parametrize("exact_cases", [100, 5])
def test_a_search_finds_all_vectors_filed(tmp_path: Path, exact_cases: int) -> None:
    """Of a library that is compared as a whole, and of one of which a shortlist is."""
    filled(tmp_path / "library")
    library = Library.open(tmp_path / "library", exact_cases=exact_cases)
    encode_cases(library.snapshot(), parse("raw|dtw-i"), exact_cases=exact_cases)
    before = vectors(library)
    assert len(before) == (1 if exact_cases == 100 else 2), "the coarse encoder of the shortlist as well"
    assert {len(own) for own in before.values()} == {12}
    library.search(windows(1, seed=3), method="raw|dtw-i")
    assert vectors(library) == before
    assert encode_cases(library.snapshot(), parse("raw|dtw-i"), exact_cases=exact_cases) == 0


def test_vectors_and_answers_are_those_of_a_plain_search(tmp_path: Path) -> None:
    plain, ahead = filled(tmp_path / "plain"), filled(tmp_path / "ahead")
    assert encode_cases(ahead.snapshot(), parse(METHOD)) == 12
    assert answers(ahead) == answers(plain)
    assert vectors(ahead) == vectors(plain)


@pytest.mark.usefixtures("small_blocks")
def test_what_a_killed_writer_has_filed_is_not_computed_again(tmp_path: Path) -> None:
    library = filled(tmp_path / "library")

    def dying(work: Callable[[Item], Result], items: Sequence[Item], /) -> Iterator[Result]:
        for item in items[:2]:
            yield work(item)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode_cases(library.snapshot(), parse(METHOD), dying)
    assert encode_cases(library.snapshot(), parse(METHOD)) == 12 - 2 * 2


def test_the_command_encodes_what_is_missing(tmp_path: Path) -> None:
    Library.create(tmp_path / "library")
    words = ["cases", "optimise", str(tmp_path / "library"), "--warm", "--method", METHOD, "--executor", "local"]
    assert CliRunner().invoke(app, words).output.startswith("computed 0 vectors\n")
    Library.open(tmp_path / "library").add(windows(5))
    assert CliRunner().invoke(app, words).output.startswith("computed 5 vectors\n")
    assert CliRunner().invoke(app, words).output.startswith("computed 0 vectors\n")


def test_files_with_other_fault_types_become_one_set(tmp_path: Path) -> None:
    files = csv_files(tmp_path / "files")
    parts = [read.windows for read in read_files(files, Roles(time="step", case="case", label="fault"), (None, None))]
    assert len({part.classes for part in parts}) > 1
    joined = join_windows(parts)
    assert joined.ids.tolist() == windows(12).ids.tolist()
    np.testing.assert_allclose(joined.values(7), windows(12).values(7), rtol=1e-6)


def test_one_bad_file_and_nothing_comes_in(tmp_path: Path) -> None:
    files = csv_files(tmp_path / "files")
    files[3].write_text("step,case,fault,pressure\n0,w6,leak,?\n")
    Library.create(tmp_path / "library")
    words = ["cases", "add", str(tmp_path / "library"), *map(str, files), "--time", "step", "--case", "case"]
    done = CliRunner().invoke(app, [*words, "--executor", "local"])
    assert done.exit_code
    assert isinstance(done.exception, DataError)
    assert "3.csv" in str(done.exception)
    assert len(Library.open(tmp_path / "library")) == 0
    with pytest.raises(DataError, match=r"no file .*gone\.csv"):
        read_files([tmp_path / "gone.csv"], Roles(), (None, None))


class Killing:
    """Kills one worker at its work after the first result."""

    def __init__(self, each: InOrder) -> None:
        self.each = each
        self.killed: list[int] = []

    def __call__(self, work: Callable[[Item], Result], items: Sequence[Item], /) -> Iterator[Result]:
        def slowly(item: Item) -> Result:
            time.sleep(0.5)  # so that somebody is at work when the first result is there
            return work(item)

        deadline = time.monotonic() + 60
        for result in self.each(slowly, items):
            while not self.killed and time.monotonic() < deadline:
                if working := workers_at_work():
                    self.killed = working[:1]
                    os.kill(working[0], signal.SIGKILL)
                time.sleep(0.05)
            yield result


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """A cluster of two workers on this machine."""
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("cluster", "small_blocks")
def test_a_worker_killed_on_the_way_changes_no_vector(tmp_path: Path) -> None:
    plain, far = filled(tmp_path / "plain", 24), filled(tmp_path / "far", 24)
    each = Killing(InOrder(RayCluster()))
    assert encode_cases(far.snapshot(), parse(METHOD), each) == encode_cases(plain.snapshot(), parse(METHOD)) == 24
    assert each.killed
    assert vectors(far) == vectors(plain)
    assert answers(far) == answers(plain)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("cluster")
def test_the_command_brings_in_the_same_library_through_ray(tmp_path: Path) -> None:
    files = csv_files(tmp_path / "files")
    said = {}
    for name, options in {"plain": [], "far": ["--executor", "ray", "--method", METHOD]}.items():
        Library.create(tmp_path / name).add_normals(normals(10))
        words = ["--time", "step", "--case", "case", "--label-column", "fault", *options]
        done = CliRunner().invoke(app, ["cases", "add", str(tmp_path / name), *map(str, files), *words])
        assert not done.exit_code, done.output
        said[name] = done.output
    assert said["far"].startswith("added 12 cases\n")
    assert said["far"].endswith("computed 12 vectors\n")
    plain, far = (Library.open(tmp_path / name) for name in said)
    assert [c.model_dump(exclude={"changed"}) for c in far.cases()] == [
        c.model_dump(exclude={"changed"}) for c in plain.cases()
    ]
    assert [change.what for change in far.history()] == ["normals", "add"]
    before = vectors(far)
    assert answers(far) == answers(plain)
    assert vectors(far) == before == vectors(plain)
