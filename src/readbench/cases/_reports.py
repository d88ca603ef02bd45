"""Printable reports: one case, and a back-test."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np

from readbench.cases._asking import DEFAULT_METHOD
from readbench.cases._backtest import FIRST_HITS, LEVELS, SPEAKS_FROM, Backtest, Replayed
from readbench.cases._evidence import draw_evidence
from readbench.cases._intake import describe_context, format_time
from readbench.cases._library import Library
from readbench.cases._models import NORMAL_OPERATION, UNLIKE, Answer, Case, CaseDetails, Evidence, Hit, Remark
from readbench.cases._paper import make_figure, make_page, make_table, make_tiles
from readbench.common.plots import FAULT, GRID_GREY, NORMAL_GREY, REFERENCE_GREY, SPAN, sheet, with_style
from readbench.engine.preparation import thin_series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from readbench.engine.windows import Window

MAX_HITS = 8
EXPLAINED_HITS = 2
"""Hits whose evidence is drawn in the report of a case."""
MAX_OPTIONS = 6
MAX_PANELS = 8
MAX_POINTS = 1200
MAX_MISLED = 12
RIGHT, WRONG, NEW, CALM, QUIET = "#0072B2", "#D55E00", "#CC79A7", "#7FB8A4", "#D5DAE1"


def report_case(library: Library, case: str, *, method: str = DEFAULT_METHOD, address: str = "") -> str:
    """Report of a case as HTML: probable faults, similar cases, evidence, signals and remarks.

    Args:
        library: the library.
        case: name of the case.
        method: retrieval method.
        address: URL of the library's service, for links to cases and comparisons; "" for none.
    """
    details = library.details(case)
    facts, window = details.case, library.window(case)[0]
    answer = library.search(case, k=MAX_HITS, method=method) if len(library) > 1 else None
    named = [hit.case.id for hit in _from_elsewhere(answer, facts)[:EXPLAINED_HITS]] if answer else []
    evidence = [library.explain(case, name) for name in named]
    body = [
        f"<h1>{escape(facts.label or 'Open case')}</h1>",
        f'<p class="soft">{_describe(details)}</p>',
        *_answer_parts(answer, facts),
        "<h2>Signals</h2>",
        make_figure(draw_window(window), _signal_caption(window)),
        *_hits(answer, address, facts),
        *(part for one in evidence for part in _evidence_parts(one, address, facts)),
        *_notes(facts),
        *_remarks(answer),
    ]
    change = f"change {answer.change}" if answer else "one case"
    return make_page(f"{facts.id}: {facts.label or 'open case'}", body, f"{library.store.where}, {change}; {_today()}")


def _from_elsewhere(answer: Answer, case: Case) -> list[Hit]:
    """Hits, those of other recordings first, since a case of the same recording is no evidence."""
    same = [hit for hit in answer.hits if case.group and hit.case.group == case.group]
    return [*(hit for hit in answer.hits if hit not in same), *same]


def link_case(address: str, case: str, like: str = "") -> str:
    """URL of the page of a case or, with `like`, of its comparison with another case.

    >>> link_case("http://plant:8000/", "a b"), link_case("", "a", "b/1")
    ('http://plant:8000/cases/a%20b', '/cases/a#like=b%2F1')
    """
    page = f"{address.rstrip('/')}/cases/{quote(case)}"
    return f"{page}#like={quote(like, safe='')}" if like else page


def _describe(details: CaseDetails) -> str:
    case = details.case
    parts = [f"Case {case.id}", f"asset {case.asset}" if case.asset else "", format_time(case.time, case.zone)]
    parts += [f"{len(details.channels)} channels × {details.steps} steps"]
    parts += [describe_context(details.before, details.rate or math.nan, details.facts)]
    return escape(" · ".join(part for part in parts if part))


def _answer_parts(answer: Answer | None, case: Case) -> Iterator[str]:
    if answer is None or not answer.faults:
        yield '<p class="lead">No other case has a label yet, so nothing can be said of the fault.</p>'
        return
    best = answer.faults[0]
    words = f"{best.label}: {best.probability:.0%}"
    if not answer.judgeable:
        words = "The window cannot be judged: see the remarks."
    elif best.label == UNLIKE or answer.novel:
        words = f"Unlike anything here; {words}" if best.label != UNLIKE else f"Most likely {words}"
    else:
        words = f"Most likely {words}"
    yield f'<p class="lead"><b>{escape(words)}</b></p>'
    if case.label:
        yield f'<p class="soft">It was resolved as {escape(case.label)}, and the answer knows that.</p>'
    rows = [
        f'<tr><td>{escape(one.label)}</td><td class="n">{one.probability:.0%}</td>'
        f'<td style="width:40%"><span class="bar" style="width:{max(1.0, 100 * one.probability):.1f}%"></span></td>'
        f'<td class="soft">{"" if one.possible else "ruled out"}</td></tr>'
        for one in answer.faults[:MAX_OPTIONS]
    ]
    yield "<h2>What it may be</h2><table><tbody>" + "".join(rows) + "</tbody></table>"


def _hits(answer: Answer | None, address: str, asked: Case) -> Iterator[str]:
    if answer is None:
        return
    yield "<h2>Cases like it</h2>"
    rows = []
    for hit in answer.hits:
        case = hit.case
        name = escape(case.id)
        linked = f'<a href="{escape(link_case(address, asked.id, case.id))}">{name}</a>' if address else name
        chance = "" if hit.probability is None else f"{hit.probability:.0%}"
        when = format_time(case.time, case.zone)
        cells = [linked, escape(case.label or "open"), escape(case.asset), escape(when)]
        rows.append(
            f'<tr><td class="n">{hit.place}</td>'
            + "".join(f"<td>{cell}</td>" for cell in cells)
            + f'<td class="n">{chance}</td><td>{escape(case.notes[:160])}</td></tr>'
        )
    header = ["", "Case", "Fault", "Asset", "When", "Same fault", "What was found and done"]
    heads = "".join(f"<th{' class=n' if at in (0, 5) else ''}>{name}</th>" for at, name in enumerate(header))
    yield f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _evidence_parts(evidence: Evidence, address: str, asked: Case) -> Iterator[str]:
    case = evidence.case
    yield f"<h2>Beside {escape(case.id)} ({escape(case.label or 'open')})</h2>"
    alike = [channel.name for channel in evidence.channels if channel.same_way]
    against = [channel.name for channel in evidence.channels if channel.against]
    words = f"Support {evidence.support:+.2f} of -1 to +1. "
    words += f"Departs in the same way: {_list(alike)}. " if alike else "No channel departs in the same way. "
    words += f"Speaks against it: {_list(against)}." if against else ""
    link = f' <a href="{escape(link_case(address, asked.id, case.id))}">Open the comparison</a>' if address else ""
    yield f"<p>{escape(words)}{link}</p>"
    yield make_figure(draw_evidence(evidence), "Departures from normal, in its standard deviations.")


def _notes(case: Case) -> Iterator[str]:
    if case.notes:
        yield f"<h2>Found and done</h2><p>{escape(case.notes)}</p>"
    links = [link for link in case.links if link.startswith(("http://", "https://"))]
    if links:
        yield "<p>" + " · ".join(f'<a href="{escape(link)}">{escape(link)}</a>' for link in links) + "</p>"


def _remarks(answer: Answer | None) -> Iterator[str]:
    if answer is None or not (answer.remarks or answer.plausibility):
        return
    yield "<h2>Remarks</h2>"
    yield from (_plausibility(remark) for remark in answer.plausibility)
    yield from (f'<p class="note">{escape(words)}</p>' for words in answer.remarks)


def _plausibility(remark: Remark) -> str:
    kind = "note" if remark.severity == "note" else "warn"
    return f'<p class="{kind}">{escape(remark.words)}</p>'


def _list(names: list[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _signal_caption(window: Window) -> str:
    shown = min(len(window.channels), MAX_PANELS)
    rest = (
        "" if shown == len(window.channels) else f"; {shown} of {len(window.channels)} channels, those that move most"
    )
    before = "" if window.before is None else " Grey: the time before."
    return f"The window as it was recorded{rest}.{before}"


@with_style
def draw_window(window: Window) -> Figure:
    """Figure of the channels that depart most from the readings before, with these readings."""
    values = window.values.astype(np.float64)
    earlier = None if window.before is None else window.before.astype(np.float64)[:, -values.shape[1] :]
    rest = values if earlier is None else earlier
    spread = np.maximum(rest.std(axis=1), 1e-9)
    moved = np.abs(values - np.median(rest, axis=1, keepdims=True)).mean(axis=1) / spread
    chosen = np.sort(np.argsort(-moved, kind="stable")[:MAX_PANELS])
    columns = 2 if len(chosen) > 1 else 1
    rows = -(-len(chosen) // columns)
    figure = sheet(7.4, 1.15 * rows + 0.35)
    axes = np.atleast_1d(figure.subplots(rows, columns, sharex=True)).ravel()
    for axis, at in zip(axes, chosen.tolist(), strict=False):
        if earlier is not None:
            steps = np.linspace(-earlier.shape[1], -1, len(thinned := thin_series(earlier[[at]], MAX_POINTS)[0]))
            axis.plot(steps, thinned, color=NORMAL_GREY, linewidth=0.8)
            axis.axvline(0, color=REFERENCE_GREY, linewidth=0.8, linestyle=(0, (2, 2)))
        thinned = thin_series(values[[at]], MAX_POINTS)[0]
        axis.plot(np.linspace(0, values.shape[1] - 1, len(thinned)), thinned, color=FAULT, linewidth=0.9)
        unit = f" [{window.units[at]}]" if window.units and window.units[at] else ""
        axis.set_title(f"{window.channels[at]}{unit}", fontsize=8)
        axis.tick_params(labelsize=7)
        axis.margins(x=0.01)
    for axis in axes[len(chosen) :]:
        axis.set_axis_off()
    figure.supxlabel("step", fontsize=8)
    return figure


def report_backtest(backtest: Backtest) -> str:
    """Report of a back-test as HTML: precision, coverage, new faults, time saved."""
    body = [
        "<h1>What the case library would have said</h1>",
        f'<p class="soft">{escape(_scope(backtest))}</p>',
        f'<p class="lead">{escape(_conclude(backtest))}</p>',
        make_tiles(_tiles(backtest)),
        make_figure(
            draw_history(backtest),
            "Left: answers along the history. Right: where a fault comes first with so many percent, how often that is"
            " right; on the dashed line it keeps its word. Circles are as large as their number of answers.",
        ),
        "<h2>Confidence and precision</h2>",
        make_table(
            ["When it is at least this sure", "Cases named", "Of all", "Stated", "Realised"],
            [_level(backtest, level) for level in LEVELS],
            numbers=(1, 2, 3, 4),
        ),
        "<h2>Faults it had never seen</h2>",
        f"<p>{escape(_novelty(backtest))}</p>",
        "<h2>Where it would have misled</h2>",
        *_misled(backtest),
        "<h2>Time</h2>",
        f"<p>{escape(_time(backtest))}</p>",
        "<h2>How this was measured</h2>",
        f'<p class="soft">{escape(_method(backtest))}</p>',
    ]
    return make_page("Back-test of the case library", body, f"{backtest.library}; {backtest.method}; {_today()}")


def _scope(backtest: Backtest) -> str:
    times = [one.case.time for one in backtest.cases if one.case.time is not None]
    when = f", {format_time(min(times))[:10]} to {format_time(max(times))[:10]}" if backtest.by_time and times else ""
    order = "in the order of their times" if backtest.by_time else "in the order in which they were entered"
    return f"{len(backtest.cases)} resolved cases{when}, {order}, each asked of those before it."


def _conclude(backtest: Backtest) -> str:
    told = backtest.told()
    if not told:
        return (
            f"It would have named no fault with more than {SPEAKS_FROM:.0%}: the history is too short or too diverse."
        )
    right = sum(one.right for one in told)
    gap = backtest.gap
    word = "kept its word" if abs(gap) <= 0.05 else "promised too much" if gap > 0 else "was better than it said"
    return (
        f"It would have named the fault of {len(told)} of {len(backtest.cases)} cases and been right in {right}"
        f" ({backtest.realised():.0%}). It said {backtest.stated():.0%} on average, so it {word}."
    )


def _tiles(backtest: Backtest) -> Iterator[tuple[str, str]]:
    yield f"{backtest.coverage():.0%}", f"of cases get a named fault, above {SPEAKS_FROM:.0%}"
    yield _percent(backtest.realised()), f"of these are right; {_percent(backtest.stated())} was stated"
    yield _percent(backtest.found), f"of known faults have a case of theirs among the first {FIRST_HITS}"
    wrong = len(backtest.misled) + len(backtest.reassured)
    yield f"{wrong} of {len(backtest.cases)}", f"cases would have misled; called normal: {len(backtest.reassured)}"
    yield f"{round(backtest.minutes_saved / 60):,} h", "saved, by the assumptions below"


def _level(backtest: Backtest, level: float) -> list[str]:
    return [
        f"{level:.0%}",
        f"{len(backtest.told(level))}",
        f"{backtest.coverage(level):.0%}",
        _percent(backtest.stated(level)),
        _percent(backtest.realised(level)),
    ]


def _novelty(backtest: Backtest) -> str:
    new, known = backtest.new, backtest.known
    false = sum(one.novel for one in known)
    alarms = f"Of the {len(known)} cases of known faults, {false} were called new ({false / max(1, len(known)):.0%})."
    if not new:
        return f"Every case was of a fault that had occurred before. {alarms}"
    called, named = sum(one.novel for one in new), sum(one.named for one in new)
    return (
        f"First of their fault: {len(new)}. Of these it called {called} unlike anything it knew, and gave {named} a"
        f" wrong name with more than {SPEAKS_FROM:.0%}. {alarms}"
    )


def _misled(backtest: Backtest) -> Iterator[str]:
    wrong = backtest.misled
    if backtest.reassured:
        share = len(backtest.reassured) / len(backtest.cases)
        yield (
            f"<p>Of {len(backtest.cases)} faults, {len(backtest.reassured)} ({share:.0%}) would have been called normal"
            f" operation with at least {SPEAKS_FROM:.0%}: an engineer might have looked away.</p>"
        )
    if not wrong:
        yield f"<p>No fault that was named with more than {SPEAKS_FROM:.0%} was wrong.</p>"
        return
    yield make_table(
        ["Case", "When", "It said", "", "It was", "By the case", "Fault seen before"],
        [
            [
                one.case.id,
                format_time(one.case.time, one.case.zone),
                one.said,
                f"{one.probability:.0%}",
                one.case.label or "",
                one.first,
                "yes" if one.known else "no, the first",
            ]
            for one in wrong[:MAX_MISLED]
        ],
        numbers=(3,),
    )
    if len(wrong) > MAX_MISLED:
        yield f'<p class="soft">{len(wrong) - MAX_MISLED} more, with less confidence; all are in the JSON.</p>'


def _time(backtest: Backtest) -> str:
    costs, told = backtest.assumptions, backtest.told()
    right, wrong = sum(one.right for one in told), len(backtest.misled) + len(backtest.reassured)
    return (
        f"Assumed, not measured: {costs.unaided:g} minutes to find a cause without help, {costs.aided:g} to check"
        f" a right answer, {costs.misled:g} minutes lost to a wrong one. Then right answers, {right}, save"
        f" {right * (costs.unaided - costs.aided) / 60:,.1f} hours, and wrong ones, {wrong}, cost"
        f" {wrong * costs.misled / 60:,.1f}: {backtest.minutes_saved / 60:,.1f} hours over these cases."
    )


def _method(backtest: Backtest) -> str:
    return (
        f"The first {backtest.skipped} resolved cases serve as history only. Cases of one recording are tested together"
        " and are no evidence for each other. Windows of normal operation count as known from the beginning. The method"
        " is fitted again whenever the history has grown by a twentieth. Labels are taken to be correct, and known as"
        " soon as the next case begins. Stated precision is the mean probability of the named faults; over all"
        f" first options, normal operation and “{UNLIKE}” included, the expected calibration error is"
        f" {backtest.error:.3f}."
    )


@with_style
def draw_history(backtest: Backtest) -> Figure:
    """Figure of the answers along the history, and of stated against realised precision."""
    figure = sheet(7.6, 2.9)
    left, right = figure.subplots(1, 2, width_ratios=[1.55, 1.0])
    cases = backtest.cases
    parts = np.array_split(np.arange(len(cases)), min(12, max(1, len(cases) // 5)))
    kinds: list[tuple[str, str]] = [
        ("right", RIGHT),
        ("wrong", WRONG),
        ("says new", NEW),
        ("says normal", CALM),
        ("no clear answer", QUIET),
    ]
    counts = np.array([[sum(_kind(cases[i]) == kind for i in part) / len(part) for part in parts] for kind, _ in kinds])
    floor = np.zeros(len(parts))
    middles = [np.mean(part) + 1 for part in parts]
    widths = [0.92 * len(part) for part in parts]
    for (kind, colour), share in zip(kinds, counts, strict=True):
        left.bar(middles, share, widths, bottom=floor, color=colour, label=kind, linewidth=0)
        floor += share
    left.set_ylim(0, 1)
    left.set_yticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    left.set_xlabel("case, in time order", fontsize=8)
    left.legend(
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=5,
        frameon=False,
        fontsize=7,
        handlelength=1,
        columnspacing=1.0,
    )
    right.plot([0, 1], [0, 1], color=REFERENCE_GREY, linewidth=0.8, linestyle=(0, (4, 2)))
    right.axvspan(SPEAKS_FROM, 1, color=SPAN, alpha=0.25, linewidth=0)
    if curve := backtest.curve:
        sizes = 18 + 160 * curve.count / max(1, curve.count.max())
        right.plot(curve.confidence, curve.accuracy, color=RIGHT, linewidth=1.4)
        right.scatter(
            curve.confidence, curve.accuracy, s=sizes, color=RIGHT, edgecolors="white", zorder=3, clip_on=False
        )
    right.set_xlim(0, 1)
    right.set_ylim(0, 1.02)
    right.set_xticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    right.set_yticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    right.set_xlabel("stated", fontsize=8)
    right.set_ylabel("right", fontsize=8)
    for axis in (left, right):
        axis.grid(axis="y", color=GRID_GREY, linewidth=0.8)
        axis.set_axisbelow(True)
        axis.tick_params(labelsize=7)
    return figure


def _kind(one: Replayed) -> str:
    """Category of a case in the figure of the history."""
    if one.named:
        return "right" if one.right else "wrong"
    if one.said == UNLIKE:
        return "says new"
    if one.said == NORMAL_OPERATION and one.probability >= SPEAKS_FROM:
        return "right" if one.right else "says normal"
    return "no clear answer"


def _percent(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.0%}"


def _today() -> str:
    return clock.strftime("%Y-%m-%d %H:%M UTC", clock.gmtime())


def list_backtest(backtest: Backtest) -> list[tuple[str, str]]:
    """Results of a back-test as (name, value)."""
    rows: Iterable[tuple[str, str]] = (
        ("cases asked about", f"{len(backtest.cases)}, after {backtest.skipped} that are history only"),
        (f"fault named above {SPEAKS_FROM:.0%}", f"{len(backtest.told())} ({backtest.coverage():.0%})"),
        ("stated precision", _percent(backtest.stated())),
        ("realised precision", _percent(backtest.realised())),
        ("stated less realised", "–" if math.isnan(backtest.gap) else f"{backtest.gap:+.3f}"),
        ("calibration error, all options", f"{backtest.error:.3f}"),
        ("first case right, known faults", _percent(backtest.first_right)),
        (f"right case among the first {FIRST_HITS}", _percent(backtest.found)),
        ("new faults", f"{len(backtest.new)}, {sum(one.novel for one in backtest.new)} called new"),
        ("known faults called new", f"{sum(one.novel for one in backtest.known)} of {len(backtest.known)}"),
        ("wrong faults named", f"{len(backtest.misled)}"),
        ("faults called normal operation", f"{len(backtest.reassured)}"),
        ("hours saved, as assumed", f"{backtest.minutes_saved / 60:,.1f}"),
    )
    return list(rows)
