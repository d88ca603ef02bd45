"""A task: everything one evaluation needs, for one dataset and one split seed; and the file that describes one.

`write_facts` and `read_facts` keep typed facts as JSON files: what comes back is of the declared types, or an error
says where it is not. So `task.json` (`TaskFile`) holds what a folder with an exported task says about it, and what is
needed to make it a task again.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol._build import Built, build
from readbench.benchmark.protocol._compose import Composition, Selection, select, select_ready
from readbench.benchmark.protocol._source import Source, SourceInfo
from readbench.benchmark.protocol._split import Split, check_seeds, split_by_group
from readbench.common.files import digest, write_json
from readbench.common.progress import SILENT, Progress
from readbench.engine.preparation import ChannelStats, lend_before
from readbench.engine.windows import NORMAL, WindowSet
from readbench.errors import DataError


@dataclass(frozen=True, eq=False)
class Task:
    """Queries, corpora at all pollution levels, and normals.

    Example: `load_task("sim_tanks").corpus_at(20).labels`

    Args:
        info: the source.
        seed: seed of split and composition.
        queries: Q labelled anomalies of the test side. Methods never see this set, only `queries.anonymous()`.
        corpus: the corpus at the highest level, normals shuffled among anomalies, so that ties cannot favour either.
            Carries the channel statistics of the clean corpus.
        levels: rho in percent -> ascending positions in `corpus` of the items of that level; nested.
        normals: normals of the train side for scores relative to normal operation.
        notes: what the build wants its reader to know.
        origin: dataset and seed that a ready-made task was exported from: it is the same task under any name.
    """

    info: SourceInfo
    seed: int
    queries: WindowSet
    corpus: WindowSet
    levels: dict[int, NDArray[np.intp]]
    normals: WindowSet
    notes: tuple[str, ...] = ()
    origin: tuple[str, int] | None = None

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(positions)} at rho {rho}" for rho, positions in sorted(self.levels.items()))
        return (
            f"Task({self.info.name!r}, seed {self.seed}: {len(self.queries)} queries; corpus of {sizes};"
            f" {len(self.normals)} normals)\n  queries: {self.queries!r}"
        )

    def corpus_at(self, rho: int) -> WindowSet:
        """The corpus at one pollution level, in the order of the largest."""
        return self.corpus[self.levels[rho]]

    def fingerprint(self) -> str:
        """Hash of every value, label and name in the task; the statistics follow from them."""
        parts = [s.with_stats(None).fingerprint() for s in (self.queries, self.corpus, self.normals)]
        levels = [(rho, positions.tolist()) for rho, positions in sorted(self.levels.items())]
        name, seed = self.origin or (self.info.name, self.seed)
        return digest(name, seed, parts, levels)


def load_task(
    source: Source | str,
    seed: int = 0,
    root: str | Path | None = None,
    cache: str | Path | None = None,
    settings: Composition | None = None,
    progress: Progress = SILENT,
) -> Task:
    """Build (or open) the windows of a source and compose one task from them.

    Example: `load_task("sim_tanks(difficulty=2)", seed=1).queries`

    Args:
        source: a source, or a text of the grammar, such as `sim_tanks(difficulty=2)`.
        seed: of split and composition.
        root: data root, `READBENCH_DATA` by default; not needed by simulated sources.
        cache: cache root; that of the user by default.
        settings: sizes of the task; the benchmark's by default.
        progress: told how far a build has come.
    """
    check_seeds([seed])
    data, kept = (None if given is None else Path(given) for given in (root, cache))
    return compose_task(build(source, data, kept, progress), seed=seed, settings=settings or Composition())


def compose_task(built: Built, *, seed: int, settings: Composition) -> Task:
    """Split and compose windows that are already built."""
    info, windows = built.info, built.windows
    chosen = _choose(built, seed, settings)
    if not len(chosen.queries):
        raise DataError(
            f"{info.name}: split seed {seed} leaves no query with a relevant corpus item. Try another seed."
        )
    if info.protocol.composition == "query-classes":
        windows = _others_as_normal(windows, windows.labels[chosen.queries])
    task = task_of(built, windows, chosen, seed)
    return replace(task, notes=(*task.notes, *_unasked(task.corpus, task.queries, settings)))


def task_of(built: Built, windows: WindowSet, chosen: Selection, seed: int) -> Task:
    """The task of chosen windows: cases borrow the time before, and channels are scaled by the clean corpus.

    Args:
        built: the source.
        windows: its windows, with the labels that count.
        chosen: which of them are what.
        seed: that they were chosen by.
    """
    queries, normals = windows[chosen.queries], windows[chosen.normals]
    corpus = lend_before(windows[chosen.corpus], normals)
    return Task(
        info=built.info,
        seed=seed,
        queries=queries,
        corpus=corpus.with_stats(ChannelStats.of(corpus[corpus.labels > NORMAL])),
        levels=chosen.levels,
        normals=normals,
        notes=chosen.notes,
        origin=built.parts.origin if built.parts else None,
    )


def find_copies(built: Built, seeds: Sequence[int], settings: Composition) -> dict[int, int]:
    """Split seeds that hold out what an earlier one of them does: seed -> the earlier one."""
    corpora = {}
    for seed in seeds:
        chosen = _choose(built, seed, settings)
        items = chosen.corpus[chosen.levels[min(chosen.levels)]]
        corpora[seed] = items[built.windows.labels[items] > NORMAL].tolist()
    return find_same_corpora(corpora)


def find_same_corpora(corpora: Mapping[int, Iterable[Hashable]]) -> dict[int, int]:
    """Split seeds whose corpora hold the same cases as that of an earlier one: seed -> the earlier one.

    Whatever is drawn besides, such as other queries of the same assets, tells of the same split.

    >>> find_same_corpora({0: ["a", "b"], 1: ["b", "a"], 2: ["a", "c"]})
    {1: 0}
    """
    first: dict[frozenset[Hashable], int] = {}
    found = {seed: first.setdefault(frozenset(items), seed) for seed, items in corpora.items()}
    return {seed: earlier for seed, earlier in found.items() if earlier != seed}


def _choose(built: Built, seed: int, settings: Composition) -> Selection:
    if built.parts is not None:
        return select_ready(built.parts, settings, seed)
    split = split_windows(built, seed, settings)
    chosen = select(built.windows.labels, split.test, settings, seed, built.info.protocol.composition)
    return replace(chosen, notes=(*split.notes, *chosen.notes))


def _others_as_normal(windows: WindowSet, asked: NDArray[np.int32]) -> WindowSet:
    """Windows of classes that no query has stand in for normals."""
    return replace(windows, labels=np.where(np.isin(windows.labels, asked), windows.labels, NORMAL).astype(np.int32))


def _unasked(corpus: WindowSet, queries: WindowSet, settings: Composition) -> tuple[str, ...]:
    """Which classes an asset-disjoint split leaves without queries."""
    if settings.split_by == "group":
        return ()
    missing = np.setdiff1d(corpus.labels[corpus.labels > NORMAL], queries.labels)
    names = ", ".join(corpus.classes[label] for label in missing)
    return (f"classes without queries when assets are held out: {names}",) if names else ()


def split_windows(built: Built, seed: int, settings: Composition) -> Split:
    """Which windows of a source are held out."""
    windows, protocol = built.windows, built.info.protocol
    if settings.split_by == "asset":
        if (windows.assets == "").any():
            raise DataError(f"{built.info.name} does not know its assets: split it by group.")
        _, codes = np.unique(windows.assets, return_inverse=True)
    elif protocol.native_split:
        return Split(_native_test_side(built))
    else:
        _, codes = np.unique(windows.groups, return_inverse=True)
    return split_by_group(windows.labels, codes, share=protocol.test_share, seed=seed)


def _native_test_side(built: Built) -> NDArray[np.bool_]:
    groups, codes = np.unique(built.windows.groups, return_inverse=True)
    for group in groups:
        if group not in built.sides:
            raise DataError(f"Group {str(group)!r} has no side, but the source declares its own split.")
    return np.array([built.sides[group] == "test" for group in groups], bool)[codes]


T = TypeVar("T")


def write_facts(path: Path, facts: object) -> None:
    """Write a dataclass of plain values as JSON, whole or not at all."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - slow to import

    write_json(path, TypeAdapter(type(facts)).dump_python(facts, mode="json"))


def read_facts(path: Path, kind: type[T], remedy: str) -> T:
    """Read a dataclass from JSON.

    Args:
        path: the file.
        kind: the dataclass.
        remedy: what to do about a file that does not fit.
    """
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - slow to import

    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
        return TypeAdapter(kind).validate_python(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise DataError(f"{path}: {place or 'the whole'} does not fit ({first['msg']}). {remedy}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read ({error}). {remedy}") from error


TASK = "task.json"
_REMEDY = "Export the task again, or remove the file to import the folder as a task of your own."


@dataclass(frozen=True)
class TaskFile:
    """Facts of an exported task.

    Args:
        info: the source; its classes are those of the labels.
        levels: pollution levels in percent, ascending.
        origin: dataset and split seed.
        fingerprint: of the task at all its levels.
        made_from: that of the task with the ids and groups of its source; empty where these were exported.
        format: version of the layout.
    """

    info: SourceInfo
    levels: tuple[int, ...]
    origin: tuple[str, int]
    fingerprint: str
    made_from: str = ""
    format: Literal[1] = 1


def read_task_file(folder: Path) -> TaskFile | None:
    """The facts in a folder; None where there are none."""
    path = folder / TASK
    if not path.is_file():
        return None
    facts = read_facts(path, TaskFile, _REMEDY)
    if not facts.levels or list(facts.levels) != sorted({rho for rho in facts.levels if 0 <= rho < 100}):
        raise DataError(f"{path}: levels {facts.levels} are no ascending percentages below 100. {_REMEDY}")
    return facts
