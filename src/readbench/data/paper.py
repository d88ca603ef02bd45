"""What the paper's composition table says, to compare with what is built."""

from __future__ import annotations

from dataclasses import dataclass


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


PAPER_COMPOSITION = {
    "ctsr": PaperComposition("1", "512", 94, (1000, 1111, 1250), 100, 10.6, 1.2),
    "damadics": PaperComposition("32", "256", 4, (1000, 1111, 1250), 18, 308.8, 83.9),
    "exathlon": PaperComposition("51", "256", 6, (1000, 1111, 1250), 100, 215.9, 13.2),
    "hai": PaperComposition("79", "256", 6, (305, 339, 381), 28, 60.8, 10.0),
    "mit_bih": PaperComposition("2", "256", 4, (1000, 1111, 1250), 100, 336.9, 10.7),
    "petrobras_3w": PaperComposition("2-7", "256", 9, (1000, 1111, 1250), 100, 146.8, 23.7),
    "rats40k": PaperComposition("1-9", "16-128", 20, (1000, 1111, 1250), 100, 151.2, 342.0),
    "rcaeval": PaperComposition("429", "256", 5, (700, 778, 875), 50, 140.0, 1.0),
    "road": PaperComposition("664", "256", 6, (71, 79, 89), 25, 22.4, 37.0),
    "telecomts": PaperComposition("18", "128", 11, (977, 1086, 1221), 100, 117.8, 5.3),
    "tennessee_eastman": PaperComposition("52", "256", 20, (1000, 1111, 1250), 100, 50.0, 1.0),
    "voraus": PaperComposition("130", "1024", 12, (528, 587, 660), 100, 68.9, 15.6),
}
