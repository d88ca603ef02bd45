"""How many right labels are doubted, and how many wrong ones: `python -m research.label_doubts`.

Libraries of simulators are asked for their doubtful labels twice: with all labels right, and with a tenth of them
wrong, each replaced by another fault type at random.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from readbench.cases import Library
from research.odd_windows import METHOD, build_site, tell

SOURCES = ("sim_tanks(difficulty=0.5)", "sim_motor", "sim_service", "sim_can", "sim_ecg")
WRONG = 0.1


def mislabel(library: Library, share: float = WRONG, seed: int = 0) -> set[str]:
    """Give a share of the resolved cases another label; returns their names."""
    rng, cases = np.random.default_rng(seed), [case for case in library.cases() if case.label]
    kinds = sorted({case.label or "" for case in cases})
    chosen = rng.choice(len(cases), int(share * len(cases)), replace=False)
    for case in (cases[i] for i in chosen):
        library.label(case.id, str(rng.choice([kind for kind in kinds if kind != case.label])))
    return {cases[i].id for i in chosen}


def measure_doubts(source: str, folder: Path, cases: int, method: str) -> str:
    """One line on a library."""
    library = build_site(source, folder, cases).library
    right = library.doubtful(len(library), method)
    wrong = mislabel(library)
    doubted = {own.case.id for own in library.doubtful(len(library), method)}
    return (
        f"{source:26} {len(library)} cases: right labels doubted {len(right) / len(library):.3f};"
        f" with {len(wrong)} wrong, {len(doubted)} doubted, {len(doubted & wrong)} of them wrong"
    )


def main() -> None:
    """Print what is doubted in each library."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", default=METHOD, help="any method of the grammar")
    parser.add_argument("--datasets", default=",".join(SOURCES))
    parser.add_argument("--cases", type=int, default=300)
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        for source in given.datasets.split(","):
            tell(measure_doubts(source, Path(folder), given.cases, given.method))


if __name__ == "__main__":
    main()
