"""Full corpora: what each method costs, and finds, as the corpus grows to a million windows."""

from readbench.scale.cell import Cell, Measured
from readbench.scale.growth import exponent
from readbench.scale.study import Failure, Findings, Listener, Study, run_study
from readbench.scale.two_stage import SHORTLISTS, TwoStage

__all__ = [
    "SHORTLISTS",
    "Cell",
    "Failure",
    "Findings",
    "Listener",
    "Measured",
    "Study",
    "TwoStage",
    "exponent",
    "run_study",
]
