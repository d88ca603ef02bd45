"""Values of the paper's result tables, by label of the table, method, metric and pollution level.

They stand in `paper_values.csv` as printed. The paper's per-dataset tables are empty in the published text; its
composition table is `PAPER_COMPOSITION` of `readbench.benchmark.protocol`.

>>> published_values("tab:backbones", "charm+nr|dtw-i+gpc", "NDCG@10", 20)
0.619
"""

from __future__ import annotations

from readbench.benchmark.protocol import read_shipped_rows

CHANGE = "change"
"""Difference of two columns of the paper: 20 % minus 0 % pollution, or full minus capped corpus."""
FULL = "NDCG@10 on the full corpus"
SPREAD = "deviation of NDCG@10 over datasets"
RERANKERS = ("gpc", "majvote", "qpurity", "prf", "purity")
"""In the paper's order."""
DATASETS = 12
"""Number of datasets in the paper's means."""
Values = dict[tuple[str, str, int], float]
"""(canonical method, metric or constant above, level in percent) -> value."""


def published_values(table: str, method: str, metric: str, rho: int) -> float | None:
    """A value of the table with a label such as `tab:backbones`; None if the table lacks it."""
    return PAPER_TABLES[table].get((method, metric, rho))


def _read_tables() -> dict[str, Values]:
    tables: dict[str, Values] = {}
    for row in read_shipped_rows(__name__, "paper_values.csv"):
        key = row["method"], row["metric"], int(row["pollution"])
        tables.setdefault(row["table"], {})[key] = float(row["value"])
    return tables


PAPER_TABLES = _read_tables()
"""By their labels."""
