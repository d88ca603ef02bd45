"""Every error the package raises on purpose, in one tree.

```
ReadbenchError
├── UsageError               the caller asked for something that does not exist or does not fit
│   ├── UnknownNameError     a name nobody registered, with the nearest right ones
│   ├── SpecError            a method text that the grammar cannot read
│   └── ParameterError       a parameter outside its declared range
├── DataError                data that cannot be used as they are
│   ├── SourceMissingError   the files of a source are not where they should be
│   ├── NotFiniteError       NaN or infinity where a number is needed
│   ├── UnreachableError     a source of signals that does not answer now; trying again may help
│   ├── AnswerError          an answer from outside that is not what it should be; trying again may help
│   │   └── LongAnswerError  one that is longer than is read
│   └── StoreError           a case library that cannot be reached, is full or is damaged
│       └── DamageError      a window or context of a case library that is lost, or not what came in
├── ConflictError            what was to be replaced is not what its writer saw
├── RoleError                a deed that the role of its caller does not include
├── MethodError              a method broke its contract
├── OverdueError             work that was ended because its time was over
└── RunError                 a run folder that cannot be used
```

Each message says what was wrong, where, and what to do next.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

MOST_QUOTED = 200
"""Characters of a name that an error repeats; nothing is suggested for a longer one."""
MOST_COMPARED = 5000
"""Known names that a wrong one is compared with."""
MOST_LISTED = 100
"""Known names that an error lists."""


def suggest_names(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The known names that are spelled most like another one, the nearest first.

    What is compared is bounded, as it takes time and memory with the square of the length: a name may come from a
    stranger, and there may be very many.

    >>> suggest_names("euclidian", ["euclidean", "random"]), suggest_names("x" * 10**7, ["x"])
    (['euclidean'], [])
    """
    if len(name) > MOST_QUOTED:
        return []
    likely = (own for own in known if len(own) <= MOST_QUOTED and 0.3 * len(own) <= len(name) <= 3.4 * len(own))
    spelled = {own.lower(): own for own in sorted(islice(likely, MOST_COMPARED))}
    return [spelled[own] for own in get_close_matches(name.lower(), spelled, n=count, cutoff=0.5)]


def _list_names(known: list[str]) -> str:
    listed = ", ".join(own[:MOST_QUOTED] for own in heapq.nsmallest(MOST_LISTED, known))
    more = len(known) - MOST_LISTED
    return f"{listed} and {more:,} more" if more > 0 else listed or "none"


class ReadbenchError(Exception):
    """Root of the tree: catch this to catch everything raised on purpose."""


class UsageError(ReadbenchError):
    """The caller asked for something that does not exist or does not fit."""


class UnknownNameError(UsageError):
    """A name nobody registered; `suggestions` holds the nearest registered ones.

    >>> str(UnknownNameError("retriever", "euclidian", ["euclidean", "random"]))
    "Unknown retriever 'euclidian'. Did you mean 'euclidean'?"
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        known = list(known)
        self.name = name
        self.suggestions = suggest_names(name, known)
        if self.suggestions:
            hint = f"Did you mean {' or '.join(repr(s) for s in self.suggestions)}?"
        else:
            hint = f"Known: {_list_names(known)}."
        super().__init__(f"Unknown {kind} {name[:MOST_QUOTED]!r}. {hint}")


class SpecError(UsageError):
    """A method text that the grammar cannot read."""


class ParameterError(UsageError):
    """A parameter outside its declared range."""


class DataError(ReadbenchError):
    """Data that cannot be used as they are."""


class SourceMissingError(DataError):
    """The files of a source are not where they should be."""


class NotFiniteError(DataError):
    """NaN or infinity where a number is needed."""


class UnreachableError(DataError):
    """A source of signals that does not answer now; trying again may help."""


class AnswerError(DataError):
    """An answer from outside that is not what it should be; trying again may help."""


class LongAnswerError(AnswerError):
    """An answer from outside that is longer than is read."""


class StoreError(DataError):
    """A case library that cannot be reached, is full or is damaged."""


class DamageError(StoreError):
    """A window or context of a case library that is lost, or not what came in."""


class MethodError(ReadbenchError):
    """A method broke its contract: wrong shape, not finite, unstable."""


class ConflictError(ReadbenchError):
    """What was to be replaced is not what its writer saw, or its writer did not say what that was.

    Args:
        name: of what was to be replaced.
        sentence: what is there now, and what was to be written.
        seen: the writer said what was seen.
    """

    def __init__(self, name: str, sentence: str, *, seen: bool) -> None:
        super().__init__(sentence)
        self.name = name
        self.seen = seen


class RoleError(ReadbenchError):
    """A deed that the role of its caller does not include."""


class OverdueError(ReadbenchError):
    """Work that was ended because its time was over."""


class RunError(ReadbenchError):
    """A run folder that cannot be used."""
