"""A list of incidents with recordings: every row becomes a case or is named, and a second time nothing happens."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from readbench.cases import Library, add_incidents
from readbench.cli import app
from readbench.errors import DataError, UnknownNameError

START = np.datetime64("2025-12-31T12:00:00")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two recordings of an hour each, one of them with offsets from UTC."""
    for name, offset, first in (("pump 1", "", 0.0), ("pump 2", "+01:00", 5000.0)):
        rows = [f"{START + np.timedelta64(10 * i, 's')}{offset},{first + i},{np.sin(i):.3f}" for i in range(360)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["time,level,flow", *rows]) + "\n")
    return tmp_path


LIST = """start;end;label;asset;note
31.12.2025 12:10;31.12.2025 12:12;leak;pump 1;Seal replaced.
31.12.2025 12:20;31.12.2025 12:22;jam;pump 2;
31.12.2025 12:30;31.12.2025 12:20;jam;pump 1;ends before it starts
31.12.2025 18:00;31.12.2025 18:20;jam;pump 1;no such time
soon;31.12.2025 12:40;jam;pump 1;
"""


def test_every_row_becomes_a_case_or_is_named(folder: Path) -> None:
    (folder / "incidents.csv").write_text(LIST)
    library = Library.create(folder / "library")
    recordings = [folder / "pump 1.csv", folder / "pump 2.csv"]
    report = add_incidents(library, folder / "incidents.csv", recordings)
    assert report.added == ("pump 1 2025-12-31 12:10", "pump 2 2025-12-31 12:20 +01:00")
    assert [row for row, _ in report.failed] == [3, 4, 5]
    assert "before it starts" in report.failed[0][1]
    assert "no recording has this time" in report.failed[1][1]
    assert "'soon' is no time" in report.failed[2][1]
    one, two = library.cases()
    assert (one.label, one.asset, one.notes) == ("leak", "pump 1", "Seal replaced.")
    assert (one.time, one.end, one.zone) == (1767183000.0, 1767183120.0, "")
    assert (two.time, two.zone) == (1767180000.0, "+01:00")
    assert library.window(one.id).values(0)[0].tolist() == list(range(60, 73))
    assert library.window(two.id).values(0)[0].tolist() == list(range(5120, 5133))
    assert library.details(one.id).rate == pytest.approx(0.1)


def test_a_second_time_nothing_happens(folder: Path) -> None:
    (folder / "incidents.csv").write_text(LIST)
    library = Library.create(folder / "library")
    recordings = [folder / "pump 1.csv", folder / "pump 2.csv"]
    first = add_incidents(library, folder / "incidents.csv", recordings)
    again = add_incidents(library, folder / "incidents.csv", recordings)
    assert (again.added, again.known, again.failed) == ((), first.added, first.failed)
    assert len(library.history()) == 1


def test_a_row_names_its_recording_and_its_onset(folder: Path) -> None:
    (folder / "list.csv").write_text(
        "start,end,label,recording,onset,name\n"
        "2025-12-31T12:10,2025-12-31T12:12,leak,pump 1,12:11,WO-1\n"
        "2025-12-31T12:10,2025-12-31T12:12,leak,,,WO-2\n"
        "2025-12-31T12:10,2025-12-31T12:12,leak,pump 9,,WO-3\n"
    )
    library = Library.create(folder / "library")
    (folder / "pump 3.csv").write_text((folder / "pump 1.csv").read_text())
    report = add_incidents(library, folder / "list.csv", [folder / "pump 1.csv", folder / "pump 3.csv"])
    assert report.added == ("WO-1",)
    assert library.details("WO-1").before == 6
    assert "several recordings: pump 1.csv, pump 3.csv" in dict(report.failed)[2]
    assert "no recording 'pump 9'" in dict(report.failed)[3]


def test_lists_and_recordings_that_cannot_be_used_are_refused(folder: Path) -> None:
    (folder / "list.csv").write_text("begin,end\n1,2\n")
    library = Library.create(folder / "library")
    with pytest.raises(UnknownNameError, match="'start'"):
        add_incidents(library, folder / "list.csv", [])
    (folder / "list.csv").write_text("start,end\n1,2\n")
    (folder / "bare.csv").write_text("x,y\n1,2\n3,4\n")
    with pytest.raises(DataError, match="no time column was found"):
        add_incidents(library, folder / "list.csv", [folder / "bare.csv"])


def test_the_command_adds_them(folder: Path) -> None:
    (folder / "incidents.csv").write_text(LIST)
    Library.create(folder / "library")
    files = [str(folder / "pump 1.csv"), str(folder / "pump 2.csv")]
    words = ["cases", "add", str(folder / "library"), *files, "--incidents", str(folder / "incidents.csv")]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0
    assert "added 2 cases; 0 were here already; 3 rows failed" in result.output
    assert "row 3: it ends" in result.output
    assert "added 0 cases; 2 were here already" in CliRunner().invoke(app, words, catch_exceptions=False).output


def test_capitals_of_the_list_make_no_difference_and_other_columns_are_said(folder: Path) -> None:
    (folder / "list.csv").write_text("Start,End,Label,Ticket\n2025-12-31T12:10,2025-12-31T12:12,leak,7\n")
    library = Library.create(folder / "library")
    report = add_incidents(library, folder / "list.csv", [folder / "pump 1.csv"])
    assert library.case(report.added[0]).label == "leak"
    assert report.remarks[0] == "Columns of list.csv that were left out: Ticket."


def test_incidents_unlike_the_library_are_remarked_on(folder: Path) -> None:
    rows = "".join(f"2025-12-31T12:{i:02d},2025-12-31T12:{i + 2:02d},leak\n" for i in range(20))
    (folder / "list.csv").write_text(f"start,end,label\n{rows}")
    library = Library.create(folder / "library")
    add_incidents(library, folder / "list.csv", [folder / "pump 1.csv"])
    wrong = folder / "pump 1 kPa.csv"
    head, *lines = (folder / "pump 1.csv").read_text().splitlines()
    scaled = [f"{when},{1000 * float(level)},{flow}" for when, level, flow in (line.split(",") for line in lines)]
    wrong.write_text("\n".join([head, *scaled]))
    (folder / "more.csv").write_text("start,end,label\n2025-12-31T12:10,2025-12-31T12:12,leak\n")
    (odd,) = add_incidents(library, folder / "more.csv", [wrong]).odd
    assert (odd[0].kind, odd[0].channels) == ("unit", ("level",))
