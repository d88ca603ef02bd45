"""Progress display: bars on a terminal, lines with the time left elsewhere."""

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


SPEED_WINDOW_S = 600.0
"""Seconds over which speed is averaged for the time left; one step of a slow encoder takes minutes."""
LINE_INTERVAL_S = 15.0
"""Without a terminal, seconds between two lines, and before the first."""


class Terminal:
    """Progress callback that displays the tasks of its `with` block; the bar of a finished task is removed.

    Args:
        console: defaults to standard error, since results go to standard output.
        every_s: seconds between two lines if the console is not a terminal.
    """

    def __init__(self, console: Console | None = None, every_s: float = LINE_INTERVAL_S) -> None:
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
        self._lock = threading.Lock()  # workers report from several threads

    def __call__(self, what: str, done: int, total: int | None, /) -> None:
        """Show that `done` of `total` steps of `what` are finished; `total` is None if unknown."""
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
        """Print the running task if no line was printed for `every_s` seconds."""
        with self._lock:
            lines.say_still()


class _Bars:
    """One bar per running task."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._known: dict[str, TaskID] = {}

    def __call__(self, what: str, done: int, total: int | None, /) -> None:
        if done == total:
            if what in self._known:
                self._bars.remove_task(self._known.pop(what))
        elif what not in self._known:
            # Steps finished before are left out of the speed.
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
        """Finished and total steps, and steps per second."""

        def render(self, task: Task) -> Text:
            return Text(_count(task.completed, task.total) + (f" {_short(task.speed)}/s" if task.speed else ""))

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), Count(), TimeElapsedColumn())
    left = (TextColumn("left"), TimeRemainingColumn())
    return Bars(*columns, *left, console=console, speed_estimate_period=SPEED_WINDOW_S, transient=True)


class _Heart:
    """Thread that prints the running task at intervals while no progress is reported."""

    def __init__(self, terminal: Terminal, lines: _Lines, every_s: float) -> None:
        self._terminal, self._lines, self._every_s = terminal, lines, every_s
        self._loop = SupervisedLoop("says what goes on", self._beat)

    def start(self) -> None:
        """Start the thread."""
        self._loop.start()

    def stop(self) -> None:
        """Stop the thread."""
        self._loop.stop()

    def _beat(self) -> None:
        if not self._loop.stopping.wait(self._every_s):
            self._terminal.pulse(self._lines)


class _Lines:
    """Prints a line on the reporting task, at most one every `every_s` seconds."""

    def __init__(self, console: Console, every_s: float) -> None:
        self._console, self._every_s = console, every_s
        self._due = time.monotonic() + every_s
        self._began: dict[str, tuple[float, int]] = {}
        self._last: dict[str, tuple[int, int | None]] = {}

    def say_still(self) -> None:
        """Print a line on the task started last and not finished, if one is due."""
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
    """Format `done/total`.

    >>> _count(256, 1000), _count(12_300_000, None)
    ('256/1000', '12.3M')
    """
    return _short(done) if total is None else f"{_short(done)}/{_short(total)}"


def _short(number: float) -> str:
    """Format a count; from a million on with M or G."""
    for size, unit in ((1e9, "G"), (1e6, "M")):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return f"{number:.0f}" if number >= 10 else f"{number:.2g}"


@contextmanager
def resumable(console: Console, folder: Path) -> Iterator[Terminal]:
    """Progress of work that saves finished parts in `folder`; on Ctrl-C prints how to continue."""
    require_folder(folder)  # before hours of work whose results could not be kept
    try:
        with Terminal(console) as progress:
            yield progress
        if removed := keep_limit():
            console.print(
                f"The cache was {removed / 1e9:.1f} GB above its limit; the least recently used entries were deleted."
            )
    except KeyboardInterrupt:
        console.print(f"Interrupted. Finished parts are in {folder}; run the same command to continue.", style="yellow")
        raise typer.Exit(130) from None
