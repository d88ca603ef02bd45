"""Plan -> cells -> execute -> store; a run that was interrupted continues when started again."""

from readbench.experiment.budget import Budget, parse_budget, parse_budgets, with_noise
from readbench.experiment.plan import DEFAULT_LEVELS, DEFAULT_SEEDS, Cell, Plan
from readbench.experiment.runner import Listener, Summary, run
from readbench.experiment.store import RunStore
from readbench.experiment.suites import SUITES, Suite, suite

__all__ = [
    "DEFAULT_LEVELS",
    "DEFAULT_SEEDS",
    "SUITES",
    "Budget",
    "Cell",
    "Listener",
    "Plan",
    "RunStore",
    "Suite",
    "Summary",
    "parse_budget",
    "parse_budgets",
    "run",
    "suite",
    "with_noise",
]
