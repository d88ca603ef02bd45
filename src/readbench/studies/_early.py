"""Early retrieval: what a method knows 0, 1/16, 1/8, ... of a window after the onset, and when it would speak up.

The onsets of the held-out side are asked about as they grow (`readbench.benchmark.protocol.compose_onsets`), and so are
normal windows of that side. A method *answers* with a fault type and with how firm it is:

* one with an opinion: the likeliest type, and its probability; not firm where the window is called novel;
* any other: the type of the first hit, and how many of the first ten share it; equal ones by the score of the first
  hit. A normal window as the first hit is no answer.

It *gives notice* where it is firmer than all but 5 % of one half of the normal windows; the other half, of other
recordings, says how often it gives notice although nothing happened.

*After a detector* it is asked as `cases watch` asks: only about windows that depart from normal operation
(`readbench.engine.departures`, learned from the normals of the same asset at hand, or where those are too few, of all),
and it gives notice only where it is as firm as a watch wants it, `FIRM`. At most 5 % of the normal windows may be given
notice here, too: the detector's limit is the one that it states for that, and a higher firmness is asked for where more
than those pass both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import cycle, product
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.metrics import evaluate
from readbench.benchmark.protocol import SHARES, OnsetTask, build, build_onsets, compose_onsets, find_source
from readbench.benchmark.report import ReportTable
from readbench.benchmark.runs import WITH_NORMALS, Setting, Setup, rank_level
from readbench.common.plots import GRID_GREY, METHOD_COLOURS, REFERENCE_GREY, entitle, sheet, with_style
from readbench.common.progress import Progress, within
from readbench.common.times import DAY_S
from readbench.engine.departures import DepartureDetector
from readbench.engine.method import Ranking
from readbench.engine.parameters import Parameter, ParameterRange
from readbench.engine.spec import parse
from readbench.engine.windows import NORMAL, WindowSet
from readbench.errors import DataError
from readbench.studies._study import (
    SIMULATED_MARK,
    STUDIES,
    Grid,
    Measured,
    Row,
    Study,
    StudyCell,
    count_columns,
    find_blocks,
    make_panels,
    once,
    tell,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WITH_ONSETS = ("skab", "dbsherlock", "itu_5gc", "petrobras_3w", "rcaeval", "hai", "tennessee_eastman")
"""Sources whose recordings say when a fault began."""
SIMULATED_ONSETS = ("sim_tanks", "sim_can", "sim_service")
"""Generated ones, likewise."""
METHODS = ("random", "rocket", "sonde", "ours-before", "flagship", WITH_NORMALS, "dtw-i")
"""Chance, a distance, encoders, and our systems without and with labels; once with normal as one more class."""
EARLY_METRICS = ("NDCG@10", "P@1")
FALSE_NOTICES = 0.05
"""Share of normal windows that may be given notice of a fault."""
FIRST = 10
"""Hits whose agreement says how firm a method without an opinion is."""
FEWEST_QUIET = 10
"""Normal windows that a threshold needs, and as many again to see what it does; without them no notice is counted."""
FIRM = 0.7
"""Probability, or share of the first hits, from which a watch takes a belief for firm."""
MOST_LEARNED = 400
"""Normal windows that a detector learns from."""
Way = Literal["asked", "after a detector"]
"""Whether a method is asked about all windows, or only about those that a detector finds to depart."""
Floats = NDArray[np.float64]
AFTER = "detector, then "
"""What stands before the name of a method that is asked only about departures."""
BRIEF = (0.0, 1 / 8, 1 / 2, 1.0)
"""Times that have room on a terminal."""


@dataclass(frozen=True, eq=False)
class EarlyResult(Measured):
    """What a method said of O onsets at S shares of a window's length.

    Args:
        way: how notices come about; all else is the same.
        shares: (S,) ends of the windows after the onset.
        scores: (2, S, O) `EARLY_METRICS`.
        right: (S, O) whether the answer names the fault.
        notice: (S, O) whether it is firm; never where too few normal windows are at hand.
        false_notices: share of the normal windows, other than those of the threshold, that notice is given of; NaN
            where they are too few.
        quiet: how many these are.
        groups: (O,) recordings.
        faults: (O,) fault types.
    """

    way: Way
    shares: Floats
    scores: Floats
    right: NDArray[np.bool_]
    notice: NDArray[np.bool_]
    false_notices: float
    quiet: int
    groups: NDArray[np.str_]
    faults: NDArray[np.str_]

    @property
    def first_right(self) -> Floats:
        """(O,) share of a window after which the first right and firm answer comes; infinite where none does."""
        happens = self.right & self.notice
        return np.where(happens.any(axis=0), self.shares[happens.argmax(axis=0)], np.inf)

    @property
    def noticed_right(self) -> float:
        """Of the onsets that are given notice of, the share whose first notice names the fault."""
        told = self.notice.any(axis=0)
        first = self.notice.argmax(axis=0)
        return float(self.right[first, np.arange(len(first))][told].mean()) if told.any() else float("nan")


def sources_with_onsets(root: Path | None) -> list[str]:
    """Sources of `WITH_ONSETS` that have a folder under the root, and generated ones."""
    return [*SIMULATED_ONSETS, *(name for name in WITH_ONSETS if root and (root / name).is_dir())]


def cap_corpora(grid: Grid) -> Grid:
    """The grid with corpora of at most as many faulty cases as the setting says."""
    return grid.composed(corpus_cap=grid["cap"])


def cells_with_onsets(dataset: str, method: str, grid: Grid) -> list[StudyCell]:
    """A cell a seed and level of a source that has onsets."""
    _find_onsets(dataset, grid.setting())
    return [StudyCell(dataset, method, seed, rho) for seed in grid.seeds for rho in grid.levels]


@lru_cache(maxsize=64)
def _find_onsets(dataset: str, setting: Setting) -> None:
    """Fails where there is none."""
    build_onsets(find_source(dataset), setting.root, setting.cache)


@lru_cache(maxsize=2)
def _load(dataset: str, seed: int, setting: Setting) -> tuple[OnsetTask, Setup, NDArray[np.bool_] | None]:
    """The growing windows of a dataset, and which of them depart; the last ones stay in memory."""
    source = find_source(dataset)
    built = build(source, setting.root, setting.cache)
    onsets = build_onsets(source, setting.root, setting.cache)
    own = compose_onsets(built, onsets, seed=seed, settings=setting.composition)
    return own, Setup.of(own.task, setting.cache), find_departures(own)


def depends_on(cell: StudyCell, grid: Grid) -> object:
    """The windows, and which of them set thresholds."""
    own, setup, _ = _load(cell.dataset, cell.seed, grid.setting())
    return setup.fingerprint, own.shares, own.onsets, own.calibrated.tolist()


def measure_cell(cell: StudyCell, progress: Progress, grid: Grid) -> list[Row]:
    """One row, and one more where a detector could be learned."""
    own, setup, departs = _load(cell.dataset, cell.seed, grid.setting())
    method = setup.method(parse(cell.method), within(progress, "encoding"))
    return judge_early(own, cell.rho, rank_level(setup, method, cell.rho), departs)


def judge_early(own: OnsetTask, rho: int, ranking: Ranking, departs: NDArray[np.bool_] | None) -> list[Row]:
    """The rows of one level."""
    task, shares, onsets = own.task, len(own.shares), own.onsets
    growing, corpus = shares * onsets, task.corpus_at(rho).labels
    asked = task.queries.labels[:growing]
    values = evaluate(ranking.order[:growing], asked, corpus, EARLY_METRICS).values
    answers, firmness = read_answers(ranking, corpus)
    common = {
        "shares": list(own.shares),
        "scores": [values[metric].reshape(shares, onsets).tolist() for metric in EARLY_METRICS],
        "right": (answers[:growing] == asked).reshape(shares, onsets).tolist(),
        "quiet": int((~own.calibrated).sum()),
        "groups": task.queries.groups[:onsets].tolist(),
        "faults": [task.queries.classes[label] for label in asked[:onsets]],
    }
    ways: dict[Way, Floats] = {"asked": firmness}
    if departs is not None:
        least = FIRM if ranking.opinions is not None else FIRM * FIRST
        ways["after a detector"] = np.where(departs & (firmness >= least), firmness, 0.0)
    return [common | {"way": way} | _give_notice(own, firm, growing) for way, firm in ways.items()]


def _give_notice(own: OnsetTask, firmness: Floats, growing: int) -> dict[str, Any]:
    quiet, calibrated = firmness[growing:], own.calibrated
    enough = min(calibrated.sum(), (~calibrated).sum()) >= FEWEST_QUIET
    threshold = set_threshold(quiet[calibrated]) if enough else np.inf
    return {
        "notice": (firmness[:growing] > threshold).reshape(len(own.shares), own.onsets).tolist(),
        "false_notices": float((quiet[~calibrated] > threshold).mean()) if enough else None,
    }


def find_departures(own: OnsetTask) -> NDArray[np.bool_] | None:
    """(Q,) which windows depart from normal operation; None where too little of that is known to learn it.

    A window whose channels no normals have is not watched, and so does not depart.
    """
    queries, normals = own.task.queries, own.task.normals
    known: dict[tuple[str, tuple[str, ...]], DepartureDetector | None] = {}
    found = np.zeros(len(queries), bool)
    for i, window in enumerate(queries):
        for asset in (window.asset, ""):
            key = asset, window.channels
            if key not in known:
                known[key] = _learn_normal(normals, *key, steps=window.values.shape[1])
            if detector := known[key]:
                found[i] = bool((detector.scores(window.values)[0] > 1.0).any())
                break
    return found if any(known.values()) else None


def _learn_normal(normals: WindowSet, asset: str, channels: tuple[str, ...], steps: int) -> DepartureDetector | None:
    """What is normal of an asset, or of all; None where that are too few windows."""
    chosen = [own for own in normals if own.channels == channels and asset in {"", own.asset}][:MOST_LEARNED]
    stated = FALSE_NOTICES * DAY_S / steps  # with a step of a second, a share of windows is so many a day
    try:
        return DepartureDetector.fit(
            [own.values for own in chosen], channels, window=steps, step_s=1.0, false_alarms_a_day=stated
        )
    except DataError:
        return None


def read_answers(ranking: Ranking, corpus: NDArray[np.int32]) -> tuple[NDArray[np.int32], Floats]:
    """(Q,) fault types that a method names, and how firm it is, larger being firmer; 0 where it names none.

    Args:
        ranking: of Q queries.
        corpus: (N,) labels of the items.
    """
    if ranking.opinions is not None:
        answers = np.array([opinion.label for opinion in ranking.opinions], np.int32)
        firm = np.array([0.0 if opinion.novel else opinion.confidence for opinion in ranking.opinions])
    else:
        hits = corpus[ranking.order[:, :FIRST]]
        answers = hits[:, 0]
        best = np.take_along_axis(ranking.scores, ranking.order[:, :1], axis=1)[:, 0]
        firm = (hits == hits[:, :1]).sum(axis=1) + 0.5 + 0.5 * best / (1.0 + np.abs(best))  # equal ones by the score
    return answers, np.where(answers == NORMAL, 0.0, firm)


def set_threshold(quiet: Floats) -> float:
    """The least firmness that at most `FALSE_NOTICES` of quiet windows exceed; a new one exceeds it as rarely.

    >>> set_threshold(np.arange(100.0))
    95.0
    """
    allowed = int(FALSE_NOTICES * (len(quiet) + 1))
    return float(np.sort(quiet)[len(quiet) - allowed]) if allowed else float(quiet.max())


def early_table(measured: Sequence[EarlyResult], *, brief: bool = False) -> ReportTable:
    """One row a dataset, level and method: both metrics by the time since the onset; means over datasets first.

    Args:
        measured: of all datasets.
        brief: at few times only, for a terminal.
    """
    at = [i for i, share in enumerate(SHARES) if not brief or share in BRIEF]
    blocks = find_blocks(_asked(measured))
    rows = []
    for rho, method in product(once(sorted(rho for _, rho, _ in blocks)), once(one.cell.method for one in measured)):
        whole = _choose_whole([block for key, block in blocks.items() if key[1:] == (rho, method)])
        course = mean_course(whole)[:, at]
        rows.append([f"mean of {len(whole)}", str(rho), early_title(method), "", *tell(course.ravel())])
    for (_, rho, method), block in blocks.items():
        course = _find_course(block)[:, at]
        rows.append([block[0].marked, str(rho), early_title(method), _count_onsets(block), *tell(course.ravel())])
    caption = (
        "Early retrieval: windows of one length T that end so long after the onset of a fault, in shares of T; at 0"
        f" nothing has happened yet, and only chance and shortcuts can score. {SIMULATED_MARK} simulated"
    )
    times = [_fraction(SHARES[i]) for i in at]
    over = ("", "", "", "", *(metric for metric in EARLY_METRICS for _ in times))
    return ReportTable(
        "early", caption, ["Dataset", "ρ", "Method", "Onsets", *times, *times], rows, labels=3, over=over
    )


def notice_table(measured: Sequence[EarlyResult]) -> ReportTable:
    """One row a dataset, level and method: when notice is given, whether it is right, and how often of nothing."""
    rows = []
    later = find_blocks([one for one in measured if one.way == "after a detector"])
    for key, block in find_blocks(_asked(measured)).items():
        place = [block[0].marked, str(key[1])]
        rows.append([*place, early_title(key[2]), *_notices(block)])
        if key in later:
            rows.append([*place, f"{AFTER}{early_title(key[2])}", *_notices(later[key])])
    caption = (
        f"Notices, where {FALSE_NOTICES:.0%} of normal windows may be given one: how often that happens to normal"
        " windows of other recordings, and to windows that end at the onset; of the onsets, the share whose fault is"
        " rightly and firmly named within T/8, T/2 and T; the median time to the first right and firm answer, in shares"
        f" of T (over T where fewer than half get one); of first notices, the share that is right. {AFTER.strip()}:"
        f" asked only where a detector sees a departure, as a watch does. {SIMULATED_MARK} simulated; blank where too"
        " few normal windows are held out"
    )
    header = ["Dataset", "ρ", "Method", "Onsets", *("False", "At onset", "by T/8", "by T/2", "by T", "Median", "Right")]
    return ReportTable("early-notices", caption, header, rows, labels=3)


def _notices(block: Sequence[EarlyResult]) -> list[str]:
    rates = [one.false_notices for one in block if not np.isnan(one.false_notices)]
    if not rates:
        return [_count_onsets(block), *([""] * 7)]
    first = np.concatenate([one.first_right for one in block])
    early = np.concatenate([one.notice[0] for one in block])
    shares = [(first <= limit).mean() for limit in (1 / 8, 1 / 2, 1.0)]
    middle = float(np.median(first))
    right = [one.noticed_right for one in block if not np.isnan(one.noticed_right)]
    return [
        _count_onsets(block),
        *tell([np.mean(rates), early.mean(), *shares]),
        _fraction(middle) if np.isfinite(middle) else ">1",
        *tell([np.mean(right) if right else np.nan]),
    ]


def _asked(measured: Sequence[EarlyResult]) -> list[EarlyResult]:
    return [one for one in measured if one.way == "asked"]


def _count_onsets(block: Sequence[EarlyResult]) -> str:
    return str(sum(len(one.faults) for one in block))


def _find_course(block: Sequence[EarlyResult]) -> Floats:
    """(2, S) metrics of a dataset at all shares, NaN at those that the source does not reach."""
    reached = np.concatenate([one.scores for one in block], axis=2).mean(axis=2)
    return np.pad(reached, ((0, 0), (0, len(SHARES) - reached.shape[1])), constant_values=np.nan)


def _choose_whole(blocks: Sequence[list[EarlyResult]]) -> list[list[EarlyResult]]:
    """Those of datasets that reach all times: a mean over others would jump where one ends."""
    return [block for block in blocks if len(block[0].shares) == len(SHARES)]


def mean_course(blocks: Sequence[list[EarlyResult]]) -> Floats:
    """(2, S) means of both metrics over datasets, each counting the same."""
    nothing = np.full((len(EARLY_METRICS), len(SHARES)), np.nan)
    return np.mean([_find_course(block) for block in blocks] or [nothing], axis=0)


def right_course(blocks: Sequence[list[EarlyResult]]) -> Floats:
    """(S,) the share of onsets that are rightly and firmly named by then, a mean over datasets."""
    noticed = [block for block in blocks if not np.isnan(block[0].false_notices)]
    first = [np.concatenate([one.first_right for one in block]) for block in noticed]
    courses = [[(own <= share).mean() for share in SHARES] for own in first]
    return np.mean(courses or [[np.nan] * len(SHARES)], axis=0)


@with_style
def draw_early(measured: Sequence[EarlyResult]) -> Figure:
    """Means over datasets, right notices so far, and NDCG@10 of each dataset, at the highest level."""
    rho = max(one.cell.rho for one in measured)
    chosen = [one for one in _asked(measured) if one.cell.rho == rho]
    methods, datasets = once(one.cell.method for one in chosen), once(one.cell.dataset for one in chosen)
    blocks = {(dataset, method): block for (dataset, _, method), block in find_blocks(chosen).items()}
    common = [name for name in datasets if all((name, method) in blocks for method in methods)]
    height = 1.75 * -(-len(datasets) // count_columns(len(datasets)))
    figure = sheet(9.6, 3.6 + height)
    parts = figure.subfigures(2, 1, height_ratios=[3.0, height], squeeze=False)
    above, below = parts[0, 0], parts[1, 0]
    left, right = above.subplots(1, 2)
    small = make_panels(below, len(datasets))
    styles = _styles(methods)
    for method in methods:
        whole = _choose_whole([blocks[name, method] for name in common])
        _draw(left, mean_course(whole)[0], styles[method], early_title(method))
        _draw(right, right_course(whole), styles[method])
    for axis, name in zip(small, datasets, strict=True):
        own = {method: blocks[name, method] for method in methods if (name, method) in blocks}
        for method, block in own.items():
            _draw(axis, _find_course(block)[0], styles[method], size=2.5)
        first = next(iter(own.values()))
        axis.set_title(fill(f"{first[0].marked}, {_count_onsets(first)} onsets", 24), fontsize=8)
    left.set_title(f"NDCG@10, mean of {len(whole)} datasets" if len(whole) > 1 else "NDCG@10")
    right.set_title(f"Rightly and firmly named so far (false notices {FALSE_NOTICES:.0%})")
    for axis in (left, right, *small):
        _dress(axis)
    for axis in (left, right):
        axis.set_xlabel("time since the onset, in window lengths")
    below.supxlabel("time since the onset, in window lengths", fontsize=8)
    below.supylabel("NDCG@10", fontsize=8)
    handles = left.get_legend_handles_labels()
    above.legend(*handles, loc="outside lower center", ncols=min(4, len(methods)), frameon=False)
    entitle(figure, f"How soon after the onset is the right case found? ρ={rho}%")
    return figure


def _styles(methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """One colour and marker a method; chance is a grey dashed line."""
    others = [method for method in methods if method != "random"]
    found: dict[str, dict[str, Any]] = {"random": {"color": REFERENCE_GREY, "linestyle": (0, (4, 2)), "linewidth": 1.2}}
    for method, colour, marker in zip(others, cycle(METHOD_COLOURS), cycle("osD^vP*"), strict=False):
        found[method] = {"color": colour, "marker": marker, "linewidth": 1.6}
    return found


def _draw(axis: Axes, values: Floats, style: dict[str, Any], title: str = "", size: float = 4.5) -> None:
    axis.plot(SHARES, values, markersize=size, label=title or None, **style)


def _dress(axis: Axes) -> None:
    axis.set_ylim(0, 1)
    axis.set_xticks((0.0, 0.25, 0.5, 0.75, 1.0), ["0", "¼", "½", "¾", "1"])
    axis.grid(axis="y", color=GRID_GREY, linewidth=0.8)
    axis.set_axisbelow(True)
    axis.margins(x=0.02)
    axis.tick_params(labelsize=8)


def early_title(method: str) -> str:
    """Name of a method in tables."""
    return "Flagship, normal a class" if parse(method) == parse(WITH_NORMALS) else parse(method).title


def _fraction(share: float) -> str:
    """A share as people write it.

    >>> _fraction(0.0625), _fraction(1.0)
    ('1/16', '1')
    """
    return str(Fraction(share).limit_denominator(32))


STUDIES.register(
    Study(
        name="early",
        summary="What is known 0, 1/16, 1/8 ... of a window after the onset of a fault, and when notice is given.",
        measure=measure_cell,
        depends=depends_on,
        cells=cells_with_onsets,
        complete=cap_corpora,
        result=EarlyResult,
        tables=(early_table, notice_table),
        figures={"early": draw_early},
        shown=(partial(early_table, brief=True), notice_table),
        datasets=sources_with_onsets,
        methods=METHODS,
        seeds=(0,),
        levels=(20,),
        settings=(Parameter("cap", int, 300, interval=ParameterRange(1), optional=True),),
        metrics=EARLY_METRICS,
    )
)
