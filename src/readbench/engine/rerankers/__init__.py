"""Rerankers reorder a pool of candidates; importing this package registers them."""

from readbench.engine.rerankers._active_learning import next_cases, select_most_informative, suspects
from readbench.engine.rerankers._classic import MajorityVote, PseudoRelevanceFeedback, Purity, QueryPurity
from readbench.engine.rerankers._gpc import GaussianProcess
from readbench.engine.rerankers._llm import LanguageModel
from readbench.engine.rerankers._opinion import FittedLabels, HeldOutValues, LabelModel, Opinion, sharpen
from readbench.engine.rerankers._ridge import Array, Ridge, RidgePool, case_weights, estimate_unseen_share, fit_ridge
from readbench.engine.rerankers._verdict import Verdict

__all__ = [
    "Array",
    "FittedLabels",
    "GaussianProcess",
    "HeldOutValues",
    "LabelModel",
    "LanguageModel",
    "MajorityVote",
    "Opinion",
    "PseudoRelevanceFeedback",
    "Purity",
    "QueryPurity",
    "Ridge",
    "RidgePool",
    "Verdict",
    "case_weights",
    "estimate_unseen_share",
    "fit_ridge",
    "next_cases",
    "select_most_informative",
    "sharpen",
    "suspects",
]
