"""Progress reports: one callback type for all long work.

Long work takes `progress: Progress = SILENT` and calls it, without knowing how it is shown:

```
progress("building sim_tanks", 0, 40)     # begins: 40 recordings to come
progress("building sim_tanks", 7, 40)     # so far
progress("building sim_tanks", 40, 40)    # done
encode(windows, within(progress, "sonde"))   # "encoding" is reported as "sonde: encoding"
for cell in each(cells, "cells", progress):  # reports each item
with during(progress, "fitting"):            # work that cannot be counted
```

`readbench.cli.progress.Terminal` prints it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

T = TypeVar("T")


class Progress(Protocol):
    """Callback for progress; any function with these three arguments."""

    def __call__(self, what: str, done: int, total: int | None, /) -> None:
        """Report progress.

        Args:
            what: name of the work, the same in every call.
            done: items done; the first call gives what was done earlier, which is left out of the rate.
            total: number of items, None while unknown. The work ends when `done` reaches it.
        """


def ignore(what: str, done: int, total: int | None, /) -> None:
    """Do nothing."""


SILENT: Progress = ignore
"""For callers who want no reports."""


def within(progress: Progress, part: str) -> Progress:
    """Prefix the reports of a part of the work with the part's name.

    >>> heard = []
    >>> within(lambda *told: heard.append(told), "sonde")("encoding", 256, 1000)
    >>> heard
    [('sonde: encoding', 256, 1000)]
    """
    return _Within(progress, part)


def each(items: Sequence[T], what: str, progress: Progress) -> Iterator[T]:
    """Yield the items and report each as done when the next one is requested.

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


@contextmanager
def during(progress: Progress, what: str) -> Iterator[None]:
    """Report the start and end of work that cannot be counted.

    >>> heard = []
    >>> with during(lambda *told: heard.append(told), "fitting"):
    ...     pass
    >>> heard
    [('fitting', 0, 1), ('fitting', 1, 1)]
    """
    progress(what, 0, 1)
    yield
    progress(what, 1, 1)


@dataclass(frozen=True)
class _Within:
    """Picklable if its callback is."""

    progress: Progress
    part: str

    def __call__(self, what: str, done: int, total: int | None, /) -> None:
        self.progress(f"{self.part}: {what}", done, total)
