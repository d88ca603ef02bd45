"""Figures of a run, each drawn when the run holds what it shows."""

from readbench.report.figures.catalogue import FIGURES, Drawn, figures

__all__ = ["FIGURES", "Drawn", "figures"]
