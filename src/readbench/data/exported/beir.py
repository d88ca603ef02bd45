"""The form of BEIR: per level a folder with `corpus.jsonl`, `queries.jsonl` and `qrels/test.tsv`; windows as text."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path

from readbench.data.exported.relevance import relevant_pairs
from readbench.data.task import Task


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
