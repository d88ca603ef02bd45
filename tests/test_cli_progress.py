"""Progress as people see it: bars on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import io
import pickle
import threading
from pathlib import Path

import pytest
import typer
from rich.console import Console

from readbench.cli.progress import Terminal, resumable
from readbench.common.progress import SILENT, within


def screen(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=160)


def text(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_bar_shows_counts_and_goes_when_its_work_has_ended() -> None:
    console = screen(terminal=True)
    with Terminal(console) as progress:
        progress("encoding: mantis+nr", 0, 1000)
        progress("encoding: mantis+nr", 256, 1000)
        progress("fetching data.zip", 12_300_000, None)
    shown = text(console)
    assert "encoding: mantis+nr" in shown
    assert "256/1000" in shown
    assert "12.3M" in shown
    console = screen(terminal=True)
    with Terminal(console) as progress:
        progress("encoding: mantis+nr", 0, 1000)
        progress("encoding: mantis+nr", 1000, 1000)
        progress("encoding: mantis+nr", 1000, 1000)
        before = len(text(console))
        progress("cells", 1, 3)
    assert "cells" in text(console)[before:]
    assert "encoding" not in text(console)[before:]


def test_names_of_methods_are_no_markup() -> None:
    console = screen(terminal=True)
    with Terminal(console) as progress:
        progress("cells [bold]", 1, 3)
    assert "cells [bold]" in text(console)


def test_a_pipe_gets_lines_with_the_time_left() -> None:
    console = screen(terminal=False)
    with Terminal(console, every_s=0) as progress:
        progress("cells", 2, 10)
        threading.Event().wait(0.05)
        progress("cells", 4, 10)
        progress("cells", 10, 10)
    first, second, last = text(console).splitlines()
    assert (first, last) == ("cells: 2/10", "cells: 10/10")
    assert second == "cells: 4/10, 0:00:00 left"


def test_a_pipe_hears_of_work_that_says_nothing_itself() -> None:
    console = screen(terminal=False)
    with Terminal(console, every_s=0.05) as progress:
        progress("fitting", 0, 1)
        progress("encoding", 0, 4)
        progress("encoding", 4, 4)
        threading.Event().wait(0.3)
    threading.Event().wait(0.1)
    lines = text(console).splitlines()
    assert lines
    assert set(lines) == {"fitting: 0/1"}
    assert len(lines) == len(text(console).splitlines())


def test_a_pipe_gets_no_line_from_work_that_is_over_soon() -> None:
    console = screen(terminal=False)
    with Terminal(console) as progress:
        for done in range(100):
            progress("cells", done, 100)
    assert not text(console)


def test_a_part_survives_pickling_as_its_listener_does() -> None:
    part = within(within(SILENT, "sonde"), "encoding")
    assert pickle.loads(pickle.dumps(part)) == part  # noqa: S301 - our own


def test_an_interruption_says_where_the_finished_work_is(tmp_path: Path) -> None:
    console = screen(terminal=False)
    with pytest.raises(typer.Exit) as ended, resumable(console, tmp_path):
        raise KeyboardInterrupt
    assert ended.value.exit_code == 130
    assert str(tmp_path) in text(console).replace("\n", "")
