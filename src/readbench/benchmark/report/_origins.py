"""Which data are real: the marks of datasets in every table, what they mean, and how many of each are in a mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from readbench.benchmark.protocol import DataOrigin, find_origin, tell_origin
from readbench.errors import UsageError

MARKS: dict[DataOrigin, str] = {"real": "", "simulated": "†", "simulated by us": "‡"}
"""Marks of datasets by where their values come from."""
PARTIAL = "§"
"""Marks datasets of which files are missing, or that differ from the paper's in size or classes."""
FEW_NORMALS = "¶"
"""Marks datasets whose corpora hold fewer normals than a level says."""
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
    """One sentence for each mark that occurs among these.

    >>> [note[:13] for note in explain_marks(["", "‡"])]
    ['‡ simulated b']
    """
    used = set("".join(marks))
    return [f"{mark} {note}" for mark, note in NOTES.items() if mark in used]


def count_origins(origins: Iterable[DataOrigin]) -> str:
    """How many datasets, and how many of them are of which origin.

    >>> count_origins(["real", "simulated", "real"]), count_origins(["real"])
    ('3 datasets (2 real, 1 simulated†)', '1 dataset (real)')
    """
    counted = Counter(origins)
    total = counted.total()
    kinds = [(counted[origin], f"{origin}{mark}") for origin, mark in MARKS.items() if counted[origin]]
    words = kinds[0][1] if len(kinds) == 1 else ", ".join(f"{count} {kind}" for count, kind in kinds)
    return f"{total} dataset{'' if total == 1 else 's'} ({words})"


def find_origins(datasets: Iterable[str]) -> dict[str, DataOrigin]:
    """Where the values of the datasets of a study come from; a run keeps its own. What is not installed counts as real.

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
    """The real ones of datasets that are of both kinds; none where all are real, or none is: no mean of their own."""
    real = tuple(dataset for dataset, origin in origins.items() if origin == "real")
    return real if len(real) < len(origins) else ()


def read_origin(manifest: Mapping[str, Any], dataset: str) -> DataOrigin:
    """Where the values of a dataset come from, by `run.json`; older ones have a list of what is simulated."""
    facts = manifest["datasets"][dataset]
    if "data_origin" in facts:
        origin: DataOrigin = facts["data_origin"]
        return origin
    return tell_origin(simulated=dataset in manifest.get("simulated", ()), ours=not facts.get("url"))
