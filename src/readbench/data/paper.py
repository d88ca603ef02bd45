"""What the paper's composition table says (`paper.csv`), to compare with what is built."""

from __future__ import annotations

from dataclasses import dataclass

from readbench.data.shipped import read_shipped_rows


@dataclass(frozen=True)
class PaperComposition:
    """One row of the paper's Table "Per-dataset composition of READ-Bench" (label tab:corpus-sizes).

    Args:
        channels: channel count, or its range.
        length: window length, or its range.
        classes: number of fault types.
        corpus: corpus sizes at 0, 10 and 20 % pollution.
        queries: number of queries.
        relevant_per_query: mean number of same-class corpus items per query at 0 %.
        imbalance: most frequent over least frequent fault class at 0 %.
    """

    channels: str
    length: str
    classes: int
    corpus: tuple[int, int, int]
    queries: int
    relevant_per_query: float
    imbalance: float


def _composition(row: dict[str, str]) -> PaperComposition:
    return PaperComposition(
        channels=row["channels"],
        length=row["length"],
        classes=int(row["classes"]),
        corpus=(int(row["corpus_0"]), int(row["corpus_10"]), int(row["corpus_20"])),
        queries=int(row["queries"]),
        relevant_per_query=float(row["relevant_per_query"]),
        imbalance=float(row["imbalance"]),
    )


PAPER_COMPOSITION = {row["dataset"]: _composition(row) for row in read_shipped_rows(__name__, "paper.csv")}
"""By the name of the source."""
