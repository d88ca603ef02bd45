"""`Window` and `WindowSet`: the container of windows, ragged in length and channels; large arrays are memory-mapped.

A window is a float32 matrix of shape (C, T): channels first, so that each channel is contiguous. A set stores all
values in a few flat buffers (`chunks`) and the start of each window. Slicing, reordering and concatenating therefore
never copy values, and a buffer may be a memory-mapped file.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from textwrap import shorten
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from readbench.engine.context import ABSENT, Context, Facts, Matrix, join_contexts, number_anew
from readbench.engine.room import allocate
from readbench.errors import DataError, NotFiniteError

if TYPE_CHECKING:
    from readbench.engine.preparation import ChannelStats


MIN_RELATIVE_MOVEMENT = 1e-12
"""Smallest movement of a float64 channel above rounding, as a share of its level."""
NORMAL = 0
"""Label of normal operation."""
UNLABELLED = -1
"""Label of a window without a known label, or whose label is hidden."""

Strings = NDArray[Any]
"""A column of variable-length strings (`numpy.dtypes.StringDType`)."""
_STRING = np.dtypes.StringDType()
D = TypeVar("D", bound=np.generic)


@dataclass(frozen=True, eq=False)
class Window:
    """One window: `values` (C, T) float32, metadata, and its context.

    >>> WindowSet.from_arrays(np.zeros((3, 2, 50)), channels=["flow", "level"])[0]
    Window('0', 2 channels x 50 steps, label -1; flow, level)

    Args:
        values: (C, T).
        channels: C names.
        label: class index; 0 is normal, -1 unlabelled.
        group: unit of splits (run, recording, patient ...): a split never divides it.
        asset: machine, well or patient it comes from; "" if unknown.
        time: seconds; NaN if unknown.
        id: unique name.
        before: (C, T_b) readings of the same asset before the window; None if unknown.
        rate: samples per second; NaN if unknown.
        units: units of the channels; empty if unknown.
        facts: known numbers by name, such as the shaft speed.
    """

    values: NDArray[np.float32]
    channels: tuple[str, ...]
    label: int
    group: str
    asset: str
    time: float
    id: str
    before: Matrix | None = None
    rate: float = float("nan")
    units: tuple[str, ...] = ()
    facts: Facts = field(default_factory=dict)

    def __repr__(self) -> str:
        channels, steps = self.values.shape
        names = shorten(", ".join(self.channels), 120, placeholder=" ...")
        return f"Window({self.id!r}, {channels} channels x {steps} steps, label {self.label}; {names})"


@dataclass(frozen=True, eq=False)
class WindowSet:
    """N windows, ragged in length and channels.

    Args:
        chunks: flat float32 buffers that hold the values; window i is `chunks[chunk[i]][offset[i]:][:C * T]`.
        chunk: (N,) which buffer.
        offset: (N,) where in the buffer.
        lengths: (N,) timesteps T of each window.
        channel_set: (N,) index into `channel_sets`.
        channel_sets: the distinct tuples of channel names.
        labels: (N,) class index; 0 is normal, -1 unlabelled.
        classes: class names, `classes[0]` is normal; empty where labels are hidden.
        ids: (N,) unique names.
        groups: (N,) units of splits (run, recording, patient ...), which a split never divides.
        assets: (N,) machine, well or patient that a window comes from; "" if unknown.
        times: (N,) seconds since 1970 or since the start of the recording; NaN if unknown.
        spans: (N, 2) first and one past the last step of the fault inside the window; equal if there is none or it is
            unknown.
        stats: channel statistics to scale windows by, if a task fixes them (those of the clean corpus).
        context: time before, rate, units and facts of the windows; None if none has any.

    >>> ws = WindowSet.from_arrays([np.zeros((2, 5)), np.ones((1, 3))], channels=[("a", "b"), ("a",)])
    >>> len(ws), ws.lengths.tolist(), ws.channel_counts.tolist()
    (2, [5, 3], [2, 1])
    >>> ws[1].values.shape
    (1, 3)
    """

    chunks: tuple[NDArray[np.float32], ...]
    chunk: NDArray[np.int32]
    offset: NDArray[np.int64]
    lengths: NDArray[np.int32]
    channel_set: NDArray[np.int32]
    channel_sets: tuple[tuple[str, ...], ...]
    labels: NDArray[np.int32]
    classes: tuple[str, ...]
    ids: Strings
    groups: Strings
    assets: Strings
    times: NDArray[np.float64]
    spans: NDArray[np.int32]
    stats: ChannelStats | None = None
    context: Context | None = None

    @classmethod
    def from_arrays(  # noqa: PLR0913 - one keyword a column
        cls,
        values: Sequence[ArrayLike] | NDArray[np.floating[Any]],
        *,
        channels: Sequence[Sequence[str]] | Sequence[str] | None = None,
        labels: ArrayLike | None = None,
        classes: Sequence[str] = (),
        ids: Sequence[str] | None = None,
        groups: Sequence[str] | None = None,
        assets: Sequence[str] | None = None,
        times: ArrayLike | None = None,
        spans: ArrayLike | None = None,
        context: Context | None = None,
    ) -> WindowSet:
        """Copy matrices of shape (C, T) into one buffer.

        Values become float32, which has 7 digits. A warning names channels of wider arrays that move by less than these
        digits resolve and become constant: subtract their level first.

        Args:
            values: N matrices (C, T), or one array (N, C, T).
            channels: names for each window, or one tuple for all; default `ch0, ch1, ...`.
            labels: (N,) class indices; default unlabelled.
            classes: class names, normal first.
            ids: unique names; default the position.
            groups: split groups; default the id.
            assets: where each window comes from; default unknown.
            times: seconds; default unknown.
            spans: (N, 2) faulty steps; default unknown.
            context: of the windows; default none.
        """
        arrays = [_matrix(v, i) for i, v in enumerate(values)]
        n = len(arrays)
        names = _channel_names(arrays, channels)
        _warn_of_lost_channels(values, arrays, names)
        channel_sets, channel_set = _intern(names)
        sizes = np.array([a.size for a in arrays], dtype=np.int64)
        flat = np.concatenate([a.ravel() for a in arrays]) if n else np.empty(0, np.float32)
        id_column = strings([str(i) for i in range(n)] if ids is None else ids, n)
        return cls(
            chunks=(flat,),
            chunk=np.zeros(n, np.int32),
            offset=np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)[:n],
            lengths=np.array([a.shape[1] for a in arrays], dtype=np.int32),
            channel_set=channel_set,
            channel_sets=channel_sets,
            labels=_column(labels, n, np.int32, UNLABELLED),
            classes=tuple(classes),
            ids=id_column,
            groups=id_column if groups is None else strings(groups, n),
            assets=strings([""] * n if assets is None else assets, n),
            times=_column(times, n, np.float64, np.nan),
            spans=_spans(spans, n),
        ).with_context(context)

    @classmethod
    def of(cls, windows: WindowsLike, like: WindowSet | None = None) -> WindowSet:
        """Convert to a set: a set, windows, an array (N, C, T) or (C, T), or a list of (C, T).

        Args:
            windows: to convert; a set is returned unchanged.
            like: windows to compare with. If all of them have the same channels and an array has as many, its channels
                get their names.

        >>> len(WindowSet.of(np.zeros((3, 2, 8)))), len(WindowSet.of(np.zeros((2, 8))))
        (3, 1)
        """
        if isinstance(windows, WindowSet):
            return windows
        if isinstance(windows, Window):
            windows = [windows]
        arrays: Sequence[Any] = windows if isinstance(windows, Sequence) else _rows_of(windows)
        if arrays and all(isinstance(window, Window) for window in arrays):
            return _join_windows(arrays)
        values = [_matrix(array, i) for i, array in enumerate(arrays)]
        return cls.from_arrays(values, channels=_names_like(values, like))

    def __len__(self) -> int:
        return len(self.offset)

    def __repr__(self) -> str:
        names = shorten(", ".join(self.classes), 200, placeholder=" ...") or "not known"
        labelled = int((self.labels != UNLABELLED).sum())
        return (
            f"WindowSet({len(self)} windows, {_extent(self.channel_counts)} channels x {_extent(self.lengths)} steps;"
            f" {labelled} labelled, classes: {names})"
        )

    def __iter__(self) -> Iterator[Window]:
        return (self[i] for i in range(len(self)))

    @overload
    def __getitem__(self, key: int) -> Window: ...
    @overload
    def __getitem__(self, key: slice | NDArray[np.intp] | NDArray[np.bool_] | list[int]) -> WindowSet: ...
    def __getitem__(
        self, key: int | np.integer | slice | NDArray[np.intp] | NDArray[np.bool_] | list[int]
    ) -> Window | WindowSet:
        if isinstance(key, int | np.integer):
            return self._window(int(key))
        if isinstance(key, list):
            key = np.asarray(key) if key else np.empty(0, np.intp)
        return replace(
            self,
            chunk=self.chunk[key],
            offset=self.offset[key],
            lengths=self.lengths[key],
            channel_set=self.channel_set[key],
            labels=self.labels[key],
            ids=self.ids[key],
            groups=self.groups[key],
            assets=self.assets[key],
            times=self.times[key],
            spans=self.spans[key],
            context=None if self.context is None else self.context[key],
        )

    def _window(self, i: int) -> Window:
        context = self.context
        return Window(
            values=self.values(i),
            channels=self.channels(i),
            label=int(self.labels[i]),
            group=str(self.groups[i]),
            asset=str(self.assets[i]),
            time=float(self.times[i]),
            id=str(self.ids[i]),
            before=None if context is None else context.before_of(i),
            rate=float("nan") if context is None else float(context.rates[i]),
            units=() if context is None else context.units_of(i),
            facts={} if context is None else context.facts_of(i),
        )

    def values(self, i: int) -> NDArray[np.float32]:
        """Values of window i as a view of shape (C, T)."""
        count, length = len(self.channel_sets[self.channel_set[i]]), int(self.lengths[i])
        start = int(self.offset[i])
        return self.chunks[int(self.chunk[i])][start : start + count * length].reshape(count, length)

    def channels(self, i: int) -> tuple[str, ...]:
        """Channel names of window i."""
        return self.channel_sets[self.channel_set[i]]

    @property
    def channel_counts(self) -> NDArray[np.int32]:
        """(N,) number of channels of each window."""
        sizes = np.array([len(names) for names in self.channel_sets], dtype=np.int32)
        counts: NDArray[np.int32] = sizes[self.channel_set] if len(self) else np.empty(0, np.int32)
        return counts

    def blocks(self, size: int) -> Iterator[WindowSet]:
        """Consecutive subsets of at most `size` windows, for work in bounded memory."""
        return (self[start : start + size] for start in range(0, len(self), size))

    def compact(self) -> WindowSet:
        """Copy the values, channel names and context of these windows alone.

        A large copy is a memory-mapped temporary file, so that a corpus of any size can be copied.
        """
        size = self.channel_counts.astype(np.int64) * self.lengths
        flat = allocate(int(size.sum()))
        offset = np.concatenate([[0], np.cumsum(size)[:-1]]).astype(np.int64)[: len(self)]
        for i, start in enumerate(offset):
            flat[start : start + size[i]] = self.values(i).ravel()
        used, channel_set = number_anew(self.channel_set)
        return replace(
            self,
            chunks=(flat,),
            chunk=np.zeros(len(self), np.int32),
            offset=offset,
            channel_set=channel_set,
            channel_sets=tuple(self.channel_sets[i] for i in used),
            context=None if self.context is None else self.context.compact(),
        )

    def anonymous(self, *, in_place: bool = False) -> WindowSet:
        """Copy without label, class name, group, asset, time or meaningful id: values, channel names and context stay.

        This is what a method sees of a query, and of a corpus whose labels it may not use. Numbers, order and memory
        layout follow from the order of the windows alone; nothing shows which windows share a recording.

        Args:
            in_place: share values and context with this set instead of copying them.
        """
        n = len(self)
        numbers = strings([str(i) for i in range(n)], n)
        return replace(
            self if in_place else self._apart(),
            labels=np.full(n, UNLABELLED, np.int32),
            classes=(),
            ids=numbers,
            groups=numbers,
            assets=strings([""] * n, n),
            times=np.full(n, np.nan),
            spans=np.zeros((n, 2), np.int32),
        )

    def _apart(self) -> WindowSet:
        """A copy that shares no memory with other sets; each window has its `before` alone."""
        context = None if self.context is None else self.context.separate()
        return replace(self.with_context(None).compact(), context=context)

    def with_stats(self, stats: ChannelStats | None) -> WindowSet:
        """The same windows with statistics to scale them by."""
        return replace(self, stats=stats)

    def with_context(self, context: Context | None) -> WindowSet:
        """The same windows with this context, or none."""
        if context is not None and len(context) != len(self):
            raise DataError(f"Got the context of {len(context)} windows for {len(self)}.")
        known = context if context is not None and context.known else None
        return self if known is self.context else replace(self, context=known)

    def require_finite(self) -> None:
        """Raise `NotFiniteError` that names the first window and channel with NaN or infinity."""
        for i in range(len(self)):
            finite = np.isfinite(self.values(i))
            if not finite.all():
                row, t = np.argwhere(~finite)[0]
                raise NotFiniteError(
                    f"Window {self.ids[i]!s} holds {self.values(i)[row, t]} in channel {self.channels(i)[row]!r}"
                    f" at step {t}. Fill or drop missing values before scoring (readbench.benchmark.protocol._clean)."
                )

    def fingerprint(self) -> str:
        """Hash of the set: values, names, labels, groups, assets, times, spans, context, order."""
        digest = hashlib.sha256()
        context = None if self.context is None else self.context.without_lent()
        for i in range(len(self)):
            digest.update(np.ascontiguousarray(self.values(i)).tobytes())
            row = (self.lengths[i], self.channels(i), self.labels[i], self.ids[i], self.groups[i], self.assets[i])
            digest.update(repr((*map(str, row), float(self.times[i]), self.spans[i].tolist())).encode())
            digest.update(b"" if context is None else context.digest_of(i))
        digest.update(repr(self.classes).encode())
        if self.stats is not None:
            digest.update(self.stats.fingerprint().encode())
        return digest.hexdigest()[:16]


WindowsLike: TypeAlias = "WindowSet | Window | Sequence[Window] | Sequence[ArrayLike] | NDArray[Any]"
"""Windows in any form a caller may give; see `WindowSet.of`."""


def concatenate(sets: Sequence[WindowSet]) -> WindowSet:
    """Join sets without copying values; class names must agree where both sets have them.

    >>> a = WindowSet.from_arrays([np.zeros((1, 4))]); b = WindowSet.from_arrays([np.ones((2, 3))])
    >>> [w.values.shape for w in concatenate([a, b])]
    [(1, 4), (2, 3)]
    """
    if not sets:
        raise DataError("Nothing to concatenate: give at least one WindowSet.")
    vocabularies = {s.classes for s in sets if s.classes}
    if len(vocabularies) > 1:
        raise DataError(f"Cannot join sets with different classes: {sorted(vocabularies)}.")
    channel_sets = tuple(dict.fromkeys(names for s in sets for names in s.channel_sets))
    position = {names: i for i, names in enumerate(channel_sets)}
    shifts = np.cumsum([0] + [len(s.chunks) for s in sets])
    remap = [np.array([position[names] for names in s.channel_sets], dtype=np.int32) for s in sets]
    return WindowSet(
        chunks=tuple(chunk for s in sets for chunk in s.chunks),
        chunk=np.concatenate([s.chunk + np.int32(shift) for s, shift in zip(sets, shifts, strict=False)]),
        offset=np.concatenate([s.offset for s in sets]),
        lengths=np.concatenate([s.lengths for s in sets]),
        channel_set=np.concatenate([m[s.channel_set] for s, m in zip(sets, remap, strict=True)]),
        channel_sets=channel_sets,
        labels=np.concatenate([s.labels for s in sets]),
        classes=next(iter(vocabularies), ()),
        ids=np.concatenate([s.ids for s in sets]),
        groups=np.concatenate([s.groups for s in sets]),
        assets=np.concatenate([s.assets for s in sets]),
        times=np.concatenate([s.times for s in sets]),
        spans=np.concatenate([s.spans for s in sets]),
        stats=sets[0].stats,
        context=join_contexts([(len(s), s.context) for s in sets]),
    )


def cut_befores(windows: WindowSet, most: int) -> tuple[WindowSet, NDArray[np.intp], NDArray[np.intp]]:
    """Cut the time before each window into stretches as long as the window; the latest `most` of each.

    A time before that is shorter than the window is one stretch. One that several windows share is cut once, with the
    context of the first of them.

    Returns:
        M stretches; (M,) number 0 .. B - 1 of the time before that each is cut from; (N,) that number for each window,
        -1 without a time before.

    >>> brought = WindowSet.from_arrays([[[9.0, 9.0]]], context=Context.of(1, befores=[[[1.0, 2.0, 3.0, 4.0, 5.0]]]))
    >>> stretches, _, _ = cut_befores(brought, most=8)
    >>> [stretch.values.tolist() for stretch in stretches]
    [[[2.0, 3.0]], [[4.0, 5.0]]]
    """
    context, of_window = windows.context, np.full(len(windows), ABSENT, np.intp)
    if context is None:
        return windows[:0], np.empty(0, np.intp), of_window
    has = np.flatnonzero(context.has_before)
    alike = np.column_stack([context.first_alike, windows.channel_set])[has]
    _, first, of_window[has] = np.unique(alike, axis=0, return_index=True, return_inverse=True)
    cuts: list[tuple[Matrix, int, int]] = []
    for number, i in enumerate(has[first].tolist()):
        before, length = context.befores[context.before[i]], int(windows.lengths[i])
        count = min(most, before.shape[1] // length)
        starts = [before.shape[1] - (count - k) * length for k in range(count)]
        cuts += [(before[:, start : start + length], i, number) for start in starts] or [(before, i, number)]
    owners = np.array([i for _, i, _ in cuts], np.intp)
    stretches = WindowSet.from_arrays(
        [values for values, _, _ in cuts], channels=[windows.channels(i) for i in owners], context=context[owners]
    )
    return stretches, np.array([number for _, _, number in cuts], np.intp), of_window


def strings(values: Sequence[str] | Strings, n: int) -> Strings:
    """Convert to a column of n strings."""
    column = np.asarray(values, dtype=_STRING) if len(values) else np.empty(0, _STRING)
    if column.shape != (n,):
        raise DataError(f"Expected {n} strings, one per window, got {column.shape}.")
    return column


def _join_windows(windows: Sequence[Window]) -> WindowSet:
    return WindowSet.from_arrays(
        [window.values for window in windows],
        channels=[window.channels for window in windows],
        labels=[window.label for window in windows],
        ids=[window.id for window in windows],
        groups=[window.group for window in windows],
        assets=[window.asset for window in windows],
        times=[window.time for window in windows],
        context=Context.of(
            len(windows),
            befores=[window.before for window in windows],
            rates=[window.rate for window in windows],
            units=[window.units for window in windows],
            facts=[window.facts for window in windows],
        ),
    )


def _rows_of(values: Any) -> list[Any]:  # noqa: ANN401 - any input of a caller
    """The matrices of an array (N, C, T), or of one window (C, T)."""
    array = np.asarray(values)
    if array.ndim not in {2, 3}:
        raise DataError(
            f"Windows are arrays of shape (windows, channels, time), lists of (channels, time), or a WindowSet."
            f" Got {type(values).__name__} of shape {array.shape}."
        )
    return [array] if array.ndim == 2 else list(array)


def _names_like(values: Sequence[NDArray[np.float32]], like: WindowSet | None) -> list[tuple[str, ...]] | None:
    """Channel names of `like` for arrays with as many channels; None if these differ."""
    sets = {like.channels(i) for i in np.unique(like.channel_set, return_index=True)[1]} if like is not None else set()
    names = next(iter(sets)) if len(sets) == 1 else ()
    fits = names and all(len(array) == len(names) for array in values)
    return [names] * len(values) if fits else None


def _extent(counts: NDArray[np.integer[Any]]) -> str:
    """Format a range: one number, or smallest and largest."""
    low, high = (int(counts.min()), int(counts.max())) if len(counts) else (0, 0)
    return str(low) if low == high else f"{low} to {high}"


def _matrix(values: ArrayLike, i: int) -> NDArray[np.float32]:
    try:
        array = np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise DataError(f"Window {i} is no matrix (channels, time) of numbers: {error}") from error
    if array.ndim != 2 or 0 in array.shape:
        raise DataError(f"Window {i} has shape {array.shape}; give a non-empty matrix (channels, time).")
    return array


def _warn_of_lost_channels(
    values: Sequence[ArrayLike] | NDArray[np.floating[Any]],
    arrays: Sequence[NDArray[np.float32]],
    names: Sequence[tuple[str, ...]],
) -> None:
    """Warn of channels that move in a wider array and are constant in float32; name the first window of each."""
    lost: dict[str, int] = {}
    for i, (given, array) in enumerate(zip(values, arrays, strict=True)):
        if not isinstance(given, np.ndarray) or given.dtype.itemsize <= array.itemsize or given.dtype.kind not in "fiu":
            continue
        for row in np.flatnonzero(array[:, 0] == array[:, -1]).tolist():
            wide = given[row]
            moves = float(wide.max()) - float(wide.min()) > MIN_RELATIVE_MOVEMENT * abs(float(wide[0]))
            if moves and (array[row] == array[row, 0]).all():
                lost.setdefault(names[i][row], i)
    if lost:
        named = shorten(", ".join(f"{name!r} (window {i})" for name, i in lost.items()), 200, placeholder=" ...")
        warnings.warn(
            f"Single precision cannot resolve {named}: these channels move too little for their level and become"
            " constant. Subtract the level, as a whole number, before you give the values.",
            stacklevel=3,
        )


def _column(values: ArrayLike | None, n: int, dtype: type[D], missing: float) -> NDArray[D]:
    column = np.full(n, missing, dtype) if values is None else np.asarray(values, dtype=dtype)
    if column.shape != (n,):
        raise DataError(f"Expected {n} values, one per window, got {column.shape}.")
    return column


def _spans(values: ArrayLike | None, n: int) -> NDArray[np.int32]:
    spans = np.zeros((n, 2), np.int32) if values is None else np.asarray(values, np.int32)
    spans = spans if spans.size else spans.reshape(0, 2)
    if spans.shape != (n, 2):
        raise DataError(f"Expected {n} spans (start, stop), one per window, got {spans.shape}.")
    return spans


def _channel_names(
    arrays: Sequence[NDArray[np.float32]], channels: Sequence[Sequence[str]] | Sequence[str] | None
) -> list[tuple[str, ...]]:
    if channels is None:
        return [tuple(f"ch{c}" for c in range(a.shape[0])) for a in arrays]
    if channels and isinstance(channels[0], str):
        names = [tuple(str(c) for c in channels)] * len(arrays)
    else:
        names = [tuple(c) for c in channels]
    if len(names) != len(arrays):
        raise DataError(f"Got channel names for {len(names)} windows, but {len(arrays)} windows.")
    for i, (array, given) in enumerate(zip(arrays, names, strict=True)):
        if len(given) != array.shape[0] or len(set(given)) != len(given):
            raise DataError(f"Window {i} has {array.shape[0]} channels, named {given}. Give each a distinct name.")
    return names


def _intern(names: Sequence[tuple[str, ...]]) -> tuple[tuple[tuple[str, ...], ...], NDArray[np.int32]]:
    distinct = tuple(dict.fromkeys(names))
    position = {channels: i for i, channels in enumerate(distinct)}
    return distinct, np.array([position[channels] for channels in names], dtype=np.int32)
