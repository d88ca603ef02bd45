"""Which item is relevant to which query: what metrics are computed from again, without the data.

The run folder keeps one small file a task, `tasks/DATASET/seed-S.parquet`: ids and labels of its queries and corpus.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from readbench.data import Task
from readbench.errors import RunError

QUERY = -1
"""Stands for the level of a query: it is in no corpus."""
COLUMNS = ("id", "label", "level")


@dataclass(frozen=True, eq=False)
class Qrels:
    """Ids and labels of one task.

    Args:
        fingerprint: of the task.
        queries: (Q,) ids.
        query_labels: (Q,) fault types.
        items: (N,) ids of the largest corpus, in its order.
        item_labels: (N,) fault types.
        item_levels: (N,) lowest pollution level in percent whose corpus holds the item.
    """

    fingerprint: str
    queries: NDArray[Any]
    query_labels: NDArray[np.int32]
    items: NDArray[Any]
    item_labels: NDArray[np.int32]
    item_levels: NDArray[np.int32]

    @classmethod
    def of(cls, task: Task, fingerprint: str) -> Qrels:
        """Those of a task."""
        levels = np.empty(len(task.corpus), np.int32)
        for rho in sorted(task.levels, reverse=True):
            levels[task.levels[rho]] = rho
        queries, corpus = task.queries, task.corpus
        return cls(fingerprint, queries.ids, queries.labels, corpus.ids, corpus.labels, levels)

    def at(self, rho: int) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Ids and labels of the corpus of one level."""
        here = self.item_levels <= rho
        return self.items[here], self.item_labels[here]

    def table(self) -> pa.Table:
        """Queries, then items; the fingerprint is in the metadata."""
        levels = np.full(len(self.queries), QUERY, np.int32)
        columns = [
            pa.array([*self.queries.tolist(), *self.items.tolist()], pa.string()),
            np.concatenate([self.query_labels, self.item_labels]).astype(np.int32),
            np.concatenate([levels, self.item_levels]),
        ]
        table = pa.table(dict(zip(COLUMNS, columns, strict=True)))
        return table.replace_schema_metadata({"readbench": json.dumps({"fingerprint": self.fingerprint})})

    @classmethod
    def from_table(cls, table: pa.Table) -> Qrels:
        """Inverse of `table`."""
        ids, labels, levels = (table[name].to_numpy() for name in COLUMNS)
        query = levels == QUERY
        fingerprint = json.loads(table.schema.metadata[b"readbench"])["fingerprint"]
        return cls(fingerprint, ids[query], labels[query], ids[~query], labels[~query], levels[~query])


def qrels_path(folder: Path, dataset: str, seed: int) -> Path:
    """Where the file of a task is in a run folder."""
    return folder / "tasks" / dataset / f"seed-{seed}.parquet"


def keep_qrels(folder: Path, dataset: str, task: Task, fingerprint: str) -> None:
    """Write the file of a task, whole or not at all, unless it is there."""
    path = qrels_path(folder, dataset, task.seed)
    if path.exists() and _fingerprint(path) == fingerprint:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    pq.write_table(Qrels.of(task, fingerprint).table(), partial, compression="zstd")
    partial.replace(path)


def read_qrels(folder: Path, dataset: str, seed: int) -> Qrels:
    """Read the file of a task from a run folder."""
    path = qrels_path(folder, dataset, seed)
    if not path.exists():
        raise RunError(
            f"{folder} does not hold the labels of {dataset} seed {seed} ({path.name} is missing). Run the same command"
            " again: finished cells are kept."
        )
    return Qrels.from_table(pq.read_table(path))


def _fingerprint(path: Path) -> str:
    return str(json.loads(pq.read_schema(path).metadata[b"readbench"])["fingerprint"])
