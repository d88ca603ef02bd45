"""The metrics of the benchmark: precision, hit rate and NDCG at K, and macro-F1.

Each is one registered function of a `Judgement`, which is already cut to the places that the metric reads. A plug-in
adds its own in the same way.
"""

from __future__ import annotations

import numpy as np

from readbench.benchmark.metrics._evaluation import Floats, Judgement
from readbench.engine.registry import METRICS
from readbench.engine.windows import NORMAL

CUTOFFS = (1, 3, 5, 10, 20)
"""The K at which rankings are judged."""


def expected_precision(judged: Judgement, k: int) -> Floats:  # noqa: ARG001 - the same at every K
    """P@K of random lists: R / N."""
    share: Floats = judged.relevant / judged.corpus_size
    return share


@METRICS.register("P", cutoffs=CUTOFFS, chance=expected_precision)
def precision(judged: Judgement, k: int) -> Floats:
    """Share of relevant items among the first K: P@K = (1 / K) sum_{i <= K} rel_i.

    A corpus of N < K items fills only N places; the share is then of those N, not of places nobody can fill.
    """
    share: Floats = judged.hits[:, :k].mean(axis=1, dtype=np.float64)
    return share


def expected_hit_rate(judged: Judgement, k: int) -> Floats:
    """HR@K of random lists: one minus the chance to draw K items of N without any of R."""
    places = np.arange(min(k, judged.corpus_size))
    misses = (judged.corpus_size - judged.relevant[:, None] - places).clip(min=0) / (judged.corpus_size - places)
    found: Floats = 1 - misses.prod(axis=1)
    return found


@METRICS.register("HR", cutoffs=CUTOFFS, chance=expected_hit_rate)
def hit_rate(judged: Judgement, k: int) -> Floats:
    """Whether any of the first K items is relevant: HR@K = 1, or else 0."""
    return np.any(judged.hits[:, :k], axis=1).astype(np.float64)


def expected_ndcg(judged: Judgement, k: int) -> Floats:
    """NDCG@K of random lists: each place is relevant with probability R / N."""
    gains = np.cumsum(_discounts(k))[min(k, judged.corpus_size) - 1] * judged.relevant / judged.corpus_size
    return _share_of_ideal(gains, judged, k)


@METRICS.register("NDCG", cutoffs=CUTOFFS, chance=expected_ndcg)
def ndcg(judged: Judgement, k: int) -> Floats:
    """Discounted gain of the first K items over that of an ideal list: NDCG@K = DCG@K / IDCG@K.

    DCG@K = sum_{i <= K} rel_i / log2(i + 1); IDCG@K is the DCG@K of a list with all relevant items first, so
    it sums the first min(K, R) discounts for R relevant items in the corpus (Järvelin and Kekäläinen, 2002). It is 0
    where nothing is relevant.
    """
    top = judged.hits[:, :k]
    # Both sums run from the first place to the last, so rounding cannot push a list above the ideal one, and
    # an ideal list scores exactly 1.
    dcg = np.cumsum(top * _discounts(k)[: top.shape[1]], axis=1)[:, -1]
    return _share_of_ideal(dcg, judged, k)


@METRICS.register("macro_F1", title="macro-F1", depth=1, per_query=False)
def macro_f1(judged: Judgement) -> float:
    """Mean over the fault types among the queries of F1 = 2 TP / (2 TP + FP + FN), the first hit being the prediction.

    2 TP + FP + FN is how often a type was predicted plus how often it was true. A type that is predicted but
    that no query has costs its victims a miss and is not averaged over. Without any fault among the queries
    the mean is 0.
    """
    faults = np.unique(judged.query_labels[judged.query_labels > NORMAL])[:, None]
    if not faults.size:
        return 0.0
    true, guessed = judged.query_labels == faults, judged.predicted == faults
    f1 = 2.0 * (true & guessed).sum(axis=1) / (true.sum(axis=1) + guessed.sum(axis=1))
    return float(f1.mean())


def _discounts(k: int) -> Floats:
    discounts: Floats = 1.0 / np.log2(np.arange(2, k + 2))
    return discounts


def _share_of_ideal(gains: Floats, judged: Judgement, k: int) -> Floats:
    """Gains over those of a list with all relevant items first; 0 where nothing is relevant."""
    ideal = np.concatenate([[0.0], np.cumsum(_discounts(k))])[np.minimum(judged.relevant, k)]
    share: Floats = np.divide(gains, ideal, out=np.zeros_like(gains), where=ideal > 0)
    return share
