"""Tasks for others: corpus, queries and relevance judgments with a dataset card, in layouts that other loaders read.

`export_task` writes one task as a folder:

```
README.md              the dataset card; with form hf, one configuration per pollution level
task.json              facts, levels, origin and fingerprint, with which the task is imported again
corpus-00.parquet      corpus items by the lowest pollution level they belong to; levels are nested, so that the corpus
corpus-10.parquet      at 10 % is the first two files; columns as in `readbench.engine.window_tables`,
...                    with the context where windows bring any, and level, position, title and text
queries.parquet        the same columns without level and position
normals.parquet
qrels.parquet          query-id, corpus-id, score (form hf)
rho-00/corpus.jsonl    and queries.jsonl, qrels/test.tsv: the layout of BEIR, a folder per level (form beir)
```

Only faults are relevant, and all of them belong to every level, so that one set of judgments serves all.

Ids and groups of a source often name the fault. They go out as numbers (`number_names`): the seventh item of the corpus
is `item-00007`, so that whoever makes the same task again knows which window that is.

Form `hf` is that of the `datasets` library: Parquet files, and configurations in the card, named as MTEB's loader
wants. In form `beir` windows are text (`texts_of`), for loaders and models that read nothing else. The dataset card
(`card`) says what a stranger must know before using an exported task.
"""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from readbench.benchmark.exchange._explain import describe_context
from readbench.benchmark.protocol import TASK, Task, TaskFile, write_facts
from readbench.engine.preparation import resample
from readbench.engine.window_tables import write_windows
from readbench.engine.windows import WindowSet, strings
from readbench.errors import UsageError
from readbench.version import __version__

HUB_LICENCES = {
    "Apache-2.0": "apache-2.0",
    "CC-BY-NC-SA-4.0": "cc-by-nc-sa-4.0",
    "CC-BY-SA-4.0": "cc-by-sa-4.0",
    "CC-BY-4.0": "cc-by-4.0",
    "CC0-1.0": "cc0-1.0",
    "GPL-3.0": "gpl-3.0",
    "MIT": "mit",
    "ODC-By-1.0": "odc-by",
}
"""Names of licences on the Hugging Face Hub."""


def card(task: Task, configs: list[dict[str, Any]], made_from: str, *, private: bool) -> str:
    """Text of README.md: a YAML header, then prose."""
    info = task.info
    warning = "\n**Private copy.** It is not established that these data may be passed on.\n" if private else ""
    simulated = " All values are simulated." if info.simulated else ""
    facts = "\n".join(f"| {name} | {text} |" for name, text in _facts(task, made_from).items())
    levels = ",".join(map(str, sorted(task.levels)))
    return f"""---
{_front(task, configs)}
---

# {info.title}: a retrieval task of READ-Bench
{warning}
Given a new fault (a query), find windows with the same fault in a corpus of resolved ones, polluted with normal windows
to several degrees.

{info.description}{simulated}

| | |
|---|---|
{facts}

## Licence, attribution, citation

* Licence: {info.licence}.
* Please cite: {info.citation}.
* Original data: {info.url or "made by readbench"}.
* Changes: recordings were cleaned, cut into windows and divided as above; ids and groups are numbers, since those of
  the source may name the fault.
{_context_note(task)}
## Use

`readbench data import NAME FOLDER` makes it a dataset again. At `--rho {levels}` it has the fingerprint above, and
every method the same scores.
"""


def _context_note(task: Task) -> str:
    """Section on the columns of the context, if there is any."""
    if not any(describe_context(windows) for windows in (task.corpus, task.queries, task.normals)):
        return ""
    return """
## Context

Windows bring what an engineer has beside them: `before` (readings of the same asset in the time before, channel after
channel, `before_length` steps; null where there are none), `rate` (samples a second), `units` and `fact.NAME` (numbers
that are known beforehand). A method may use it for queries, too.
"""


def _facts(task: Task, made_from: str) -> dict[str, str]:
    info, protocol = task.info, task.info.protocol
    name, seed = task.origin or (info.name, task.seed)
    asked = sorted(set(task.queries.labels.tolist()))
    cut = f"{protocol.length or 'native length'}, stride {protocol.stride or protocol.length or 'none'}"
    return {
        "dataset, split seed": f"`{name}`, {seed}",
        "corpus": ", ".join(f"{len(items)} (ρ = {rho} %)" for rho, items in sorted(task.levels.items())),
        "queries": str(len(task.queries)),
        "normals outside the corpus": str(len(task.normals)),
        "classes of the queries": ", ".join(info.classes[label] for label in asked),
        "steps of a window": cut,
        "labelled by": protocol.label_rule,
        "split unit": info.split_unit,
        **{
            f"context of the {name}": text
            for name, windows in (("corpus", task.corpus), ("queries", task.queries), ("normals", task.normals))
            if (text := describe_context(windows))
        },
        "fingerprint": f"`{task.fingerprint()}`; of the task with the names of its source `{made_from}`",
        "made by": f"readbench {__version__}",
    }


def _front(task: Task, configs: list[dict[str, Any]]) -> str:
    """YAML; strings and lists are written as JSON, which YAML reads."""
    licence = next((hub for name, hub in HUB_LICENCES.items() if task.info.licence.startswith(name)), "other")
    lines = [f"license: {licence}"]
    if licence == "other":
        lines.append(f"license_name: {json.dumps(task.info.licence)}")
    lines += [
        f"pretty_name: {json.dumps(f'READ-Bench {task.info.title}', ensure_ascii=False)}",
        'tags: ["time-series", "retrieval", "fault-diagnosis"]',
    ]
    if configs:
        lines += ["configs:", *(f"- {json.dumps(config)}" for config in configs)]
    return "\n".join(lines)


def number_names(task: Task) -> Task:
    """The task with numbers for ids (by place) and groups (by first appearance)."""
    parts = {"item": task.corpus, "query": task.queries, "normal": task.normals}
    groups = dict.fromkeys(name for windows in parts.values() for name in windows.groups.tolist())
    number = {name: f"group-{place:05d}" for place, name in enumerate(groups, start=1)}
    corpus, queries, normals = (
        replace(
            windows,
            ids=strings([f"{kind}-{place:05d}" for place in range(1, len(windows) + 1)], len(windows)),
            groups=strings([number[name] for name in windows.groups.tolist()], len(windows)),
        )
        for kind, windows in parts.items()
    )
    return replace(task, corpus=corpus, queries=queries, normals=normals)


def relevant_pairs(task: Task) -> Iterator[tuple[str, str]]:
    """(query id, item id) of all relevant pairs, in order."""
    for label, query in zip(task.queries.labels, task.queries.ids.tolist(), strict=True):
        for item in task.corpus.ids[np.flatnonzero(task.corpus.labels == label)].tolist():
            yield query, item


def write(task: Task, folder: Path, corpus: list[str], queries: list[str]) -> None:
    """Write all levels; `corpus` and `queries` are the texts of the windows."""
    for rho, places in sorted(task.levels.items()):
        own = folder / f"rho-{rho:02d}"
        (own / "qrels").mkdir(parents=True)
        items = task.corpus.ids[places].tolist()
        _write_lines(own / "corpus.jsonl", zip(items, (corpus[i] for i in places), strict=True))
        _write_lines(own / "queries.jsonl", zip(task.queries.ids.tolist(), queries, strict=True))
        with (own / "qrels" / "test.tsv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter="\t", lineterminator="\n")
            writer.writerow(("query-id", "corpus-id", "score"))
            writer.writerows((query, item, 1) for query, item in relevant_pairs(task))


def _write_lines(path: Path, texts: Iterable[tuple[str, str]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(
            json.dumps({"_id": name, "title": "", "text": text}, ensure_ascii=False) + "\n" for name, text in texts
        )


QRELS = "qrels.parquet"


def corpus_file(level: int) -> str:
    """Name of the file with the items that a level adds."""
    return f"corpus-{level:02d}.parquet"


def write_qrels(task: Task, folder: Path) -> None:
    """Judgments as a table: query-id, corpus-id, score."""
    queries, items = zip(*relevant_pairs(task), strict=True)
    scores = pa.array(np.ones(len(queries), np.int32))
    table = pa.table({"query-id": pa.array(queries), "corpus-id": pa.array(items), "score": scores})
    pyarrow.parquet.write_table(table, folder / QRELS)


def configurations(task: Task, lowest: NDArray[np.int32]) -> list[dict[str, Any]]:
    """For each level `rho-N-corpus`, `rho-N-queries` and `rho-N-qrels`, and the normals."""
    found: list[tuple[str, str, list[str]]] = []
    for rho in sorted(task.levels):
        files = [corpus_file(int(level)) for level in np.unique(lowest) if level <= rho]
        found += [(f"rho-{rho}-corpus", "corpus", files), (f"rho-{rho}-queries", "queries", ["queries.parquet"])]
        found += [(f"rho-{rho}-qrels", "test", [QRELS])]
    found += [("normals", "normals", ["normals.parquet"])] * bool(len(task.normals))
    return [{"config_name": name, "data_files": [{"split": split, "path": paths}]} for name, split, paths in found]


MOST_POINTS = 64
"""Most points of a channel in a text; longer windows are interpolated. The Parquet files hold all values."""


def texts_of(windows: WindowSet) -> list[str]:
    """One text per window: a line per channel, its name and its readings to four digits.

    >>> texts_of(WindowSet.from_arrays([[[1.0, 2.5]]], channels=("flow",)))
    ['flow: 1 2.5']
    """
    return [_text(windows, i) for i in range(len(windows))]


def _text(windows: WindowSet, i: int) -> str:
    values = windows.values(i)
    points = resample(values, min(values.shape[1], MOST_POINTS)).tolist()
    lines = zip(windows.channels(i), points, strict=True)
    return "\n".join(f"{name}: {' '.join(f'{value:.4g}' for value in row)}" for name, row in lines)


Form = Literal["hf", "beir"]


def export_task(task: Task, folder: Path, form: Form, *, private: bool = False) -> None:
    """Write a task into a new or empty folder atomically.

    Args:
        task: the task.
        folder: target.
        form: `hf` (the datasets library, MTEB) or `beir` (JSON lines and TSV).
        private: True for a copy that is not redistributed; else a licence that allows it is required.
    """
    info = task.info
    if not info.redistributable and not private:
        raise UsageError(
            f"{info.name}: it is not established that its data may be passed on (licence: {info.licence}). "
            "For a copy that you keep to yourself, add --private."
        )
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is there and not empty. Name another folder.")
    if task.corpus.context is not None:  # what was lent is lent again
        task = replace(task, corpus=task.corpus.with_context(task.corpus.context.without_lent()))
    named, task = task, number_names(task)
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        _write(task, partial, form, named.fingerprint(), private=private)
        partial.replace(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def lowest_levels(task: Task) -> NDArray[np.int32]:
    """(N,) lowest pollution level of each item of the largest corpus."""
    lowest = np.zeros(len(task.corpus), np.int32)
    for rho in sorted(task.levels, reverse=True):
        lowest[task.levels[rho]] = rho
    return lowest


def _write(task: Task, folder: Path, form: Form, made_from: str, *, private: bool) -> None:
    lowest = lowest_levels(task)
    corpus = task.corpus.with_stats(None)
    texts = texts_of(corpus)
    for level in np.unique(lowest):
        places = np.flatnonzero(lowest == level)
        _write_windows(
            corpus[places],
            folder / corpus_file(int(level)),
            [texts[i] for i in places],
            level=pa.array(lowest[places], pa.int32()),
            position=pa.array(places, pa.int32()),
        )
    asked = texts_of(task.queries)
    _write_windows(task.queries, folder / "queries.parquet", asked)
    _write_windows(task.normals, folder / "normals.parquet", texts_of(task.normals))
    if form == "hf":
        write_qrels(task, folder)
    else:
        write(task, folder, texts, asked)
    configs = configurations(task, lowest) if form == "hf" else []
    (folder / "README.md").write_text(card(task, configs, made_from, private=private), encoding="utf-8")
    origin = task.origin or (task.info.name, task.seed)
    levels = tuple(sorted(task.levels))
    write_facts(folder / TASK, TaskFile(task.info, levels, origin, task.fingerprint(), made_from))


def _write_windows(windows: WindowSet, path: Path, texts: list[str], **columns: pa.Array) -> None:
    titles = pa.array([""] * len(windows), pa.string())
    write_windows(windows, path, **columns, title=titles, text=pa.array(texts, pa.string()))
