"""How far work has come: one way to say it, whoever works and whoever listens.

What works long takes `progress: Progress = SILENT` and calls it; it needs to know nothing of terminals:

```
progress("building sim_tanks", 0, 40)     # begins: 40 recordings to come
progress("building sim_tanks", 7, 40)     # so far
progress("building sim_tanks", 40, 40)    # done
encode(windows, within(progress, "sonde"))   # "encoding" of the part is heard as "sonde: encoding"
for cell in each(cells, "cells", progress):  # begins, counts and ends by itself
```

`readbench.cli.progress.Terminal` shows it to people.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

T = TypeVar("T")


class Progress(Protocol):
    """Is told how far a piece of work has come; any function of these three arguments will do."""

    def __call__(self, what: str, done: int, total: int | None, /) -> None:
        """Hear it.

        Args:
            what: names the piece of work, with the same words from its beginning to its end.
            done: how much of it is done; the first call says what was done before, which took no time now.
            total: how much there is, None while nobody knows. The piece ends when as much is done.
        """


def ignore(what: str, done: int, total: int | None, /) -> None:
    """Do nothing: nobody asked."""


SILENT: Progress = ignore
"""For callers who do not want to know."""


def within(progress: Progress, part: str) -> Progress:
    """The same listener for a part of the work, whose words come after the part's name.

    >>> heard = []
    >>> within(lambda *told: heard.append(told), "sonde")("encoding", 256, 1000)
    >>> heard
    [('sonde: encoding', 256, 1000)]
    """
    return _Within(progress, part)


def each(items: Sequence[T], what: str, progress: Progress) -> Iterator[T]:
    """The items one by one; an item counts as done when the next one is asked for.

    >>> heard = []
    >>> list(each("ab", "letters", lambda *told: heard.append(told)))
    ['a', 'b']
    >>> heard
    [('letters', 0, 2), ('letters', 1, 2), ('letters', 2, 2)]
    """
    progress(what, 0, len(items))
    for done, item in enumerate(items, start=1):
        yield item
        progress(what, done, len(items))


@dataclass(frozen=True)
class _Within:
    """Survives pickling where its listener does."""

    progress: Progress
    part: str

    def __call__(self, what: str, done: int, total: int | None, /) -> None:
        self.progress(f"{self.part}: {what}", done, total)
