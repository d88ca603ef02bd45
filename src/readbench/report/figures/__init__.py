"""Figures of a run, each drawn when the run holds what it shows."""

from readbench.report.figures.catalogue import FIGURES, SHOWS, Drawn, absent_figures, all_curves, figures

__all__ = ["FIGURES", "SHOWS", "Drawn", "absent_figures", "all_curves", "figures"]
