"""Windows that grow into a fault: each onset of a source, seen 0, 1/16, 1/8, ... of a window's length after it.

The window always has its full length; what is not after the onset is the time before. Where a recording has less than
that before the onset, what it has is played backwards in front of it, so that no level jumps. The time before the
window comes along as context: normal rows before its first step or, where too few are left, before the onset.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol._build import Built, build, build_fingerprint
from readbench.benchmark.protocol._clean import clean
from readbench.benchmark.protocol._compose import Composition, order_stratified
from readbench.benchmark.protocol._cut import LEAST_BEFORE, merge_onsets
from readbench.benchmark.protocol._source import Cuts, Protocol, Recording, Resolvable, Source, SourceInfo
from readbench.benchmark.protocol._task import Task, compose_task, split_windows
from readbench.common.files import data_root, digest
from readbench.common.progress import SILENT, Progress
from readbench.engine.windows import NORMAL, WindowSet, concatenate
from readbench.errors import DataError

SHARES = (0.0, 1 / 16, 1 / 8, 1 / 4, 3 / 8, 1 / 2, 3 / 4, 1.0)
"""Ends of the windows after the onset, as shares of their length."""
REACH = {"itu_5gc": 0.5}
"""Sources whose recordings end sooner than one window after the onset, and the last share that they all have."""
APART = frozenset({"bearings", "phmap23", "rcaeval"})
"""Sources that may bring normal operation of another day along: what lies just before their faults is not known."""
LEAST_LEAD = 0.25
"""Fewest normal rows before an onset, as a share of the window's length."""
ONSETS = 40
"""Most onsets of a task."""
QUIET = 120
"""Most normal windows of the held-out side, by which notices are counted."""


@dataclass(frozen=True)
class Onset:
    """Where a fault begins: the step, the rows before it that show no fault, and the fault type."""

    step: int
    lead: int
    label: int


def shares_of(name: str) -> tuple[float, ...]:
    """The shares at which a source is asked.

    >>> len(shares_of("skab")), shares_of("itu_5gc")[-1]
    (8, 0.5)
    """
    return tuple(share for share in SHARES if share <= REACH.get(name, 1.0))


def find_onsets(labels: NDArray[np.int32], length: int, reach: float) -> list[Onset]:
    """Steps at which a fault begins after enough rows without one, with no other fault in the time that is looked at.

    >>> find_onsets(np.array([0, 0, 0, 2, 2, 2, 2, 0, 1, 1], np.int32), 4, 1.0)
    [Onset(step=3, lead=3, label=2)]
    """
    faulty = labels > NORMAL
    begins = np.flatnonzero(faulty & ~np.concatenate([[False], faulty[:-1]]))
    ends = np.flatnonzero(faulty & ~np.concatenate([faulty[1:], [False]])) + 1
    found = []
    for number, step in enumerate(begins.tolist()):
        lead = step - (int(ends[number - 1]) if number else 0)
        after = labels[step : step + round(reach * length)]
        alone = np.isin(after, [labels[step], *(code for code in (NORMAL, -1))]).all()
        if lead >= max(1, LEAST_LEAD * length) and len(after) == round(reach * length) and alone:
            found.append(Onset(step, lead, int(labels[step])))
    return found


@dataclass(eq=False)
class OnsetSource:
    """A source of which every onset is a recording, from one window before it to as much after it.

    Args:
        source: whose onsets.
    """

    source: Source

    @property
    def info(self) -> SourceInfo:
        """Facts of the source."""
        return self.source.info

    def fingerprint(self, root: Path | None) -> str:
        """Hash of the source's windows, and of where its onsets are cut."""
        apart = ("apart",) if self.info.name in APART else ()
        return digest("onsets", build_fingerprint(self.source, root), shares_of(self.info.name), LEAST_LEAD, *apart)

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """Stream the onsets, in the order of the source; a recording without one is an empty one."""
        for recording in self.source.recordings(root):
            known = replace(recording, before=None) if self.info.name in APART else recording
            yield from cut_onsets(known, self.info.protocol, shares_of(self.info.name))


def cut_onsets(recording: Recording, protocol: Protocol, shares: tuple[float, ...]) -> Iterator[Recording]:
    """The onsets of a recording, each as a recording of its own with one window a share."""
    recording = clean(recording, protocol.missing)
    length = protocol.length
    if length is None or not recording.values.size:
        return
    earlier = recording.values[:, :0] if recording.before is None else recording.before
    rows = np.concatenate([earlier, recording.values], axis=1).astype(np.float32)
    own = merge_onsets(recording.labels, protocol.onset_codes)
    labels = np.concatenate([np.full(earlier.shape[1], NORMAL, np.int32), own])
    for onset in find_onsets(labels, length, shares[-1]):
        first = onset.step - min(onset.lead, length)
        stop = onset.step + round(shares[-1] * length)
        missing = length - (onset.step - first)
        values = np.concatenate([_mirror(rows[:, first : onset.step], missing), rows[:, first:stop]], axis=1)
        starts = np.array([round(share * length) for share in shares], np.intp)
        normal = np.flatnonzero(labels[: onset.step] == NORMAL)
        befores = [_before(rows, normal, onset.step - length + int(start), protocol, length) for start in starts]
        yield replace(
            recording,
            id=f"{recording.id}#{onset.step - earlier.shape[1]}",
            values=values,
            labels=np.concatenate([np.full(length, NORMAL, np.int32), labels[onset.step : stop]]),
            start=recording.start + recording.step * (onset.step - earlier.shape[1] - length),
            before=None,
            cuts=Cuts(starts, np.full(len(starts), onset.label, np.int32), tuple(befores)),
        )


def _mirror(rows: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    """(C, count) what stands in front of rows: the rows backwards, and forwards again where that is too little."""
    return np.pad(rows, ((0, 0), (count, 0)), mode="symmetric")[:, :count]


def _before(
    rows: NDArray[np.float32], normal: NDArray[np.intp], first: int, protocol: Protocol, length: int
) -> NDArray[np.float32] | None:
    """The latest normal rows before the window, or where those are too few, before the onset."""
    if protocol.before == "none":
        return None
    least = protocol.before_least or max(1, int(LEAST_BEFORE * length))
    apart = normal[normal < first]
    chosen = (apart if len(apart) >= least else normal)[-protocol.before_steps :]
    return np.ascontiguousarray(rows[:, chosen]) if len(chosen) >= min(least, len(normal)) else None


@dataclass(frozen=True, eq=False)
class OnsetTask:
    """A task whose queries are growing windows and, behind them, quiet ones.

    Args:
        task: queries are the windows of all onsets at the first share, at the second, ..., then the quiet ones.
        shares: S of them.
        onsets: O.
        calibrated: (quiet,) which of the quiet windows a threshold may be set by; the others measure it.
    """

    task: Task
    shares: tuple[float, ...]
    onsets: int
    calibrated: NDArray[np.bool_]


def build_onsets(
    source: Source, root: Path | None = None, cache: Path | None = None, progress: Progress = SILENT
) -> Built:
    """Windows of all onsets of a source, cached as those of a source are; S of one onset follow each other."""
    root = data_root(root)
    if isinstance(source, Resolvable):
        source = source.resolved(root)
    if source.info.protocol.length is None:
        raise DataError(f"{source.info.name} has no window length: a recording is a window, and its onset is unknown.")
    try:
        return build(OnsetSource(source), root, cache, progress)
    except DataError as error:
        if "gave no labelled window" not in str(error):
            raise
        raise DataError(
            f"{source.info.name}: no recording has an onset with {LEAST_LEAD:.0%} of a window before it and a whole one"
            " after it."
        ) from error


def compose_onsets(built: Built, onsets: Built, *, seed: int, settings: Composition) -> OnsetTask:
    """The usual task of a seed, asked about the onsets of its held-out side and about normal windows of that side.

    Args:
        built: all windows of the source.
        onsets: those of its onsets.
        seed: of split and draws.
        settings: sizes of the corpus.
    """
    task, shares = compose_task(built, seed=seed, settings=settings), shares_of(built.info.name)
    windows, rng = built.windows, np.random.default_rng([seed, 0x0E])
    test = split_windows(built, seed, settings).test
    held = np.unique(windows.groups[test])
    faults, known = onsets.windows[:: len(shares)], task.corpus.labels[task.corpus.labels > NORMAL]
    groups = np.unique(np.concatenate([task.corpus.groups, task.normals.groups]))
    free = np.isin(faults.groups, held) & np.isin(faults.labels, known) & ~np.isin(faults.groups, groups)
    chosen = order_stratified(np.flatnonzero(free), faults.labels, ONSETS, rng)
    if not len(chosen):
        raise DataError(f"{built.info.name}: split seed {seed} holds out no onset of a fault that the corpus has.")
    quiet = _draw_quiet(windows, np.flatnonzero(test & (windows.labels == NORMAL)), rng)
    places = (np.arange(len(shares))[:, None] + chosen * len(shares)).ravel()
    queries = concatenate([onsets.windows[places], windows[quiet]])
    _, codes = np.unique(windows.groups[quiet], return_inverse=True)
    several = int(codes.max(initial=0)) > 0
    calibrated = (codes if several else np.arange(len(quiet))) % 2 == 0
    return OnsetTask(replace(task, queries=queries), shares, len(chosen), calibrated)


def _draw_quiet(windows: WindowSet, normals: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.intp]:
    """At most `QUIET` normal windows, as evenly from recordings as there are some."""
    order = rng.permutation(normals)
    _, codes = np.unique(windows.groups[order], return_inverse=True)
    turn = np.zeros(len(order), np.intp)
    for code in np.unique(codes):
        own = np.flatnonzero(codes == code)
        turn[own] = np.arange(len(own))
    return np.sort(order[np.argsort(turn, kind="stable")[:QUIET]])
