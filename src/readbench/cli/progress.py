"""Progress for people: bars on a terminal; in a pipe or a file, a line now and then with the time left."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import typer
from rich.console import Console

from readbench.common.cache import keep_limit
from readbench.common.files import require_folder
from readbench.common.progress import Progress
from readbench.common.supervised import SupervisedLoop

if TYPE_CHECKING:
    from rich.progress import Progress as Bars, Task, TaskID


SPEED_S = 600.0
"""The time left is told from the speed over this long: one step of a slow encoder takes minutes."""
EVERY_S = 15.0
"""Where there is no terminal, seconds from the start to the first line, and between two lines."""


class Terminal:
    """Shows how far work has come while its `with` block runs; a bar goes when its piece of work has ended.

    Args:
        console: where to; standard error by default, since results go to standard output.
        every_s: least time between two lines where the console is no terminal.
    """

    def __init__(self, console: Console | None = None, every_s: float = EVERY_S) -> None:
        self.console = console or Console(stderr=True)
        self._show: Progress
        self._shown: AbstractContextManager[object]
        self._beat: _Heart | None = None
        if self.console.is_terminal:
            bars = _bars(self.console)
            self._show, self._shown = _Bars(bars), bars
        else:
            lines = _Lines(self.console, every_s)
            self._show, self._shown = lines, nullcontext()
            self._beat = _Heart(self, lines, every_s) if every_s else None
        self._lock = threading.Lock()  # workers are heard by threads of their own

    def __call__(self, what: str, done: int, total: int | None, /) -> None:
        """Show it."""
        with self._lock:
            self._show(what, done, total)

    def __enter__(self) -> Self:
        self._shown.__enter__()
        if self._beat:
            self._beat.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._beat:
            self._beat.stop()
        self._shown.__exit__(kind, error, trace)

    def pulse(self, lines: _Lines) -> None:
        """Say what goes on, where that was not heard of for long."""
        with self._lock:
            lines.say_still()


class _Bars:
    """One bar for each piece of work that goes on."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._known: dict[str, TaskID] = {}

    def __call__(self, what: str, done: int, total: int | None, /) -> None:
        if done == total:
            if what in self._known:
                self._bars.remove_task(self._known.pop(what))
        elif what not in self._known:
            # What is done already takes no part in the speed.
            self._known[what] = self._bars.add_task(what, total=total, completed=done)
        else:
            self._bars.update(self._known[what], total=total, completed=done)


def _bars(console: Console) -> Bars:
    from rich.progress import (
        BarColumn,
        Progress as Bars,
        ProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Count(ProgressColumn):
        """So many of so many, and how many a second."""

        def render(self, task: Task) -> Text:
            return Text(_count(task.completed, task.total) + (f" {_short(task.speed)}/s" if task.speed else ""))

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), Count(), TimeElapsedColumn())
    left = (TextColumn("left"), TimeRemainingColumn())
    return Bars(*columns, *left, console=console, speed_estimate_period=SPEED_S, transient=True)


class _Heart:
    """A thread that says now and then what goes on, while the work itself has nothing to say."""

    def __init__(self, terminal: Terminal, lines: _Lines, every_s: float) -> None:
        self._terminal, self._lines, self._every_s = terminal, lines, every_s
        self._loop = SupervisedLoop("says what goes on", self._beat)

    def start(self) -> None:
        """Begin."""
        self._loop.start()

    def stop(self) -> None:
        """End."""
        self._loop.stop()

    def _beat(self) -> None:
        if not self._loop.stopping.wait(self._every_s):
            self._terminal.pulse(self._lines)


class _Lines:
    """A line about the piece of work that was heard of last, when enough time has passed since the last line."""

    def __init__(self, console: Console, every_s: float) -> None:
        self._console, self._every_s = console, every_s
        self._due = time.monotonic() + every_s
        self._began: dict[str, tuple[float, int]] = {}
        self._last: dict[str, tuple[int, int | None]] = {}

    def say_still(self) -> None:
        """A line about the work that began last and has not ended, where one is due."""
        if self._last and time.monotonic() >= self._due:
            what, (done, total) = list(self._last.items())[-1]
            self(what, done, total)

    def __call__(self, what: str, done: int, total: int | None, /) -> None:
        now = time.monotonic()
        began, before = self._began.setdefault(what, (now, done))
        self._last[what] = done, total
        if done == total:
            del self._began[what], self._last[what]
        if now < self._due:
            return
        self._due = now + self._every_s
        left = ""
        if total is not None and before < done < total:
            seconds = (now - began) / (done - before) * (total - done)
            left = f", {timedelta(seconds=round(seconds))} left"
        since = f" since {timedelta(seconds=round(now - began))}" if done == before and now - began >= 1 else ""
        self._console.print(
            f"{what}: {_count(done, total)}{since}{left}", markup=False, highlight=False, soft_wrap=True
        )


def _count(done: float, total: float | None) -> str:
    """So many of so many.

    >>> _count(256, 1000), _count(12_300_000, None)
    ('256/1000', '12.3M')
    """
    return _short(done) if total is None else f"{_short(done)}/{_short(total)}"


def _short(number: float) -> str:
    """A count in few letters; up to a million in full."""
    for size, unit in ((1e9, "G"), (1e6, "M")):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return f"{number:.0f}" if number >= 10 else f"{number:.2g}"


@contextmanager
def resumable(console: Console, folder: Path) -> Iterator[Terminal]:
    """Shows the progress of work that keeps what it has finished; when interrupted, says where that is."""
    require_folder(folder)  # before hours of work whose results could not be kept
    try:
        with Terminal(console) as progress:
            yield progress
        if removed := keep_limit():
            console.print(f"The cache was {removed / 1e9:.1f} GB above its limit; what was not used for long is gone.")
    except KeyboardInterrupt:
        console.print(f"Interrupted. What was finished is in {folder}; the same command continues.", style="yellow")
        raise typer.Exit(130) from None
