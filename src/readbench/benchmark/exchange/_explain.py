"""Summary of a user's data in sentences, before they are imported."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.exchange._ready_made import ReadyTask
from readbench.benchmark.exchange._recordings import ImportedRecordings
from readbench.benchmark.protocol import Built, Composition, Task, compose_task
from readbench.engine.context import find_still
from readbench.engine.windows import NORMAL, WindowSet
from readbench.errors import DataError

MAX_NAMES, MAX_REMARKS = 8, 20


def explain_import(built: Built, source: ImportedRecordings | ReadyTask) -> list[str]:
    """Sentences on the tables, the windows made of them, and warnings."""
    told = _of_tables(source) if isinstance(source, ImportedRecordings) else _of_task(source)
    return [*told, *_of_windows(built.windows), *_of_context(built.windows), *_of_evaluation(built, source)]


def _of_tables(source: ImportedRecordings) -> list[str]:
    roles, protocol = source.roles, source.info.protocol
    form = "long, a row per reading" if roles.channel else "wide, a column per channel"
    cut = f"windows of {protocol.length} steps, stride {protocol.stride or protocol.length}"
    unknown = source.labelled.get("", 0)
    steps = [f"{name} {count:,}" for name, count in source.labelled.items() if name]
    labelling = f"labelled by {protocol.label_rule}; missing readings: {protocol.missing}"
    return [
        f"{_count(len(source.files), 'table')}, {form}; {source.rows:,} time steps.",
        f"Columns: {', '.join(f'{role} {column!r}' for role, column in _roles(source).items()) or 'channels only'}.",
        f"{_count(len(source.info.channels), 'channel')}: {_names([c.name for c in source.info.channels])}.",
        f"Steps per label: {', '.join(steps)}; {unknown:,} steps have none.",
        f"Normal operation is the label {source.normal!r}" + (" or an empty one." if source.blank_is_normal else "."),
        *source.remarks[:MAX_REMARKS],
        f"Each case is {f'cut into {cut}' if protocol.length else 'one window'}, {labelling}.",
    ]


def _roles(source: ImportedRecordings) -> dict[str, str]:
    names = ("time", "label", "group", "asset", "case", "channel", "value", "onset")
    return {name: column for name in names if (column := getattr(source.roles, name))}


def _of_task(source: ReadyTask) -> list[str]:
    levels = f"levels {', '.join(map(str, source.levels))} %" if source.levels else "normals are drawn for each level"
    exported = f" Exported from {source.origin[0]}, split seed {source.origin[1]}." if source.origin else ""
    sizes = f"{len(source.corpus):,} corpus items, {len(source.queries):,} queries, {len(source.normals):,} normals"
    return [f"A ready-made task: {sizes}; {levels}.{exported}"]


def _of_windows(windows: WindowSet) -> list[str]:
    lengths, counts = windows.lengths, windows.channel_counts
    classes = [
        f"{name} {int((windows.labels == code).sum()):,} ({len(np.unique(windows.groups[windows.labels == code]))})"
        for code, name in enumerate(windows.classes)
    ]
    shape = f"{_range(counts)} channels and {_range(lengths)} steps"
    groups = _count(len(np.unique(windows.groups)), "group")
    assets = _count(len(np.unique(windows.assets[windows.assets != ""])), "known asset")
    return [
        f"{len(windows):,} windows of {shape}, from {groups} and {assets}.",
        f"Windows per class (groups): {', '.join(classes[:MAX_NAMES])}{_more(len(classes))}.",
    ]


def _of_context(windows: WindowSet) -> list[str]:
    text = describe_context(windows)
    return [f"Context: {text}.", *(f"Mind: {note}." for note in _still(windows))] if text else []


def describe_context(windows: WindowSet) -> str:
    """The context of windows in words; empty without any.

    >>> from readbench.engine.context import Context
    >>> context = Context.of(2, befores=[[[1.0, 2.0]], None], rates=[50, 50], facts=[{"speed": 29.5}, {}])
    >>> describe_context(WindowSet.from_arrays([[[5.0]], [[6.0]]], context=context))
    'the time before 1 of 2 windows (2 steps); rate 50 Hz; facts: speed'
    """
    if windows.context is None or not windows.context.known:
        return ""
    context = windows.context.compact()
    found = []
    if context.befores:
        steps = _range(np.array([before.shape[1] for before in context.befores], np.int32))
        found.append(f"the time before {context.has_before.sum():,} of {len(windows):,} windows ({steps} steps)")
    rates = np.unique(context.rates[np.isfinite(context.rates)])
    if len(rates):
        found.append(f"rate {' to '.join(f'{rate:g}' for rate in dict.fromkeys((rates[0], rates[-1])))} Hz")
    if units := sorted({unit for own in context.unit_sets for unit in own} - {""}):
        found.append(f"units: {_names(units)}")
    if context.fact_names:
        found.append(f"facts: {_names(list(context.fact_names))}")
    return "; ".join(found)


def _still(windows: WindowSet) -> list[str]:
    """A sentence on channels that are constant in the time before a window; empty without any."""
    context = windows.context
    if context is None:
        return []
    kinds, numbers = np.unique(
        np.column_stack([context.before, windows.channel_set])[context.has_before], axis=0, return_counts=True
    )
    counts: Counter[str] = Counter()
    for (before, channel_set), number in zip(kinds.tolist(), numbers.tolist(), strict=True):
        still = find_still(context.befores[before], windows.channel_sets[channel_set])
        counts.update(dict.fromkeys(still, number))
    names = ", ".join(f"{name!r} ({_count(number, 'window')})" for name, number in counts.most_common(MAX_NAMES))
    return [f"channels that never move in the time before: {names}{_more(len(counts))}"] if names else []


def _of_evaluation(built: Built, source: ImportedRecordings | ReadyTask) -> list[str]:
    """Sizes of the task of split seed 0 and warnings, or why no task can be made."""
    levels = source.levels if isinstance(source, ReadyTask) and source.levels else Composition().rho
    try:
        task = compose_task(built, seed=0, settings=Composition(rho=levels))
    except DataError as error:
        return [f"Mind: no task can be made of it yet. {error} Most often every fault has only one group."]
    corpora = ", ".join(f"{len(items):,} (ρ={rho} %)" for rho, items in sorted(task.levels.items()))
    return [
        f"At split seed 0: {len(task.queries):,} queries; corpora of {corpora}; {len(task.normals):,} normals.",
        *(f"Mind: {note}." for note in (*task.notes, *_warnings(built.windows, task))),
    ]


def _warnings(windows: WindowSet, task: Task) -> list[str]:
    faults = np.unique(windows.labels[windows.labels > NORMAL])
    silent = [windows.classes[code] for code in faults if code not in task.queries.labels]
    found = [f"no queries for {_names(silent)}: a fault needs two groups to be in both halves"] if silent else []
    if not (windows.labels == NORMAL).any():
        found.append("there is no normal window: name the label of normal operation with --normal")
    return found


def _range(values: NDArray[np.int32]) -> str:
    low, high = int(values.min()), int(values.max())
    return str(low) if low == high else f"{low} to {high}"


def _names(names: list[str]) -> str:
    return ", ".join(names[:MAX_NAMES]) + _more(len(names))


def _more(count: int) -> str:
    return f" and {count - MAX_NAMES} more" if count > MAX_NAMES else ""


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
