"""`python -m research.scale`: NDCG@10, time, memory and disk of methods on corpora of growing sizes.

Each size and method runs in a fresh process. The corpus is streamed to the cache once. What is finished is kept: the
same command goes on after a kill.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from readbench.benchmark.report import show_table
from readbench.cli.progress import resumable
from readbench.common.files import cache_root
from readbench.engine.spec import parse_dataset, split_specs
from research.scale.measuring import ScaleStudy, measure_scale
from research.scale.report import measured_tables, two_stage_table, write_scale
from research.scale.world import World

METHODS = ("dtw-i", "sbd-d", "sax-bm25", "sonde+nr")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables, and write them with the pictures."""
    parser = argparse.ArgumentParser(prog="python -m research.scale", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000], help="windows of the corpora")
    parser.add_argument("--methods", nargs="+", default=METHODS, help="methods of one leg")
    parser.add_argument("--datasets", default="sim_tanks", help="a simulated dataset")
    parser.add_argument("--queries", type=int, default=100, help="held-out faults that are searched for")
    parser.add_argument("--two-stage", default="", help="also measure this encoder as a shortlist, and as seeds")
    parser.add_argument("--jobs", type=int, default=1, help="processes that build the corpus, and that encode")
    parser.add_argument("--out", type=Path, default=Path("runs/scale"), help="finished cells are kept there")
    asked = parser.parse_args(arguments)
    text = str(parse_dataset(asked.datasets))
    world = World(text, asked.queries, cache_root())
    study = ScaleStudy(world, tuple(asked.sizes), tuple(split_specs(asked.methods)), asked.two_stage, asked.jobs)
    console, printed = Console(stderr=True), Console()
    with resumable(console, asked.out) as progress:
        findings = measure_scale(study, asked.out, progress)
    for table in measured_tables(findings.measured, text):
        show_table(table, printed)
    if findings.two_stage:
        show_table(two_stage_table(findings.two_stage, text), printed)
    files = write_scale(findings, text, asked.out)
    console.print(f"wrote {', '.join(file.name for file in files)} into {asked.out}", highlight=False)
    for failure in findings.failures:
        console.print(f"{failure.cell}: {failure.reason}", style="bold red", markup=False)
    return 1 if findings.failures else 0


if __name__ == "__main__":
    sys.exit(main())
