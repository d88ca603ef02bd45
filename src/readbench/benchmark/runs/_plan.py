"""Plans of runs (dataset x split seed x pollution level x label budget x method), their cells, jobs and shards."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from textwrap import shorten
from typing import TypeVar

from readbench.benchmark.protocol import Composition, SplitUnit, check_seeds
from readbench.benchmark.runs._budget import ALL, parse_budget
from readbench.engine.method import Method
from readbench.errors import ReadbenchError, UsageError

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
        copies: (dataset, seed, earlier seed) where both seeds hold out the same. Such a split is taken once: the later
            seed has no cells.
    """

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    seeds: tuple[int, ...] = DEFAULT_SEEDS
    levels: tuple[int, ...] = DEFAULT_LEVELS
    labels: tuple[str, ...] = EVERY_LABEL
    corpus_cap: int | None = 1000
    split_by: SplitUnit = "group"
    copies: tuple[tuple[str, int, int], ...] = ()

    def __repr__(self) -> str:
        parts = ("datasets", "seeds", "levels", "methods")
        sizes = " x ".join(f"{len(getattr(self, name))} {name}" for name in parts)
        names = shorten(", ".join(self.datasets), 150, placeholder=" ...")
        methods = shorten(", ".join(self.methods), 150, placeholder=" ...")
        return f"Plan({sizes}; {names}; {methods})"

    def __post_init__(self) -> None:
        for name in ("datasets", "methods", "seeds", "levels", "labels"):
            values = getattr(self, name)
            if not values:
                raise UsageError(f"The plan has no {name}: name at least one.")
            if len(set(values)) != len(values):
                raise UsageError(f"The plan names the same of its {name} twice: {', '.join(map(str, values))}.")
        if any(not 0 <= rho < 100 for rho in self.levels):
            raise UsageError(f"Pollution levels are percentages from 0 to 99. Got {', '.join(map(str, self.levels))}.")
        check_seeds(self.seeds)
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

    def seeds_of(self, dataset: str) -> tuple[int, ...]:
        """Split seeds of a dataset that differ."""
        copied = {seed for name, seed, _ in self.copies if name == dataset}
        return tuple(seed for seed in self.seeds if seed not in copied)

    def tasks(self) -> Iterator[tuple[str, int]]:
        """All datasets with their split seeds."""
        return ((dataset, seed) for dataset in self.datasets for seed in self.seeds_of(dataset))

    def jobs(self) -> Iterator[Job]:
        """All jobs; those of one task stand together."""
        for dataset, seed in self.tasks():
            for method in self.methods:
                yield Job(dataset, seed, self.levels, method, self.budgets[method])

    def cells(self) -> Iterator[Cell]:
        """All cells in plan order: the order of rows in every result file."""
        for dataset, seed in self.tasks():
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


Work = TypeVar("Work")


@dataclass(frozen=True)
class Shard:
    """Part `number` of `count`, counted from 1.

    A part is a stretch of jobs in plan order. Those of one task stand together there, so a part builds few datasets
    and finds the legs that its methods share in its own cache.

    >>> str(parse_shard("2/8"))
    '2/8'
    """

    number: int = 1
    count: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.count:
            raise UsageError(f"There is no part {self} of a run: parts are counted from 1/{max(1, self.count)} on.")

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def of(self, jobs: Sequence[Work]) -> Sequence[Work]:
        """The jobs of this part; all parts together are all jobs, none twice, and differ by one job at most."""
        return jobs[len(jobs) * (self.number - 1) // self.count : len(jobs) * self.number // self.count]


WHOLE = Shard()


def parse_shard(text: str) -> Shard:
    """Read `2/8`."""
    match = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    if not match:
        raise UsageError(f"A part of a run is written i/n, as in --shard 2/8. Got {text!r}.")
    return Shard(int(match[1]), int(match[2]))
