"""How often normal windows are given a named fault, and faults called normal: `python -m research.normal_operation`."""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from readbench.cases import NORMAL_OPERATION, UNLIKE, Answer
from readbench.engine.windows import WindowSet
from research.odd_windows import METHOD, SOURCES, Site, build_site, tell

MOST_ASKED = 100
LIKELY = 0.5


def name_fault(answer: Answer) -> bool:
    """Whether an answer gives a named fault more than half."""
    named = (option for option in answer.faults if option.label not in (UNLIKE, NORMAL_OPERATION))
    return any(option.probability > LIKELY for option in named)


def call_normal(answer: Answer) -> bool:
    """Whether an answer gives normal operation more than half."""
    return any(option.probability > LIKELY for option in answer.faults if option.label == NORMAL_OPERATION)


def measure_normal(site: Site, method: str) -> str:
    """One line on a library."""

    def ask(windows: WindowSet) -> list[Answer]:
        step = max(1, len(windows) // MOST_ASKED)
        return site.library.search_many(windows[::step], method=method, k=1)

    normals, faults = ask(site.normals), ask(site.questions)
    words = [
        f"{len(answers)} {what}: a named fault {np.mean([name_fault(own) for own in answers]):.3f},"
        f" normal {np.mean([call_normal(own) for own in answers]):.3f}"
        for what, answers in (("normals", normals), ("faults", faults))
    ]
    return f"{site.name:26} {'; '.join(words)}"


def main() -> None:
    """Print shares of answers above one half, for each library."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", default=METHOD, help="any method of the grammar that ends with +verdict")
    parser.add_argument("--datasets", default=",".join(SOURCES))
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        for source in given.datasets.split(","):
            tell(measure_normal(build_site(source, Path(folder)), given.method))


if __name__ == "__main__":
    main()
