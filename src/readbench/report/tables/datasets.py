"""What the datasets of a run are made of, beside the paper's composition table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple

from readbench.data.paper import PAPER_COMPOSITION
from readbench.report.results import Results
from readbench.report.tables.coverage import coverage, marked
from readbench.report.tables.table import Table

FIELDS = ("channels", "length", "classes", "corpus", "queries", "relevant_per_query", "imbalance")
HEADER = ("Dataset", "", "C", "T", "Classes", "Corpus", "Queries", "rel/q", "Imbalance")


def composition_table(results: Results) -> Table:
    """Two rows a dataset: this run, a range where its splits differ, and the paper where it has the dataset."""
    rows: list[list[str]] = []
    rules = []
    for dataset in results.datasets:
        sizes = list(results.sizes(dataset).values())
        if not sizes:
            continue
        rules.append(len(rows))
        own = "this run, files partial" if results.files(dataset) == "partial" else "this run"
        rows.append([marked(results, dataset), own, *(_range([s[name] for s in sizes]) for name in FIELDS)])
        if paper := PAPER_COMPOSITION.get(dataset):
            rows.append(["", "paper", *map(_text, astuple(paper))])
    caption = (
        "Composition: channels C, steps T, fault types, corpus at each level, queries, relevant items a query and most"
        f" over least frequent fault type in the clean corpus. {coverage(results)}"
    )
    return Table("composition", caption, list(HEADER), rows, rules=tuple(rules[1:]))


def _range(values: Sequence[object]) -> str:
    """One text where all splits agree, else the first and the last of them in order."""
    if all(value == values[0] for value in values):
        return _text(values[0])
    return "–".join(map(_text, (min(values), max(values))))  # type: ignore[type-var]


def _text(value: object) -> str:
    return "/".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
