"""Every table of the catalogue, against values worked out by hand from `scores.csv`."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from readbench.benchmark.protocol import PAPER_COMPOSITION
from readbench.benchmark.report import (
    ReportTable,
    TableStudy,
    absent_tables,
    figure_captions,
    figures,
    is_partial,
    latex,
    method_tables,
    paper_tables,
    read_results,
    show_report,
    show_table,
    write_report,
)
from readbench.benchmark.report._budgets import CURVES
from readbench.benchmark.report._methods import coverage, mark_dataset
from readbench.benchmark.report._paper_tables import GRIDS
from readbench.benchmark.report._paper_values import PAPER_TABLES
from readbench.benchmark.report._table import escape
from readbench.benchmark.runs import SUITES
from readbench.benchmark.runs._suites import full
from readbench.engine.spec import parse
from tests.benchmark.report.made_up import made_up_run, score

DATASETS = ("skab", "road", "sim_tanks", "hai")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> TableStudy:
    folder = tmp_path_factory.mktemp("study")
    full = made_up_run(folder / "full", ("charm", "mantis"), levels=(0,), scores=lambda *cell: score(*cell) / 2)
    return TableStudy(read_results(made_up_run(folder / "capped")), read_results(full))


@pytest.fixture(scope="module")
def tables(study: TableStudy) -> dict[str, ReportTable]:
    return {table.name: table for table in paper_tables(study)}


def mean(method: str, rho: int = 0, metric: str = "NDCG@10", datasets: tuple[str, ...] = DATASETS) -> float:
    return float(np.mean([score(d, s, rho, method, metric) for d in datasets for s in (0, 1)]))


def cell(table: ReportTable, row: tuple[str, ...], column: str) -> str:
    line = next(line for line in table.rows if tuple(line[: len(row)]) == row)
    return line[table.columns.index(column)]


def test_a_run_of_the_whole_study_has_every_table(tables: dict[str, ReportTable]) -> None:
    assert {grid.name for grid in GRIDS} | {"composition"} <= tables.keys()
    assert {f"{grid.name}-paper" for grid in GRIDS if grid.beside} <= tables.keys()
    assert {grid.beside for grid in GRIDS if grid.beside} == PAPER_TABLES.keys()


@pytest.mark.parametrize(
    ("name", "row", "column", "method", "rho", "metric"),
    [
        ("backbones", ("DTW-I",), "ρ=20%", "dtw-i", 20, "NDCG@10"),
        ("metrics", ("CHARM",), "HR@10", "charm", 0, "HR@10"),
        ("metrics", ("CHARM",), "macro-F1", "charm", 0, "macro_F1"),
        ("normal-residuals", ("MantisV2", "NR"), "ρ=10%", "mantis+nr", 10, "NDCG@10"),
        ("neighbours", ("CHARM",), "k=1", "charm+nr(k=1)", 0, "NDCG@10"),
        ("neighbours", ("CHARM",), "k=30", "charm+nr", 0, "NDCG@10"),
        ("fusion-modes", ("CHARM", "DTW-I"), "WS", "charm|ws|dtw-i", 0, "NDCG@10"),
        ("fusion-modes", ("CHARM+NR", "DTW-I"), "2-step", "charm+nr|2step|dtw-i", 0, "NDCG@10"),
        ("fusion", ("CHARM+NR",), "|SBD-D ρ=20%", "charm+nr|sbd-d", 20, "NDCG@10"),
        ("rerankers", ("CHARM",), "Base", "charm", 0, "NDCG@10"),
        ("rerankers", ("CHARM",), "+GPC(k=50)", "charm+gpc(k=50)", 0, "NDCG@10"),
        ("reranker-levels", ("DTW-I",), "+GPC ρ=20%", "dtw-i+gpc", 20, "NDCG@10"),
        ("composition-of-stages", ("CHARM+NR|DTW-I",), "Fusion ρ=0%", "charm+nr|dtw-i", 0, "NDCG@10"),
        ("composition-of-stages", ("CHARM+NR|DTW-I",), "Fusion+GPC ρ=10%", "charm+nr|dtw-i+gpc", 10, "NDCG@10"),
        ("cosine", ("CHARM",), "cosine", "charm(metric=cosine)", 0, "NDCG@10"),
        ("sbd", ("mean",), "SBD-I", "sbd-i", 0, "NDCG@10"),
        ("scaling", ("ED",), "none", "euclidean(norm=none)", 0, "NDCG@10"),
        ("scaling", ("ED",), "channel", "euclidean", 0, "NDCG@10"),
        ("corpus", ("CHARM",), "Capped", "charm", 0, "NDCG@10"),
        ("language-models", ("CHARM+LLM(model=claude)",), "NDCG@10", "charm+llm(model=claude)", 0, "NDCG@10"),
        ("language-models", ("Classify(model=claude)",), "NDCG@10", "classify(model=claude)", 0, "NDCG@10"),
    ],
)
def test_cells_are_means_over_datasets_and_seeds(
    tables: dict[str, ReportTable], name: str, row: tuple[str, ...], column: str, method: str, rho: int, metric: str
) -> None:
    assert float(cell(tables[name], row, column).split(" ±")[0]) == pytest.approx(mean(method, rho, metric), abs=6e-4)


def test_missing_official_files_mark_a_dataset_whatever_its_size(tmp_path: Path) -> None:
    folder = made_up_run(tmp_path, smaller=())
    manifest = json.loads((folder / "run.json").read_text())
    assert not any(is_partial(read_results(folder), dataset) for dataset in DATASETS)
    for dataset, state in (("skab", "partial"), ("road", "complete"), ("hai", "unknown")):
        manifest["datasets"][dataset]["files"] = state
    (folder / "run.json").write_text(json.dumps(manifest))
    results = read_results(folder)
    assert [mark_dataset(results, dataset) for dataset in DATASETS] == ["skab§", "road", "sim_tanks‡", "hai"]
    assert "official files of skab missing" in coverage(results)
    composed = next(table for table in paper_tables(TableStudy(results)) if table.name == "composition")
    assert composed.rows[0][:2] == ["skab§", "this run, files partial"]


def test_what_a_run_has_nothing_for_is_named_with_what_fills_it(tmp_path: Path) -> None:
    study = TableStudy(read_results(made_up_run(tmp_path / "run", ("random", "dtw-i", "sbd-i", "sbd-d"), levels=(0,))))
    files = write_report(study, tmp_path / "report")
    text = next(path for path in files if path.name == "tables.md").read_text()
    absent = dict(re.findall(r"^- `([a-z-]+)`: (.+)$", text.partition("**Not in this run**")[2], re.MULTILINE))
    assert absent["neighbours"] == "`readbench run --sweep nr-k`"
    assert "--sweep llm" in absent["language-models"]
    assert absent["noise"] == "`readbench run --sweep noise`, then `readbench report RUN --with runs/noise`"
    written = {path.stem for path in files}
    wanted = {*figure_captions(), *(grid.name for grid in GRIDS), "calibration"}
    assert absent.keys() == wanted - written
    suites = {name for line in absent.values() for name in re.findall(r"--suite ([a-z-]+)", line)}
    assert suites <= SUITES.keys()


def test_the_full_suite_fills_every_table_it_can_without_a_hole(tmp_path: Path) -> None:
    methods = tuple(dict.fromkeys(str(parse(text)) for text in full()))
    study = TableStudy(read_results(made_up_run(tmp_path, methods, ("skab", "road", "hai"), seeds=(0,))))
    tables = paper_tables(study)
    assert absent_tables(tables).keys() == {"corpus"}
    holes = [table.name for table in tables for row in table.rows if not table.name.endswith("-paper") and "–" in row]
    assert holes == []
    drawn = {figure.name for figure in figures(study)}
    assert figure_captions().keys() - drawn == {
        "fault-strip",
        "fault-types",
        "fault-against-shape",
        *(c.name for c in CURVES),
    }


def test_changes_are_differences_of_two_cells(tables: dict[str, ReportTable]) -> None:
    drop = float(cell(tables["normal-residuals"], ("CHARM", "NR"), "Δ"))
    assert drop == pytest.approx(mean("charm+nr", 20) - mean("charm+nr"), abs=6e-4)
    assert float(cell(tables["corpus"], ("CHARM",), "Full")) == pytest.approx(mean("charm") / 2, abs=6e-4)
    assert float(cell(tables["corpus"], ("CHARM",), "Δ")) == pytest.approx(-mean("charm") / 2, abs=6e-4)
    lag = float(cell(tables["sbd"], ("skab",), "Δ"))
    assert lag == pytest.approx(mean("sbd-d", datasets=("skab",)) - mean("sbd-i", datasets=("skab",)), abs=6e-4)


def test_sigma_is_the_deviation_over_datasets(tables: dict[str, ReportTable]) -> None:
    expected = np.std([mean("charm", datasets=(name,)) for name in DATASETS], ddof=1)
    assert float(cell(tables["metrics"], ("CHARM",), "σ")) == pytest.approx(expected, abs=6e-4)


def test_beside_the_papers_values_stand_the_differences_and_what_the_data_are(tables: dict[str, ReportTable]) -> None:
    beside = tables["rerankers-paper"]
    assert cell(beside, ("CHARM+NR",), "+GPC paper") == "0.608"
    assert float(cell(beside, ("CHARM+NR",), "+GPC Δ")) == pytest.approx(mean("charm+nr+gpc") - 0.608, abs=6e-4)
    assert cell(beside, ("CHARM",), "Base paper") == "0.486"
    assert "tab:rerankers" in beside.caption
    assert "Partial data (2 of the paper's 12 datasets; road not of the paper's size; 2 datasets that" in beside.caption


def test_what_the_paper_did_not_publish_is_left_out_of_its_values(tables: dict[str, ReportTable]) -> None:
    rows = [row[0] for row in tables["backbones-paper"].rows]
    assert "DTW-I" in rows
    assert "ED" not in rows
    assert not [title for title in tables["rerankers-paper"].columns if "k=50" in title]


def test_the_papers_own_datasets_are_called_so(tmp_path: Path) -> None:
    def caption(folder: str, datasets: tuple[str, ...]) -> str:
        made = made_up_run(tmp_path / folder, ("charm", "dtw-i"), datasets, (0,), (0,), smaller=())
        return next(t.caption for t in paper_tables(TableStudy(read_results(made))) if t.name == "backbones-paper")

    all_of_them = tuple(PAPER_COMPOSITION)
    assert caption("all", all_of_them).endswith("The datasets are the paper's")
    assert "Partial data (11 of the paper's 12 datasets):" in caption("eleven", all_of_them[1:])


def test_values_at_other_levels_stand_beside_nothing(tmp_path: Path) -> None:
    other = made_up_run(tmp_path, ("charm", "charm+nr", "dtw-i"), levels=(5, 20))
    tables = {table.name: table for table in paper_tables(TableStudy(read_results(other)))}
    assert "at ρ=5%" in tables["metrics"].caption
    assert "metrics-paper" not in tables
    beside = tables["normal-residuals-paper"]
    assert beside.columns == ["Embedder", "Scoring", "ρ=20% paper", "ρ=20% Δ"]


def test_a_run_without_the_methods_has_no_such_table(tmp_path: Path) -> None:
    few = TableStudy(read_results(made_up_run(tmp_path, ("random", "dtw-i", "dtw-i+gpc"), levels=(0,))))
    tables = {table.name: table for table in paper_tables(few)}
    names = {"backbones", "metrics", "rerankers", "reranker-levels"}
    always = {"composition", "labelling", "settings-retrievers", "settings-encoders", "settings-fusion"}
    assert tables.keys() == names | {f"{name}-paper" for name in names} | always
    assert tables["rerankers"].columns == ["Pool", "Base", "+GPC"]
    assert [row[0] for row in tables["rerankers"].rows] == ["DTW-I"]


def test_a_method_with_a_failed_cell_has_no_mean(tmp_path: Path) -> None:
    made = made_up_run(
        tmp_path, ("dtw-i", "charm", "charm+gpc", "charm+prf", "dtw-i+prf"), failed=("road", "charm+gpc")
    )
    tables = {table.name: table for table in paper_tables(TableStudy(read_results(made)))}
    assert tables["rerankers"].columns == ["Pool", "Base", "+PRF"]
    grid = next(t for t in method_tables(TableStudy(read_results(made))) if "gpc" in t.name)
    assert [row[0] for row in grid.rows if row[1] == "0%"] == ["skab", "sim_tanks‡", "hai"]


def test_the_best_is_marked_and_the_second_best_but_no_reference(tables: dict[str, ReportTable]) -> None:
    table = tables["backbones"]
    column = table.columns.index("ρ=0%")
    values = {r: float(row[column].split(" ±")[0]) for r, row in enumerate(table.rows)}
    compete = [r for r, row in enumerate(table.rows) if row[1] not in {"trivial", "supervised"}]
    ranked = sorted(compete, key=lambda r: -values[r])
    marked = {r: mark for (r, c), mark in table.marks.items() if c == column}
    assert marked == {ranked[0]: "best", ranked[1]: "second"}


def test_the_lowest_deviation_is_the_best(tables: dict[str, ReportTable]) -> None:
    table = tables["metrics"]
    column = table.columns.index("σ")
    compete = {r: float(row[column]) for r, row in enumerate(table.rows) if row[1] not in {"trivial", "supervised"}}
    best = [r for (r, c), mark in table.marks.items() if c == column and mark == "best"]
    assert best == [min(compete, key=lambda r: compete[r])]


def test_equal_values_share_a_mark(tmp_path: Path) -> None:
    def flat(dataset: str, seed: int, rho: int, method: str, metric: str) -> float:  # noqa: ARG001
        return {"dtw-i": 0.4, "charm": 0.7, "mantis": 0.7}.get(method, 0.5)

    made = made_up_run(tmp_path, ("dtw-i", "charm", "mantis", "sbd-d"), levels=(0,), scores=flat)
    table = next(t for t in paper_tables(TableStudy(read_results(made))) if t.name == "backbones")
    marks = {table.rows[r][0]: mark for (r, _), mark in table.marks.items()}
    assert marks == {"CHARM": "best", "MantisV2": "best", "SBD-D": "second"}


def test_markdown_keeps_bars_inside_their_cell_and_shows_marks(tables: dict[str, ReportTable]) -> None:
    text = tables["composition-of-stages"].markdown()
    assert "CHARM+NR\\|DTW-I" in text
    widths = {len(re.split(r"(?<!\\)\|", line)) for line in text.splitlines() if line.startswith("|")}
    assert len(widths) == 1
    marked = tables["rerankers"].markdown()
    assert re.search(r"\*\*0\.\d{3}\*\*", marked)
    assert re.search(r"<ins>0\.\d{3}</ins>", marked)


def test_a_narrow_terminal_breaks_names_and_no_numbers(tables: dict[str, ReportTable]) -> None:
    console = Console(width=60, record=True, file=io.StringIO())
    show_table(tables["normal-residuals"], console)
    text = console.export_text()
    assert "…" not in text
    for row in tables["normal-residuals"].rows:
        assert all(number in text for number in row[2:])


def test_a_table_wider_than_the_terminal_comes_in_parts_that_begin_with_the_names() -> None:
    console = Console(width=60, record=True, file=io.StringIO())
    datasets = [f"dataset_{i:02}" for i in range(13)]
    rows = [[f"method {m}", *(f"{m}.{i:03}" for i in range(13))] for m in range(3)]
    show_table(ReportTable("wide", "Wide", ["Method", *datasets], rows, labels=1), console)
    text = console.export_text()
    assert all(name in text for name in datasets)
    assert all(value in text for row in rows for value in row[1:])
    assert text.count("method 1") == text.count("Method") > 2
    assert text.count("Wide") == 1


def test_long_notes_leave_room_for_the_names() -> None:
    console = Console(width=80, record=True, file=io.StringIO())
    note = "training data not declared; partial: 0 of 1 tasks; " * 2
    show_table(ReportTable("noted", "Noted", ["Method", "Note"], [["a method of words", note]], labels=1), console)
    text = console.export_text()
    assert "a method of words" in text
    assert "…" not in text


def test_what_helps_against_a_failure_is_printed_with_its_brackets(tmp_path: Path) -> None:
    made = made_up_run(tmp_path, ("dtw-i", "mantis"), failed=("road", "mantis"))
    scores = made / "scores.csv"
    scores.write_text(scores.read_text().replace("made up", "mantis needs torch: pip install 'readbench[models]'"))
    console = Console(width=200, record=True, file=io.StringIO())
    show_report(read_results(made), console)
    assert "pip install 'readbench[models]'" in console.export_text()


def test_csv_reads_back_without_marks(tables: dict[str, ReportTable]) -> None:
    for table in tables.values():
        assert list(csv.reader(io.StringIO(table.csv()))) == [table.columns, *table.rows]


def test_latex_has_as_many_cells_in_every_line(tables: dict[str, ReportTable]) -> None:
    for table in tables.values():
        text = latex(table)
        body = text[text.index("\\toprule") : text.index("\\bottomrule")]
        widths = set()
        for line in (line for line in body.splitlines() if line.endswith(r"\\")):
            spans = [int(width) for width in re.findall(r"\\multicolumn\{(\d+)\}", line)]
            cells = len(re.split(r"(?<!\\)&", line))
            widths.add(cells + sum(spans) - len(spans))
        assert widths == {len(table.header)}, table.name
        assert text.replace(r"\{", "").count("{") == text.replace(r"\}", "").count("}")
        assert text.isascii(), [letter for letter in text if not letter.isascii()]


def test_latex_marks_escapes_and_spans(tables: dict[str, ReportTable]) -> None:
    text = latex(tables["reranker-levels"])
    assert r"\multicolumn{3}{c}{+GPC}" in text
    assert r"\cmidrule(lr){2-4}" in text
    assert "\\resizebox{\\textwidth}" in text
    assert re.search(r"\\textbf\{0\.\d{3}\}", latex(tables["rerankers"]))
    assert re.search(r"\\underline\{0\.\d{3}\}", latex(tables["rerankers"]))
    assert escape(r"a\b_{1}|50% & ±") == r"a\textbackslash{}b\_\{1\}$|$50\% \& $\pm$"


def test_every_method_has_its_full_grid(study: TableStudy) -> None:
    tables = method_tables(study)
    assert len(tables) == len(study.results.methods) == len({table.name for table in tables})
    grid = tables[study.results.methods.index("dtw-i")]
    assert [row[:2] for row in grid.rows[:4]] == [["skab", "0%"], ["skab", "10%"], ["skab", "20%"], ["road§", "0%"]]
    assert grid.columns[2:] == [f"{m}@{k}" for m in ("P", "HR", "NDCG") for k in (1, 3, 5, 10, 20)] + ["macro-F1"]
    assert float(cell(grid, ("macro", "20%"), "P@5")) == pytest.approx(mean("dtw-i", 20, "P@5"), abs=6e-4)
    one = mean("dtw-i", 10, "NDCG@20", ("hai",))
    assert float(cell(grid, ("hai", "10%"), "NDCG@20")) == pytest.approx(one, abs=6e-4)


def test_the_composition_stands_beside_the_papers(tables: dict[str, ReportTable]) -> None:
    rows = tables["composition"].rows
    assert ["road§", "this run", "664", "256", "6", "71/79/89", "24", "1.0", "1.0"] in rows
    assert ["", "paper", "664", "256", "6", "71/79/89", "25", "22.4", "37.0"] in rows
    assert [row[0] for row in rows if row[1] == "this run"] == ["skab", "road§", "sim_tanks‡", "hai"]


def test_a_terminal_shows_the_first_rows_of_a_long_table_and_says_so() -> None:
    console = Console(width=100, record=True, file=io.StringIO())
    table = ReportTable("long", "Many rows", ["Method", "NDCG@10"], [[f"m{i}", str(i)] for i in range(9)], labels=1)
    show_table(table, console, 4)
    text = console.export_text()
    assert "m3" in text
    assert "m4" not in text
    assert "and 5 more, in long.csv" in text
