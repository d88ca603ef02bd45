"""Marks of datasets in tables by origin (real or simulated), and their explanations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from readbench.benchmark.protocol import DataOrigin, find_origin, tell_origin
from readbench.errors import UsageError

MARKS: dict[DataOrigin, str] = {"real": "", "simulated": "†", "simulated by us": "‡"}
"""Marks of datasets by origin."""
PARTIAL, FEW_NORMALS = "§", "¶"
"""Marks of datasets with missing files or other sizes than the paper's, and with fewer normals than a level says."""
NOTES = {
    MARKS["simulated"]: "simulated by others: real plants, machines and hearts may differ.",
    MARKS["simulated by us"]: "simulated by this project, as an embedded simulator or in place of official files: these"
    " numbers say nothing about real plants.",
    PARTIAL: "partial data: official files are missing, or sizes or classes are not those of the paper; see the table"
    " `composition`.",
    FEW_NORMALS: "too few normals for the highest level: the corpus there holds less than the heading says, and the"
    " normals that methods know are those of the corpus; the run's notes say how many.",
}
"""What each mark means."""


def explain_marks(marks: Iterable[str]) -> list[str]:
    """Sentences that explain the marks that occur.

    >>> [note[:13] for note in explain_marks(["", "‡"])]
    ['‡ simulated b']
    """
    used = set("".join(marks))
    return [f"{mark} {note}" for mark, note in NOTES.items() if mark in used]


def count_origins(origins: Iterable[DataOrigin]) -> str:
    """Number of datasets and of each origin, in words.

    >>> count_origins(["real", "simulated", "real"]), count_origins(["real"])
    ('3 datasets (2 real, 1 simulated†)', '1 dataset (real)')
    """
    counted = Counter(origins)
    total = counted.total()
    kinds = [(counted[origin], f"{origin}{mark}") for origin, mark in MARKS.items() if counted[origin]]
    words = kinds[0][1] if len(kinds) == 1 else ", ".join(f"{count} {kind}" for count, kind in kinds)
    return f"{total} dataset{'' if total == 1 else 's'} ({words})"


def find_origins(datasets: Iterable[str]) -> dict[str, DataOrigin]:
    """Origins of datasets by name; a dataset that is not installed counts as real.

    >>> find_origins(["sim_tanks", "skab"])
    {'sim_tanks': 'simulated by us', 'skab': 'real'}
    """
    found: dict[str, DataOrigin] = {}
    for dataset in datasets:
        try:
            found[dataset] = find_origin(dataset)
        except UsageError:
            found[dataset] = "real"
    return found


def find_real(origins: Mapping[str, DataOrigin]) -> tuple[str, ...]:
    """The real datasets if there are both kinds, else none."""
    real = tuple(dataset for dataset, origin in origins.items() if origin == "real")
    return real if len(real) < len(origins) else ()


def read_origin(manifest: Mapping[str, Any], dataset: str) -> DataOrigin:
    """Origin of a dataset by `run.json`, or by the list of simulated datasets in older ones."""
    facts = manifest["datasets"][dataset]
    if "data_origin" in facts:
        origin: DataOrigin = facts["data_origin"]
        return origin
    return tell_origin(simulated=dataset in manifest.get("simulated", ()), ours=not facts.get("url"))
