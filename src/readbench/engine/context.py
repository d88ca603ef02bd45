"""Context of windows: the time before, sampling rate, units and facts, for queries and cases.

An engineer on call knows the hour before the alarm, the rate of the recorder and the speed of the shaft. A window may
have:
* `before`: (C, T_b) readings of the same asset in the time before the window, in the window's channels;
* `rate`: samples a second;
* `units`: of each channel;
* `facts`: known numbers by name, such as shaft speed, load or the number of rolling elements.

Never context: label, group, asset, clock time, and any part of the truth (severity, kind of onset).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from readbench.engine.room import allocate
from readbench.errors import DataError

ABSENT = -1
"""Index for a missing `before`, or missing units."""
Facts = Mapping[str, float]
Matrix = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Context:
    """The context of N windows; windows of one recording may share a `before`.

    Args:
        befores: distinct matrices (C, T_b), finite, in the channels of their windows.
        before: (N,) index into `befores`; -1 if a window has none.
        rates: (N,) samples per second; NaN if unknown.
        unit_sets: distinct tuples of units, in the order of the windows' channels, "" if unknown.
        unit_set: (N,) index into `unit_sets`; -1 if unknown.
        fact_names: F names.
        facts: (N, F); NaN if unknown.
        lent: (N,) windows whose `before` is normal operation of their asset (`lend_before`). It follows from a corpus
            and its normals, so fingerprints and files leave it out.

    >>> context = Context.of(2, befores=[[[1.0, 2.0]], None], facts=[{"speed": 29.5}, {}])
    >>> len(context), context.before_of(1) is None, context.facts_of(0)
    (2, True, {'speed': 29.5})
    """

    befores: tuple[Matrix, ...]
    before: NDArray[np.int32]
    rates: NDArray[np.float64]
    unit_sets: tuple[tuple[str, ...], ...]
    unit_set: NDArray[np.int32]
    fact_names: tuple[str, ...]
    facts: NDArray[np.float64]
    lent: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        count: int,
        *,
        befores: Sequence[ArrayLike | None] | None = None,
        rates: ArrayLike | None = None,
        units: Sequence[Sequence[str]] | None = None,
        facts: Sequence[Facts] | None = None,
    ) -> Context:
        """Build from one entry per window; None for an absent column. An array given twice is stored once."""
        distinct, numbers = _number_befores(befores, count)
        unit_sets, unit_set = _number_units(units, count)
        given = [{}] * count if facts is None else facts
        _check_count(len(given), count, "facts")
        names = tuple(dict.fromkeys(name for named in given for name in named))
        table = np.array([[named.get(name, np.nan) for name in names] for named in given], np.float64)
        return cls(
            befores=distinct,
            before=numbers,
            rates=_rates(rates, count),
            unit_sets=unit_sets,
            unit_set=unit_set,
            fact_names=names,
            facts=table.reshape(count, len(names)),
            lent=np.zeros(count, bool),
        )

    @classmethod
    def unknown(cls, count: int) -> Context:
        """Context of windows without any."""
        return cls.of(count)

    def __len__(self) -> int:
        return len(self.before)

    def __getitem__(self, key: slice | NDArray[np.intp] | NDArray[np.bool_]) -> Context:
        return replace(
            self,
            before=self.before[key],
            rates=self.rates[key],
            unit_set=self.unit_set[key],
            facts=self.facts[key],
            lent=self.lent[key],
        )

    @property
    def known(self) -> bool:
        """Whether any window has any context."""
        numbers = np.isfinite(self.rates).any() or np.isfinite(self.facts).any()
        return bool(numbers or self.has_before.any() or (self.unit_set != ABSENT).any())

    @property
    def has_before(self) -> NDArray[np.bool_]:
        """(N,) windows that have a `before`."""
        has: NDArray[np.bool_] = self.before != ABSENT
        return has

    def before_of(self, i: int) -> Matrix | None:
        """(C, T_b) of window i; None if absent."""
        number = int(self.before[i])
        return None if number == ABSENT else self.befores[number]

    def units_of(self, i: int) -> tuple[str, ...]:
        """Units of the channels of window i; empty if unknown."""
        number = int(self.unit_set[i])
        return () if number == ABSENT else self.unit_sets[number]

    def facts_of(self, i: int) -> dict[str, float]:
        """Known facts of window i, by name."""
        row = self.facts[i]
        return {name: float(row[f]) for f, name in enumerate(self.fact_names) if np.isfinite(row[f])}

    def with_lent(self, befores: Sequence[Matrix], numbers: NDArray[np.int32]) -> Context:
        """Add lent matrices: `numbers` (N,) is the index of the matrix lent to each window, -1 for none."""
        shifted = np.where(numbers == ABSENT, self.before, numbers + len(self.befores)).astype(np.int32)
        lent = self.lent | (numbers != ABSENT)
        return replace(self, befores=(*self.befores, *befores), before=shifted, lent=lent)

    def without_lent(self) -> Context:
        """Remove lent matrices."""
        if not self.lent.any():
            return self
        before = np.where(self.lent, ABSENT, self.before).astype(np.int32)
        return replace(self, before=before, lent=np.zeros_like(self.lent))

    def compact(self) -> Context:
        """Copy only what these windows use."""
        used, before = number_anew(self.before)
        units, unit_set = number_anew(self.unit_set)
        named = sorted(np.flatnonzero(np.isfinite(self.facts).any(axis=0)), key=self.fact_names.__getitem__)
        return replace(
            self,
            befores=tuple(np.ascontiguousarray(self.befores[i]) for i in used),
            before=before,
            unit_sets=tuple(self.unit_sets[i] for i in units),
            unit_set=unit_set,
            fact_names=tuple(self.fact_names[f] for f in named),
            facts=self.facts[:, named],
        )

    def separate(self) -> Context:
        """A copy whose numbers, order and memory reveal nothing about the original set.

        Each window gets a copy of its `before` in one buffer: how many windows share a recording, and the order of
        recordings in a file, may depend on the fault.
        """
        owners = np.flatnonzero(self.has_before)
        given = [self.befores[number] for number in self.before[owners]]
        ends = np.cumsum([0, *(matrix.size for matrix in given)])
        flat = allocate(int(ends[-1]))
        befores = tuple(flat[a:b].reshape(m.shape) for m, (a, b) in zip(given, pairwise(ends.tolist()), strict=True))
        for room, matrix in zip(befores, given, strict=True):
            room[:] = matrix
        before = np.full(len(self), ABSENT, np.int32)
        before[owners] = np.arange(len(owners))
        return replace(self, befores=befores, before=before, lent=np.zeros(len(self), bool)).compact()

    @cached_property
    def first_alike(self) -> NDArray[np.intp]:
        """(N,) first window whose `before` has equal readings, to process these once; -1 without one."""
        first: dict[bytes, int] = {}
        numbers = enumerate(self.before.tolist())
        return np.array([ABSENT if n == ABSENT else first.setdefault(self._digest(n), i) for i, n in numbers], np.intp)

    def digest_of(self, i: int) -> bytes:
        """Hash of the context of window i; empty if it has none."""
        number, rate = int(self.before[i]), float(self.rates[i])
        units, facts = self.units_of(i), sorted(self.facts_of(i).items())
        if number == ABSENT and np.isnan(rate) and not units and not facts:
            return b""
        text = repr((rate, units, facts)).encode()
        return hashlib.blake2b(text + (b"" if number == ABSENT else self._digest(number)), digest_size=16).digest()

    def _digest(self, number: int) -> bytes:
        """Hash of a `before`, computed once."""
        if number not in self._digests:
            before = self.befores[number]
            content = repr(before.shape).encode() + before.tobytes()
            self._digests[number] = hashlib.blake2b(content, digest_size=16).digest()
        return self._digests[number]

    @cached_property
    def _digests(self) -> dict[int, bytes]:
        return {}


def join_contexts(parts: Sequence[tuple[int, Context | None]]) -> Context | None:
    """Join contexts, each with its number of windows; None if no part has any."""
    if all(context is None for _, context in parts):
        return None
    known = [Context.unknown(count) if context is None else context for count, context in parts]
    names = tuple(dict.fromkeys(name for context in known for name in context.fact_names))
    units = tuple(dict.fromkeys(units_ for context in known for units_ in context.unit_sets))
    places = {units_: i for i, units_ in enumerate(units)}
    shifts = np.cumsum([0] + [len(context.befores) for context in known])
    return Context(
        befores=tuple(before for context in known for before in context.befores),
        before=np.concatenate([_shift(c.before, int(s)) for c, s in zip(known, shifts, strict=False)]),
        rates=np.concatenate([context.rates for context in known]),
        unit_sets=units,
        unit_set=np.concatenate([_renumber(c.unit_set, [places[units_] for units_ in c.unit_sets]) for c in known]),
        fact_names=names,
        facts=np.concatenate([_facts_under(context, names) for context in known]),
        lent=np.concatenate([context.lent for context in known]),
    )


def check_before(before: ArrayLike, channels: Sequence[str], where: str) -> Matrix:
    """Check that a `before` fits its window; raise `DataError` otherwise.

    Args:
        before: (C, T_b) readings.
        channels: C names, the window's.
        where: name of the window, for the message.

    >>> check_before([[1.0, 2.0]], ["level"], "case 7").shape
    (1, 2)
    """
    matrix = _as_matrix(before, f"The time before {where}")
    if len(matrix) != len(channels):
        raise DataError(
            f"The time before {where} has {len(matrix)} channels, the window {len(channels)} ({', '.join(channels)}). "
            "Give the same channels for both."
        )
    if matrix.shape[1] == 0:
        raise DataError(f"The time before {where} is empty. Leave it out where nothing is known of it.")
    if not np.isfinite(matrix).all():
        row = int(np.argwhere(~np.isfinite(matrix))[0][0])
        raise DataError(f"The time before {where} has a gap in channel {channels[row]!r}. Fill it, or leave it out.")
    return matrix


def find_still(before: Matrix, channels: Sequence[str]) -> tuple[str, ...]:
    """Channels that are constant in a `before`, so that their usual spread is taken from elsewhere."""
    return tuple(name for name, row in zip(channels, before, strict=True) if np.ptp(row) == 0)


def _number_befores(
    befores: Sequence[ArrayLike | None] | None, count: int
) -> tuple[tuple[Matrix, ...], NDArray[np.int32]]:
    numbers = np.full(count, ABSENT, np.int32)
    if befores is None:
        return (), numbers
    _check_count(len(befores), count, "befores")
    distinct: list[Matrix] = []
    places: dict[int, int] = {}
    for i, before in enumerate(befores):
        if before is None:
            continue
        if id(before) not in places:
            places[id(before)] = len(distinct)
            distinct.append(_as_matrix(before, f"The time before window {i}"))
        numbers[i] = places[id(before)]
    return tuple(distinct), numbers


def _number_units(
    units: Sequence[Sequence[str]] | None, count: int
) -> tuple[tuple[tuple[str, ...], ...], NDArray[np.int32]]:
    given = [()] * count if units is None else [tuple(entry) for entry in units]
    _check_count(len(given), count, "units")
    distinct = tuple(dict.fromkeys(entry for entry in given if any(entry)))
    places = {entry: i for i, entry in enumerate(distinct)}
    return distinct, np.array([places.get(entry, ABSENT) for entry in given], np.int32)


def _rates(rates: ArrayLike | None, count: int) -> NDArray[np.float64]:
    column = np.full(count, np.nan) if rates is None else np.asarray(rates, np.float64)
    _check_count(len(column), count, "rates")
    if (column <= 0).any():
        raise DataError("A rate is a positive number of samples a second, or NaN where it is unknown.")
    return column


def _check_count(found: int, count: int, what: str) -> None:
    if found != count:
        raise DataError(f"Expected {what} of {count} windows, one entry each, got {found}.")


def _as_matrix(values: Any, what: str) -> Matrix:  # noqa: ANN401 - whatever a caller gave
    try:
        matrix = np.asarray(values, np.float32)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} is no matrix (channels, time) of numbers: {error}") from error
    if matrix.ndim != 2:
        raise DataError(f"{what} has shape {matrix.shape}; give a matrix (channels, time).")
    return matrix


def number_anew(numbers: NDArray[np.int32]) -> tuple[list[int], NDArray[np.int32]]:
    """Distinct numbers in order of appearance, and each entry as its index among them; -1 stays.

    >>> number_anew(np.array([7, -1, 2, 7], np.int32))[0]
    [7, 2]
    """
    places: dict[int, int] = {ABSENT: ABSENT}
    anew = [places.setdefault(number, len(places) - 1) for number in numbers.tolist()]
    return list(places)[1:], np.array(anew, np.int32)


def _shift(numbers: NDArray[np.int32], by: int) -> NDArray[np.int32]:
    return np.where(numbers == ABSENT, ABSENT, numbers + by).astype(np.int32)


def _renumber(numbers: NDArray[np.int32], places: list[int]) -> NDArray[np.int32]:
    return np.array([*places, ABSENT], np.int32)[numbers]  # index -1 is ABSENT


def _facts_under(context: Context, names: tuple[str, ...]) -> NDArray[np.float64]:
    table = np.full((len(context), len(names)), np.nan)
    places = {name: i for i, name in enumerate(names)}
    table[:, [places[name] for name in context.fact_names]] = context.facts
    return table
