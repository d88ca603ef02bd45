"""Progress on the terminal, with the time left; silent where there is no terminal."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from readbench.experiment import Listener
from readbench.experiment.budget import ALL
from readbench.experiment.execute import CellReport
from readbench.scale import Listener as ScaleListener

SPEED_S = 600.0
"""The time left is told from the speed over this long: one step of a slow encoder takes minutes."""


class _Bar:
    """One bar that starts and stops with its `with` block."""

    def __init__(self, console: Console, description: str, total: int | None) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
            speed_estimate_period=SPEED_S,
        )
        self._bar = self._progress.add_task(description, total=total)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()


class RunProgress(_Bar, Listener):
    """Cells of a run; data that are built first show in the description, encodings in a bar below while they last."""

    def __init__(self, console: Console, total: int) -> None:
        super().__init__(console, "cells", total)
        self._encodings: dict[str, TaskID] = {}

    def building(self, dataset: str, recordings: int, windows: int) -> None:
        """Show what is being built."""
        text = f"building {dataset}: {recordings} recordings, {windows} windows"
        self._progress.update(self._bar, description=text)

    def encoding(self, leg: str, done: int, total: int) -> None:
        """Show how many windows of a leg are encoded; what the cache had does not count for the time left."""
        if done == total:
            if leg in self._encodings:
                self._progress.remove_task(self._encodings.pop(leg))
        elif leg not in self._encodings:
            text = f"encoding windows: {leg}"
            self._encodings[leg] = self._progress.add_task(text, total=total, completed=done)
        else:
            self._progress.update(self._encodings[leg], total=total, completed=done)

    def cell(self, report: CellReport) -> None:
        """Advance by one cell."""
        cell = report.cell
        budget = "" if cell.labels == str(ALL) else f" {cell.labels} labels"
        self._progress.update(self._bar, advance=1, description=f"{cell.dataset} ρ={cell.rho}{budget} {cell.method}")


class BuildProgress(_Bar):
    """Recordings of one dataset."""

    def __init__(self, console: Console, dataset: str, total: int | None) -> None:
        super().__init__(console, f"building {dataset}", total)
        self._dataset = dataset

    def update(self, recordings: int, windows: int) -> None:
        """Show how far the build has come."""
        self._progress.update(
            self._bar, completed=recordings, description=f"building {self._dataset}: {windows} windows"
        )


class ScaleProgress(_Bar, ScaleListener):
    """Windows that the cells of a study search; what a cell is at shows in the description."""

    def __init__(self, console: Console, total: int) -> None:
        super().__init__(console, "corpus", total)
        self._cell = ""

    def telling(self, what: str, done: int, total: int) -> None:
        """Show what is being done, and how much of it."""
        share = f" {done / total:.0%}" if done else ""
        self._progress.update(self._bar, description=f"{self._cell}{what}{share}")

    def begins(self, method: str, size: int) -> None:
        """Show the cell."""
        self._cell = f"{method} at {size:,}: "
        self.telling("starting", 0, size)

    def ends(self, method: str, size: int) -> None:  # noqa: ARG002 - all methods search as many
        """Advance by the windows of the cell."""
        self._progress.update(self._bar, advance=size)
