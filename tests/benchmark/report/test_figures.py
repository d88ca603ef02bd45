"""Figures show the numbers of the run, appear when it holds them, and are the same bytes each time."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from readbench.benchmark.report import (
    FIGURES,
    TableStudy,
    figures,
    keep_gallery,
    leaderboard,
    read_results,
    tasks_of,
    write_report,
)
from readbench.benchmark.report._budgets import _places
from readbench.benchmark.report._case_figures import _movement, fault_against_shape
from readbench.benchmark.report._figures import (
    MIN_BOXES,
    FigureEntry,
    FigureRegistry,
    boxes,
    clear_heights,
    critical_difference_diagram,
    lift,
    radar,
    robustness,
    runtime,
    seconds,
)
from readbench.benchmark.runs import run
from readbench.common.plots import (
    FAMILY_COLOURS,
    FAMILY_MARKERS,
    FAULT,
    NAMED_COLOURS,
    REFERENCE_GREY,
    Panel,
    column_width,
    draw_panel,
    save,
    sheet,
    spread_labels,
)
from readbench.errors import UsageError
from tests.benchmark.report.made_up import made_up_run, score
from tests.benchmark.report.test_tables import DATASETS, mean
from tests.benchmark.runs.helpers import small_plan

CASES = {"fault-strip", "fault-types", "fault-against-shape"}


def xs(line: Line2D) -> NDArray[np.float64]:
    return np.asarray(line.get_xdata(), np.float64)


def ys(line: Line2D) -> NDArray[np.float64]:
    return np.asarray(line.get_ydata(), np.float64)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> TableStudy:
    return TableStudy(read_results(made_up_run(tmp_path_factory.mktemp("study"))))


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> TableStudy:
    folder, cache = tmp_path_factory.mktemp("real"), shared_cache
    run(small_plan(methods=("stats", "euclidean")), folder, cache=cache)
    results = read_results(folder)
    assert not keep_gallery(results, tasks_of(results, cache=cache))
    return TableStudy(results)


def test_a_whole_study_has_every_figure_that_needs_no_windows(study: TableStudy) -> None:
    assert {drawn.name for drawn in figures(study)} == set(FIGURES.names()) - CASES


def test_a_run_of_one_dataset_has_what_one_dataset_can_show(real: TableStudy) -> None:
    assert {drawn.name for drawn in figures(real)} == CASES


@pytest.mark.parametrize("name", ["Radar", "a figure", "../radar", "noise", ""])
def test_what_cannot_name_files_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot name a figure"):
        FigureRegistry("figure").register(name, shows="nothing", needs="nothing")


def fail(study: TableStudy) -> Figure:
    raise ZeroDivisionError(f"no {study.results.headline}")


def test_a_figure_of_a_plug_in_that_fails_is_named_and_left_out(
    study: TableStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [drawn.name for drawn in figures(study)]
    monkeypatch.setitem(FIGURES._entries, "broken", FigureEntry("broken", fail, "", "", origin="theirs 1.0"))
    with pytest.warns(UserWarning, match=r"broken of theirs 1\.0 could not be drawn: ZeroDivisionError: no NDCG@10"):
        assert [drawn.name for drawn in figures(study)] == before
    monkeypatch.setitem(FIGURES._entries, "broken", FigureEntry("broken", fail, "", ""))
    with pytest.raises(ZeroDivisionError):
        list(figures(study))


def test_pollution_band_and_lines_are_the_means(study: TableStudy) -> None:
    figure = robustness(study)
    assert figure is not None
    axis = figure.axes[0]
    field = ["euclidean", "sbd-i", "sbd-d", "dtw-i", "sax-bm25", "sfa-bm25", "charm", "mantis"]
    values = np.array([[mean(method, rho) for rho in (0, 10, 20)] for method in field])
    dashed, *residual = axis.get_lines()
    np.testing.assert_allclose(ys(dashed), values.mean(axis=0), atol=1e-6)
    assert dashed.get_color() == REFERENCE_GREY
    for line, method in zip(residual, ("charm+nr", "mantis+nr"), strict=True):
        np.testing.assert_allclose(ys(line), [mean(method, rho) for rho in (0, 10, 20)], atol=1e-6)
    outline = np.asarray(axis.collections[0].get_paths()[0].vertices)
    assert outline[:, 1].min() == pytest.approx(values.min(), abs=1e-6)
    assert outline[:, 1].max() == pytest.approx(values.max(), abs=1e-6)


def test_arrows_run_from_pool_to_reranked_and_losses_have_their_own_colour(study: TableStudy) -> None:
    figure = lift(study)
    assert figure is not None
    axis = figure.axes[0]
    pools = {"CHARM": "charm", "CHARM+NR": "charm+nr", "DTW-I": "dtw-i", "CHARM+NR|DTW-I": "charm+nr|dtw-i"}
    named = [label.get_text() for label in axis.get_yticklabels()]
    assert sorted(named) == sorted(pools)
    starts = [line for line in axis.get_lines() if len(xs(line)) == 1]
    for name, line in zip(named, starts, strict=True):
        base, lifted = mean(pools[name]), mean(f"{pools[name]}+gpc")
        assert xs(line)[0] == pytest.approx(base, abs=1e-6)
        assert (line.get_markeredgecolor() == FAULT) == (lifted < base)
    dashed = next(line for line in axis.get_lines() if line.is_dashed())
    assert xs(dashed)[0] == pytest.approx(mean("mr-hydra"), abs=1e-6)


def test_the_layout_is_settled_the_first_time_a_figure_is_saved(tmp_path: Path) -> None:
    figure = sheet(9.4, 3.7)
    for axis in figure.subplots(1, 3, sharey=True):
        axis.set_aspect("equal")
        axis.set_title("two\nlines")
    figure.suptitle("a title above")
    figure.supxlabel("a label below")
    places = []
    for _ in range(2):
        save(figure, tmp_path / "figure.svg")
        places.append([axis.get_position().bounds for axis in figure.axes])
    np.testing.assert_allclose(places[0], places[1], atol=1e-3)


def test_runtime_is_the_median_over_tasks_of_all_stages(study: TableStudy) -> None:
    times = [
        sum(10 * score(d, s, 0, "dtw-i", f"{stage}_s") for stage in ("encode", "fit", "score", "rerank"))
        for d in DATASETS
        for s in (0, 1)
    ]
    assert seconds(study, "dtw-i") == pytest.approx(np.median(times), rel=1e-4)
    figure = runtime(study)
    assert figure is not None
    assert figure.axes[0].get_xscale() == "log"


def test_boxes_stand_in_the_order_of_their_medians(study: TableStudy) -> None:
    figure = boxes(study)
    assert figure is not None
    axis = figure.axes[0]
    dots = [xs(line) for line in axis.get_lines() if line.get_marker() == "o"]
    medians = [float(np.median(values)) for values in dots]
    assert medians == sorted(medians)
    own = dots[[label.get_text() for label in axis.get_yticklabels()].index("DTW-I")]
    np.testing.assert_allclose(own, [mean("dtw-i", datasets=(name,)) for name in DATASETS], atol=1e-6)


def test_spokes_of_one_domain_stand_together(study: TableStudy) -> None:
    figure = radar(study)
    assert figure is not None
    texts = [text.get_text().rstrip("†‡§") for text in figure.axes[0].texts]
    order = [text for text in texts if text in DATASETS]
    domains = [study.results.domain(name) for name in order]
    assert len(order) == len(DATASETS)
    assert len(list(dict.fromkeys(domains))) == 1 + sum(a != b for a, b in pairwise(domains))


def test_ranks_are_drawn_where_they_are(study: TableStudy) -> None:
    figure = critical_difference_diagram(study)
    assert figure is not None
    names = [text.get_text() for text in figure.axes[0].texts if "(" in text.get_text()]
    listed = [
        float(name.split("(")[-1].strip(" )")) for name in names if "critical" not in name and "beyond" not in name
    ]
    assert listed == sorted(listed)
    ranks = {round(row.rank, 2) for row in leaderboard(study.results).rows}
    assert set(listed) <= ranks  # of the one test of the run, over all its methods
    tested = leaderboard(study.results).significance[0].test
    title = figure.get_suptitle().replace("\n", " ")
    assert f"Friedman p = {tested.p_value:.2g} over {tested.methods} methods" in title


def test_a_wrong_hit_that_looks_alike_is_nearer_than_the_relevant_one(real: TableStudy) -> None:
    figure = fault_against_shape(real)
    assert figure is not None
    query, relevant, wrong = figure.axes
    curve = ys(query.get_lines()[0])

    def distance(axis: Axes) -> float:
        own = next(ys(line) for line in axis.get_lines() if line.get_zorder() == 1)
        return float(np.sqrt(np.mean((own - curve) ** 2)))

    assert distance(wrong) < distance(relevant)
    fault = query.get_title(loc="left").split("\n")[1]
    assert relevant.get_title(loc="left").endswith(fault)
    assert not wrong.get_title(loc="left").endswith(fault)


def test_flat_curves_show_nothing_however_far_apart_they_are() -> None:
    flat, ramp = np.zeros(9, np.float32), np.linspace(0, 1, 9, dtype=np.float32)
    assert _movement([flat, flat + 5, ramp]) == 0
    assert _movement([ramp, ramp + 1, ramp]) == pytest.approx(0.5)
    assert _movement([ramp, ramp, ramp]) == 1


def test_the_same_run_gives_the_same_bytes(study: TableStudy, tmp_path: Path) -> None:
    for name in ("one", "two"):
        save(radar(study), tmp_path / f"{name}.svg")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_a_report_lists_what_it_wrote(real: TableStudy, tmp_path: Path) -> None:
    files = write_report(real, tmp_path)
    assert sorted(files) == sorted(path for path in tmp_path.rglob("*") if path.is_file())
    page = files[0].read_text()
    for name in CASES:
        assert f"(figures/{name}.svg)" in page
        assert (tmp_path / "figures" / f"{name}.png").stat().st_size > 5000


def test_each_family_has_its_own_colour_and_marker() -> None:
    assert FAMILY_COLOURS.keys() == FAMILY_MARKERS.keys()
    assert len(set(FAMILY_COLOURS.values())) == len(set(FAMILY_MARKERS.values())) == len(FAMILY_COLOURS)


def test_names_never_cover_each_other() -> None:
    rng = np.random.default_rng(0)
    points = np.stack([rng.random(20) * 0.7, 0.3 + rng.random(20) * 0.2], axis=1)
    heights = clear_heights(points, [8] * 20)
    for i, (x, _) in enumerate(points):
        for j in range(i):
            near = abs(x - points[j, 0]) < 8 * 0.0115
            assert not near or abs(heights[i] - heights[j]) > 0.044


def test_positions_move_apart_and_keep_their_order() -> None:
    rng = np.random.default_rng(1)
    wanted = rng.random(30)
    placed = spread_labels(wanted.tolist(), 0.02)
    order = np.argsort(wanted)
    assert np.diff(placed[order]).min() >= 0.02 - 1e-9
    far = spread_labels([0.0, 1.0, 2.0], 0.5)
    np.testing.assert_allclose(far, [0.0, 1.0, 2.0])


def test_each_method_has_one_colour_in_every_figure_and_on_the_site(study: TableStudy) -> None:
    methods = study.methods
    assert methods.colour("dtw-i") == NAMED_COLOURS["dtw-i"]
    assert methods.colour("charm+nr") == methods.colour("charm")
    assert len({methods.colour(text) for text in methods.bases}) == len(methods.bases)
    assert len(set(NAMED_COLOURS.values())) == len(NAMED_COLOURS)


def test_a_column_is_narrow_and_keeps_its_type(study: TableStudy, tmp_path: Path) -> None:
    with column_width(3.3):
        figure = runtime(study)
    assert figure is not None
    assert figure.get_figwidth() == 3.3
    wide = runtime(study)
    assert wide is not None
    assert wide.get_figwidth() > 3.3
    assert [t.get_fontsize() for t in figure.axes[0].texts] == [t.get_fontsize() for t in wide.axes[0].texts]
    save(figure, tmp_path / "figure.pdf")
    assert b"/Type3" not in (tmp_path / "figure.pdf").read_bytes()


def test_few_datasets_are_dots_without_quartiles(study: TableStudy) -> None:
    figure = boxes(study)
    assert figure is not None
    assert len(DATASETS) < MIN_BOXES
    assert not figure.axes[0].patches
    assert "bar: mean" in figure.axes[0].get_xlabel()


def test_numbers_of_labels_stand_at_their_distance() -> None:
    assert _places(("0", "5", "50", "100")) == [0, 5, 50, 100]
    assert _places(("1%", "10%")) == [1, 10]
    assert _places(("5", "all")) is None


def test_the_axis_of_a_sketch_counts_steps_of_the_window() -> None:
    figure = sheet(3, 2)
    axis = figure.subplots()
    draw_panel(axis, Panel("fault", "level", np.zeros(256, np.float32), (512, 1024), np.ones(256, np.float32), 1024))
    assert [float(np.asarray(line.get_xdata())[-1]) for line in axis.get_lines()] == [1023, 1023]
    assert axis.get_xlabel() == "step"
