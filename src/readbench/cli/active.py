"""`readbench active`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from readbench.cli.options import Root, numbers, output
from readbench.cli.progress import RunProgress
from readbench.data import load_task
from readbench.experiment import DEFAULT_SEEDS, Cell, Plan
from readbench.experiment.active import learned
from readbench.experiment.execute import CellReport
from readbench.experiment.opinions import opinionated
from readbench.paths import cache_root, data_root
from readbench.plots import save
from readbench.report import show_table
from readbench.report.active import Lesson, active_table, draw_active
from readbench.spec import build_source, parse_dataset, split_specs


def active_command(
    datasets: Annotated[str, typer.Option(help="Names separated by commas.")],
    method: Annotated[str, typer.Option(help="A method that ends with +verdict.")] = "flagship",
    rho: Annotated[int, typer.Option(min=0, max=99, help="Pollution level in percent.")] = 0,
    seeds: Annotated[str, typer.Option(help="Split seeds.")] = ",".join(map(str, DEFAULT_SEEDS)),
    out: Annotated[Path, typer.Option(help="Where to write.")] = Path("runs/active"),
    root: Root = None,
) -> None:
    """Measure which cases to label first: the most telling ones against a random order.

    Example: `readbench active --datasets sim_ecg --seeds 0 --method "rocket+verdict" --out runs/active`
    """
    plan = Plan(
        datasets=tuple(str(parse_dataset(text)) for text in split_specs([datasets])),
        methods=(str(opinionated(method)),),
        seeds=numbers(seeds, "--seeds"),
        levels=(rho,),
    )
    console = Console(stderr=True)
    lessons = _measure(plan, root, console)
    table = active_table(lessons)
    show_table(table, output())
    out.mkdir(parents=True, exist_ok=True)
    (out / "active.csv").write_text(table.csv())
    for suffix in ("svg", "png"):
        save(draw_active(lessons), out / f"active.{suffix}")
    console.print(f"wrote active.csv, active.svg and active.png into {out}", highlight=False)


def _measure(plan: Plan, root: Path | None, console: Console) -> list[Lesson]:
    """All cells of the plan, one after the other; one linear-algebra thread, as in a run."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - slow to import

    cells = list(plan.cells())
    lessons = []
    with threadpool_limits(1), RunProgress(console, total=len(cells)) as progress:
        for cell in cells:
            lessons.append(_lesson(cell, plan, root, progress))
            progress.cell(CellReport(cell))
    return lessons


def _lesson(cell: Cell, plan: Plan, root: Path | None, progress: RunProgress) -> Lesson:
    task = load_task(
        build_source(cell.dataset),
        seed=cell.seed,
        root=data_root(root),
        cache=cache_root(),
        settings=plan.composition,
        progress=lambda recordings, windows: progress.building(cell.dataset, recordings, windows),
    )
    return Lesson(cell, learned(task, cell.rho, opinionated(cell.method).spec, cache_root(), progress.encoding))
