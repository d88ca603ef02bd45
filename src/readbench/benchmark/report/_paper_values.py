"""Every value of the paper's result tables, to stand beside ours.

They stand in `paper_values.csv` as printed, their tables in `paper_tables.csv`. A value is found by the label of its
table and what it is of: a method in our grammar, a metric and a pollution level. The paper's per-dataset tables are
empty in the published text; its composition table is `PAPER_COMPOSITION` of `readbench.benchmark.protocol`.

>>> published_values("tab:backbones", "charm+nr|dtw-i+gpc", "NDCG@10", 20)
0.619
"""

from __future__ import annotations

from dataclasses import dataclass, field

from readbench.benchmark.protocol import read_shipped_rows

CHANGE = "change"
"""A difference of two of the paper's columns: 20 % minus 0 % pollution, or full minus capped corpus."""
FULL = "NDCG@10 on the full corpus"
SPREAD = "deviation of NDCG@10 over datasets"
RERANKERS = ("gpc", "majvote", "qpurity", "prf", "purity")
"""In the paper's order."""
DATASETS = 12
"""Datasets that its means are over."""


@dataclass(frozen=True)
class PaperTable:
    """One table of the paper.

    Args:
        label: its label in the source of the paper.
        title: what it shows.
        values: (method, metric, level) -> value.
    """

    label: str
    title: str
    values: dict[tuple[str, str, int], float] = field(default_factory=dict)


def published_values(table: str, method: str, metric: str, rho: int) -> float | None:
    """A value of the paper; None where the table has none.

    Args:
        table: label, such as `tab:backbones`.
        method: canonical text.
        metric: name of a metric, or one of the constants above.
        rho: pollution level in percent.
    """
    return PAPER_TABLES[table].values.get((method, metric, rho))


def _read_tables() -> dict[str, PaperTable]:
    rows = read_shipped_rows(__name__, "paper_tables.csv")
    tables = {row["table"]: PaperTable(row["table"], row["title"]) for row in rows}
    for row in read_shipped_rows(__name__, "paper_values.csv"):
        tables[row["table"]].values[row["method"], row["metric"], int(row["pollution"])] = float(row["value"])
    return tables


PAPER_TABLES = _read_tables()
"""By their labels."""
