"""`export_task`: one task as a folder.

```
README.md              the dataset card; with form hf, one configuration per pollution level
task.json              facts, levels, origin and fingerprint, with which the task is imported again
corpus-00.parquet      corpus items by the lowest pollution level they belong to; levels are nested, so that the corpus
corpus-10.parquet      at 10 % is the first two files; columns as in readbench.tables.packed, and level, position,
...                    title and text
queries.parquet        the same columns without level and position
normals.parquet
qrels.parquet          query-id, corpus-id, score (form hf)
rho-00/corpus.jsonl    and queries.jsonl, qrels/test.tsv: the layout of BEIR, a folder per level (form beir)
```

Only faults are relevant, and all of them belong to every level, so that one set of judgments serves all.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from readbench.data.exported import beir, hf
from readbench.data.exported.card import card
from readbench.data.exported.texts import texts_of
from readbench.data.task import Task
from readbench.data.task_file import TASK, TaskFile
from readbench.data.typed_json import write_facts
from readbench.errors import UsageError
from readbench.tables import write_windows
from readbench.windows import WindowSet

Form = Literal["hf", "beir"]


def export_task(task: Task, folder: Path, form: Form, *, private: bool = False) -> None:
    """Write a task into a new folder; nothing is there until all is.

    Args:
        task: what to write.
        folder: where; must not be there, or be empty.
        form: `hf` (the datasets library, MTEB) or `beir` (JSON lines and TSV).
        private: the folder is not passed on; without it, data whose licence is not known to allow that are refused.
    """
    info = task.info
    if not info.redistributable and not private:
        raise UsageError(
            f"{info.name}: it is not established that its data may be passed on (licence: {info.licence}). "
            "For a copy that you keep to yourself, add --private."
        )
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is there and not empty. Name another folder.")
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        _write(task, partial, form, private=private)
        partial.replace(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def lowest_levels(task: Task) -> NDArray[np.int32]:
    """(N,) the lowest pollution level that each item of the largest corpus belongs to."""
    lowest = np.zeros(len(task.corpus), np.int32)
    for rho in sorted(task.levels, reverse=True):
        lowest[task.levels[rho]] = rho
    return lowest


def _write(task: Task, folder: Path, form: Form, *, private: bool) -> None:
    lowest = lowest_levels(task)
    corpus = task.corpus.with_stats(None)
    texts = texts_of(corpus)
    for level in np.unique(lowest):
        places = np.flatnonzero(lowest == level)
        _write_windows(
            corpus[places],
            folder / hf.corpus_file(int(level)),
            [texts[i] for i in places],
            level=pa.array(lowest[places], pa.int32()),
            position=pa.array(places, pa.int32()),
        )
    asked = texts_of(task.queries)
    _write_windows(task.queries, folder / "queries.parquet", asked)
    _write_windows(task.normals, folder / "normals.parquet", texts_of(task.normals))
    if form == "hf":
        hf.write_qrels(task, folder)
    else:
        beir.write(task, folder, texts, asked)
    configs = hf.configurations(task, lowest) if form == "hf" else []
    (folder / "README.md").write_text(card(task, configs, private=private), encoding="utf-8")
    origin = task.origin or (task.info.name, task.seed)
    write_facts(folder / TASK, TaskFile(task.info, tuple(sorted(task.levels)), origin, task.fingerprint()))


def _write_windows(windows: WindowSet, path: Path, texts: list[str], **columns: pa.Array) -> None:
    titles = pa.array([""] * len(windows), pa.string())
    write_windows(windows, path, **columns, title=titles, text=pa.array(texts, pa.string()))
