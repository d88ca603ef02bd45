"""A back-test knows nothing of the future, and counts what a library would have said."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from readbench.cases import NORMAL_OPERATION, UNLIKE, Answer, Backtest, Case, Library, Replayed, report_backtest
from readbench.cases._backtest import PastLibrary, list_steps, order_incidents, replay_history
from readbench.cli import app
from readbench.engine.windows import WindowSet
from readbench.errors import UsageError
from tests.cases.samples import CHANNELS, FAST, FAULTS, normals, window

MAY = 1_714_521_600.0


def history(where: Path, count: int = 24) -> Library:
    """Cases of three faults, entered backwards in time; two of a recording."""
    library, rng = Library.create(where), np.random.default_rng(0)
    library.add_normals(normals(10))
    for number in reversed(range(count)):
        fault = FAULTS[number // 2 % 3] if number < count - 2 else "never seen"
        values = window(fault, rng) if fault in FAULTS else window("noise", rng) + 40.0
        event, time = f"event {number // 2}", MAY + 3600 * number
        library.add_one(values, CHANNELS, id=f"c{number}", label=fault, group=event, time=time)
    return library


def test_each_incident_is_asked_of_those_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library, asked = history(tmp_path / "library"), list[tuple[list[str], list[str]]]()
    search_many = PastLibrary.search_many

    def spy(past: PastLibrary, windows: WindowSet, **given: Any) -> list[Answer]:  # noqa: ANN401
        asked.append(([case.id for case in past.cases()], windows.ids.tolist()))
        return search_many(past, windows, **given)

    monkeypatch.setattr(PastLibrary, "search_many", spy)
    found = replay_history(library, method=FAST, first=6)
    assert [one.case.id for one in found.cases] == [f"c{number}" for number in range(6, 24)]
    assert (found.by_time, found.skipped) == (True, 6)
    for known, new in asked:
        assert max(int(name[1:]) for name in known) < min(int(name[1:]) for name in new)
        events = {int(name[1:]) // 2 for name in known}
        assert events.isdisjoint(int(name[1:]) // 2 for name in new), "no evidence from the same recording"
    assert [one.known for one in found.cases] == [True] * 16 + [False] * 2
    assert found.first_right > 0.8
    assert not any(one.right for one in found.new)
    assert len(library) == 24
    assert library.history()[-1].what == "add", "nothing was written"


def test_without_dates_the_order_is_that_of_intake(tmp_path: Path) -> None:
    library, rng = Library.create(tmp_path / "library"), np.random.default_rng(0)
    for name, time in (("a", 5.0), ("b", None), ("c", 1.0)):
        library.add_one(window("leak", rng), CHANNELS, id=name, label="leak", time=time)
    library.add_one(window("leak", rng), CHANNELS, id="open")
    incidents, timed = order_incidents(library.snapshot())
    assert [[entry.case.id for entry in incident] for incident in incidents] == [["a"], ["b"], ["c"]]
    assert not timed
    with pytest.raises(UsageError, match="3 resolved cases"):
        replay_history(library, method=FAST)


def test_a_method_serves_until_the_history_has_grown(tmp_path: Path) -> None:
    incidents, _ = order_incidents(history(tmp_path / "library").snapshot())
    steps = [(len(known), len(asked)) for known, asked in list_steps(incidents, 4)]
    assert steps[0] == (4, 2)
    assert sum(asked for _, asked in steps) == 20
    assert all(known + asked == later for (known, asked), (later, _) in pairwise(steps))


def said(option: str, probability: float, truth: str, *, known: bool = True, novel: bool = False) -> Replayed:
    return Replayed(
        case=Case(id=f"{truth} {probability}", label=truth),
        history=10,
        known=known,
        said=option,
        probability=probability,
        novel=novel,
        first="w0",
        first_right=option == truth,
        place=1 if option == truth else None,
        judgeable=True,
    )


def test_figures_of_a_back_test() -> None:
    cases = (
        said("leak", 0.9, "leak"),
        said("leak", 0.7, "noise"),
        said("noise", 0.8, "noise"),
        said("leak", 0.4, "leak"),
        said(UNLIKE, 0.6, "rare", known=False, novel=True),
    )
    found = Backtest(library="plant", method=FAST, by_time=True, skipped=3, cases=cases)
    assert found.coverage() == pytest.approx(3 / 5)
    assert found.stated() == pytest.approx(0.8)
    assert found.realised() == pytest.approx(2 / 3)
    assert found.gap == pytest.approx(0.8 - 2 / 3)
    assert found.coverage(0.9) == pytest.approx(1 / 5)
    assert found.realised(0.9) == 1.0
    assert [one.case.label for one in found.misled] == ["noise"]
    assert found.minutes_saved == 2 * (60 - 10) - 20
    page = report_backtest(found)
    assert "named the fault of 3 of 5 cases and been right in 2 (67%)" in page
    assert "promised too much" in page
    assert "First of their fault: 1." in page


def test_the_command_prints_writes_and_gives_json(tmp_path: Path) -> None:
    history(tmp_path / "library", 16)
    place, page = str(tmp_path / "library"), tmp_path / "page.html"
    options = ["--method", FAST, "--first", "8", "--unaided", "90"]
    done = CliRunner().invoke(app, ["cases", "backtest", place, *options, "--out", str(page)])
    assert done.exit_code == 0, done.output
    assert "realised precision" in done.output
    text = page.read_text()
    assert "90 minutes to find a cause" in text
    assert "<svg" in text
    assert "http://" not in text.replace("http://www.w3.org/", "")
    done = CliRunner().invoke(app, ["cases", "backtest", place, *options, "--json"])
    assert len(json.loads(done.output)["cases"]) == 8


def test_a_fault_that_is_called_normal_misleads_and_a_false_alarm_does_not() -> None:
    cases = (
        said(NORMAL_OPERATION, 0.8, "leak"),
        said(NORMAL_OPERATION, 0.4, "leak"),
        said(NORMAL_OPERATION, 0.9, "normal"),
    )
    found = Backtest(library="plant", method=FAST, by_time=False, skipped=3, cases=cases)
    assert [one.probability for one in found.reassured] == [0.8]
    assert found.minutes_saved == -20
    assert found.curve is None
    page = report_backtest(found)
    assert "Of 3 faults, 1 (33%) would have been called normal operation" in page
    assert "It would have named no fault" in page
