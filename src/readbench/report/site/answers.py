"""What each method scored on each query, dataset by dataset, and how sure the means over them are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

Place = tuple[int, int, str, str]
"""Seed, pollution level, label budget and method of a cell."""


@dataclass(frozen=True, eq=False)
class Answers:
    """Per-query metrics of one dataset.

    Args:
        metrics: names.
        queries: seed -> ids.
        groups: seed -> split groups of the queries.
        values: cell -> (Q, metrics).
    """

    metrics: tuple[str, ...]
    queries: dict[int, list[str]]
    groups: dict[int, list[str]]
    values: dict[Place, NDArray[np.float64]]

    def metric(self, name: str, place: Place) -> NDArray[np.float64]:
        """(Q,) one metric of a cell."""
        values: NDArray[np.float64] = self.values[place][:, self.metrics.index(name)]
        return values


def read_answers(folder: Path, dataset: str) -> Answers:
    """Read one dataset from `per_query.parquet`: cell after cell, query after query, all metrics of each."""
    table = pq.read_table(folder / "per_query.parquet", filters=[("dataset", "=", dataset)])
    metrics = tuple(table["metric"].unique().to_pylist())
    answers = Answers(metrics, {}, {}, {})
    for place, cell in by_cell(table):
        answers.values[place] = cell["value"].to_numpy().reshape(-1, len(metrics))
        seed = place[0]
        if seed not in answers.queries:
            answers.queries[seed] = cell["query"].to_pylist()[:: len(metrics)]
            answers.groups[seed] = cell["group"].to_pylist()[:: len(metrics)]
    return answers


def by_cell(table: pa.Table) -> Iterator[tuple[Place, pa.Table]]:
    """The rows of each cell, which stand together in the tables of a run."""
    if not len(table):
        return
    table = table.unify_dictionaries()
    keys = ("seed", "rho", "labels", "method")
    changes = np.flatnonzero(np.any([np.diff(_codes(table[name])) != 0 for name in keys], axis=0)) + 1
    for start, stop in pairwise([0, *changes.tolist(), len(table)]):
        seed, rho, labels, method = (table[name][start].as_py() for name in keys)
        yield (seed, rho, labels, method), table.slice(start, stop - start)


def _codes(column: pa.ChunkedArray) -> NDArray[np.int32]:
    """A number for each distinct value."""
    values = column.combine_chunks()
    encoded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    return encoded.indices.to_numpy()


def covariance(values: list[NDArray[np.float64]], groups: list[list[str]]) -> NDArray[np.float64]:
    """(M, M) covariance of the methods' means when whole split groups are drawn anew.

    A mean is taken over the queries of each seed, then over the seeds. Windows of one group resemble each other, and
    one group may be asked under several seeds: it counts as one observation (Liang and Zeger, 1986). The variance of a
    difference of two means follows from it, so the page can compare any two methods on any choice of datasets.

    Args:
        values: one (Q, M) matrix a seed.
        groups: split groups of the queries of each seed.

    Returns:
        NaN where a method has no value, and everywhere where there is only one group.

    >>> covariance([np.array([[1.0], [1.0], [0.0], [0.0]])], [["a", "a", "b", "b"]])
    array([[0.25]])
    """
    names, codes = np.unique(np.concatenate([np.asarray(own) for own in groups]), return_inverse=True)
    if len(names) < 2:
        return np.full((values[0].shape[1],) * 2, np.nan)
    errors = np.concatenate([(own - own.mean(axis=0)) / (len(own) * len(values)) for own in values])
    sums = np.zeros((len(names), errors.shape[1]))
    np.add.at(sums, codes, errors)
    return sums.T @ sums * (len(names) / (len(names) - 1))
