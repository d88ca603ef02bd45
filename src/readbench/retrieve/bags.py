"""Bags of words: the form in which documents and queries come to an index."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from readbench.windows.room import room

Integers = NDArray[np.signedinteger]


@dataclass(frozen=True, eq=False)
class Bags:
    """N bags, one after the other.

    Args:
        starts: (N + 1,) where each of them begins.
        words: (M,) numbers of words, each at most once in a bag.
        times: (M,) float32, how often each occurs in its bag.
        vocabulary: how many words there may be.

    >>> bags = Bags.of(np.array([[5, 2, 5], [1, 1, 1]]), vocabulary=6)
    >>> bags.starts.tolist(), bags.words.tolist(), bags.times.tolist()
    ([0, 2, 3], [2, 5, 1], [1.0, 2.0, 3.0])
    >>> bags[1:].words.tolist()
    [1]
    """

    starts: Integers
    words: Integers
    times: NDArray[np.float32]
    vocabulary: int

    @classmethod
    def of(cls, words: Integers, vocabulary: int) -> Self:
        """Bags of (N, W) words, W at least 1."""
        ordered = np.sort(words, axis=1).ravel()
        new = np.ones(words.shape, bool)
        new.ravel()[1:] = ordered[1:] != ordered[:-1]
        new[:, 0] = True
        first = np.flatnonzero(new)
        times = np.diff(first, append=ordered.size).astype(np.float32)
        starts = np.concatenate([[0], np.cumsum(new.sum(axis=1))])
        return cls(starts, ordered[first].astype(_number(vocabulary)), times, vocabulary)

    @classmethod
    def joined(cls, parts: Iterable[Bags], count: int, entries: int, vocabulary: int) -> Self:
        """The bags of all parts, without a second copy in memory; very many of them lie in a file.

        Args:
            parts: of this vocabulary.
            count: bags of all of them.
            entries: (word, times) of all of them at most.
            vocabulary: how many words there may be.

        >>> parts = [Bags.of(np.array([[3, 0]]), 4), Bags.of(np.array([[1, 1]]), 4)]
        >>> Bags.joined(parts, 2, 4, 4).words.tolist()
        [0, 3, 1]
        """
        words, times = room(entries, _number(vocabulary)), room(entries)
        starts = np.zeros(count + 1, np.int64)
        bag = at = 0
        for part in parts:
            end = at + len(part.words)
            words[at:end], times[at:end] = part.words, part.times
            starts[bag + 1 : bag + 1 + len(part)] = at + part.starts[1:]
            bag, at = bag + len(part), end
        return cls(starts, words[:at], times[:at], vocabulary)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, part: slice) -> Bags:
        """Bags that follow each other."""
        first, end, _ = part.indices(len(self))
        own = self.starts[first : max(first, end) + 1]
        entries = slice(int(own[0]), int(own[-1]))
        return Bags(own - own[0], self.words[entries], self.times[entries], self.vocabulary)


def _number(vocabulary: int) -> type[np.signedinteger]:
    """Four bytes a word where these suffice."""
    return np.int32 if vocabulary <= np.iinfo(np.int32).max else np.int64
