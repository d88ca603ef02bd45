"""The label budget: how many labels of the corpus are known, which is an axis of the experiment.

A case archive is seldom labelled throughout. A budget says what of the labels a method may know:

* `all`: every label.
* `20`: for each query the labels of the first 20 items of its base ranking, the one before any reranker: what an expert
  can look at when the case comes in. Pools grow with it to max(pool, 20).
* `10%`: the labels of that share of the corpus, the same for all queries: what a site has resolved so far. Sites
  resolve whole cases, so labels are granted group by group, in an order that the split seed and the group's name fix;
  the last group is cut off where the share is reached. A larger share contains every smaller one.

Evaluation always uses the true labels.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from readbench.data import Task
from readbench.errors import UsageError
from readbench.pipeline import System
from readbench.ranking import rank
from readbench.registry import RERANKERS
from readbench.retrieve import Scores
from readbench.spec import MethodSpec, Stage
from readbench.windows import NORMAL, UNLABELLED, WindowSet

Labels = NDArray[np.int32]


@dataclass(frozen=True)
class Budget:
    """What of the labels is known; everything where neither limit is set.

    Args:
        per_query: how many first hits of each query show their labels.
        percent: share of the corpus that shows its labels; at least one label is granted.

    >>> str(parse_budget("020")), str(parse_budget("2.50%")), str(parse_budget("100%"))
    ('20', '2.5%', 'all')
    """

    per_query: int | None = None
    percent: float | None = None

    def __str__(self) -> str:
        if self.per_query is not None:
            return str(self.per_query)
        return "all" if self.percent is None else f"{self.percent:g}%"

    @property
    def words(self) -> str:
        """The budget in a sentence: `all labels`, `20 labels a query`, `10% of the labels`."""
        if self == ALL:
            return "all labels"
        return f"{self} labels a query" if self.percent is None else f"{self} of the labels"

    def check(self, system: System) -> None:
        """Refuse methods whose legs read labels of the whole corpus before there is any ranking to grant them by."""
        if self.per_query is not None and any(leg.uses_labels for leg in system.legs):
            readers = " and ".join(str(leg.spec) for leg in system.legs if leg.uses_labels)
            raise UsageError(
                f"{readers} learns from the labels of the whole corpus, which a budget of {self.words} does not"
                " grant. Give it a share of the corpus, as in --label-budget 10%, or all."
            )

    def widened(self, spec: MethodSpec) -> MethodSpec:
        """The method with pools large enough for the labels of a query; rerankers without a `pool` stay as they are."""
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
        """The task as a method may see it: of the corpus nothing but windows and the labels that all queries may know.

        Names, groups and spans of the items go with the labels, since they may tell the same. That the normals beside
        the corpus are normal is no secret.
        """
        if self == ALL:
            return task
        labels = np.where(self._granted(task), task.corpus.labels, np.int32(UNLABELLED))
        normals = np.full(len(task.normals), NORMAL, np.int32)
        return replace(task, corpus=_labelled(task.corpus, labels), normals=_labelled(task.normals, normals))

    def _granted(self, task: Task) -> NDArray[np.bool_]:
        """(N,) items of the largest corpus whose labels all queries may know.

        The share is taken of the smallest corpus and of what each level adds, so that it holds at every level and the
        label of an item is known at all levels or at none.
        """
        granted, seen = np.zeros(len(task.corpus), bool), np.zeros(len(task.corpus), bool)
        if self.percent is None:
            return granted
        groups = [hashlib.sha256(f"{task.seed} {group}".encode()).digest() for group in task.corpus.groups]
        for rho in sorted(task.levels):
            added = [item for item in task.levels[rho].tolist() if not seen[item]]
            count = max(int(not seen.any()), round(self.percent / 100 * len(added)))
            granted[sorted(added, key=lambda item: groups[item])[:count]] = True
            seen[added] = True
        return granted

    def known(self, shown: Labels, true: Labels, scores: Scores) -> Labels:
        """(Q, N) labels that each query may know, -1 elsewhere.

        Args:
            shown: (N,) labels that all queries may know.
            true: (N,) all labels.
            scores: (Q, N) base scores.
        """
        if not self.per_query:
            return np.broadcast_to(shown, scores.shape)
        known = np.full(scores.shape, UNLABELLED, np.int32)
        first = rank(scores, self.per_query)
        np.put_along_axis(known, first, true[first], axis=1)
        return known


ALL = Budget()


def _labelled(windows: WindowSet, labels: Labels) -> WindowSet:
    """The windows with these labels and nothing else."""
    return replace(windows.anonymous(), labels=labels, classes=windows.classes)


def parse_budget(text: str) -> Budget:
    """Read `all`, labels per query (`20`) or a share of the corpus (`10%`); a share of 100 % is `all`."""
    text = text.strip().lower()
    if text == "all":
        return ALL
    if re.fullmatch(r"\d+", text):
        return Budget(per_query=int(text))
    if re.fullmatch(r"\d+(\.\d+)?%", text) and 0 < (percent := float(text[:-1])) <= 100:
        return Budget(percent=percent) if percent < 100 else ALL
    raise UsageError(
        "A label budget is a number of labels a query (20), a share of the corpus above 0% (10%), or all."
        f" Got {text!r}."
    )


def parse_budgets(text: str) -> tuple[str, ...]:
    """Canonical texts of several budgets, separated by commas."""
    return tuple(str(parse_budget(part)) for part in text.split(",") if part.strip())
