"""`readbench scale`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from readbench.cli.options import numbers, output
from readbench.cli.progress import ScaleProgress
from readbench.paths import cache_root
from readbench.report import show_table
from readbench.report.scale import measured_tables, two_stage_table, write_scale
from readbench.scale import Study, run_study
from readbench.scale.world import World
from readbench.spec import parse_dataset, split_specs

METHODS = ("dtw-i", "sbd-d", "sax-bm25", "sonde+nr")


def scale_command(
    sizes: Annotated[str, typer.Option(help="Windows of the corpora, separated by commas.")] = "10000,100000",
    methods: Annotated[
        list[str] | None, typer.Option(help="A method of one leg; repeatable.", show_default=",".join(METHODS))
    ] = None,
    source: Annotated[str, typer.Option(help="A simulated dataset.")] = "sim_tanks",
    queries: Annotated[int, typer.Option(min=1, help="Held-out faults that are searched for.")] = 100,
    two_stage: Annotated[
        str, typer.Option(help="Also measure this encoder as a shortlist, and as seeds, for DTW-I.", show_default=False)
    ] = "",
    jobs: Annotated[int, typer.Option(min=1, help="Processes that build the corpus, and that encode.")] = 1,
    out: Annotated[Path, typer.Option(help="Where to write; finished cells are kept there.")] = Path("runs/scale"),
) -> None:
    """Measure what methods find and cost as the corpus grows to a million windows and beyond.

    Each size and method runs in a process of its own: NDCG@10, time, memory, disk, and how fast they grow. The corpus
    is streamed to the cache once. What is finished is kept: the same command goes on after a kill.
    Example: `readbench scale --sizes 1000,10000 --methods dtw-i --methods sax-bm25`
    """
    named = tuple(split_specs(methods or METHODS))
    text = str(parse_dataset(source))
    study = Study(World(text, queries, cache_root()), numbers(sizes, "--sizes"), named, two_stage, jobs)
    console = Console(stderr=True)
    with ScaleProgress(console, total=study.windows) as progress:
        findings = run_study(study, out, progress)
    for table in measured_tables(findings.measured, text):
        show_table(table, output())
    if findings.two_stage:
        show_table(two_stage_table(findings.two_stage, text), output())
    files = write_scale(findings, text, out)
    console.print(f"wrote {', '.join(file.name for file in files)} into {out}", highlight=False)
    for failure in findings.failures:
        console.print(f"{failure.method} at {failure.size}: {failure.reason}", style="bold red", markup=False)
    if findings.failures:
        raise typer.Exit(1)
