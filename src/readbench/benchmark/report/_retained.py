"""Share of a method's score that remains on unseen assets, from published rows under a split by asset.

These rows stand in the folder `assets` of published rows. Scores are corrected for chance: c = (NDCG - e) / (1 - e),
where e is the expectation of random lists on the task. The retained share is the mean of c over datasets with assets
held out, divided by that with recordings held out; its interval resamples datasets. The two tasks have different
queries; the study `readx` uses the same on both sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.metrics import MIN_DATASETS, ConfidenceInterval, expect, sums_interval
from readbench.benchmark.report._methods import describe, mark_dataset
from readbench.benchmark.report._results import Results, dataset_scores, read_results
from readbench.benchmark.report._statements import state_method
from readbench.benchmark.report._table import ReportTable
from readbench.benchmark.runs import PublishedFolder, open_folder
from readbench.engine.registry import METRICS

UNSEEN = "assets"
"""Folder of published rows under a split by asset."""
MIN_BEYOND_CHANCE = 0.05
"""Smallest corrected score with recordings held out for a retained share."""


@dataclass(frozen=True, eq=False)
class RetainedShare:
    """One method with recordings and with assets held out.

    Args:
        method: canonical text.
        seen: (D,) corrected scores with recordings held out; NaN on datasets missing on either side.
        unseen: (D,) corrected scores with assets held out.
        share: mean of `unseen` over mean of `seen`; None if `seen` is near chance.
    """

    method: str
    seen: NDArray[np.float64]
    unseen: NDArray[np.float64]
    share: ConfidenceInterval | None

    @property
    def held(self) -> NDArray[np.bool_]:
        """(D,) datasets with both scores."""
        return ~np.isnan(self.seen + self.unseen)

    @property
    def means(self) -> tuple[float, float]:
        """Mean corrected scores over these datasets with recordings and with assets held out."""
        return float(self.seen[self.held].mean()), float(self.unseen[self.held].mean())


@lru_cache(maxsize=4)
def read_unseen(results: Results) -> Results | None:
    """Rows of the same methods under a split by asset; None without any."""
    return read_beside(results, UNSEEN)


def read_beside(results: Results, name: str) -> Results | None:
    """Published rows in a folder inside published rows; None without any."""
    folder = results.folder / name
    return read_results(folder, results.headline) if isinstance(open_folder(folder), PublishedFolder) else None


@lru_cache(maxsize=4)
def retained_shares(results: Results) -> dict[str, RetainedShare]:
    """Method -> retained share at the first level over the datasets with both scores."""
    away = read_unseen(results)
    if away is None or METRICS.get(results.headline).chance is None:
        return {}
    datasets = [name for name in away.datasets if name in results.datasets]
    seen, unseen = (_corrected(one, datasets) for one in (results, away))
    found = {}
    for m, method in enumerate(away.methods):
        if method not in results.methods:
            continue
        own, kept = seen[:, results.methods.index(method)], unseen[:, m]
        there = ~np.isnan(own + kept)
        if not there.any():
            continue
        enough = there.sum() >= MIN_DATASETS and own[there].mean() >= MIN_BEYOND_CHANCE
        pairs = np.stack([kept[there], own[there]], axis=1)
        share = sums_interval(pairs, _divide, clusters=np.flatnonzero(there), seed=0) if enough else None
        lacking = np.where(there, 0.0, np.nan)
        found[method] = RetainedShare(method, own + lacking, kept + lacking, share)
    return found


def _divide(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(sums[0], sums[1], out=np.full_like(sums[0], np.inf), where=sums[1] > 0)


def _corrected(results: Results, datasets: list[str]) -> NDArray[np.float64]:
    """(datasets, methods) scores at the first level, corrected for chance, averaged over seeds."""
    folder, rho = open_folder(results.folder), results.levels[0]
    scores = dataset_scores(results, rho)
    rows = []
    for dataset in datasets:
        chances = []
        for seed in results.plan.seeds_of(dataset):
            qrels = folder.read_qrels(dataset, seed)
            chances.append(expect(qrels.query_labels, qrels.at(rho)[1], results.headline).mean())
        chance = float(np.mean(chances))
        rows.append((scores[results.datasets.index(dataset)] - chance) / (1 - chance))
    return np.stack(rows)


def tell_retained(found: RetainedShare | None) -> str:
    """A share with its interval."""
    if found is None or found.share is None:
        return "-"
    count, total = int(found.held.sum()), len(found.held)
    part = f" ({count} of {total})" if count < total else ""
    return f"{found.share.mean:.2f} [{found.share.low:.2f}, {found.share.high:.2f}]{part}"


def retained_table(results: Results) -> ReportTable | None:
    """Table with one row per method: corrected scores and retained share; by dataset with assets held out."""
    away, shares = read_unseen(results), retained_shares(results)
    if away is None or not shares:
        return None
    order = sorted(shares.values(), key=lambda one: (not one.held.all(), -one.means[1]))
    datasets = [name for name in away.datasets if name in results.datasets]
    rows = []
    for one in order:
        names = [results.title(one.method), state_method(one.method).label_text]
        means = [*(f"{value:.3f}" for value in one.means), tell_retained(one)]
        rows.append([*names, *means, *("–" if np.isnan(value) else f"{value:.3f}" for value in one.unseen)])
    caption = (
        f"{results.headline} beyond chance at ρ={results.levels[0]}% with recordings held out and with whole assets"
        f" held out, mean over {describe(away)} and {away.told_seeds}; retained: the second over the first,"
        " with its 95 % interval when datasets are drawn anew; each dataset with assets held out"
    )
    header = ["Method", "Labels", "Recordings", "Assets", "Retained"]
    header += [mark_dataset(results, name) for name in datasets]
    return ReportTable("unseen-assets", caption, header, rows)
