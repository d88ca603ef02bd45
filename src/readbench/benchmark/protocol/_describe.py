"""What a dataset is, in numbers and pictures, beside the paper's composition.

`composition_facts` counts, `representatives` takes one typical window per fault. `PAPER_COMPOSITION` is what the
paper's composition table says (`paper.csv`), to compare with what is built.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol._build import Built
from readbench.benchmark.protocol._compose import Composition
from readbench.benchmark.protocol._shipped import read_shipped_rows
from readbench.benchmark.protocol._task import Task, compose_task
from readbench.common.plots import Panel
from readbench.engine.context import Context
from readbench.engine.preparation import Scaler, channel_axis, dense
from readbench.engine.windows import NORMAL, WindowSet, concatenate

MOST_PER_CLASS = 200
"""Windows per class that representatives are chosen from."""
MOST_CLASSES = 24
"""Classes shown of a source that has more: evenly spaced ones."""
MOST_PAIRED = 400
"""Corpus windows whose distances are compared."""
FEWEST_NORMALS = 5
"""Normals of one asset that make a reference of their own."""


def composition_row(task: Task) -> dict[str, Any]:
    """The columns of the paper's composition table for one task."""
    corpus, queries = task.corpus_at(min(task.levels)), task.queries
    labels, counts = np.unique(corpus.labels, return_counts=True)
    relevant = counts[np.searchsorted(labels, queries.labels)]
    both = concatenate([task.corpus.with_stats(None), queries])
    return {
        "channels": _range(both.channel_counts),
        "length": _range(both.lengths),
        "classes": len(labels),
        "corpus": [len(items) for _, items in sorted(task.levels.items())],
        "queries": len(queries),
        "relevant_per_query": round(float(relevant.mean()), 1),
        "imbalance": round(float(counts.max() / counts.min()), 1),
    }


def composition_facts(built: Built, seed: int) -> dict[str, Any]:
    """Counts of windows, groups, corpus and queries per class, and the paper's composition columns."""
    windows = built.windows
    task = compose_task(built, seed=seed, settings=Composition())
    return {
        "name": built.info.name,
        "simulated": built.info.simulated,
        "windows": len(windows),
        "groups": len(np.unique(windows.groups)),
        "assets": len(np.unique(windows.assets)),
        "counts": count_classes(windows, task),
        **composition_row(task),
        "normals_pool": len(task.normals),
        "context": context_row(built, task),
        "shape_separation": round(shape_separation(task), 3),
        "notes": list(task.notes),
        "fingerprint": task.fingerprint(),
    }


def context_row(built: Built, task: Task) -> dict[str, Any]:
    """What the windows of a task bring along: rule of the time before and how many have one, rates, units and facts.

    A case in the corpus may have one of its own, or one that normals of its asset lend; a query has its own or none.
    """
    parts = {"queries": task.queries, "corpus": task.corpus, "normals": task.normals}
    every = built.windows.context or Context.unknown(len(built.windows))
    rates, units = every.rates[np.isfinite(every.rates)], [c.name for c in built.info.channels if c.unit]
    return {
        "before": built.info.protocol.before,
        "before_steps": built.info.protocol.before_steps,
        **{name: _count_befores(windows) for name, windows in parts.items()},
        "rate": [float(rates.min()), float(rates.max())] if len(rates) else None,
        "units": units if every.unit_sets else [],
        "facts": list(every.fact_names),
    }


def _count_befores(windows: WindowSet) -> dict[str, int]:
    context = windows.context or Context.unknown(len(windows))
    lent = int(context.lent.sum())
    return {"windows": len(windows), "own": int(context.has_before.sum()) - lent, "lent": lent}


def shape_separation(task: Task) -> float:
    """Probability that two windows of one class but different groups are nearer than two of different classes.

    Euclidean distance on scaled windows of the clean corpus. 0.5: shape tells nothing about the class; 1: everything.
    """
    corpus = task.corpus_at(min(task.levels))[:MOST_PAIRED]
    scaled = Scaler.of("channel", task.corpus)(corpus)
    flat = dense(scaled).reshape(len(corpus), -1).astype(np.float64)
    squares = (flat**2).sum(axis=1)
    distances = np.sqrt(np.maximum(squares[:, None] + squares - 2 * flat @ flat.T, 0.0))
    upper = np.triu(np.ones_like(distances, dtype=bool), k=1)
    same_class = corpus.labels[:, None] == corpus.labels
    other_group = corpus.groups[:, None] != corpus.groups
    within = np.sort(distances[upper & same_class & other_group])
    between = distances[upper & ~same_class]
    if not within.size or not between.size:
        return float("nan")
    below = (np.searchsorted(within, between, "left") + np.searchsorted(within, between, "right")) / 2
    return float(below.mean() / within.size)


def count_classes(windows: WindowSet, task: Task) -> dict[str, dict[str, int]]:
    """Windows and groups of each class in a source, and how many of them are corpus and queries of a task."""
    return {name: _class_facts(windows, task, label) for label, name in enumerate(task.info.classes)}


def _class_facts(windows: WindowSet, task: Task, label: int) -> dict[str, int]:
    own = windows.labels == label
    return {
        "windows": int(own.sum()),
        "groups": len(np.unique(windows.groups[own])),
        "corpus": int((task.corpus.labels == label).sum()),
        "queries": int((task.queries.labels == label).sum()),
    }


def _range(values: NDArray[np.int32]) -> str:
    low, high = int(values.min()), int(values.max())
    return str(low) if low == high else f"{low}-{high}"


@dataclass(frozen=True)
class Representative:
    """A typical window of a class on the channel that tells most, and a normal window to compare with."""

    label: int
    window: int
    channel: str
    normal: int | None


def representatives(windows: WindowSet) -> list[Representative]:
    """One representative per fault class that has windows, in class order; of very many classes, MOST_CLASSES of them.

    A window is judged against normal windows of its own asset (of all assets, or of other classes, where there are too
    few): the channel whose mean, spread or roughness is farthest out, in deviations, is its most informative one. Among
    the windows that show the fault's onset, where there are any, the one with a clear but not extreme departure is
    taken: the 75th percentile.
    """
    axis = channel_axis(windows)
    sample = _sample(windows.labels)
    features = _features(windows[sample], axis)
    found = []
    labels = np.unique(windows.labels[windows.labels > NORMAL])
    for label in labels[np.linspace(0, len(labels) - 1, min(len(labels), MOST_CLASSES)).astype(np.intp)]:
        members = np.flatnonzero(windows.labels[sample] == label)
        departures = np.stack([_departure(windows, sample, features, int(m)) for m in members])
        eligible = _showing_onset(windows[sample[members]])
        clearest = departures[eligible].max(axis=1)
        pick = eligible[np.argsort(clearest, kind="stable")[int(0.75 * (len(eligible) - 1))]]
        window, channel = int(sample[members[pick]]), axis[int(departures[pick].argmax())]
        normal = _normal_like(windows, sample[windows.labels[sample] == NORMAL], window, channel)
        found.append(Representative(int(label), window, channel, normal))
    return found


def _showing_onset(windows: WindowSet) -> NDArray[np.intp]:
    """Windows in which the fault begins and then fills a fair part, else those in which it begins, else all."""
    start, stop = windows.spans.T
    begins = start > 0
    fair = begins & (stop - start >= 0.3 * windows.lengths)
    return next((np.flatnonzero(found) for found in (fair, begins) if found.any()), np.arange(len(windows)))


def _departure(
    windows: WindowSet, sample: NDArray[np.intp], features: NDArray[np.float64], member: int
) -> NDArray[np.float64]:
    """(C,) how far out each channel of a sampled window is; 0 for channels that it lacks."""
    labels, assets = windows.labels[sample], windows.assets[sample]
    reference = (labels == NORMAL) & (assets == assets[member])
    if reference.sum() < FEWEST_NORMALS:
        reference = labels == NORMAL
    if reference.sum() < FEWEST_NORMALS:
        reference = labels != labels[member]
    centre, spread = _centre_and_spread(features[reference])
    out = np.abs(features[member] - centre) / spread
    departure: NDArray[np.float64] = np.nan_to_num(out, nan=0.0, posinf=0.0).max(axis=1)
    return departure


def _centre_and_spread(part: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(C, 3) mean and deviation that pass over NaN; a feature that never varies has its own size as deviation."""
    present = ~np.isnan(part)
    count = np.maximum(present.sum(axis=0), 1)
    centre = np.where(present, part, 0).sum(axis=0) / count
    spread = np.sqrt((np.where(present, part - centre, 0) ** 2).sum(axis=0) / count)
    return centre, np.where(spread > 1e-9 * np.abs(centre), spread, np.abs(centre) + 1e-12)


def fault_panels(built: Built) -> list[Panel]:
    """What to draw of each fault: a typical window on its most informative channel, its span, and a normal one."""
    windows, units = built.windows, {c.name: c.unit for c in built.info.channels}
    panels = []
    for found in representatives(windows):
        unit = units.get(found.channel, "")
        start, stop = (int(step) for step in windows.spans[found.window])
        panels.append(
            Panel(
                title=windows.classes[found.label],
                channel=f"{found.channel} ({unit})" if unit else found.channel,
                fault=_channel(windows, found.window, found.channel),
                span=(start, stop),
                normal=None if found.normal is None else _channel(windows, found.normal, found.channel),
            )
        )
    return panels


def _channel(windows: WindowSet, window: int, name: str) -> NDArray[np.float32]:
    values: NDArray[np.float32] = windows.values(window)[windows.channels(window).index(name)]
    return values


def _sample(labels: NDArray[np.int32]) -> NDArray[np.intp]:
    """Up to MOST_PER_CLASS windows of each class, evenly spaced."""
    parts = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        parts.append(members[np.linspace(0, len(members) - 1, min(len(members), MOST_PER_CLASS)).astype(np.intp)])
    return np.concatenate(parts)


def _features(windows: WindowSet, axis: tuple[str, ...]) -> NDArray[np.float64]:
    """(N, C, 3) mean, deviation and mean absolute step of each channel; NaN where a window lacks it."""
    place = {name: c for c, name in enumerate(axis)}
    out = np.full((len(windows), len(axis), 3), np.nan)
    for i in range(len(windows)):
        values = windows.values(i).astype(np.float64)
        rows = [place[name] for name in windows.channels(i)]
        steps = np.abs(np.diff(values, axis=1)).mean(axis=1) if values.shape[1] > 1 else np.zeros(len(values))
        out[i, rows] = np.stack([values.mean(axis=1), values.std(axis=1), steps], axis=1)
    return out


def _normal_like(windows: WindowSet, normals: NDArray[np.intp], window: int, channel: str) -> int | None:
    """The normal window nearest in level to the window's quiet part, of the same asset where there is one."""
    having = [int(n) for n in normals if channel in windows.channels(int(n))]
    same = [n for n in having if windows.assets[n] == windows.assets[window]]
    own = _channel(windows, window, channel)
    if not having:
        return None
    own = own[: windows.spans[window, 0]] if windows.spans[window, 0] > 0 else own
    return min(same or having, key=lambda n: abs(float(_channel(windows, n, channel).mean() - own.mean())))


@dataclass(frozen=True)
class PaperComposition:
    """One row of the paper's Table "Per-dataset composition of READ-Bench" (label tab:corpus-sizes).

    Args:
        channels: channel count, or its range.
        length: window length, or its range.
        classes: number of fault types.
        corpus: corpus sizes at 0, 10 and 20 % pollution.
        queries: number of queries.
        relevant_per_query: mean number of same-class corpus items per query at 0 %.
        imbalance: most frequent over least frequent fault class at 0 %.
    """

    channels: str
    length: str
    classes: int
    corpus: tuple[int, int, int]
    queries: int
    relevant_per_query: float
    imbalance: float


def _composition(row: dict[str, str]) -> PaperComposition:
    return PaperComposition(
        channels=row["channels"],
        length=row["length"],
        classes=int(row["classes"]),
        corpus=(int(row["corpus_0"]), int(row["corpus_10"]), int(row["corpus_20"])),
        queries=int(row["queries"]),
        relevant_per_query=float(row["relevant_per_query"]),
        imbalance=float(row["imbalance"]),
    )


PAPER_COMPOSITION = {row["dataset"]: _composition(row) for row in read_shipped_rows(__name__, "paper.csv")}
"""By the name of the source."""
