"""The form of the `datasets` library: Parquet files, and configurations in the card, named as MTEB's loader wants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from readbench.data.exported.relevance import relevant_pairs
from readbench.data.task import Task

QRELS = "qrels.parquet"


def corpus_file(level: int) -> str:
    """Name of the file with the items that come in at a level."""
    return f"corpus-{level:02d}.parquet"


def write_qrels(task: Task, folder: Path) -> None:
    """Judgments as a table: query-id, corpus-id, score."""
    queries, items = zip(*relevant_pairs(task), strict=True)
    scores = pa.array(np.ones(len(queries), np.int32))
    table = pa.table({"query-id": pa.array(queries), "corpus-id": pa.array(items), "score": scores})
    pyarrow.parquet.write_table(table, folder / QRELS)


def configurations(task: Task, lowest: NDArray[np.int32]) -> list[dict[str, Any]]:
    """For each level `rho-N-corpus`, `rho-N-queries` and `rho-N-qrels`, and the normals."""
    found = []
    for rho in sorted(task.levels):
        files = [corpus_file(int(level)) for level in np.unique(lowest) if level <= rho]
        found += [
            _configuration(f"rho-{rho}-corpus", "corpus", files),
            _configuration(f"rho-{rho}-queries", "queries", ["queries.parquet"]),
            _configuration(f"rho-{rho}-qrels", "test", [QRELS]),
        ]
    if len(task.normals):
        found.append(_configuration("normals", "normals", ["normals.parquet"]))
    return found


def _configuration(name: str, split: str, files: list[str]) -> dict[str, Any]:
    return {"config_name": name, "data_files": [{"split": split, "path": files}]}
