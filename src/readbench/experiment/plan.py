"""What a run will do: dataset x split seed x pollution level x method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from readbench.data import Composition
from readbench.data.source import SplitUnit
from readbench.errors import UsageError

DEFAULT_LEVELS = (0, 10, 20)
DEFAULT_SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Cell:
    """One row of the result: a method on one corpus of one task."""

    dataset: str
    seed: int
    rho: int
    method: str


@dataclass(frozen=True)
class Job:
    """What one worker does at once: a method on all corpora of one task, so that scores are computed once."""

    dataset: str
    seed: int
    levels: tuple[int, ...]
    method: str

    def cells(self) -> list[Cell]:
        """Its cells, one per level."""
        return [Cell(self.dataset, self.seed, rho, self.method) for rho in self.levels]


@dataclass(frozen=True)
class Plan:
    """A whole run.

    Args:
        datasets: registered names.
        methods: canonical method texts.
        seeds: split seeds.
        levels: pollution levels in percent.
        corpus_cap: most anomalies in the corpus; None for all.
        split_by: hold out whole groups, or whole assets.
    """

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    seeds: tuple[int, ...] = DEFAULT_SEEDS
    levels: tuple[int, ...] = DEFAULT_LEVELS
    corpus_cap: int | None = 1000
    split_by: SplitUnit = "group"

    def __post_init__(self) -> None:
        for name in ("datasets", "methods", "seeds", "levels"):
            values = getattr(self, name)
            if not values:
                raise UsageError(f"The plan has no {name}: name at least one.")
            if len(set(values)) != len(values):
                raise UsageError(f"The plan names the same of its {name} twice: {', '.join(map(str, values))}.")
        if any(not 0 <= rho < 100 for rho in self.levels):
            raise UsageError(f"Pollution levels are percentages from 0 to 99. Got {', '.join(map(str, self.levels))}.")

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
                    yield Job(dataset, seed, self.levels, method)

    def cells(self) -> Iterator[Cell]:
        """All cells in plan order: the order of rows in every result file."""
        for dataset in self.datasets:
            for seed in self.seeds:
                for rho in self.levels:
                    for method in self.methods:
                        yield Cell(dataset, seed, rho, method)
