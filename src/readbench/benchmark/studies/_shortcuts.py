"""How much of a task a shortcut would solve, and how much of a ranking comes from the query's own asset."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from readbench.benchmark.metrics import DEFAULT_METRIC, evaluate
from readbench.benchmark.protocol import Task
from readbench.engine.method import Method

PROBES = ("random", "channel-presence", "before-level", "stats", "euclidean")
OF_CONTEXT = ("before-level",)
"""Probes that look at the time before windows, and tell nothing of a task without any."""
DEPTH = 20


@dataclass(frozen=True)
class Shortcuts:
    """Scores of the probes on the clean corpus, and where Euclidean distance finds its hits.

    Args:
        ndcg: NDCG@10 of each probe; NaN where the task lacks what it looks at.
        chance: NDCG@10 that random order is expected to reach: the mean share of relevant items.
        own_asset: share of the top 10 that comes from the query's own asset; NaN where assets are unknown.
        own_asset_expected: the same share if items were drawn at random.
    """

    ndcg: dict[str, float]
    chance: float
    own_asset: float
    own_asset_expected: float


def probe_shortcuts(task: Task) -> Shortcuts:
    """Run the shortcut probes on the clean corpus of a task."""
    corpus = task.corpus_at(min(task.levels))
    ndcg, own, expected = {}, float("nan"), float("nan")
    for method in PROBES:
        if method in OF_CONTEXT and not _has_before(task):
            ndcg[method] = float("nan")
            continue
        order = Method(method).fit(corpus, task.normals).rank(task.queries, DEPTH).order
        values = evaluate(order, task.queries.labels, corpus.labels, [DEFAULT_METRIC]).values
        ndcg[method] = float(values[DEFAULT_METRIC].mean())
        if method == "euclidean" and (corpus.assets != "").all():
            same = corpus.assets == task.queries.assets[:, None]
            own = float(np.take_along_axis(same, order[:, :10], axis=1).mean())
            expected = float(same.mean())
    chance = float((corpus.labels == task.queries.labels[:, None]).mean())
    return Shortcuts(ndcg, chance, own, expected)


def _has_before(task: Task) -> bool:
    """Whether any window of the task brings the time before it."""
    return any(part.context is not None and part.context.has_before.any() for part in (task.queries, task.corpus))
