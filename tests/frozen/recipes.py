"""What is frozen: the commands, how they are called, and how what they leave is read.

Only the command line is used, and files whose form is documented, so that the same recipes serve every state of the
package, however its modules are called.
"""

from __future__ import annotations

import csv
import io
import json
import os
import runpy
import sys
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
PACKED = HERE / "packed"
PLUGIN = HERE / "plugin"

DATASETS = "sim_tanks(runs=48),sim_ecg(runs=24)"
FLAGSHIP = "flagship-window"
"""What was named flagship then."""
METHODS = (
    "euclidean",
    "euclidean(norm=window)",
    "dtw-i",
    "dtw-d",
    "sbd-i",
    "sbd-d",
    "sax-bm25",
    "sfa-bm25",
    "random",
    "majority",
    "stats",
    "channel-presence",
    "rocket",
    "rocket(metric=euclidean)",
    "raw",
    "raw(metric=cosine)",
    "sonde",
    "rocket+nr",
    "rocket+nr|dtw-i",
    "rocket|2step(k=30)|dtw-i",
    "rocket+nr+prf",
    "rocket+nr+purity",
    "rocket+nr+qpurity",
    "rocket+nr+majvote",
    "rocket+nr|dtw-i+gpc",
    "dtw-i+gpc",
    "rocket+verdict",
    "rocket+verdict(pool=20)",
    "ours-dtw",
    FLAGSHIP,
    "flagship-pool",
)
BUDGETED = ("rocket+nr+gpc", "sbd-d+purity", FLAGSHIP, "flagship-pool")
DRAW = ("--seed", "0", "--cap", "50")
RUNS: dict[str, tuple[str, ...]] = {
    "methods": ("--methods", ",".join(METHODS), "--rho", "0,20"),
    "labels-query": ("--methods", ",".join(BUDGETED), "--rho", "20", "--label-budget", "20"),
    "labels-share": (
        *("--methods", ",".join(BUDGETED), "--rho", "20"),
        *("--label-budget", "10%,all", "--label-noise", "0,20"),
    ),
}
"""Runs whose numbers are kept, by the name of their golden files."""
REAL_DATASETS = ("skab", "robot_failures", "itu_5gc", "lbnl_ahu")
REAL_METHODS = (
    *("euclidean", "dtw-i", "sbd-d", "sax-bm25", "sfa-bm25", "rocket+nr+gpc"),
    *("departure", "residual", "facts", "ours", "flagship-fast"),
)
REAL_RUN = (
    *("--datasets", ",".join(REAL_DATASETS), "--methods", ",".join(REAL_METHODS)),
    *("--rho", "0,20", "--seed", "0", "--cap", "40"),
)
"""A run on real data: a method of each family, and those that read the time before a window."""
REAL_COPY = "25251ea4"
"""Check sum of the copy of these datasets that was run on (`sum_of_copy`)."""
REPORTED: dict[str, tuple[str, ...]] = {
    "embedded": (
        *("--methods", "random,majority,euclidean,dtw-i,sbd-d,sax-bm25,rocket,rocket+nr,rocket+nr|dtw-i"),
        *("--methods", "rocket+nr+gpc,rocket+purity,rocket+verdict", "--rho", "0,20", "--seeds", "0,1", "--cap", "50"),
    ),
    "budgets": (
        *("--methods", "rocket+nr+gpc,rocket+verdict", "--label-budget", "10%,all"),
        *("--rho", "0", "--seed", "0", "--cap", "50"),
    ),
}
"""Runs on embedded data whose report is kept: the first one, and the one that is shown beside it."""
REPORT_READS = ("run.json", "scores.csv", "scores_mean.csv", "per_query.parquet", "opinions.parquet")
"""Files of a run folder that tables are made of."""
DEPTH = 20
"""Places of each ranking that are kept."""
TINY = "sim_ecg(runs=12)"
TINY_RUN = (
    *("--datasets", TINY, "--methods", "euclidean,rocket(features=84)"),
    *("--rho", "0,20", "--seed", "0", "--cap", "20"),
)
"""The run whose folder, cache and submission are kept."""
STUDIED = ("--datasets", TINY, "--seeds", "0", "--methods", "rocket(features=84)+verdict")
SUBMISSION = "frozen.readbench.zip"
STUDIES = ("opinions", "active")
OWN = "frozen_pumps"
"""The dataset that was imported from `pumps.csv`."""
OWN_COLUMNS = ("--time", "t", "--label", "fault", "--group", "run", "--asset", "plant", "--window", "32")
DIVIDED = "frozen_task"
"""The dataset that was imported from `task.npz`."""
OWN_RUN = (
    *("--datasets", f"{OWN},{DIVIDED}", "--methods", "dtw-i,rocket(features=84)+nr"),
    *("--rho", "0,20", "--seed", "0"),
)
PLUGGED_RUN = (
    *("--datasets", "frozen_waves", "--methods", "peak(power=2),moments+upside,wrapped"),
    *("--rho", "0", "--seed", "0"),
)
"""A dataset, a retriever, an encoder and a reranker of the plug-in."""


class CommandError(Exception):
    """A command of the package ended with an error."""


def readbench(*arguments: str | Path) -> str:
    """What `python -m readbench ARGUMENTS` prints; in this process, since most answers take less than starting one."""
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed):
        patch.setattr(sys, "argv", ["readbench", *map(str, arguments)])
        try:
            runpy.run_module("readbench", run_name="__main__", alter_sys=False)
        except SystemExit as end:
            if end.code:
                raise CommandError(f"readbench {' '.join(map(str, arguments))} ended with {end.code}") from end
    return printed.getvalue()


@contextmanager
def environment(**variables: Path) -> Iterator[None]:
    """Paths in environment variables, for a while."""
    with pytest.MonkeyPatch.context() as patch:
        for name, path in variables.items():
            patch.setenv(name, str(path))
        yield


# Runs


Key = tuple[str, str, str, str]
"""Dataset, pollution level, label budget and method of a cell."""


def run(folder: Path, name: str) -> None:
    """One of the kept runs."""
    readbench("run", "--datasets", DATASETS, *RUNS[name], *DRAW, "--out", folder)


def report(runs: Path) -> dict[str, bytes]:
    """The tables of the report on kept runs, by their paths in it."""
    main, *beside = (runs / name for name in REPORTED)
    readbench("report", main, *(word for folder in beside for word in ("--with", folder)))
    folder = main / "report"
    tables = (*sorted((folder / "tables").rglob("*.*")), folder / "tables.md", folder / "leaderboard.md")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in tables}


def sum_of_copy(root: Path) -> str:
    """A check sum of names and sizes of the real data that are run on: others may have more of them."""
    files = sorted(path for name in REAL_DATASETS for path in (root / name).rglob("*") if path.is_file())
    return _summed([f"{path.relative_to(root).as_posix()} {path.stat().st_size}" for path in files])


def read_scores(path: Path) -> dict[Key, dict[str, str]]:
    """Rows of a `scores.csv` by cell, without the key and without what depends on the clock."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {_key(row): {name: text for name, text in row.items() if _is_result(name)} for row in rows}


def write_scores(source: Path, path: Path) -> None:
    """Keep a `scores.csv` without what depends on the clock."""
    with source.open(newline="") as file:
        rows = [{name: text for name, text in row.items() if not name.endswith("_s")} for row in csv.DictReader(file)]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _is_result(name: str) -> bool:
    return name not in {"dataset", "seed", "rho", "labels", "method"} and not name.endswith("_s")


def _key(row: Mapping[str, Any]) -> Key:
    return str(row["dataset"]), str(row["rho"]), str(row["labels"]), str(row["method"])


def read_rankings(folder: Path) -> dict[Key, dict[str, str]]:
    """Of each cell and query a check sum of its first places."""
    lists: dict[Key, dict[str, list[str]]] = {}
    for path in sorted((folder / "rankings").glob("*.parquet")):
        table = pq.read_table(path, columns=["dataset", "rho", "labels", "method", "query", "place", "item"])
        for row in table.filter(table["place"].to_numpy() <= DEPTH).to_pylist():
            lists.setdefault(_key(row), {}).setdefault(row["query"], []).append(row["item"])
    return {key: {query: _summed(items) for query, items in own.items()} for key, own in lists.items()}


def _summed(items: Sequence[str]) -> str:
    return f"{zlib.crc32(' '.join(items).encode()):08x}"


def read_opinions(folder: Path) -> dict[Key, dict[str, tuple[float, float]]]:
    """Of each cell and query the probability of the most likely fault type, and that of the true one."""
    path = folder / "opinions.parquet"
    found: dict[Key, dict[str, tuple[float, float]]] = {}
    for row in pq.read_table(path).to_pylist() if path.exists() else ():
        found.setdefault(_key(row), {})[row["query"]] = (row["confidence"], row["truth"])
    return found


def read_tasks(folder: Path) -> dict[str, str]:
    """Fingerprints of the tasks of a run."""
    tasks: dict[str, str] = json.loads((folder / "run.json").read_text())["tasks"]
    return tasks


def keyed(content: Mapping[Key, Any]) -> dict[str, Any]:
    """The same with the cells as texts, as JSON needs them."""
    return {" / ".join(key): value for key, value in content.items()}


# The library

ROCKET = "rocket(features=252)|dtw-i+verdict"
"""A method that answers fast."""
WHOLE = tuple(f"whole-{number}" for number in range(1, 7))
GAPPY = tuple(f"gaps-{number}" for number in range(1, 5))
TABLE = ("--time", "t")
CASE_COLUMNS = (*TABLE, "--case", "case", "--label-column", "fault", "--asset-column", "asset")
FEEDBACK: tuple[tuple[str, ...], ...] = (
    ("label", "case-095", "--unlike", "case-000"),
    ("label", "case-096", "--unlike", "case-001"),
    ("label", "case-097", "--like", "case-002"),
    ("label", "case-098", "surge"),
    ("label", "case-003", "--note", "Seal replaced."),
    ("delete", "case-004", "case-005"),
    ("undo",),
    ("delete", "case-006"),
)
"""What was said of the cases after they came in; the argument after the verb is the library."""
ABOUT: dict[str, tuple[str, ...]] = {
    "case-099": ("search", "case-099", "--method", FLAGSHIP),
    "next": ("review", "-k", "5", "--method", FLAGSHIP),
    "doubtful": ("review", "--what", "doubtful", "-k", "10", "--method", FLAGSHIP),
    "stats": ("list", "--counts"),
}
"""Questions about the library itself."""


def make_library(where: Path, inputs: Path, cases: str) -> None:
    """A library from tables: normals, a hundred cases, and what was said of them since."""
    readbench("cases", "init", where)
    for asset in ("pump 1", "pump 2", ""):
        named = ("--asset", asset) if asset else ()
        readbench("cases", "normals", where, inputs / f"normals{asset[-1:]}.csv", *TABLE, "--length", "32", *named)
    readbench("cases", "add", where, inputs / cases, *CASE_COLUMNS, "--tag", "frozen")
    for verb, *rest in FEEDBACK:
        readbench("cases", verb, where, *rest)


def ask(where: Path, inputs: Path, windows: Sequence[str]) -> dict[str, Any]:
    """All answers about some windows, by question."""

    def search(window: str, *options: str) -> tuple[str | Path, ...]:
        return "search", where, inputs / f"{window}.csv", *TABLE, *options

    first = windows[0]
    asked: dict[str, tuple[str | Path, ...]] = {
        f"{window} flagship": search(window, "--method", FLAGSHIP) for window in windows[::2]
    }
    asked |= {f"{window} rocket": search(window, "--method", ROCKET) for window in windows}
    others = ("dtw-i", "sonde|sbd-d", "euclidean")
    asked |= {f"{first} {method}": search(first, "--method", method) for method in others}
    asked[f"{first} leak"] = search(first, "--label", "leak", "-k", "3", "--method", ROCKET)
    asked[f"{first} then"] = search(first, "--as-of", "4", "-k", "3", "--method", ROCKET)
    asked[f"{first} explain"] = ("explain", where, inputs / f"{first}.csv", "case-007", *TABLE, "--asset", "pump 1")
    return {question: _answer(*words) for question, words in asked.items()}


def ask_about(where: Path) -> dict[str, Any]:
    """What the library says of its own cases."""
    return {question: _answer(verb, where, *rest) for question, (verb, *rest) in ABOUT.items()}


def _answer(*words: str | Path) -> Any:  # noqa: ANN401 - any JSON
    return _lasting(json.loads(readbench("cases", *words, "--json")))


def _lasting(content: Any) -> Any:  # noqa: ANN401 - any JSON
    """Without what depends on the clock, and without series, which the numbers of evidence follow from."""
    left_out = {"changed", "window_series", "case_series"}
    if isinstance(content, dict):
        return {name: _lasting(value) for name, value in content.items() if name not in left_out}
    return [_lasting(value) for value in content] if isinstance(content, list) else content


# Files


def pack(folder: Path, archive: Path) -> None:
    """A folder as an archive that is the same for the same content."""
    with tarfile.open(archive, "w:xz") as tar:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            tar.add(path, path.relative_to(folder).as_posix(), filter=_plain)


def unpack(name: str, folder: Path) -> Path:
    """A packed folder, laid out anew."""
    with tarfile.open(PACKED / f"{name}.tar.xz") as tar:
        tar.extractall(folder, filter="data")
    return folder


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    return info


def install_plugin(site: Path) -> Path:
    """Lay the plug-in out in a folder as an installer does; its sources are kept as text that no tool alters."""
    for source in sorted(path for path in PLUGIN.rglob("*") if path.is_file()):
        target = site / source.relative_to(PLUGIN).as_posix().replace(".py.txt", ".py")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())
    return site


def with_site(site: Path) -> dict[str, str]:
    """The environment of a process that finds the packages in a folder beside those that this one finds."""
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    return os.environ | {"PYTHONPATH": path}
