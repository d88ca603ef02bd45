"""The windows that a case browser draws, kept in `gallery.parquet` of the run folder.

One row per query and per window among the first ten of any list, by dataset and split seed: class, origin, fault span
and a sketch of the channels that best separate the classes. The file has a fixed size limit: more windows get coarser
sketches. Sources whose licence forbids redistribution have rows without sketches. The metadata hold channel units and
window counts by class.

The content follows from rankings and data. A report makes it where the data are available, and again only when the
rankings change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from readbench.benchmark.protocol import Task, load_task
from readbench.benchmark.report._results import Results
from readbench.benchmark.runs import PublishedFolder, RunFolder, open_folder, plan_of
from readbench.common.progress import SILENT, Progress
from readbench.engine.preparation import channel_axis, thin_series
from readbench.engine.windows import NORMAL, WindowSet, concatenate
from readbench.errors import ReadbenchError, RunError

FINEST = 512
"""Most points of a channel."""
COARSEST = 64
"""Fewest points that a channel is thinned to."""
LEVELS = 65_535
"""Quantisation steps between the lowest and the highest value of a channel."""


@dataclass(frozen=True, eq=False)
class Sketch:
    """Quantised channels of one window.

    Args:
        low: (C,) value of code 0.
        high: (C,) value of the highest code; equal to `low` for a constant channel.
        codes: (C, P) little-endian uint16, P at most `FINEST`.
    """

    low: NDArray[np.float32]
    high: NDArray[np.float32]
    codes: NDArray[np.uint16]

    def values(self) -> NDArray[np.float64]:
        """(C, P) values, accurate to 1/65535 of the channel's range."""
        low = self.low.astype(np.float64)[:, None]
        return low + self.codes / LEVELS * (self.high.astype(np.float64)[:, None] - low)


def sketch(values: NDArray[np.float32], points: int = FINEST) -> Sketch:
    """Thin a window (C, T) to at most `points` values per channel and quantise them.

    >>> drawn = sketch(np.array([[0, 1, 5, 1, 0, 0]], np.float32), points=4)
    >>> drawn.values().round(3).tolist()
    [[0.0, 5.0, 1.0, 0.0]]
    """
    thin = thin_series(values, points).astype(np.float64)
    low, high = thin.min(axis=1), thin.max(axis=1)
    scale = np.where(high > low, high - low, 1.0)
    codes = np.rint((thin - low[:, None]) / scale[:, None] * LEVELS).astype("<u2")
    return Sketch(low.astype(np.float32), high.astype(np.float32), codes)


def points_within(budget: int, shapes: Iterable[tuple[int, int]]) -> int:
    """Finest halving of `FINEST` at which windows of `shapes` (channels, points) together have at most `budget` values.

    >>> [points_within(budget, [(1_000, 512)]) for budget in (1_000_000, 100_000, 1)]
    [512, 64, 64]
    """
    points, sizes = FINEST, list(shapes)
    while points > COARSEST and sum(channels * min(own, points) for channels, own in sizes) > budget:
        points //= 2
    return points


MAX_WINDOWS = 2_000
"""Largest number of windows that are compared; evenly spaced ones of more."""


@dataclass(frozen=True, eq=False)
class ChannelRelevance:
    """Separation of each class from all other windows, by channel.

    Args:
        channels: all channel names of the corpus.
        labels: (K,) classes with windows, without normal.
        departure: (K, C) in standard deviations; 0 if a class lacks the channel.
    """

    channels: tuple[str, ...]
    labels: NDArray[np.int32]
    departure: NDArray[np.float64]

    def order(self) -> tuple[str, ...]:
        """All channels, ordered greedily so that the first few separate every class as well as possible.

        A channel covers a class by the ratio of its departure to that of the class's best channel. Each place goes to
        the channel that adds most to the coverage of all classes together.
        """
        share = self.departure / np.maximum(self.departure.max(axis=1, initial=0.0, keepdims=True), 1e-12)
        seen = np.zeros((len(share), 1))
        order: list[int] = []
        while len(order) < len(self.channels):
            gain = np.maximum(share - seen, 0.0).sum(axis=0)
            best = int(gain.argmax())
            if gain[best] <= 0.0:
                break
            order.append(best)
            seen = np.maximum(seen, share[:, [best]])
        rest = sorted(set(range(len(self.channels))) - set(order), key=lambda c: -float(share[:, c].sum()))
        return tuple(self.channels[c] for c in (*order, *rest))

    def best(self, among: Collection[str]) -> dict[int, str]:
        """Class -> channel with the largest departure among these."""
        places = [c for c, name in enumerate(self.channels) if name in among]
        best = self.departure[:, places].argmax(axis=1)
        return {int(k): self.channels[places[c]] for k, c in zip(self.labels, best, strict=True)}


def rank_channels(corpus: WindowSet) -> ChannelRelevance:
    """Compare mean, deviation and mean absolute step of each channel between each class and the rest."""
    if len(corpus) > MAX_WINDOWS:
        corpus = corpus[np.linspace(0, len(corpus) - 1, MAX_WINDOWS).astype(np.intp)]
    channels = channel_axis(corpus)
    features = _features(corpus, channels)
    labels = np.unique(corpus.labels[corpus.labels > NORMAL])
    departure = np.zeros((len(labels), len(channels)))
    for k, label in enumerate(labels):
        departure[k] = _departure(features[corpus.labels == label], features[corpus.labels != label])
    return ChannelRelevance(channels, labels, departure)


def _departure(own: NDArray[np.float64], rest: NDArray[np.float64]) -> NDArray[np.float64]:
    """(C,) largest difference of means over the features (N, C, 3), in pooled deviations."""
    (mean, spread), (other, other_spread) = _moments(own), _moments(rest)
    pooled = np.sqrt((spread**2 + other_spread**2) / 2)
    floor = 1e-6 * (np.abs(mean) + np.abs(other)) + 1e-12
    apart = np.abs(mean - other) / np.maximum(pooled, floor)
    return np.nan_to_num(apart, nan=0.0).max(axis=1)


def _moments(features: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(C, 3) mean and deviation over the windows with the channel; NaN without any."""
    present = ~np.isnan(features)
    count = np.where(present.any(axis=0), present.sum(axis=0), np.nan)
    mean = np.where(present, features, 0.0).sum(axis=0) / count
    return mean, np.sqrt((np.where(present, features - mean, 0.0) ** 2).sum(axis=0) / count)


def _features(windows: WindowSet, channels: tuple[str, ...]) -> NDArray[np.float64]:
    """(N, C, 3) mean, deviation and mean absolute step; NaN if a window lacks the channel."""
    place = {name: c for c, name in enumerate(channels)}
    rows = [np.array([place[name] for name in names], np.intp) for names in windows.channel_sets]
    out = np.full((len(windows), len(channels), 3), np.nan)
    for i in range(len(windows)):
        values = windows.values(i).astype(np.float64)
        steps = np.abs(np.diff(values, axis=1, prepend=values[:, :1])).mean(axis=1)
        out[i, rows[windows.channel_set[i]]] = np.stack([values.mean(axis=1), values.std(axis=1), steps], axis=1)
    return out


FORMAT = 1
"""Version of the file; raise it when the same rankings give another one."""
DEPTH = 10
"""Places of each list that are shown."""
MAX_CHANNELS = 6
"""Most channels of a sketch."""
MAX_VALUES = 2_500_000
"""Most values of all sketches of a task: 5 MB before compression."""
PLAIN = ("window", "query", "label", "group", "asset", "length", "channels")
"""Columns that are fields of `GalleryWindow` under the same name."""
SCHEMA = pa.schema(
    {
        "dataset": pa.string(),
        "seed": pa.int32(),
        "window": pa.string(),
        "query": pa.bool_(),
        "label": pa.string(),
        "group": pa.string(),
        "asset": pa.string(),
        "length": pa.int32(),
        "start": pa.int32(),
        "stop": pa.int32(),
        "channels": pa.list_(pa.string()),
        "low": pa.list_(pa.float32()),
        "high": pa.list_(pa.float32()),
        "codes": pa.binary(),
    }
)

Facts = dict[str, dict[str, Any]]
Loader = Callable[[str, int], Task]
"""The task of a dataset and a split seed."""


@dataclass(frozen=True, eq=False)
class GalleryWindow:
    """One window of the gallery.

    Args:
        window: id.
        query: True for a query, False for an item of the corpus.
        label: class name.
        group: split group.
        asset: machine, well or patient; "" if unknown.
        length: number of steps.
        span: first and one past the last faulty step; equal if unknown.
        channels: names of the drawn channels, the most separating first.
        drawn: the sketch, or None if the licence forbids it.
    """

    window: str
    query: bool
    label: str
    group: str
    asset: str
    length: int
    span: tuple[int, int]
    channels: tuple[str, ...]
    drawn: Sketch | None


@dataclass(frozen=True, eq=False)
class Gallery:
    """The gallery of a run.

    Args:
        exhibits: (dataset, split seed) -> queries, then items, both by id.
        facts: dataset -> `units` by channel and `tasks` by seed: class -> number of `queries`, of items in the largest
            `corpus`, and its most separating channel (`telling`).
    """

    exhibits: dict[tuple[str, int], list[GalleryWindow]]
    facts: Facts


def keep_gallery(results: Results, load: Loader) -> str:
    """Make the gallery of a run unless it is up to date; returns why it could not be made, else an empty text."""
    folder = open_folder(results.folder)
    if isinstance(folder, PublishedFolder):
        return "Published rows hold no series; the page of a run of your own has cases."
    datasets = [dataset for dataset in results.datasets if folder.holds_rankings(dataset)]
    if not datasets:
        return "This run folder holds no rankings, from which cases are chosen."
    origin = folder.hash_rankings(datasets, FORMAT)
    known = folder.read_gallery()
    if known is not None and known[1].get("origin") == origin:
        return ""
    try:
        table, facts = draw_gallery(folder, datasets, load)
    except (ReadbenchError, OSError) as error:
        return f"Cases are drawn from the data, which are not at hand here: {error}"
    folder.write_gallery(table, {"origin": origin, "datasets": facts})
    return ""


def tasks_of(
    results: Results, root: Path | None = None, cache: Path | None = None, progress: Progress = SILENT
) -> Loader:
    """A loader of the tasks of a run; it raises `RunError` for data that changed since the run."""
    settings = plan_of(results.manifest).composition

    def load(dataset: str, seed: int) -> Task:
        task = load_task(dataset, seed, root, cache, settings, progress)
        ranked = results.manifest.get("tasks", {}).get(f"{dataset}/seed-{seed}")
        if ranked != task.fingerprint():
            raise RunError(f"{dataset} under split seed {seed} is not the task that was run; its data have changed.")
        return task

    return load


def draw_gallery(folder: RunFolder, datasets: Iterable[str], load: Loader) -> tuple[pa.Table, Facts]:
    """Queries and the windows found for them, with facts about each dataset."""
    tables: list[pa.Table] = []
    facts: Facts = {}
    for dataset in datasets:
        for seed, wanted in _tops(folder, dataset).items():
            task = load(dataset, seed)
            told = rank_channels(task.corpus)
            units = {channel.name: channel.unit for channel in task.info.channels if channel.unit}
            facts.setdefault(dataset, {"units": units, "tasks": {}})["tasks"][str(seed)] = _task_facts(task, told)
            rows = [_row(dataset, seed, exhibit) for exhibit in _exhibits(task, told, wanted)]
            tables.append(_sort(pa.Table.from_pylist(rows, SCHEMA)))
    return pa.concat_tables(tables).combine_chunks().cast(SCHEMA), facts


def read_gallery(folder: Path) -> Gallery | None:
    """The gallery of a run folder; None without one, or if the rankings changed."""
    held = open_folder(folder)
    kept = held.read_gallery()
    if kept is None:
        return None
    table, facts = kept
    ranked = all(map(held.holds_rankings, facts["datasets"]))
    if not ranked or facts["origin"] != held.hash_rankings(facts["datasets"], FORMAT):
        return None
    exhibits: dict[tuple[str, int], list[GalleryWindow]] = {}
    for row in table.to_pylist():
        exhibits.setdefault((row["dataset"], row["seed"]), []).append(_exhibit(row))
    return Gallery(exhibits, facts["datasets"])


def _sort(rows: pa.Table) -> pa.Table:
    """Rows of one task without repeated windows: queries first, both by id."""
    keys = zip(rows["query"].to_pylist(), rows["window"].to_pylist(), strict=True)
    first = {(not query, window): i for i, (query, window) in enumerate(keys)}
    return rows.take([first[key] for key in sorted(first)])


def _tops(folder: RunFolder, dataset: str) -> dict[int, set[str]]:
    """Items among the first places of any list, by split seed."""
    table = folder.read_rankings(dataset, [("place", "<=", DEPTH)], ["seed", "item"])
    seeds, items = table["seed"].to_numpy(), table["item"].combine_chunks()
    return {int(s): set(items.filter(pa.array(seeds == s)).unique().to_pylist()) for s in np.unique(seeds)}


def _exhibits(task: Task, told: ChannelRelevance, wanted: set[str]) -> Iterator[GalleryWindow]:
    """All queries, then the wanted items."""
    items = task.corpus[np.isin(task.corpus.ids, np.array(sorted(wanted), task.corpus.ids.dtype))]
    windows = concatenate([task.queries.with_stats(None), items.with_stats(None)])
    chosen = _chosen(windows, told)
    counts = np.concatenate([task.queries.channel_counts, task.corpus.channel_counts])
    total = int(np.minimum(counts, MAX_CHANNELS).sum())  # of all windows of the task, shown or not
    points = points_within(MAX_VALUES, [(total, FINEST)]) if task.info.redistributable else None
    for i in range(len(windows)):
        yield _seen(windows, i, query=i < len(task.queries), channels=chosen[windows.channel_set[i]], points=points)


def _chosen(windows: WindowSet, told: ChannelRelevance) -> list[tuple[str, ...]]:
    """Drawn channels for each set of channels, the most separating first."""
    order = {name: place for place, name in enumerate(told.order())}
    return [
        tuple(sorted(names, key=lambda name: order.get(name, len(order)))[:MAX_CHANNELS])
        for names in windows.channel_sets
    ]


def _seen(windows: WindowSet, i: int, *, query: bool, channels: tuple[str, ...], points: int | None) -> GalleryWindow:
    rows = [windows.channels(i).index(name) for name in channels]
    return GalleryWindow(
        window=str(windows.ids[i]),
        query=query,
        label=windows.classes[windows.labels[i]],
        group=str(windows.groups[i]),
        asset=str(windows.assets[i]),
        length=int(windows.lengths[i]),
        span=(int(windows.spans[i, 0]), int(windows.spans[i, 1])),
        channels=channels,
        drawn=None if points is None else sketch(windows.values(i)[rows], points),
    )


def _task_facts(task: Task, told: ChannelRelevance) -> dict[str, Any]:
    """Number of windows and most separating drawn channel of each class."""
    drawn = {name for names in _chosen(task.corpus, told) for name in names}
    classes, best = task.corpus.classes, told.best(drawn)
    return {
        classes[label]: {
            "queries": int((task.queries.labels == label).sum()),
            "corpus": int((task.corpus.labels == label).sum()),
            "telling": best.get(int(label), ""),
        }
        for label in np.union1d(task.corpus.labels, task.queries.labels)
    }


def _row(dataset: str, seed: int, exhibit: GalleryWindow) -> dict[str, Any]:
    own, drawn = {name: getattr(exhibit, name) for name in PLAIN}, exhibit.drawn
    place = {"dataset": dataset, "seed": seed, "start": exhibit.span[0], "stop": exhibit.span[1]}
    if drawn is None:
        return place | own
    return place | own | {"low": drawn.low, "high": drawn.high, "codes": drawn.codes.tobytes()}


def _exhibit(row: dict[str, Any]) -> GalleryWindow:
    channels = tuple(row["channels"])
    drawn = None
    if row["codes"] is not None:
        codes = np.frombuffer(row["codes"], "<u2").reshape(len(channels), -1)
        drawn = Sketch(np.array(row["low"], np.float32), np.array(row["high"], np.float32), codes)
    return GalleryWindow(
        **{name: row[name] for name in PLAIN} | {"channels": channels}, span=(row["start"], row["stop"]), drawn=drawn
    )
