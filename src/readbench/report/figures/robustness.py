"""Robustness: what pollution costs normal-residual variants, against the band of all other base retrievers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from readbench.plots import FAMILY_COLOURS, METHOD_COLOURS, REFERENCE_GREY, Line, lines
from readbench.report.figures.choice import bases, headline
from readbench.report.tables import Study, describe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIELD = ("distance", "symbolic", "embedder")
"""Families of the band: no floors and no shortcut probes, as in the paper."""


def robustness(study: Study) -> Figure | None:
    """The headline over the levels; None with one level, without normal residuals or a field beside them."""
    levels = study.results.levels
    field = [text for text in bases(study) if study.methods.family(text) in FIELD]
    residual = [f"{text}+nr" for text in study.methods.residuals]
    if len(levels) < 2 or not residual or len(field) < 2:
        return None
    values = np.array([[headline(study, text, rho) for rho in levels] for text in field])
    band = np.stack([values.min(axis=0), values.max(axis=0)])
    drawn = [Line(f"mean of {len(field)} without NR", values.mean(axis=0), REFERENCE_GREY, reference=True, band=band)]
    for text, colour in zip(residual, METHOD_COLOURS * len(residual), strict=False):
        scores = np.array([headline(study, text, rho) for rho in levels])
        drawn.append(Line(study.results.title(text), scores, colour))
    ticks = [f"{rho}%" for rho in levels]
    caption = f"Normal residuals under pollution, {describe(study.results)}"
    note = f"band: {', '.join(f for f in FAMILY_COLOURS if f in FIELD)} retrievers without NR, from lowest to highest"
    return lines(drawn, ticks, ("normal windows in the corpus", study.results.headline), caption, note)
