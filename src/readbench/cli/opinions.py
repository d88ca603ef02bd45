"""`readbench opinions`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from readbench.cli.options import Root, numbers, output
from readbench.cli.progress import RunProgress
from readbench.data import Task, load_task
from readbench.errors import UsageError
from readbench.experiment import DEFAULT_SEEDS, Cell, Plan
from readbench.experiment.execute import CellReport
from readbench.experiment.opinions import answered, novel_faults, opinionated, quality
from readbench.experiment.plan import EVERY_LABEL
from readbench.paths import cache_root, data_root
from readbench.plots import save
from readbench.report import show_table
from readbench.report.novelty import draw_novelty, novelty_table
from readbench.report.opinions import Measured, draw_reliability, opinion_table
from readbench.spec import build_source, parse_dataset, split_specs

QUERIES = 1000
"""Most queries of a task: with the hundred of a run, chance alone makes a large calibration error."""


def opinions_command(
    datasets: Annotated[str, typer.Option(help="Names separated by commas.")],
    method: Annotated[str, typer.Option(help="A method that ends with +verdict.")] = "flagship",
    rho: Annotated[str, typer.Option(help="Pollution levels in percent.")] = "0",
    seeds: Annotated[str, typer.Option(help="Split seeds.")] = ",".join(map(str, DEFAULT_SEEDS)),
    novelty: Annotated[
        bool, typer.Option("--novelty/--no-novelty", help="Hold out fault types too, with a fit for each of them.")
    ] = True,
    out: Annotated[Path, typer.Option(help="Where to write.")] = Path("runs/opinions"),
    root: Root = None,
) -> None:
    """Measure opinions on the fault type: calibration, prediction sets, and whether new faults are noticed.

    Each fault type is held out of the corpus in turn to measure the last. `readbench run --suite novel` does the same
    on all data at hand.
    Example: `readbench opinions --datasets sim_ecg --seeds 0 --method "rocket+verdict" --out runs/opinions`
    """
    plan = Plan(
        datasets=tuple(str(parse_dataset(text)) for text in split_specs([datasets])),
        methods=(str(opinionated(method)),),
        seeds=numbers(seeds, "--seeds"),
        levels=numbers(rho, "--rho"),
    )
    measure_opinions(plan, out, root, novelty=novelty)


def measure_opinions(plan: Plan, out: Path, root: Path | None, *, novelty: bool = True) -> None:
    """Measure the opinions of the one method of a plan; print the tables, write them and the figures into a folder."""
    if len(plan.methods) != 1 or plan.labels != EVERY_LABEL:
        raise UsageError("Opinions are measured for one method with all labels: give one --methods, no label budget.")
    opinionated(plan.methods[0])
    console = Console(stderr=True)
    measured = _measure(plan, root, console, novelty=novelty)
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for table in (opinion_table(measured), *([novelty_table(measured)] if novelty else [])):
        show_table(table, output())
        written.append(f"{table.name}.csv")
        (out / written[-1]).write_text(table.csv())
    for name, figure in (("reliability", draw_reliability(measured)), ("novelty", draw_novelty(measured))):
        for suffix in ("svg", "png") if figure else ():
            written.append(f"{name}.{suffix}")
            save(figure, out / written[-1])
    console.print(f"wrote {', '.join(written)} into {out}", highlight=False)


def _measure(plan: Plan, root: Path | None, console: Console, *, novelty: bool) -> list[Measured]:
    """All cells of the plan, one after the other; one linear-algebra thread, as in a run."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - slow to import

    cells = list(plan.cells())
    measured = []
    with threadpool_limits(1), RunProgress(console, total=len(cells)) as progress:
        for cell in cells:
            measured.append(_measured(cell, _task(cell, plan, root, progress), progress, novelty=novelty))
            progress.cell(CellReport(cell))
    return measured


def _task(cell: Cell, plan: Plan, root: Path | None, progress: RunProgress) -> Task:
    return load_task(
        build_source(cell.dataset),
        seed=cell.seed,
        root=data_root(root),
        cache=cache_root(),
        settings=replace(plan.composition, query_cap=QUERIES),
        progress=lambda recordings, windows: progress.building(cell.dataset, recordings, windows),
    )


def _measured(cell: Cell, task: Task, progress: RunProgress, *, novelty: bool) -> Measured:
    spec, cache = opinionated(cell.method).spec, cache_root()
    answers = answered(task, cell.rho, spec, cache, progress.encoding)
    held_out = novel_faults(task, cell.rho, spec, cache, progress.encoding) if novelty else []
    return Measured(cell, answers, quality(answers, held_out), tuple(held_out))
