"""Full corpora in tables and pictures."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from readbench.studies import Failure
from research.scale.measuring import Findings, ScaleMeasurement, TwoStage
from research.scale.report import growth_table, measured_tables, rows_csv, scale_table, two_stage_table, write_scale

SIZES = (10_000, 100_000, 1_000_000)


def measured(method: str, power: float) -> list[ScaleMeasurement]:
    return [
        ScaleMeasurement(
            method=method,
            size=size,
            queries=100,
            ndcg=0.7 - 0.1 * i,
            encode_s=size * 1e-4 if method == "raw+nr" else 0.0,
            fit_s=size * 1e-5,
            search_s=1e-3 * size**power,
            memory_bytes=2e8 * size**0.25,
            disk_bytes=15_360 * size,
        )
        for i, size in enumerate(SIZES)
    ]


MEASURED = (*measured("dtw-i", 1.0), *measured("raw+nr", 0.5))
PAIRED = tuple(
    TwoStage("raw+nr", 10_000, 100, length, recall, recall / 2, 0.5, 0.6, 0.1, 0.2, 10.0, 1.0, 4.0)
    for length, recall in ((50, 0.25), (100, 0.5))
)
FINDINGS = Findings(MEASURED, PAIRED, (Failure("sbd-d at 1,000,000", "killed"),), 12.0)


def test_every_size_of_a_method_has_a_row() -> None:
    table = scale_table(MEASURED, "sim_tanks")
    assert [row[:3] for row in table.rows[:3]] == [
        ["DTW-I", "10,000", "0.700"],
        ["DTW-I", "100,000", "0.600"],
        ["DTW-I", "1,000,000", "0.500"],
    ]
    assert table.rows[2][3:] == ["–", "10.0", "1000", "6.32", "15.4"]
    assert table.rules == (3,)
    assert all(len(row) == len(table.header) for row in table.rows)


def test_growth_shows_the_exponents_and_what_was_lost() -> None:
    table = growth_table(MEASURED)
    assert table is not None
    dtw, raw = table.rows
    assert dtw == ["DTW-I", "0.700", "0.500", "-0.200", "1.00", "1.00", "0.25", "1.00"]
    assert raw[4] == "0.50"


def test_times_too_short_to_tell_have_no_exponent() -> None:
    short = [ScaleMeasurement("dtw-i", size, 1, 0.5, 0.0, 1e-5, 1.0, 1e9, 10) for size in SIZES]
    table = growth_table(short)
    assert table is not None
    assert table.rows[0][5] == "–"


def test_one_size_has_no_growth() -> None:
    one = MEASURED[:1]
    assert growth_table(one) is None
    assert [table.name for table in measured_tables(one, "sim_tanks")] == ["scale"]
    assert [table.name for table in measured_tables(MEASURED, "sim_tanks")] == ["scale", "growth"]


def test_two_stages_show_recall_and_what_seeds_save() -> None:
    table = two_stage_table(PAIRED, "sim_tanks")
    seeded = ["10.0", "1.00", "4.00", "60%", "50%"]
    assert table.rows[0] == ["10,000", "50", "0.250", "0.125", "0.500", "0.100", "0.200", *seeded]
    assert "0.600 at 10,000" in table.caption


def test_the_csv_has_all_figures_unrounded() -> None:
    rows = list(csv.DictReader(io.StringIO(rows_csv(MEASURED))))
    assert len(rows) == 6
    assert float(rows[1]["search_s"]) == MEASURED[1].search_s
    assert rows[3]["method"] == "raw+nr"


def test_everything_is_written(tmp_path: Path) -> None:
    files = write_scale(FINDINGS, "sim_tanks", tmp_path)
    assert {file.name for file in files} == {
        *("scale.csv", "scale.md", "scale.svg", "scale.png", "two-stage.csv", "two-stage.md")
    }
    page = (tmp_path / "scale.md").read_text()
    assert "sbd-d at 1,000,000: killed" in page
    assert "took 12.0 s" in page
    drawing = (tmp_path / "scale.svg").read_text()
    assert drawing.count("<svg") == 1


def test_a_study_without_results_says_why(tmp_path: Path) -> None:
    files = write_scale(Findings((), (), FINDINGS.failures, 1.0), "sim_tanks", tmp_path)
    assert [file.name for file in files] == ["scale.csv", "scale.md"]
    assert "killed" in (tmp_path / "scale.md").read_text()


@pytest.mark.parametrize("name", ["scale.svg", "scale.png"])
def test_the_same_figures_give_the_same_picture(name: str, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        write_scale(FINDINGS, "sim_tanks", tmp_path / folder)
    assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
