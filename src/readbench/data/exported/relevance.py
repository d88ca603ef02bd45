"""Which corpus items answer which query."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from readbench.data.task import Task


def relevant_pairs(task: Task) -> Iterator[tuple[str, str]]:
    """Ids of each query and of every corpus item with the same fault, in order."""
    for label, query in zip(task.queries.labels, task.queries.ids.tolist(), strict=True):
        for item in task.corpus.ids[np.flatnonzero(task.corpus.labels == label)].tolist():
            yield query, item
