"""Label budgets: how many labels of the corpus a method may know, and how many of them are wrong.

* `all`: every label.
* `20`: per query the labels of the first 20 items of its base ranking, before any reranker: what an expert can look at
  when the case comes in. Pools grow to max(pool, 20).
* `10%`: the labels of that share of the corpus, the same for all queries: what a site has resolved so far. Labels are
  granted by split group, in an order fixed by the split seed and the group's name; the last group is cut off at the
  share. A larger share contains every smaller one.
* `all~20%`, `20~20%`, `10%~20%`: the same with that share of the faults mislabelled. A fault in a recording is wrong as
  a whole, in an order fixed by the split seed and names; the last one is cut off at the share. A larger share contains
  every smaller one, with the same wrong names. Normals keep their label; wrong names are other fault types.

Queries and evaluation always use the true labels.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.protocol import Task
from readbench.engine.legs import conceal
from readbench.engine.method import Method
from readbench.engine.protocols import Scores
from readbench.engine.ranking import rank
from readbench.engine.registry import RERANKERS
from readbench.engine.spec import MethodSpec, Stage
from readbench.engine.windows import NORMAL, UNLABELLED, WindowSet, strings
from readbench.errors import UsageError

Labels = NDArray[np.int32]


def add_label_noise(task: Task, percent: float) -> Labels:
    """(N,) labels of the largest corpus with a share of the faults mislabelled; unchanged with a single fault type."""
    true = task.corpus.labels
    faults = np.flatnonzero(true > NORMAL)
    classes = np.unique(true[faults])
    labels = true.copy()
    if len(classes) < 2:
        return labels
    cases = [f"{task.seed} wrong {group} {label}" for group, label in zip(task.corpus.groups, true, strict=True)]
    digests = {case: hashlib.sha256(case.encode()).digest() for case in sorted(set(cases))}
    order = sorted(faults.tolist(), key=lambda item: digests[cases[item]])
    for item in order[: round(percent / 100 * len(faults))]:
        others = classes[classes != true[item]]
        labels[item] = others[int.from_bytes(digests[cases[item]][-8:], "big") % len(others)]
    return labels


WRONG = "~"
"""Separator between the known labels and the share of wrong ones."""


@dataclass(frozen=True)
class Budget:
    """Known labels of a corpus; all of them without a limit.

    Args:
        per_query: number of first hits of each query with known labels.
        percent: share of the corpus with known labels, in percent; at least one label.
        wrong: share of mislabelled faults, in percent.

    >>> str(parse_budget("020")), str(parse_budget("2.50%")), str(parse_budget("100%~5%"))
    ('20', '2.5%', 'all~5%')
    """

    per_query: int | None = None
    percent: float | None = None
    wrong: float = 0.0

    def __str__(self) -> str:
        return self.extent + (f"{WRONG}{self.wrong:g}%" if self.wrong else "")

    @property
    def extent(self) -> str:
        """The budget without wrong labels: `all`, `20`, `10%`."""
        if self.per_query is not None:
            return str(self.per_query)
        return "all" if self.percent is None else f"{self.percent:g}%"

    @property
    def words(self) -> str:
        """The budget in words: `all labels`, `20 labels a query`, `10% of the labels, 5% of them wrong`."""
        error = f", {self.wrong:g}% of them wrong" if self.wrong else ""
        if self.per_query is not None:
            return f"{self.extent} labels a query{error}"
        return ("all labels" if self.percent is None else f"{self.extent} of the labels") + error

    def check(self, method: Method) -> None:
        """Raise `UsageError` for a budget per query and a method whose legs read labels of the whole corpus."""
        if self.per_query is not None and method.legs_use_labels:
            readers = " and ".join(str(leg.spec) for leg in method.legs if leg.uses_labels)
            raise UsageError(
                f"{readers} learns from the labels of the whole corpus, which a budget of {self.words} does not"
                " grant. Give it a share of the corpus, as in --label-budget 10%, or all."
            )

    def widened(self, spec: MethodSpec) -> MethodSpec:
        """The method with pools of at least the labels per query; rerankers without a `pool` are unchanged."""
        return replace(spec, rerankers=tuple(self._widened(stage) for stage in spec.rerankers))

    def _widened(self, stage: Stage) -> Stage:
        declared = RERANKERS.get(stage.name).parameters
        given = dict(stage.parameters)
        own = given.get("pool", declared["pool"].default) if "pool" in declared else None
        if self.per_query is None or not isinstance(own, int) or own >= self.per_query:
            return stage
        given["pool"] = self.per_query
        return replace(stage, parameters=tuple((name, given[name]) for name in declared if name in given))

    def shown(self, task: Task) -> Task:
        """The task as a method may see it: windows of the corpus with the labels that all queries may know.

        Names and spans of items are removed with the labels, since they may reveal them; groups and assets become
        numbers. The normals beside the corpus stay known as normal.
        """
        if self == ALL:
            return task
        labels = np.where(self._granted(task), self.archive(task), np.int32(UNLABELLED))
        normals = np.full(len(task.normals), NORMAL, np.int32)
        return replace(task, corpus=_labelled(task.corpus, labels), normals=_labelled(task.normals, normals))

    def archive(self, task: Task) -> Labels:
        """(N,) labels of the largest corpus with the wrong ones of the budget."""
        return add_label_noise(task, self.wrong) if self.wrong else task.corpus.labels

    def _granted(self, task: Task) -> NDArray[np.bool_]:
        """(N,) items of the largest corpus whose labels all queries may know.

        The share is taken of the smallest corpus and of each level's additions, so that it holds at every level and an
        item has the same state at all of them.
        """
        granted, seen = np.zeros(len(task.corpus), bool), np.zeros(len(task.corpus), bool)
        if self.percent is None:
            return np.full(len(task.corpus), self.per_query is None)
        groups = [hashlib.sha256(f"{task.seed} {group}".encode()).digest() for group in task.corpus.groups]
        for rho in sorted(task.levels):
            added = [item for item in task.levels[rho].tolist() if not seen[item]]
            count = max(int(not seen.any()), round(self.percent / 100 * len(added)))
            granted[sorted(added, key=lambda item: groups[item])[:count]] = True
            seen[added] = True
        return granted

    def known(self, shown: Labels, archive: Labels, scores: Scores) -> Labels:
        """(N,) labels known to all queries, or (Q, N) with a budget per query; -1 for unknown.

        Args:
            shown: (N,) labels that all queries may know.
            archive: (N,) all labels of the archive.
            scores: (Q, N) base scores.
        """
        if not self.per_query:
            return shown
        known = np.full(scores.shape, UNLABELLED, np.int32)
        first = rank(scores, self.per_query)
        np.put_along_axis(known, first, archive[first], axis=1)
        return known


ALL = Budget()


def _labelled(windows: WindowSet, labels: Labels) -> WindowSet:
    """The windows with labels, numbered groups and numbered assets only."""
    groups, assets = (strings(_numbered(names.tolist()), len(windows)) for names in (windows.groups, windows.assets))
    return replace(conceal(windows), labels=labels, classes=windows.classes, groups=groups, assets=assets)


def _numbered(names: Sequence[str]) -> list[str]:
    """Names as numbers by appearance, since their order may reveal the fault; "" is unchanged."""
    numbers: dict[str, str] = {}
    return [numbers.setdefault(name, str(len(numbers))) if name else "" for name in names]


def parse_budget(text: str) -> Budget:
    """Parse `all`, labels per query (`20`) or a share of the corpus (`10%`), with `~` and the share of wrong labels."""
    text = text.strip().lower()
    extent, _, wrong = text.partition(WRONG)
    error = _percent(wrong) if wrong else 0.0
    if error is not None and error < 100 and text[-1:] != WRONG:
        if extent == "all":
            return Budget(wrong=error)
        if re.fullmatch(r"\d+", extent):
            return Budget(per_query=int(extent), wrong=error)
        if percent := _percent(extent):
            return Budget(percent=percent if percent < 100 else None, wrong=error)
    raise UsageError(
        "A label budget is a number of labels a query (20), a share of the corpus above 0% (10%), or all; behind ~ a"
        f" share of wrong labels below 100% (all~10%). Got {text!r}."
    )


def _percent(text: str) -> float | None:
    """A percentage from 0 to 100; None for any other text."""
    percent = float(text[:-1]) if re.fullmatch(r"\d+(\.\d+)?%", text) else -1.0
    return percent if 0 <= percent <= 100 else None


def parse_budgets(text: str) -> tuple[str, ...]:
    """Canonical texts of several budgets, separated by commas."""
    return tuple(str(parse_budget(part)) for part in text.split(",") if part.strip())


def with_noise(labels: tuple[str, ...], percents: tuple[int, ...]) -> tuple[str, ...]:
    """Each budget with each share of wrong labels.

    >>> with_noise(("all", "10%"), (0, 20))
    ('all', 'all~20%', '10%', '10%~20%')
    """
    if any(not 0 <= percent < 100 for percent in percents):
        raise UsageError(f"Shares of wrong labels are percentages from 0 to 99. Got {', '.join(map(str, percents))}.")
    noisy = [str(replace(parse_budget(text), wrong=float(percent))) for text in labels for percent in percents]
    return tuple(dict.fromkeys(noisy))
