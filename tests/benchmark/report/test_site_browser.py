"""The page in a real browser: it loads from disk, sorts, filters, opens cases, and can be used by everyone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from readbench.benchmark.report import (
    DEPTH,
    case_link,
    figure_captions,
    leaderboard,
    read_gallery,
    read_results,
    state_method,
)
from tests.benchmark.report.site_runs import DATASETS, HOSTILE, HOSTILE_CHANNEL
from tests.browser import Visit

CONTRAST = """
() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const pixel = (paint, under) => {
    canvas.fillStyle = under; canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = paint; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  };
  const light = (rgb) => rgb.map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const under = (element) => {
    const own = getComputedStyle(element).backgroundColor;
    const below = element.parentElement ? under(element.parentElement) : "white";
    return `rgb(${pixel(own, below).join(",")})`;
  };
  const poor = [];
  for (const element of document.querySelectorAll("body *")) {
    const texts = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const drawn = texts && element.checkVisibility() && !element.closest(".unseen, script, :disabled");
    if (!drawn) continue;
    const ground = under(element);
    const [a, b] = [pixel(getComputedStyle(element).color, ground), pixel(ground, "white")].map(light);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push(`${element.outerHTML.slice(0, 90)} ${ratio.toFixed(2)}`);
  }
  return poor;
}
"""
NAMELESS = """
() => [...document.querySelectorAll("a, button, input, select, canvas, [tabindex='0']")].filter((element) => {
  if (element.tagName === "CANVAS") return !element.ariaHidden && !(element.role === "img" && element.ariaLabel);
  return !(element.ariaLabel || element.textContent.trim() || element.labels?.[0]?.textContent.trim());
}).map((element) => element.outerHTML.slice(0, 120))
"""
VIEWS = ("#/", "#/method/euclidean", "#/datasets", "#/dataset/sim_tanks", "#/cases", "#/figures")


@pytest.fixture
def visit(browser: Any, poisoned: Path) -> Iterator[Visit]:  # noqa: ANN401
    visit = Visit(browser, poisoned)
    yield visit
    visit.context.close()
    assert visit.complaints == []


def first_query(folder: Path, dataset: str) -> str:
    filters = [("place", "=", 1)]
    return str(pq.read_table(folder / "rankings" / f"{dataset}.parquet", filters=filters)["query"][0])


def case(folder: Path, dataset: str = DATASETS[0], rho: int = 20) -> str:
    return case_link(dataset, 7, rho, first_query(folder, dataset), "euclidean", "random")


def column(page: Any, selector: str) -> list[str]:  # noqa: ANN401
    return [text.strip() for text in page.locator(selector).all_inner_texts()]


def methods(page: Any) -> list[str]:  # noqa: ANN401
    """Names in the first table; the family stands below each."""
    return [text.split("\n")[0] for text in column(page, "tbody .method")]


def test_the_leaderboard_is_that_of_the_run(visit: Visit, poisoned: Path) -> None:
    page = visit.open()
    expected = leaderboard(read_results(poisoned)).rows
    assert methods(page) == [row.title for row in expected]
    assert column(page, "tbody td strong") == [f"{row.headline[0].mean:.3f}" for row in expected]
    assert "NDCG@10 over 2 datasets (simulated by us‡) at ρ = 0 %" in page.inner_text("caption")


def test_the_page_of_a_dataset_says_which_labels_each_method_reads(visit: Visit, poisoned: Path) -> None:
    page = visit.open(f"#/dataset/{DATASETS[0]}")
    assert column(page, "section:first-of-type thead th")[:3] == ["#", "Method", "Labels"]
    results = read_results(poisoned)
    known = {results.title(method): state_method(method).knowledge for method in results.methods}
    shown = dict(zip(methods(page), column(page, "td.knowledge"), strict=True))
    assert shown == known
    assert len(set(known.values())) > 1


def test_a_click_on_a_heading_sorts_and_a_second_one_turns_round(visit: Visit) -> None:
    page = visit.open()
    page.click("thead button:has-text('Method')")
    names = methods(page)
    assert names == sorted(names, key=str.lower)
    assert page.get_attribute("th[data-key=title]", "aria-sort") == "ascending"
    page.keyboard.press("Enter")
    assert methods(page) == names[::-1]
    assert page.locator("[aria-sort]").count() == 1


def test_filters_change_what_the_means_are_taken_over(visit: Visit, poisoned: Path) -> None:
    page = visit.open()
    page.click(".segments button:has-text('20 %')")
    page.click(".chip >> nth=0")
    values = read_results(poisoned).values["NDCG@10"][1, 0, 1, 0]
    assert column(page, "tbody td strong") == [f"{value:.3f}" for value in sorted(values, reverse=True)]
    page.select_option("select >> nth=0", "P@1")
    precision = read_results(poisoned).values["P@1"][1, 0, 1, 0]
    assert column(page, "tbody td strong") == [f"{value:.3f}" for value in sorted(precision, reverse=True)]
    shared = page.evaluate("location.hash")
    assert column(visit.open(shared), "tbody td strong") == [f"{v:.3f}" for v in sorted(precision, reverse=True)]
    page.fill("input[type=search]", "vote")
    assert len(methods(page)) == 1


def test_methods_that_the_data_do_not_tell_apart_are_marked(visit: Visit) -> None:
    page = visit.open()
    place = column(page, "thead th").index("to the first") + 1
    first, *others = column(page, f"tbody tr td:nth-child({place})")
    assert first == ""
    marked = [text.endswith("≈") for text in others]
    pairs = [text.rstrip("≈").replace("−", "-").split("±") for text in others]
    assert marked == [abs(float(difference)) <= float(half) for difference, half in pairs]
    assert set(marked) == {True, False}


def test_method_and_dataset_pages_say_what_there_is_to_say(visit: Visit) -> None:
    page = visit.open()
    page.click("tbody .method:has-text('+')")
    page.wait_for_selector("text=What it is made of")
    assert column(page, ".stages .role") == ["retrieves", "reorders the list"]
    assert page.locator("section:has-text('Results') tbody tr").count() == 2
    page.click("section:has-text('Results') tbody a >> nth=0")
    page.wait_for_selector("text=Licence")
    assert "Apache-2.0" in page.inner_text(".facts")
    assert page.locator(".heat tbody tr").count() == 9


def test_a_case_marks_exactly_what_is_the_same_fault(visit: Visit, poisoned: Path) -> None:
    page = visit.open(case(poisoned), ".card")
    gallery = read_gallery(poisoned)
    assert gallery is not None
    labels = {exhibit.window: exhibit.label for exhibit in gallery.exhibits[DATASETS[0], 7]}
    query = first_query(poisoned, DATASETS[0])
    rankings = pq.read_table(
        poisoned / "rankings" / f"{DATASETS[0]}.parquet", filters=[("rho", "=", 20), ("place", "<=", DEPTH)]
    ).to_pylist()
    for side, method in enumerate(("euclidean", "random")):
        items = [row["item"] for row in rankings if (row["query"], row["method"]) == (query, method)]
        same = [labels[item] == labels[query] for item in items]
        cards = page.locator(f".found >> nth={side}").locator(".card")
        assert [("same" in (card.get_attribute("class") or "").split()) for card in cards.all()] == same
        assert column(page, f".found >> nth={side} >> .verdict") == ["✓" if own else "✕" for own in same]
        assert column(page, f".found >> nth={side} >> .card .label") == [labels[item] for item in items]
        spoken = cards.first.get_attribute("aria-label") or ""
        assert ("same fault" if same[0] else "other fault") in spoken
        assert f"{sum(same)} of 10" in page.locator(".reached").nth(side).inner_text()


def test_series_are_drawn_and_the_query_lies_over_a_card_that_is_pointed_at(visit: Visit, poisoned: Path) -> None:
    page = visit.open(case(poisoned), ".card")
    inked = (
        "all => all.map((c) => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.filter(Boolean).length)"
    )
    drawn = page.locator("canvas").evaluate_all(inked)
    assert len(drawn) == 1 + 6 + 20
    assert min(drawn) > 100
    picture, card = "(canvas) => canvas.toDataURL()", page.locator(".card canvas").first
    plain = card.evaluate(picture)
    page.hover(".card >> nth=0", position={"x": 60, "y": 12})
    overlaid = card.evaluate(picture)
    assert len(overlaid) > len(plain)
    page.mouse.move(1, 1)
    assert card.evaluate(picture) == plain
    page.check("text=query over cards")
    assert page.locator(".card canvas").first.evaluate(picture) == overlaid


def test_a_plot_reads_what_is_under_the_pointer(visit: Visit, poisoned: Path) -> None:
    page = visit.open(case(poisoned), ".card")
    for plot, text in (("canvas.large", ".asked figcaption .number"), (".card canvas >> nth=0", ".range >> nth=0")):
        whole, plain = page.inner_text(text), page.locator(plot).first.evaluate("(canvas) => canvas.toDataURL()")
        low, high = (float(value) for value in whole.split(" to "))
        page.hover(plot)
        value, step = (float(part) for part in page.inner_text(text).split(" at "))
        assert low <= value <= high
        assert 100 < step < 156
        page.mouse.move(1, 1)
        assert page.inner_text(text) == whole
        assert page.locator(plot).first.evaluate("(canvas) => canvas.toDataURL()") == plain


def test_the_keyboard_alone_goes_through_the_cases(visit: Visit, poisoned: Path) -> None:
    page = visit.open(case(poisoned), ".card")
    start, address = page.inner_text(".kicker"), page.evaluate("location.hash")
    page.keyboard.press("j")
    assert page.inner_text(".kicker") == "Query 2 of 100" != start
    assert page.evaluate("location.hash") != address
    assert "Query 2 of 100" in page.inner_text("#announcer")
    page.keyboard.press("k")
    assert page.evaluate("location.hash") == address
    pressed = page.inner_text(".thumbs [aria-pressed=true]")
    page.keyboard.press("c")
    assert page.inner_text(".thumbs [aria-pressed=true]") != pressed
    focused = "(document.activeElement.getAttribute('aria-label') ?? '').split(':')[0]"
    sides = "[...document.querySelectorAll('.found')].findIndex((list) => list.contains(document.activeElement))"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert (page.evaluate(focused), page.evaluate(sides)) == ("Place 2", 0)
    page.keyboard.press("ArrowRight")
    assert (page.evaluate(focused), page.evaluate(sides)) == ("Place 2", 1)
    page.keyboard.press("x")
    assert page.evaluate("location.hash").endswith("/random/euclidean")
    page.focus(".queries select >> nth=0")
    page.keyboard.press("j")
    assert page.inner_text(".kicker") == "Query 1 of 100"


def test_queries_are_sorted_by_difference_and_filtered_by_class(visit: Visit, poisoned: Path) -> None:
    page = visit.open(case(poisoned), ".card")
    page.select_option(".queries select >> nth=1", "difference")
    shown = [float(value) for value in column(page, ".queries li .bar")]
    differences = [abs(a - b) for a, b in zip(shown[::2], shown[1::2], strict=True)]
    assert len(differences) == 100
    assert all(later <= sooner + 0.011 for sooner, later in pairwise(differences))  # shown with two digits
    page.select_option(".queries select >> nth=0", "leak in tank 1")
    assert set(column(page, ".queries li .label")) == {"leak in tank 1"}


def test_a_change_leaves_the_focus_where_it_was(visit: Visit, poisoned: Path) -> None:
    page = visit.open()
    page.focus(".chip >> nth=1")
    page.keyboard.press("Space")
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "false"
    page = visit.open(case(poisoned), ".card")
    page.focus(".steps button >> nth=1")
    for _ in range(3):
        page.keyboard.press("Enter")
    assert page.inner_text(".kicker") == "Query 4 of 100"
    assert page.evaluate("document.activeElement.ariaLabel") == "Next query"


def test_hostile_names_stay_text(visit: Visit, poisoned: Path) -> None:
    for address in ("", f"#/dataset/{DATASETS[1]}", "#/datasets", case(poisoned, DATASETS[1])):
        page = visit.open(address)
        page.wait_for_timeout(50)
        assert page.evaluate("window.harmed") is None
        assert page.locator("img, b").count() == 0
    page.select_option(".queries select >> nth=0", HOSTILE)
    page.click(".queries button >> nth=0")
    assert page.inner_text(".asked h2") == HOSTILE
    assert HOSTILE_CHANNEL in page.inner_text(".thumbs")
    page.hover(".card >> nth=0")
    page.goto(f"{visit.address}#/dataset/{DATASETS[1]}")
    page.wait_for_selector(".prose")
    assert page.inner_text(".prose") == HOSTILE
    assert page.locator("a[href^=javascript]").count() == 0
    page.goto(f"{visit.address}#/method/{HOSTILE}")
    page.wait_for_selector("text=This run has no method")
    assert page.evaluate("window.harmed") is None


def test_figures_are_shown_with_what_they_show(visit: Visit) -> None:
    page = visit.open()
    page.click("nav a:has-text('Figures')")
    page.wait_for_selector("figure img")
    shown = figure_captions()["fault-strip"]
    assert page.get_attribute("figure img", "alt") == shown
    assert page.inner_text("figcaption").startswith(shown)
    assert page.evaluate("document.querySelector('figure img').decode().then(() => true)")
    assert page.evaluate("document.querySelector('figure img').naturalWidth") > 100


def test_a_figure_is_enlarged_by_a_click_and_the_page_stays_as_wide_as_a_phone(visit: Visit) -> None:
    page = visit.open("#/figures")
    page.set_viewport_size({"width": 390, "height": 800})
    width = "document.querySelector('figure img').getBoundingClientRect().width"
    assert page.evaluate(width) < 390
    page.click("figure button")
    assert page.inner_text("figure button") == "Fit to the page"
    assert page.evaluate(width) > 900
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.click("figure img")
    assert page.evaluate(width) < 390


def test_the_board_says_what_is_asked_and_gives_its_rows_as_a_file(visit: Visit) -> None:
    page = visit.open()
    assert "NDCG@10 judges the first ten places" in page.inner_text(".about")
    assert "docs/protocol.md" in page.inner_text(".about")
    with page.expect_download() as waiting:
        page.click("#csv")
    lines = Path(waiting.value.path()).read_text().splitlines()
    assert lines[0].startswith("method,title,labels,place,tie,NDCG@10")
    assert len(lines) == 1 + page.locator("tbody tr").count()


@pytest.mark.parametrize("address", VIEWS)
def test_every_view_fits_a_phone_and_names_its_controls(visit: Visit, address: str) -> None:
    page = visit.open(address)
    page.set_viewport_size({"width": 360, "height": 740})
    page.wait_for_timeout(50)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.evaluate(NAMELESS) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_themes(browser: Any, poisoned: Path, scheme: str) -> None:  # noqa: ANN401
    visit = Visit(browser, poisoned, color_scheme=scheme)
    for address in VIEWS:
        page = visit.open(address)
        assert page.evaluate(CONTRAST) == []
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
    page.click("#theme")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    visit.context.close()
    assert visit.complaints == []


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("#/case/nowhere/7/0/q/euclidean/random", "keeps no cases of “nowhere”"),
        ("#/case/sim_tanks/7/15/q/euclidean/random", "no pollution level of 15 %"),
        ("#/case/sim_tanks/7/0/q/euclidean/other", "no method “other”"),
        ("#/case/sim_tanks/7/0/q/euclidean/random", "no query “q”"),
        ("#/nothing", "There is nothing here"),
        ("#/dataset/nowhere", "no dataset “nowhere”"),
    ],
)
def test_an_address_that_leads_nowhere_says_so(visit: Visit, address: str, reason: str) -> None:
    page = visit.open(address, ".lead")
    assert reason in page.inner_text("main")
