"""The page of a leaderboard, in a real browser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from readbench.benchmark.report import Declared, write_standings
from readbench.benchmark.report._results import MetricFacts
from readbench.benchmark.report._standings import Rejected, Standings, StandingsEntry, by_dataset_table, standings_table
from tests.browser import Visit

HOSTILE = "<script>alert(1)</script>"


def board() -> Standings:
    values = {"first": (0.5, 0.25), HOSTILE: (0.75, 0.125), "third": (0.0625, float("nan"))}
    entries = tuple(
        StandingsEntry(
            "us",
            name,
            name,
            "test",
            "none",
            {0: a, 20: b},
            {},
            {"sim_tanks": a},
            {"P@1": a},
            partial=name == "third",
            flags=(HOSTILE,),
        )
        for name, (a, b) in values.items()
    )
    refused = (Rejected("bad.zip", HOSTILE),)
    metric, other = (MetricFacts.of(name, {}) for name in ("NDCG@10", "P@1"))
    return Standings(
        entries,
        metric,
        (other,),
        (0, 20),
        ("sim_tanks",),
        {"sim_tanks": "simulated by us"},
        (Declared(name="us"),),
        refused,
    )


def test_a_leaderboard_of_both_kinds_has_the_mean_over_real_datasets() -> None:
    entries = tuple(replace(entry, real={0: 0.5, 20: 0.25}) for entry in board().entries)
    mixed = replace(board(), entries=entries, origins={"sim_tanks": "simulated by us", "skab": "real"})
    table = standings_table(mixed)
    assert table.header[4:8] == ["ρ=0%", "ρ=20%", "real ρ=0%", "real ρ=20%"]
    assert table.rows[0][6:8] == ["0.500", "0.250"]
    assert "mean over 2 datasets (1 real, 1 simulated by us‡); real: over the real ones alone (1)" in table.caption
    assert "sim_tanks‡" in by_dataset_table(mixed).header


def test_columns_are_sorted_by_click_and_by_key_and_names_do_no_harm(browser: Any, tmp_path: Path) -> None:  # noqa: ANN401
    write_standings(board(), tmp_path / "report")
    visit = Visit(browser, tmp_path)
    page = visit.open(expect="main table")
    names = page.locator(".leaderboard tbody td:nth-child(2)")
    page.click(".leaderboard th button:has-text('ρ=20%')")
    assert names.all_inner_texts() == ["first", HOSTILE, "third"]
    page.keyboard.press("Enter")
    assert names.all_inner_texts() == [HOSTILE, "first", "third"]
    assert page.get_attribute(".leaderboard th:nth-child(6)", "aria-sort") == "ascending"
    assert page.locator(".leaderboard [aria-sort]").count() == 1
    assert page.inner_text(".rejected td:nth-child(2)") == HOSTILE
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert visit.complaints == []
