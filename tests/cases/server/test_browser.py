"""The page in a real browser: drop a file, see the cases, the evidence; confirm, and see the ranking change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from readbench.cases import NORMAL_OPERATION, UNLIKE, Library
from readbench.cases.server import Settings
from readbench.cases.server._app import create_app
from tests.benchmark.report.test_site_browser import CONTRAST, NAMELESS
from tests.browser import AXE, axe_complaints
from tests.cases.samples import CHANNELS, FAST, filled, window
from tests.cases.server.running import served
from tests.cases.server.test_api import csv

HARM = "<img src=x onerror=harmed=1>"
DROP = """
([text, name]) => {
  const files = new DataTransfer();
  files.items.add(new File([text], name, { type: "text/csv" }));
  document.getElementById("drop").dispatchEvent(new DragEvent("drop", { dataTransfer: files, bubbles: true }));
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    library = filled(tmp_path_factory.mktemp("browser") / "library", 18)
    library.edit("w0", notes="Replaced the seal.", asset=HARM)
    return library


@pytest.fixture(scope="module")
def address(library: Library) -> Iterator[str]:
    with served(create_app(library, Settings(methods=(FAST,)))) as address:
        yield address


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:  # noqa: ANN401
    """A page that must not complain, nor ask for anything from elsewhere."""
    complaints: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 900}, base_url=address)
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: complaints.extend([] if request.url.startswith(address) else [request.url]))
    yield page
    assert page.evaluate("window.harmed") is None
    context.close()
    assert [complaint for complaint in complaints if "400 (Bad Request)" not in complaint] == []


def ranking(page: Any) -> list[str]:  # noqa: ANN401
    return [str(hit.get_attribute("data-case")) for hit in page.locator(".hit").all()]


def drop(page: Any, fault: str, seed: int) -> None:  # noqa: ANN401
    page.goto("/")
    page.evaluate(DROP, [csv(fault, seed).decode(), "incident.csv"])
    page.wait_for_selector("#plots[data-chosen]")


def test_drop_search_explain_reject_confirm_and_the_ranking_changes(page: Any, library: Library) -> None:  # noqa: ANN401
    drop(page, "leak", 21)
    case = page.get_attribute("#plots", "data-case")
    first = ranking(page)
    assert library.case(first[0]).label == "leak"
    assert page.locator(".faults li").first.inner_text().startswith("leak")
    assert {name.split(" · ")[0] for name in page.locator(".alike figcaption span:first-child").all_inner_texts()} == {
        "pressure",
        "flow",
    }
    picture = "(canvas) => canvas.toDataURL()"
    laid_over = page.locator("canvas").first.evaluate(picture)
    page.keyboard.press("Escape")
    assert page.locator("canvas").first.evaluate(picture) != laid_over
    page.keyboard.press("j")
    page.wait_for_selector(f'#plots[data-chosen="{first[0]}"]')
    with page.expect_navigation():
        page.keyboard.press("n")
    page.wait_for_selector("#plots[data-chosen]")
    assert library.case(case).rejected == ("leak",)
    assert "known not to be leak" in page.inner_text(".done")
    with page.expect_navigation():
        page.keyboard.press("u")
    assert library.case(case).rejected == ()
    with page.expect_navigation():
        page.locator(".history").get_by_text("Redo", exact=True).click()
    page.wait_for_selector("#plots[data-chosen]")
    assert library.case(case).rejected == ("leak",)
    after = ranking(page)
    assert after != first
    assert library.case(after[0]).label != "leak"
    assert "known not to be leak" in page.inner_text(".history")
    page.focus(f'.hit[data-case="{after[0]}"]')
    with page.expect_navigation():
        page.keyboard.press("y")
    assert library.case(case).label == library.case(after[0]).label
    assert "Resolved case" in page.inner_text(".kicker")


def test_hits_stand_under_their_fault_with_its_share_of_the_belief(page: Any, library: Library) -> None:  # noqa: ANN401
    page.goto("/cases/w0")
    page.wait_for_selector("#plots[data-chosen]")
    answer = library.search("w0", k=10, method=FAST)
    kinds = page.locator(".kind").all()
    assert [kind.get_attribute("aria-label") for kind in kinds] == [group.label for group in answer.groups]
    shares = [float(share) for share in re.findall(r"(\d+) %", " ".join(page.locator(".kind h3").all_inner_texts()))]
    assert shares == sorted(shares, reverse=True)
    for kind, group in zip(kinds, answer.groups, strict=True):
        cases = [str(hit.get_attribute("data-case")) for hit in kind.locator(".hit").all()]
        assert cases == [hit.case.id for hit in group.hits]
    folded = page.locator("details .hit").first
    assert not folded.is_visible()
    for _ in range(3):
        page.keyboard.press("j")
    page.wait_for_selector(f'#plots[data-chosen="{folded.get_attribute("data-case")}"]')
    assert folded.is_visible(), "the keyboard unfolds what it reaches"


def test_a_file_can_be_looked_at_without_being_kept(page: Any, library: Library) -> None:  # noqa: ANN401
    before = len(library)
    page.goto("/")
    page.uncheck("input[name=keep]")
    page.set_input_files("#file", {"name": "a.csv", "mimeType": "text/csv", "buffer": csv("noise", 22)})
    page.click("text=Find cases")
    page.wait_for_selector("#plots[data-chosen]")
    assert "noise" in page.inner_text(".kind >> nth=0")
    assert page.locator(".verdict").count() == 0
    assert len(library) == before


def test_a_window_of_zeros_is_not_judged_and_the_page_says_why(page: Any) -> None:  # noqa: ANN401
    rows = "\n".join(",".join(["0"] * len(CHANNELS)) for _ in range(40))
    page.goto("/")
    page.uncheck("input[name=keep]")
    content = f"{','.join(CHANNELS)}\n{rows}\n".encode()
    page.set_input_files("#file", {"name": "zeros.csv", "mimeType": "text/csv", "buffer": content})
    page.click("text=Find cases")
    page.wait_for_selector("#plots")
    odd = page.locator("section[aria-label='What is odd']")
    assert "cannot be judged" in odd.inner_text()
    assert odd.locator("li.serious").count() > 0
    assert not [share for share in re.findall(r"(\d+) %", page.inner_text(".kind >> nth=0")) if int(share) > 50]


def long_csv(steps: int = 200) -> str:
    """A recording that is normal until its last 40 steps, which are a leak."""
    rng = np.random.default_rng(3)
    values = np.concatenate([window("", rng, steps - 40), window("leak", rng)], axis=1)
    rows = [",".join([str(1714572000 + step), *map(str, row)]) for step, row in enumerate(values.T)]
    return "\n".join([",".join(("t", *CHANNELS)), *rows])


def marked(page: Any) -> int:  # noqa: ANN401
    return int(page.get_attribute(".onset", "aria-valuenow"))


def test_in_a_long_recording_the_onset_is_marked_and_the_rest_is_the_window(page: Any, library: Library) -> None:  # noqa: ANN401
    page.goto("/")
    page.evaluate(DROP, [long_csv(), "long.csv"])
    page.wait_for_selector("#mark:not([hidden])")
    assert page.locator("#whole canvas").count() == 3
    assert 120 < marked(page) < 200, "it is proposed where the recording departs"
    box = page.locator("#whole").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 4, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + 4 + (box["width"] - 8) * 150 / 199, box["y"] + 60, steps=4)
    page.mouse.up()
    assert marked(page) == 150
    page.mouse.move(box["x"] + 9, box["y"] + 40)
    assert marked(page) == 150, "the line stays where it was left"
    for key in ("ArrowRight", "PageUp", "Shift+ArrowLeft"):
        page.keyboard.press(key)
    assert marked(page) == 160
    assert "2024-05-01 14:02:40 UTC: 160 steps before, 40 in the window" in page.inner_text("#marked")
    page.fill("input[name=facts]", "speed=29.5")
    page.click("text=Find cases")
    page.wait_for_selector("#plots[data-chosen]")
    own = library.window(page.get_attribute("#plots", "data-case"))[0]
    assert own.before is not None
    assert (own.before.shape, own.values.shape, own.facts) == ((3, 160), (3, 40), {"speed": 29.5})
    assert own.time == 1714572160
    assert "160 steps before, 1 Hz, speed = 29.5" in page.inner_text(".lead")
    assert "the 160 steps before it" in page.inner_text(".signals")
    assert page.locator(".faults li").first.inner_text().startswith("leak")


def test_the_line_follows_a_finger_and_can_be_taken_away(browser: Any, address: str) -> None:  # noqa: ANN401
    context = browser.new_context(viewport={"width": 360, "height": 740}, has_touch=True, base_url=address)
    page = context.new_page()
    page.goto("/")
    page.set_input_files("#file", {"name": "a.csv", "mimeType": "text/csv", "buffer": long_csv().encode()})
    page.wait_for_selector("#mark:not([hidden])")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.locator("#whole").scroll_into_view_if_needed()
    box = page.locator("#whole").bounding_box()
    page.touchscreen.tap(box["x"] + 4 + (box["width"] - 8) / 2, box["y"] + 30)
    assert abs(marked(page) - 100) <= 1
    page.click("text=No onset")
    assert (marked(page), page.input_value("#onset")) == (0, "")
    page.uncheck("input[name=keep]")
    page.click("text=Find cases")
    page.wait_for_selector("#plots[data-chosen]")
    assert "200 steps" in page.inner_text(".lead")
    assert "steps before" not in page.inner_text(".lead")
    context.close()


def test_a_file_that_is_only_looked_at_is_explained_by_its_own_time_before(page: Any) -> None:  # noqa: ANN401
    page.goto("/")
    page.uncheck("input[name=keep]")
    page.evaluate(DROP, [long_csv(), "long.csv"])
    page.wait_for_selector("#mark:not([hidden])")
    with page.expect_request("**/api/v1/explain") as asked:
        page.click("text=Find cases")
    sent = asked.value.post_data_json["window"]
    assert len(sent["before"]) == 3
    assert 120 < len(sent["before"][0]) < 200
    page.wait_for_selector("#plots[data-chosen]")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_mark_can_be_read_in_both_themes(browser: Any, address: str, scheme: str) -> None:  # noqa: ANN401
    context = browser.new_context(color_scheme=scheme, base_url=address)
    page = context.new_page()
    page.goto("/")
    page.set_input_files("#file", {"name": "a.csv", "mimeType": "text/csv", "buffer": long_csv().encode()})
    page.wait_for_selector("#mark:not([hidden])")
    assert page.evaluate(CONTRAST) == []
    assert [found for found in page.evaluate(NAMELESS) if "hidden" not in found] == []
    context.close()


def test_notes_are_kept_and_found(page: Any, library: Library) -> None:  # noqa: ANN401
    page.goto("/cases/w4")
    page.fill("textarea", "Valve seat\ncleaned.")
    page.fill("input[name=tags]", "valve, spring")
    page.click("text=Save")
    page.wait_for_load_state()
    assert (library.case("w4").notes, library.case("w4").tags) == ("Valve seat\ncleaned.", ("valve", "spring"))
    page.goto("/cases")
    page.fill("input[type=search]", "cleaned")
    page.click("text=Show")
    page.wait_for_load_state()
    assert page.locator("tbody tr").count() == 1
    page.click("tbody a")
    page.wait_for_selector("#plots")
    assert "notes: Valve seat" in page.inner_text(".history")


def test_filters_limit_the_cases_beside_the_signals(page: Any) -> None:  # noqa: ANN401
    page.goto("/cases/w0")
    page.select_option(".filters select[name=label]", "noise")
    page.click("text=Filter")
    page.wait_for_load_state()
    texts = page.locator(".kind .fault").all_inner_texts()
    assert texts
    assert set(texts) == {"noise"}


def test_the_map_opens_a_case_and_changes_are_taken_back(page: Any, library: Library) -> None:  # noqa: ANN401
    page.goto("/overview")
    assert page.locator("#map circle").count() == len(library)
    library.label("w5", "leak")
    page.reload()
    page.click("text=Take the last change back")
    page.wait_for_load_state()
    assert library.case("w5").label == "noise"
    page.locator("#map a").nth(3).press("Enter")
    page.wait_for_selector("#plots")


def test_cases_are_labelled_where_the_overview_asks(page: Any, library: Library) -> None:  # noqa: ANN401
    for case in ("w3", "w4"):
        library.label(case, None)
    page.goto("/overview")
    asked = page.locator("#next tbody tr")
    named = str(asked.first.locator("a").inner_text())
    before = asked.count()
    asked.first.get_by_label(f"What {named} was").fill("leak")
    asked.first.get_by_text("Label", exact=True).click()
    page.wait_for_load_state()
    assert page.url.endswith("/overview#next")
    assert library.case(named).label == "leak"
    assert page.locator("#next tbody tr").count() == before - 1
    for _ in range(3):
        library.undo()


def test_a_plot_reads_what_is_under_the_pointer(page: Any) -> None:  # noqa: ANN401
    page.goto("/cases/w0")
    page.wait_for_selector("#plots[data-chosen]")
    beside = page.locator("#plots figcaption .number").first
    whole = beside.inner_text()
    assert whole.endswith(" sd")
    page.hover("#plots canvas >> nth=0")
    value, step = beside.inner_text().split(" at step ")
    values = page.evaluate("JSON.parse(document.getElementById('signals').textContent).channels[0].values")
    assert values[int(step)] == pytest.approx(float(value), rel=1e-5)
    page.mouse.move(1, 1)
    assert beside.inner_text() == whole


def test_a_spike_of_one_step_is_drawn(page: Any, library: Library) -> None:  # noqa: ANN401
    values = [[0.0] * 4096 for _ in CHANNELS]
    values[0][2111] = 9.0
    case = library.add_one(values, CHANNELS).id
    try:
        page.goto(f"/cases/{case}")
        page.wait_for_selector("#plots[data-chosen]")
        page.keyboard.press("Escape")
        inked = """(canvas) => {
          const [x, y] = [0.53, 0.2].map((share, i) => Math.round(share * [canvas.width, canvas.height][i]));
          const { data } = canvas.getContext("2d").getImageData(x - 8, y, 16, 1);
          return data.some((own, i) => i % 4 === 2 && own - data[i - 2] > 100);
        }"""
        assert page.locator(f"canvas[aria-label^={CHANNELS[0]}]").evaluate(inked)
    finally:
        library.delete([case])


def test_a_hundred_channels_are_drawn_quickly(page: Any, library: Library) -> None:  # noqa: ANN401
    values = [[float((step * channel) % 7) for step in range(300)] for channel in range(99)]
    own = library.window("w0").values(0)[:1, :].repeat(8, axis=1)[:, :300]
    names = ("pressure", *(f"sensor {i}" for i in range(99)))
    case = library.add_one([own[0].tolist(), *values], names).id
    try:
        page.goto(f"/cases/{case}")
        page.wait_for_selector("#plots[data-chosen]")
        assert page.locator("canvas").count() == 100
        paint = (
            "() => { const t = performance.now(); dispatchEvent(new Event('theme')); return performance.now() - t; }"
        )
        assert page.evaluate(paint) < 1500
    finally:
        library.delete([case])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_themes(browser: Any, address: str, scheme: str) -> None:  # noqa: ANN401
    context = browser.new_context(color_scheme=scheme, base_url=address)
    page = context.new_page()
    for path in ("/", "/cases", "/cases/w0", "/overview", "/api", "/login"):
        page.goto(path)
        page.wait_for_load_state("networkidle")
        assert page.evaluate(CONTRAST) == [], path
        assert [found for found in page.evaluate(NAMELESS) if "hidden" not in found] == [], path
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
    context.close()


@pytest.mark.parametrize("path", ["/", "/cases", "/cases/w0", "/overview", "/login"])
def test_every_page_fits_a_phone(page: Any, path: str) -> None:  # noqa: ANN401
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(path)
    page.wait_for_timeout(50)
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_an_error_is_a_page_with_a_sentence(page: Any) -> None:  # noqa: ANN401
    page.goto("/")
    page.set_input_files("#file", {"name": "a.csv", "mimeType": "text/csv", "buffer": b"x\n"})
    page.click("text=Find cases")
    page.wait_for_selector("[role=alert]")
    assert "no rows" in page.inner_text("[role=alert]")


def test_a_part_that_the_pointer_is_drawn_across_is_shown_closer_in_all_plots(page: Any, library: Library) -> None:  # noqa: ANN401
    values = np.sin(np.arange(3 * 6000).reshape(3, 6000) / 50)
    case = library.add_one(values, CHANNELS, time=1714572000.0, end=1714577999.0, zone="+02:00").id
    picture = "(canvas) => canvas.toDataURL()"
    try:
        page.goto(f"/cases/{case}")
        page.wait_for_selector("#plots[data-chosen]")
        last = page.locator("#plots canvas").last
        before, box = last.evaluate(picture), page.locator("#plots canvas").first.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 30)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 30, steps=3)
        page.mouse.up()
        page.wait_for_selector("#plots[data-closer]")
        first, end = map(int, page.get_attribute("#plots", "data-closer").split())
        assert 2500 < first < 3300
        assert 3700 < end < 4600
        assert re.fullmatch(r"16:\d\d:\d\d to 17:\d\d:\d\d", page.inner_text("#shown"))
        assert last.evaluate(picture) != before
        page.click("text=Whole window")
        page.mouse.move(1, 1)
        assert last.evaluate(picture) == before
        page.keyboard.press("+")
        assert page.is_visible("text=Whole window")
    finally:
        library.delete([case])


def test_on_a_phone_the_answer_stands_above_the_plots(page: Any) -> None:  # noqa: ANN401
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto("/cases/w0")
    page.wait_for_selector("#plots[data-chosen]")
    assert page.evaluate("scrollY") == 0
    answer, plots = (page.locator(own).bounding_box()["y"] for own in (".faults", "#plots"))
    assert answer < 740
    assert answer < plots


def test_on_a_phone_the_answer_stands_above_what_was_read_of_a_file(page: Any, library: Library) -> None:  # noqa: ANN401
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto("/")
    rows = csv("noise", 22).decode().splitlines()
    spoiled = "\n".join([*rows[:-1], ",".join(["Bad"] * len(rows[0].split(",")))])
    page.set_input_files("#file", {"name": "a.csv", "mimeType": "text/csv", "buffer": spoiled.encode()})
    page.click("text=Find cases")
    page.wait_for_selector("#plots[data-chosen]")
    answer, read, plots = (page.locator(own).bounding_box()["y"] for own in (".faults", ".read", "#plots"))
    library.delete([page.get_attribute("#plots", "data-case")])
    assert answer < read < plots


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is fetched by npm ci")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_can_be_used_by_everybody(browser: Any, address: str, library: Library, scheme: str) -> None:  # noqa: ANN401
    """Axe finds nothing to complain about, whatever the theme."""
    context = browser.new_context(base_url=address, color_scheme=scheme, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    said = []
    for path in (
        "/",
        "/cases",
        "/cases/w1",
        "/overview",
        "/ask/history",
        "/ask/find?text=seal",
        "/ranges",
        "/notices",
        "/api",
        "/login",
        "/x",
    ):
        page.goto(path)
        said += axe_complaints(page)
    page.goto("/cases/w2")
    library.edit("w2", notes=f"written meanwhile, {scheme}")
    page.fill("#facts textarea", "what I say")
    page.click("#facts button")
    page.wait_for_selector("#states")
    said += axe_complaints(page)
    page.click("#overwrite")
    page.wait_for_selector("#plots")
    assert library.case("w2").notes == "what I say"
    context.close()
    assert not said


def test_a_link_opens_a_comparison_and_a_part_of_the_window(page: Any, library: Library) -> None:  # noqa: ANN401
    page.goto("/cases/w1")
    page.wait_for_selector("#plots[data-chosen]")
    listed = ranking(page)
    assert "#" not in page.url
    page.goto("about:blank")
    page.goto(f"/cases/w1#like={listed[2]}&view=0.25,0.5")
    page.wait_for_selector(f'#plots[data-chosen="{listed[2]}"][data-closer]')
    assert page.locator('.hit[aria-current="true"]').get_attribute("data-case") == listed[2]
    page.keyboard.press("k")
    page.wait_for_selector(f'#plots[data-chosen="{listed[1]}"]')
    assert page.url.endswith(f"#like={listed[1]}&view=0.25,0.5"), "the address is what is shown"
    unlisted = next(case.id for case in library.cases() if case.id not in {*listed, "w1"})
    page.goto("about:blank")
    page.goto(f"/cases/w1#like={unlisted}")
    page.wait_for_selector(f'#plots[data-chosen="{unlisted}"]')
    assert page.inner_text("#other-name") == unlisted


def test_channels_that_speak_for_a_case_and_against_it_are_marked(page: Any, library: Library) -> None:  # noqa: ANN401
    other = next(case.id for case in library.cases() if case.label == "stuck valve")
    found = library.explain("w0", other).channels
    page.goto(f"/cases/w0#like={other}")
    page.wait_for_selector(f'#plots[data-chosen="{other}"]')
    for mark, channels in (
        ("against", {own.name for own in found if own.against}),
        ("alike", {own.name for own in found if own.same_way}),
    ):
        names = page.locator(f".{mark} figcaption span:first-child").all_inner_texts()
        assert {name.split(" · ")[0] for name in names} == channels, mark
    assert page.locator(".against").count() > 0
    page.keyboard.press("Escape")
    assert page.locator(".against").count() == 0


def test_options_that_are_no_faults_have_no_colour_of_one(page: Any) -> None:  # noqa: ANN401
    page.goto("/cases/w0")
    page.wait_for_selector("#plots[data-chosen]")
    fill = "getComputedStyle(row.querySelector('.fill')).fill"
    drawn = f"rows => rows.map(row => [row.firstElementChild.innerText, {fill}])"
    colours = dict(page.eval_on_selector_all(".faults li", drawn))
    others = {colours.pop(UNLIKE), colours.pop(NORMAL_OPERATION)}
    assert others.isdisjoint(colours.values())
