"""How sure the means of a run are, and what they are class by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readbench.experiment.gallery import Gallery
from readbench.report.results import Results
from readbench.report.site.answers import Answers, covariance


@dataclass(frozen=True, eq=False)
class Judged:
    """Standard errors of all means, and the covariances between methods for the headline metric.

    Args:
        headline: the metric that joint and classes are of.
        errors: metric -> (datasets, levels, budgets, methods).
        joint: (datasets, levels, budgets, methods, methods).
        classes: dataset -> class -> (levels, budgets, methods) mean of the headline metric.
    """

    headline: str
    errors: dict[str, NDArray[np.float64]]
    joint: NDArray[np.float32]
    classes: dict[str, dict[str, NDArray[np.float64]]]


def judge_means(results: Results, answers: Sequence[Answers], gallery: Gallery | None) -> Judged:
    """Judge all means of a run."""
    shape = (len(results.datasets), len(results.levels), len(results.labels), len(results.methods))
    out = Judged(
        errors={metric: np.full(shape, np.nan) for metric, facts in results.metrics.items() if facts.per_query},
        headline=results.headline,
        joint=np.full((*shape, shape[-1]), np.nan, np.float32),
        classes={dataset: {} for dataset in results.datasets},
    )
    for d, (dataset, own) in enumerate(zip(results.datasets, answers, strict=True)):
        if not own.queries:
            continue
        labels = _query_labels(gallery, dataset)
        names = sorted({name for seed in labels.values() for name in seed.values()})
        out.classes[dataset] = {name: np.full(shape[1:], np.nan) for name in names}
        for level, rho in enumerate(results.levels):
            for b in range(len(results.labels)):
                values = {seed: _matrix(results, own, seed, rho, b) for seed in own.queries}
                _judge(out, (d, level, b), values, own)
                _judge_classes(out, dataset, (level, b), values, own, labels)
    return out


def _judge(out: Judged, place: tuple[int, int, int], values: dict[int, NDArray[np.float64]], own: Answers) -> None:
    groups = [own.groups[seed] for seed in values]
    for k, metric in enumerate(own.metrics):
        joint = covariance([matrix[:, :, k] for matrix in values.values()], groups)
        out.errors[metric][place] = np.sqrt(np.diagonal(joint))
        if metric == out.headline:
            out.joint[place] = joint


def _judge_classes(
    out: Judged,
    dataset: str,
    place: tuple[int, int],
    values: dict[int, NDArray[np.float64]],
    own: Answers,
    labels: dict[int, dict[str, str]],
) -> None:
    """Mean of the headline over the queries of each class, all seeds together."""
    headline = own.metrics.index(out.headline)
    for name, means in out.classes[dataset].items():
        rows = [
            matrix[[labels[seed].get(query) == name for query in own.queries[seed]], :, headline]
            for seed, matrix in values.items()
            if seed in labels
        ]
        asked = np.concatenate(rows) if rows else np.empty((0, 0))
        if len(asked):
            means[place] = asked.mean(axis=0)


def _query_labels(gallery: Gallery | None, dataset: str) -> dict[int, dict[str, str]]:
    """Class names of the queries of a dataset, by seed and id."""
    if gallery is None:
        return {}
    return {
        seed: {exhibit.window: exhibit.label for exhibit in exhibits if exhibit.query}
        for (name, seed), exhibits in gallery.exhibits.items()
        if name == dataset
    }


def _matrix(results: Results, own: Answers, seed: int, rho: int, budget: int) -> NDArray[np.float64]:
    """(Q, M, metrics) of one corpus under one label budget; NaN where a cell failed."""
    missing = np.full((len(own.queries[seed]), len(own.metrics)), np.nan)
    places = [(seed, rho, _budget_of(results, method, budget), method) for method in results.methods]
    return np.stack([own.values.get(place, missing) for place in places], axis=1)


def _budget_of(results: Results, method: str, budget: int) -> str:
    """The label budget that a method ran under where the page shows a budget: its only one where it has one."""
    own = results.budgets(method)
    return own[budget] if len(own) == len(results.labels) else own[0]
