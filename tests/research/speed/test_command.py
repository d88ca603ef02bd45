"""`readbench bench`: what it shows and what programs read."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from readbench.cli import bench
from readbench.errors import UnknownNameError
from research.speed.measure import Contender, Contest


def job(*, roof: Callable[[], float] | None = None) -> Contest:
    ours = Contender("ours", lambda: sum(range(1000)))
    return Contest("job", "a job", ours, (), np.testing.assert_equal, 1.0, "things/s", roof)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"with": lambda: job(roof=lambda: 1e9), "without": job}
    monkeypatch.setattr("research.speed.contests.cases", lambda _threads: known)


def run(only: str, *, as_json: bool) -> None:
    bench.bench_command(only=only, repeats=1, threads=1, as_json=as_json)


def test_programs_read_the_roof_and_the_share_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    run("with,without", as_json=True)
    known, unknown = json.loads(capsys.readouterr().out)["results"]
    assert known["roof"] == 1e9
    assert known["timings"][0]["share_of_roof"] == pytest.approx(known["timings"][0]["rate"] / 1e9)
    assert unknown["roof"] is None
    assert unknown["timings"][0]["share_of_roof"] is None


def test_people_see_them_in_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    run("with", as_json=False)
    shown = capsys.readouterr().out
    assert "Share of roof" in shown
    assert "%" in shown
    assert "a job; roof 1e+09 things/s" in shown
    run("without", as_json=False)
    assert "%" not in capsys.readouterr().out


def test_an_unknown_case_is_named() -> None:
    with pytest.raises(UnknownNameError, match="witout"):
        run("witout", as_json=True)
