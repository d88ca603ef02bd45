"""`gallery.parquet`: what a case browser draws, so that a report needs nothing but the run folder.

One row for each query and each window among the first ten of any list, by dataset and split seed: its class, where it
comes from, where the fault lies in it, and a sketch of its most telling channels. The file stays within a fixed size:
the more windows, the coarser the sketches. A source whose licence does not let its data be passed on has rows without
sketches. The file's metadata hold the units of the channels, and the windows of each class in each task.

The content is a function of the rankings and the data, so a run that was interrupted ends with the same bytes, and a
finished one does not write it again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from readbench.data import Task
from readbench.experiment.sketch import Sketch, points_within, sketch
from readbench.experiment.telling import Telling, telling
from readbench.windows import WindowSet, concatenate

NAME = "gallery.parquet"
FORMAT = 1
"""Raised whenever the same rankings make another file."""
DEPTH = 10
"""Places of each list that are shown."""
MOST_CHANNELS = 6
"""Channels kept of a window."""
MOST_VALUES = 2_500_000
"""Values of all sketches of a task together: 5 MB before compression."""
PLAIN = ("window", "query", "label", "group", "asset", "length", "channels")
"""Columns that are fields of an exhibit under the same name."""
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
class Exhibit:
    """One window of the gallery.

    Args:
        window: its id.
        query: whether it is a query; otherwise it is an item of the corpus.
        label: class name.
        group: split group.
        asset: the machine, well or patient it comes from; "" where unknown.
        length: timesteps of the window itself.
        span: first and one past the last faulty step; equal where unknown.
        channels: names of the channels that are drawn, the most telling first.
        drawn: the sketch, or None where the licence forbids it.
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
    """All exhibits of a run by (dataset, split seed), and facts about each dataset.

    Args:
        exhibits: queries first, then items, both by id.
        facts: by dataset, `units` by channel and `tasks` by seed: class -> windows among `queries` and in the largest
            `corpus`, and the most `telling` of the channels that are drawn.
    """

    exhibits: dict[tuple[str, int], list[Exhibit]]
    facts: Facts


def write_gallery(folder: Path, datasets: Iterable[str], load: Loader) -> Path | None:
    """Write the gallery of a run folder, unless it is up to date.

    Args:
        folder: a run folder with its rankings.
        datasets: names, in plan order; those without rankings are left out.
        load: gives the tasks that were ranked.

    Returns:
        The file, or None where there are no rankings.
    """
    rankings = _rankings(folder, datasets)
    if not rankings:
        return None
    origin = _origin(rankings)
    if _metadata(folder / NAME).get("origin") == origin:
        return folder / NAME
    tables: list[pa.Table] = []
    facts: Facts = {}
    for dataset, ranking in rankings.items():
        for seed, wanted in _tops(ranking).items():
            task = load(dataset, seed)
            told = telling(task.corpus)
            units = {channel.name: channel.unit for channel in task.info.channels if channel.unit}
            facts.setdefault(dataset, {"units": units, "tasks": {}})["tasks"][str(seed)] = _task_facts(task, told)
            tables.append(_sorted(_table(dataset, seed, _exhibits(task, told, wanted))))
    return _write(folder, tables, {"origin": origin, "datasets": facts})


def merge_galleries(parts: Iterable[Path], folder: Path, datasets: Iterable[str]) -> Path | None:
    """Write the gallery of a run folder whose rankings were merged from parts of one run.

    The bytes are those of a run in one piece: how a window is drawn depends on its task alone.
    """
    rankings = _rankings(folder, datasets)
    sources = [part / NAME for part in parts if (part / NAME).exists()]
    if not rankings or not sources:
        return None
    facts: Facts = {}
    for dataset in rankings:
        known = [own for source in sources if (own := _metadata(source)["datasets"].get(dataset))]
        tasks = {seed: task for own in known for seed, task in own["tasks"].items()}
        facts[dataset] = known[0] | {"tasks": {seed: tasks[seed] for seed in sorted(tasks, key=int)}}
    tables = [
        _sorted(pa.concat_tables([pq.read_table(source, filters=_of(dataset, int(seed))) for source in sources]))
        for dataset, own in facts.items()
        for seed in own["tasks"]
    ]
    return _write(folder, tables, {"origin": _origin(rankings), "datasets": facts})


def read_gallery(folder: Path) -> Gallery | None:
    """The gallery of a run folder; None where it has none."""
    path = folder / NAME
    if not path.exists():
        return None
    exhibits: dict[tuple[str, int], list[Exhibit]] = {}
    for row in pq.read_table(path).to_pylist():
        exhibits.setdefault((row["dataset"], row["seed"]), []).append(_exhibit(row))
    return Gallery(exhibits, _metadata(path)["datasets"])


def _rankings(folder: Path, datasets: Iterable[str]) -> dict[str, Path]:
    return {name: path for name in datasets if (path := folder / "rankings" / f"{name}.parquet").exists()}


def _origin(rankings: dict[str, Path]) -> str:
    """Hash of what the gallery is made from."""
    digest = hashlib.sha256(repr(FORMAT).encode())
    for name, path in rankings.items():
        digest.update(name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _of(dataset: str, seed: int) -> list[tuple[str, str, Any]]:
    return [("dataset", "=", dataset), ("seed", "=", seed)]


def _sorted(rows: pa.Table) -> pa.Table:
    """Rows of one task, each window once: queries first, both by id."""
    keys = zip(rows["query"].to_pylist(), rows["window"].to_pylist(), strict=True)
    first = {(not query, window): i for i, (query, window) in enumerate(keys)}
    return rows.take([first[key] for key in sorted(first)])


def _metadata(path: Path) -> dict[str, Any]:
    """What the file says about itself; nothing where it is not there or cannot be read."""
    try:
        content: dict[str, Any] = json.loads(pq.read_schema(path).metadata[b"readbench"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return content


def _tops(ranking: Path) -> dict[int, set[str]]:
    """Items among the first places of any list, by split seed."""
    table = pq.read_table(ranking, columns=["seed", "item"], filters=[("place", "<=", DEPTH)])
    seeds, items = table["seed"].to_numpy(), table["item"].combine_chunks()
    return {int(s): set(items.filter(pa.array(seeds == s)).unique().to_pylist()) for s in np.unique(seeds)}


def _exhibits(task: Task, told: Telling, wanted: set[str]) -> Iterator[Exhibit]:
    """All queries, then the wanted items."""
    items = task.corpus[np.isin(task.corpus.ids, np.array(sorted(wanted), task.corpus.ids.dtype))]
    windows = concatenate([task.queries.with_stats(None), items.with_stats(None)])
    chosen = _chosen(windows, told)
    points = _points(task) if task.info.redistributable else None
    for i in range(len(windows)):
        yield _seen(windows, i, query=i < len(task.queries), channels=chosen[windows.channel_set[i]], points=points)


def _chosen(windows: WindowSet, told: Telling) -> list[tuple[str, ...]]:
    """The channels that are drawn of windows with each set of channels, the most telling first."""
    order = {name: place for place, name in enumerate(told.order())}
    return [
        tuple(sorted(names, key=lambda name: order.get(name, len(order)))[:MOST_CHANNELS])
        for names in windows.channel_sets
    ]


def _points(task: Task) -> int:
    """Points of a channel at which all windows of a task, shown or not, would stay within the budget."""
    counts = np.concatenate([task.queries.channel_counts, task.corpus.channel_counts])
    return points_within(MOST_VALUES, int(np.minimum(counts, MOST_CHANNELS).sum()))


def _seen(windows: WindowSet, i: int, *, query: bool, channels: tuple[str, ...], points: int | None) -> Exhibit:
    rows = [windows.channels(i).index(name) for name in channels]
    return Exhibit(
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


def _task_facts(task: Task, told: Telling) -> dict[str, Any]:
    """Windows of each class, and which of the channels that are drawn tells most of it."""
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


def _table(dataset: str, seed: int, exhibits: Iterator[Exhibit]) -> pa.Table:
    return pa.Table.from_pylist([_row(dataset, seed, exhibit) for exhibit in exhibits], SCHEMA)


def _row(dataset: str, seed: int, exhibit: Exhibit) -> dict[str, Any]:
    own, drawn = {name: getattr(exhibit, name) for name in PLAIN}, exhibit.drawn
    place = {"dataset": dataset, "seed": seed, "start": exhibit.span[0], "stop": exhibit.span[1]}
    if drawn is None:
        return place | own
    return place | own | {"low": drawn.low, "high": drawn.high, "codes": drawn.codes.tobytes()}


def _exhibit(row: dict[str, Any]) -> Exhibit:
    channels = tuple(row["channels"])
    drawn = None
    if row["codes"] is not None:
        codes = np.frombuffer(row["codes"], "<u2").reshape(len(channels), -1)
        drawn = Sketch(np.array(row["low"], np.float32), np.array(row["high"], np.float32), codes)
    return Exhibit(
        **{name: row[name] for name in PLAIN} | {"channels": channels},
        span=(row["start"], row["stop"]),
        drawn=drawn,
    )


def _write(folder: Path, tables: list[pa.Table], metadata: dict[str, Any]) -> Path:
    """Write the file whole, or not at all."""
    path = folder / NAME
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    table = (
        pa.concat_tables(tables)
        .combine_chunks()
        .cast(SCHEMA)
        .replace_schema_metadata({"readbench": json.dumps(metadata)})
    )
    pq.write_table(table, partial, compression="zstd")
    partial.replace(path)
    return path
