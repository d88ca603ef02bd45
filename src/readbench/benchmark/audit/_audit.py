"""Audit of a dataset: a verdict on each hazard for its use as a benchmark.

Rules of the verdicts:

* A **probe** that sees what cannot be the fault (presence, length, time before, position, session, asset) is a hazard
  where it is above chance by permutation (p <= LEVEL), the lower end of its interval over split groups is above chance,
  and it reaches HAZARD of what the best method gains over chance. From WATCH on it is to be watched. It is unclear
  where it reaches WATCH and cannot be told from chance, while the upper end of its interval reaches HAZARD: the split
  has too few groups to tell.
* **Level** and **first row** may be the fault itself: from HAZARD on they are to be watched. The **first row** is a
  hazard where the fault begins later in the window; so is the **crop point**, where the first row gains HAZARD more
  than a row drawn at random from the window does, with an interval above zero: then the cut, not the state, tells.
* **Copies** of a query in its corpus, shared groups or samples are a hazard; near copies from COPIED of the queries on,
  and to be watched below that. Copies under other labels likewise, as a share of the corpus.
* **Labels** are to be watched where FEWEST_CONTRADICTED groups look like another class, and a hazard where these are
  MISLABELLED of all groups, too; unclear where less than RECOGNISED of the windows are of classes that can be told.
* **Power** and **balance** are limits and no leaks: they are clean or to be watched.

The share of the best score is chance-corrected: (probe - chance) / (best - chance), chance being what a random order is
expected to score on the same queries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.audit._copies import Copies, Leaks, find_copies, find_leaks
from readbench.benchmark.audit._labels import DoubtfulLabels, doubt_labels
from readbench.benchmark.audit._probes import (
    PROBES,
    Floats,
    count_units,
    deal_labels,
    expect_by_chance,
    measure_gain,
    see_any_row,
    share_discounts,
)
from readbench.benchmark.metrics import DEFAULT_METRIC, ConfidenceInterval, evaluate, paired_bootstrap
from readbench.benchmark.protocol import (
    PAPER_COMPOSITION,
    Built,
    DataOrigin,
    SourceInfo,
    Task,
    composition_row,
    context_row,
    count_classes,
    tell_origin,
)
from readbench.common.progress import SILENT, Progress, each
from readbench.engine.method import Method
from readbench.engine.ranking import rank
from readbench.engine.windows import NORMAL, WindowSet

Verdict = Literal["clean", "watch", "hazard", "unclear", "-"]
"""A hazard's verdict; a dash where there is nothing to look at."""
LEVEL = 0.01
"""Level of the permutation test of each probe."""
WATCH, HAZARD = 0.1, 1 / 3
"""Shares of the best score, chance-corrected."""
LEAST_GAIN = 0.05
"""Smallest gain over chance that shares refer to."""
FEWEST_UNITS = 5
"""Fewest units (classes in groups) of the queries for a verdict on a probe."""
COPIED, MISLABELLED, FEWEST_CONTRADICTED, RECOGNISED = 0.05, 0.05, 2, 0.5
LARGEST_CLASS, LARGEST_GROUP, COARSE = 0.5, 0.25, 0.05
UNLABELLED_METHODS = ("stats", "euclidean", "rocket")
"""Cheap methods; shortcuts are compared with the best of them and of the last one with labels."""
DEEPEST = 20
POWER = 1.959964 + 0.841621
"""Standard errors of a difference that is found with 80 % power at a level of 5 %."""


@dataclass(frozen=True)
class Finding:
    """One hazard of a dataset.

    Args:
        name: of the hazard.
        title: in tables.
        verdict: in one word.
        sentence: the verdict in words, with its figures.
        score: NDCG@10 of a probe; NaN where it is none, or sees nothing.
        share: of the best score, chance-corrected; NaN likewise.
        low: lower end of its 95 % interval over split groups.
        high: upper end.
        p: of the permutation test.
    """

    name: str
    title: str
    verdict: Verdict
    sentence: str
    score: float = float("nan")
    share: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    p: float = float("nan")


@dataclass(frozen=True)
class DatasetAudit:
    """All that was found on one task of a dataset; `facts` holds it for programs.

    Args:
        name: as it was asked for, with parameters.
        info: of the source.
        origin: where its values come from.
        seed: of the split.
        split_by: what was held out.
        fingerprint: of the task.
        composition: the paper's columns.
        paper: what the paper says; None where it says nothing.
        counts: windows, groups, corpus and queries by class.
        groups: split groups of the source, and of the queries.
        assets: assets of the source; 0 where none is named.
        context: what windows bring along.
        chance: expected NDCG@10 of a random order.
        scores: NDCG@10 of the methods.
        own_asset: share of the top 10 of Euclidean distance from the query's own asset; NaN where unknown.
        own_asset_expected: the same by chance.
        leaks: shared groups, overlaps and copies.
        copies: near copies.
        labels: contradicted ones; a reason where none can be judged.
        detectable: smallest difference of NDCG@10 that the queries show; see `measure_power`.
        findings: the hazards.
        notes: of the task.
    """

    name: str
    info: SourceInfo
    origin: DataOrigin
    seed: int
    split_by: str
    fingerprint: str
    composition: Mapping[str, Any]
    paper: Mapping[str, Any] | None
    counts: Mapping[str, Mapping[str, int]]
    groups: tuple[int, int]
    assets: int
    context: Mapping[str, Any]
    chance: float
    scores: Mapping[str, float]
    own_asset: float
    own_asset_expected: float
    leaks: Leaks
    copies: Copies
    labels: DoubtfulLabels | str
    detectable: float
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]

    @property
    def sound(self) -> bool:
        """True when nothing leaks from the corpus to the queries."""
        return self.leaks.sound

    @property
    def best(self) -> str:
        """The method with the highest score."""
        return max(self.scores, key=lambda name: self.scores[name])

    def facts(self) -> dict[str, Any]:
        """The audit as JSON; None for NaN."""
        own = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "info"}
        kinds = {"leaks": asdict(self.leaks), "copies": asdict(self.copies)}
        labels = self.labels if isinstance(self.labels, str) else asdict(self.labels)
        findings = [asdict(finding) for finding in self.findings]
        facts: dict[str, Any] = _without_nan(own | kinds | {"labels": labels, "findings": findings})
        return facts | {"sound": self.sound, "best": self.best}


def audit_task(
    built: Built,
    task: Task,
    *,
    name: str = "",
    origin: DataOrigin | None = None,
    split_by: str = "group",
    progress: Progress = SILENT,
) -> DatasetAudit:
    """Audit one task of a dataset on its clean corpus; `name` and `origin` are those of its source by default."""
    corpus, queries = task.corpus_at(min(task.levels)), task.queries
    chance = expect_by_chance(queries.labels, corpus.labels)
    orders = rank_cheaply(task, corpus, progress)
    gains = {
        method: evaluate(order, queries.labels, corpus.labels, [DEFAULT_METRIC]).values[DEFAULT_METRIC]
        for method, order in orders.items()
    }
    own_asset = expected = float("nan")
    if (corpus.assets != "").all():
        same = corpus.assets == queries.assets[:, None]
        own_asset = float(np.take_along_axis(same, orders["euclidean"][:, :10], axis=1).mean())
        expected = float(same.mean())
    best = max(gains.values(), key=lambda values: float(values.mean()))
    leaks, copies, labels = find_leaks(task), find_copies(task), doubt_labels(task)
    detectable = measure_power(list(gains.values()), queries)
    counts = count_classes(built.windows, task)
    findings = (
        *judge_probes(task, corpus, chance, float((best - chance).mean()), progress),
        judge_copies(leaks, copies, len(queries)),
        judge_twins(copies, len(corpus)),
        judge_labels(labels),
        judge_balance(queries),
        judge_power(detectable, len(np.unique(queries.groups))),
    )
    named = built.info.name
    origin = origin or tell_origin(simulated=built.info.simulated, ours=built.info.generated)
    return DatasetAudit(
        name=name or named,
        info=built.info,
        origin=origin,
        seed=task.seed,
        split_by=split_by,
        fingerprint=task.fingerprint(),
        composition=composition_row(task),
        paper=asdict(PAPER_COMPOSITION[named]) if (name or named) in PAPER_COMPOSITION else None,
        counts=counts,
        groups=(len(np.unique(built.windows.groups)), len(np.unique(queries.groups))),
        assets=len(set(built.windows.assets.tolist()) - {""}),
        context=context_row(built, task),
        chance=float(chance.mean()),
        scores={method: float(values.mean()) for method, values in gains.items()},
        own_asset=own_asset,
        own_asset_expected=expected,
        leaks=leaks,
        copies=copies,
        labels=labels,
        detectable=detectable,
        findings=findings,
        notes=task.notes if origin == "real" else (f"{origin} data", *task.notes),
    )


def rank_cheaply(task: Task, corpus: WindowSet, progress: Progress = SILENT) -> dict[str, NDArray[np.intp]]:
    """(Q, 20) rankings of the cheap methods: of some without labels, and of the last of them with labels, too."""
    orders = {}
    for name in each(UNLABELLED_METHODS, "methods", progress):
        learned = name == UNLABELLED_METHODS[-1]
        asked = Method(f"{name}+verdict" if learned else name).fit(corpus, task.normals).ask(task.queries)
        orders[name] = rank(asked.base, DEEPEST)
        if learned:
            orders[f"{name}+verdict"] = asked.rank(DEEPEST).order
    return orders


def judge_probes(
    task: Task, corpus: WindowSet, chance: Floats, gain: float, progress: Progress = SILENT
) -> list[Finding]:
    """A finding for each probe, and one for the crop point; `gain` is what the best method gains over chance."""
    found = []
    for name in each(list(PROBES), "probes", progress):
        seen = PROBES[name].score(task, corpus)
        if isinstance(seen, str):
            found.append(Finding(name, PROBES[name].title, "-", f"Nothing to look at: {seen}."))
            continue
        discounts = share_discounts(seen)
        values = measure_gain(discounts, task.queries.labels, corpus.labels)
        found.append(_judge_probe(name, task, corpus, discounts, values - chance, float(values.mean()), gain))
        if name == "first-row":
            found.append(judge_crop(task, corpus, values, gain))
    return found


def _judge_probe(
    name: str, task: Task, corpus: WindowSet, discounts: Floats, excess: Floats, score: float, gain: float
) -> Finding:
    probe, base = PROBES[name], max(gain, LEAST_GAIN)
    interval = _interval(excess, task.queries)
    dealt = deal_labels(discounts, task.queries, corpus, task.seed)
    p = float((1 + (dealt >= excess.mean()).sum()) / (1 + len(dealt)))
    share = float(excess.mean()) / base
    leak = probe.leak and not (name == "before" and task.info.protocol.before == "preceding")
    leak |= name == "first-row" and _begins_inside(task)
    verdict: Verdict = "clean"
    if count_units(task.queries) < FEWEST_UNITS:
        verdict = "unclear"
    elif p > LEVEL or interval.low <= 0:
        verdict = "unclear" if share >= WATCH and interval.high / base >= HAZARD else "clean"
    elif share >= HAZARD:
        verdict = "hazard" if leak else "watch"
    elif share >= WATCH and leak:
        verdict = "watch"
    figures = f"{_told(probe.sees)} alone reaches {score:.3f}, {share:.0%} of what the best method gains over chance"
    told = f"it cannot be the fault; {probe.use}" if leak else "it may be the fault, or a session; look at its cases"
    meaning = {
        "hazard": told,
        "watch": told,
        "unclear": "too few groups to tell it from chance",
        "clean": "not told from chance" if p > LEVEL or interval.low <= 0 else "little",
    }[verdict]
    ends = (interval.low / base, interval.high / base)
    return Finding(name, probe.title, verdict, f"{figures}: {meaning}.", score, share, *ends, p)


def judge_crop(task: Task, corpus: WindowSet, first: Floats, gain: float) -> Finding:
    """Whether the point where windows are cut tells the class: the first row against a row drawn at random."""
    drawn = measure_gain(share_discounts(see_any_row(task, corpus)), task.queries.labels, corpus.labels)
    interval, base = _interval(first - drawn, task.queries), max(gain, LEAST_GAIN)
    share = interval.mean / base
    verdict: Verdict = "clean"
    if count_units(task.queries) < FEWEST_UNITS:
        verdict = "unclear"
    elif interval.low > 0 and share >= WATCH:
        verdict = "hazard" if share >= HAZARD else "watch"
    words = f"the first row reaches {first.mean():.3f}, a row drawn at random {drawn.mean():.3f}"
    meanings = {"clean": "no telling difference", "unclear": "too few groups to tell"}
    meaning = meanings.get(verdict, "where windows are cut tells the class")
    ends = (interval.low / base, interval.high / base)
    return Finding("crop", "Crop point", verdict, f"{_told(words)}: {meaning}.", float("nan"), share, *ends)


def judge_copies(leaks: Leaks, copies: Copies, queries: int) -> Finding:
    """Finding on copies of queries in the corpus."""
    share = copies.queries / queries
    if not leaks.sound:
        parts = {"shared groups": leaks.shared_groups, "overlaps": leaks.overlaps, "copies": leaks.duplicates}
        told = ", ".join(f"{len(pairs)} {what}" for what, pairs in parts.items() if pairs)
        return Finding("copies", "Copies", "hazard", f"Corpus and queries have {told}; near copies: {copies.queries}.")
    verdict: Verdict = "hazard" if share >= COPIED else "watch" if copies.queries else "clean"
    return Finding(
        "copies",
        "Copies",
        verdict,
        f"{copies.queries} of {queries} queries have a near copy in the corpus; none equal.",
    )


def judge_twins(copies: Copies, corpus: int) -> Finding:
    """Finding on copies in the corpus under other labels."""
    share = copies.contradicted / corpus
    verdict: Verdict = "hazard" if share >= COPIED else "watch" if copies.contradicted else "clean"
    sentence = (
        f"{copies.contradicted} of {corpus} windows of the corpus have a near copy under another label; "
        f"{sum(pair.same_label for pair in copies.within)} pairs of near copies in other groups share theirs."
    )
    return Finding("twins", "Other labels", verdict, sentence)


def judge_labels(labels: DoubtfulLabels | str) -> Finding:
    """Finding on groups that look like another class."""
    if isinstance(labels, str):
        return Finding("labels", "Labels", "-", f"Cannot be told: {labels}.")
    share = labels.contradicted / labels.groups
    verdict: Verdict = "hazard" if share >= MISLABELLED else "watch"
    if labels.contradicted < FEWEST_CONTRADICTED:
        verdict = "clean" if labels.known >= RECOGNISED else "unclear"
    sentence = (
        f"{labels.contradicted} of {labels.groups} groups ({len(labels.found)} of {labels.judged} windows) look like "
        f"another class; the other groups agree with {labels.agreement:.0%} of the labels and recognise the classes "
        f"of {labels.known:.0%} of the windows."
    )
    return Finding("labels", "Labels", verdict, sentence)


def judge_balance(queries: WindowSet) -> Finding:
    """Finding on the largest class and group of the queries."""
    by_class, by_group = (
        float(np.unique(column, return_counts=True)[1].max()) / len(queries)
        for column in (queries.labels, queries.groups)
    )
    verdict: Verdict = "watch" if by_class >= LARGEST_CLASS or by_group >= LARGEST_GROUP else "clean"
    sentence = f"The largest class has {by_class:.0%} of the queries, the largest group {by_group:.0%}."
    return Finding("balance", "Balance", verdict, sentence)


def judge_power(detectable: float, groups: int) -> Finding:
    """Finding on the smallest difference that the queries show; unclear with few groups."""
    verdict: Verdict = "unclear" if groups < FEWEST_UNITS else "clean" if detectable <= COARSE else "watch"
    sentence = f"Differences of NDCG@10 below {detectable:.3f} are likely to be missed (80 % power, 5 % level)."
    return Finding("power", "Power", verdict, sentence)


def measure_power(gains: list[Floats], queries: WindowSet) -> float:
    """Smallest difference of NDCG@10 between two methods that these queries show with 80 % power at a level of 5 %.

    (z(0.975) + z(0.8)) * s = 2.80 s, where s is the standard error of a mean paired difference: the width of its 95 %
    bootstrap interval over split groups, divided by 2 * 1.96. The median over all pairs of methods is taken.
    """
    pairs = [a - b for i, a in enumerate(gains) for b in gains[i + 1 :]]
    widths = [interval.high - interval.low for interval in (_interval(pair, queries) for pair in pairs)]
    return float(POWER * np.median(widths) / (2 * 1.959964))


def _interval(differences: Floats, queries: WindowSet) -> ConfidenceInterval:
    """Over split groups; over queries where all are of one group."""
    several = len(np.unique(queries.groups)) > 1
    if len(differences) < 2:
        return ConfidenceInterval(float(differences.mean()), -1.0, 1.0, 0, 0.95)
    return paired_bootstrap(
        differences,
        np.zeros_like(differences),
        seed=0,
        clusters=np.unique(queries.groups, return_inverse=True)[1] if several else None,
        resamples=2000,
    )


def _begins_inside(task: Task) -> bool:
    """True when nearly all faults begin after the first row of their window."""
    faulty = task.corpus.labels > NORMAL
    starts = np.concatenate([task.queries.spans[:, 0], task.corpus.spans[faulty, 0]])
    return bool((starts > 0).mean() >= 0.9)


def _told(text: str) -> str:
    return text[:1].upper() + text[1:]


def _without_nan(value: Any) -> Any:  # noqa: ANN401 - any part of a JSON document
    if isinstance(value, Mapping):
        return {key: _without_nan(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(own) for own in value]
    return None if isinstance(value, float) and np.isnan(value) else value
