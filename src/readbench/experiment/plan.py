"""What a run will do: dataset x split seed x pollution level x label budget x method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from readbench.data import Composition
from readbench.data.source import SplitUnit
from readbench.errors import ReadbenchError, UsageError
from readbench.experiment.budget import ALL, parse_budget
from readbench.pipeline import Method

DEFAULT_LEVELS = (0, 10, 20)
DEFAULT_SEEDS = (0, 1, 2)
EVERY_LABEL = (str(ALL),)
"""The budgets of a run that hides no label."""


@dataclass(frozen=True)
class Cell:
    """One row of the result: a method on one corpus of one task, under one label budget."""

    dataset: str
    seed: int
    rho: int
    method: str
    labels: str = str(ALL)

    def __str__(self) -> str:
        budget = "" if self.labels == str(ALL) else f" labels {self.labels}"
        return f"{self.dataset} seed {self.seed} rho {self.rho}{budget} {self.method}"


@dataclass(frozen=True)
class Job:
    """What one worker does at once: a method on all corpora of one task, so that scores are computed once."""

    dataset: str
    seed: int
    levels: tuple[int, ...]
    method: str
    labels: tuple[str, ...] = EVERY_LABEL

    def cells(self) -> list[Cell]:
        """Its cells, one per level and label budget."""
        return [Cell(self.dataset, self.seed, rho, self.method, own) for rho in self.levels for own in self.labels]


@dataclass(frozen=True)
class Plan:
    """A whole run.

    Args:
        datasets: registered names.
        methods: canonical method texts.
        seeds: split seeds.
        levels: pollution levels in percent.
        labels: canonical texts of label budgets, either per query or shares of the corpus.
        corpus_cap: most anomalies in the corpus; None for all.
        split_by: hold out whole groups, or whole assets.
    """

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    seeds: tuple[int, ...] = DEFAULT_SEEDS
    levels: tuple[int, ...] = DEFAULT_LEVELS
    labels: tuple[str, ...] = EVERY_LABEL
    corpus_cap: int | None = 1000
    split_by: SplitUnit = "group"

    def __post_init__(self) -> None:
        for name in ("datasets", "methods", "seeds", "levels", "labels"):
            values = getattr(self, name)
            if not values:
                raise UsageError(f"The plan has no {name}: name at least one.")
            if len(set(values)) != len(values):
                raise UsageError(f"The plan names the same of its {name} twice: {', '.join(map(str, values))}.")
        if any(not 0 <= rho < 100 for rho in self.levels):
            raise UsageError(f"Pollution levels are percentages from 0 to 99. Got {', '.join(map(str, self.levels))}.")
        budgets = [parse_budget(text) for text in self.labels]
        if any(b.percent is not None for b in budgets) and any(b.per_query is not None for b in budgets):
            raise UsageError(
                f"Label budgets of one run are numbers of labels a query, or shares of the corpus, not both."
                f" Got {', '.join(self.labels)}."
            )

    @property
    def composition(self) -> Composition:
        """Sizes of the tasks. The paper's levels are always composed, so a corpus never depends on what else runs."""
        levels = tuple(sorted({*DEFAULT_LEVELS, *self.levels}))
        return Composition(corpus_cap=self.corpus_cap, rho=levels, split_by=self.split_by)

    def jobs(self) -> Iterator[Job]:
        """All jobs; those of one task stand together."""
        for dataset in self.datasets:
            for seed in self.seeds:
                for method in self.methods:
                    yield Job(dataset, seed, self.levels, method, self.budgets[method])

    def cells(self) -> Iterator[Cell]:
        """All cells in plan order: the order of rows in every result file."""
        for dataset in self.datasets:
            for seed in self.seeds:
                for rho in self.levels:
                    for method in self.methods:
                        for labels in self.budgets[method]:
                            yield Cell(dataset, seed, rho, method, labels)

    @cached_property
    def budgets(self) -> dict[str, tuple[str, ...]]:
        """Label budgets that each method runs under: one that reads no label runs once, as does one that cannot run."""
        return {method: self.labels if _reads_labels(method) else EVERY_LABEL for method in self.methods}


def _reads_labels(method: str) -> bool:
    try:
        return Method(method).uses_labels
    except ReadbenchError:  # its cells say so
        return False
