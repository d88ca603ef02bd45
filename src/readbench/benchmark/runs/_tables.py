"""Tables of a run: cells, long rows, means and relevance judgements."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from readbench.benchmark.protocol import Task, find_same_corpora
from readbench.benchmark.runs._cells import Outcome
from readbench.benchmark.runs._opinions import OPINION
from readbench.benchmark.runs._plan import Cell, Plan
from readbench.engine.legs import STAGES
from readbench.engine.windows import NORMAL

KEY = ("dataset", "seed", "rho", "labels", "method")
TIMES = tuple(f"{stage}_s" for stage in STAGES)
BEFORE, AFTER = (*KEY, "queries"), (*TIMES, "status")
"""Columns of `scores.csv` before and after those of the metrics."""
UNANSWERED = "unanswered"
"""Column with the share of unanswered questions to language models; only in runs that ask some."""
DONE = "ok"
LISTS = ("items", "scores")
BESIDE = ("query", "group", "predicted", *LISTS, *OPINION)
"""Columns of a cell's file that are not metrics."""


def cell_of(row: Mapping[str, Any]) -> Cell:
    """The cell that a row of any table with the columns of `KEY` belongs to."""
    return Cell(row["dataset"], int(row["seed"]), int(row["rho"]), row["method"], row["labels"])


def score_columns(metrics: Iterable[str], *, asked: bool = False) -> tuple[str, ...]:
    """Header of `scores.csv`; with `asked` for runs that ask language models."""
    return (*BEFORE, *metrics, *([UNANSWERED] if asked else []), *AFTER)


def metric_columns(header: Iterable[str]) -> tuple[str, ...]:
    """The metrics among the columns of `scores.csv`."""
    return tuple(name for name in header if name not in {*BEFORE, UNANSWERED, *AFTER})


def per_query_rows(cell: Cell, table: pa.Table, metrics: Sequence[str]) -> pa.Table:
    """One row per query and metric; NaN for metrics that the cell lacks."""
    n, missing = len(table), np.full(len(table), np.nan)
    held = set(table.column_names)
    values = np.column_stack([table[name].to_numpy() if name in held else missing for name in metrics])
    return pa.table(
        {
            **_key_columns(cell, n * len(metrics)),
            "query": _repeat(table["query"], len(metrics)),
            "group": _repeat(table["group"], len(metrics)),
            "metric": pa.array(list(metrics) * n).dictionary_encode(),
            "value": values.ravel(),
        }
    )


def opinion_rows(cell: Cell, table: pa.Table) -> pa.Table:
    """One row a query."""
    own = {name: table[name] for name in OPINION}
    return pa.table({**_key_columns(cell, len(table)), "query": table["query"], "group": table["group"], **own})


def ranking_rows(cell: Cell, table: pa.Table) -> pa.Table:
    """One row a place of each list."""
    depth = len(table["items"][0])
    return pa.table(
        {
            **_key_columns(cell, len(table) * depth),
            "query": _repeat(table["query"], depth),
            "place": pa.array(np.tile(np.arange(1, depth + 1, dtype=np.int32), len(table))),
            "item": table["items"].combine_chunks().flatten().dictionary_encode(),
            "score": table["scores"].combine_chunks().flatten(),
        }
    )


def cell_table(outcome: Outcome) -> pa.Table:
    """One row per query, with means and other facts of the cell as metadata."""
    columns: dict[str, Any] = {
        "query": pa.array(outcome.queries, pa.string()),
        "group": pa.array(outcome.groups, pa.string()),
    }
    means: dict[str, float] = {}
    if outcome.per_query is not None and outcome.ranking is not None and outcome.scores is not None:
        columns |= outcome.per_query.values
        columns["predicted"] = outcome.per_query.predicted
        columns["items"] = pa.array(outcome.ranking.tolist(), pa.list_(pa.string()))
        columns["scores"] = pa.array(list(outcome.scores), pa.list_(pa.float32()))
        means = outcome.per_query.means()
    if outcome.opinions is not None:
        stated = outcome.opinions.stated
        columns |= {name: getattr(stated, name) for name in OPINION}
    summary = {
        "fingerprint": outcome.fingerprint,
        "queries": len(outcome.queries),
        "means": means,
        "seconds": outcome.seconds,
        "usage": outcome.usage,
        "opinions": outcome.opinions is not None,
        "status": f"failed: {outcome.failure}" if outcome.failure else DONE,
    }
    return pa.table(columns).replace_schema_metadata({"readbench": json.dumps(summary)})


def mean_rows(rows: list[dict[str, str]], metrics: Sequence[str]) -> tuple[tuple[str, ...], list[dict[str, str]]]:
    """Header and rows of `scores_mean.csv`: means over the seeds with the metric."""
    names = tuple(name for name in KEY if name != "seed")
    header = (*names, "seeds", *(f"{c}{suffix}" for c in metrics for suffix in ("", "_sd")))
    groups: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows:
        if row["status"] == DONE:
            groups.setdefault(tuple(row[name] for name in names), []).append(row)
    means = []
    for key, members in groups.items():
        mean = dict(zip(names, key, strict=True)) | {"seeds": str(len(members))}
        for column in metrics:
            values = np.array([float(member[column]) for member in members if column in member])
            if not len(values):
                continue
            mean[column] = f"{values.mean():.6f}"
            mean[f"{column}_sd"] = f"{values.std(ddof=1) if len(values) > 1 else 0.0:.6f}"
        means.append(mean)
    return header, means


def _key_columns(cell: Cell, n: int) -> dict[str, Any]:
    return {
        "dataset": pa.array([cell.dataset] * n).dictionary_encode(),
        "seed": np.full(n, cell.seed, np.int32),
        "rho": np.full(n, cell.rho, np.int32),
        "labels": pa.array([cell.labels] * n).dictionary_encode(),
        "method": pa.array([cell.method] * n).dictionary_encode(),
    }


def _repeat(column: pa.ChunkedArray, times: int) -> pa.DictionaryArray:
    values = column.combine_chunks().dictionary_encode()
    return values.take(pa.array(np.repeat(np.arange(len(values)), times)))


QUERY = -1
"""Level of queries, which are in no corpus."""
QRELS_COLUMNS = ("id", "label", "level")


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

    @property
    def cases(self) -> list[str]:
        """Ids of the faults in the corpus."""
        lowest = self.item_levels == self.item_levels.min(initial=QUERY + 1)
        return [str(name) for name in self.items[lowest & (self.item_labels > NORMAL)]]

    def table(self) -> pa.Table:
        """Queries, then items; the fingerprint is in the metadata."""
        levels = np.full(len(self.queries), QUERY, np.int32)
        columns = [
            pa.array([*self.queries.tolist(), *self.items.tolist()], pa.string()),
            np.concatenate([self.query_labels, self.item_labels]).astype(np.int32),
            np.concatenate([levels, self.item_levels]),
        ]
        table = pa.table(dict(zip(QRELS_COLUMNS, columns, strict=True)))
        return table.replace_schema_metadata({"readbench": json.dumps({"fingerprint": self.fingerprint})})

    @classmethod
    def from_table(cls, table: pa.Table) -> Qrels:
        """Inverse of `table`."""
        ids, labels, levels = (table[name].to_numpy() for name in QRELS_COLUMNS)
        query = levels == QUERY
        fingerprint = json.loads(table.schema.metadata[b"readbench"])["fingerprint"]
        return cls(fingerprint, ids[query], labels[query], ids[~query], labels[~query], levels[~query])


def take_tasks_once(plan: Plan, tasks: Mapping[tuple[str, int], Qrels]) -> Plan:
    """The plan without split seeds whose corpora have the cases of an earlier one, where labels are known."""
    found = {(dataset, seed): earlier for dataset, seed, earlier in plan.copies}
    for dataset in plan.datasets:
        corpora = {seed: tasks[dataset, seed].cases for seed in plan.seeds if (dataset, seed) in tasks}
        found |= {(dataset, seed): earlier for seed, earlier in find_same_corpora(corpora).items()}
    return replace(plan, copies=tuple((dataset, seed, earlier) for (dataset, seed), earlier in found.items()))
