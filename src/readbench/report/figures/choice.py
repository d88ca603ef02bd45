"""Which methods a figure shows: the same choice everywhere."""

from __future__ import annotations

import numpy as np

from readbench.report.tables import Study
from readbench.report.tables.lines import best_composed

__all__ = ["bases", "best_composed", "complete", "headline", "shown"]


def complete(study: Study, text: str) -> bool:
    """Whether a method has a value in every cell."""
    return study.results.methods.index(text) in study.results.complete()


def bases(study: Study) -> list[str]:
    """Base retrievers that have every cell."""
    return [text for text in study.methods.bases if complete(study, text)]


def shown(study: Study) -> list[str]:
    """Base retrievers, their normal-residual variants, the best composed method and the supervised references."""
    residual = [f"{text}+nr" for text in study.methods.residuals]
    best = [text] if (text := best_composed(study)) else []
    return [*bases(study), *(t for t in (*residual, *best, *study.methods.references) if complete(study, t))]


def headline(study: Study, text: str, rho: int | None = None) -> float:
    """Mean of the headline over datasets and seeds at a level, the first by default; NaN where a cell is missing."""
    results = study.results
    if text not in results.methods:
        return float("nan")
    level = results.levels[0] if rho is None else rho
    return float(np.mean(results.at(results.headline, level)[:, :, results.methods.index(text)]))
