"""Progress of a run on the terminal: data first, then cells with the time left."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from readbench.experiment import Listener
from readbench.experiment.execute import CellReport


class RunProgress(Listener):
    """A live display; on something that is not a terminal it stays silent."""

    def __init__(self, console: Console, total: int) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._cells = self._progress.add_task("cells", total=total)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def building(self, dataset: str, recordings: int, windows: int) -> None:
        """Show what is being built."""
        text = f"building {dataset}: {recordings} recordings, {windows} windows"
        self._progress.update(self._cells, description=text)

    def cell(self, report: CellReport) -> None:
        """Advance by one cell."""
        cell = report.cell
        self._progress.update(self._cells, advance=1, description=f"{cell.dataset} ρ={cell.rho} {cell.method}")
