"""`readbench opinions`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from readbench.cli.options import Root, numbers, output
from readbench.cli.progress import RunProgress
from readbench.data import Task, load_task
from readbench.experiment import DEFAULT_SEEDS, Cell, Plan
from readbench.experiment.execute import CellReport
from readbench.experiment.opinions import answered, novel_faults, opining, quality
from readbench.paths import cache_root, data_root
from readbench.plots import save
from readbench.report import show_table
from readbench.report.opinions import Measured, draw_reliability, opinion_table
from readbench.spec import build_source, parse_dataset, split_specs


def opinions_command(
    datasets: Annotated[str, typer.Option(help="Names separated by commas.")],
    method: Annotated[str, typer.Option(help="A method that ends with +verdict.")] = "flagship",
    rho: Annotated[str, typer.Option(help="Pollution levels in percent.")] = "0",
    seeds: Annotated[str, typer.Option(help="Split seeds.")] = ",".join(map(str, DEFAULT_SEEDS)),
    out: Annotated[Path, typer.Option(help="Where to write.")] = Path("runs/opinions"),
    root: Root = None,
) -> None:
    """Measure opinions on the fault type: calibration, prediction sets, and whether new faults are noticed.

    Each fault type is held out of the corpus in turn to measure the last.
    Example: `readbench opinions --datasets sim_ecg --seeds 0 --method "rocket+verdict" --out runs/opinions`
    """
    plan = Plan(
        datasets=tuple(str(parse_dataset(text)) for text in split_specs([datasets])),
        methods=(str(opining(method)),),
        seeds=numbers(seeds, "--seeds"),
        levels=numbers(rho, "--rho"),
    )
    console = Console(stderr=True)
    measured = _measure(plan, root, console)
    table, figure = opinion_table(measured), draw_reliability(measured)
    show_table(table, output())
    out.mkdir(parents=True, exist_ok=True)
    (out / "opinions.csv").write_text(table.csv())
    for suffix in ("svg", "png"):
        save(figure, out / f"reliability.{suffix}")
    console.print(f"wrote opinions.csv, reliability.svg and reliability.png into {out}", highlight=False)


def _measure(plan: Plan, root: Path | None, console: Console) -> list[Measured]:
    """All cells of the plan, one after the other; one linear-algebra thread, as in a run."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - slow to import

    cells = list(plan.cells())
    measured = []
    with threadpool_limits(1), RunProgress(console, total=len(cells)) as progress:
        for cell in cells:
            measured.append(_measured(cell, _task(cell, plan, root, progress), progress))
            progress.cell(CellReport(cell))
    return measured


def _task(cell: Cell, plan: Plan, root: Path | None, progress: RunProgress) -> Task:
    return load_task(
        build_source(cell.dataset),
        seed=cell.seed,
        root=data_root(root),
        cache=cache_root(),
        settings=plan.composition,
        progress=lambda recordings, windows: progress.building(cell.dataset, recordings, windows),
    )


def _measured(cell: Cell, task: Task, progress: RunProgress) -> Measured:
    spec, cache = opining(cell.method), cache_root()
    answers = answered(task, cell.rho, spec, cache, progress.encoding)
    held_out = novel_faults(task, cell.rho, spec, cache, progress.encoding)
    return Measured(cell, answers, quality(answers, held_out))
