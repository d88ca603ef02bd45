"""`readbench opinions`, `active`, `scale` and `ucr`: what is measured beside the ranking."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from readbench.cli.options import DEFAULT_METHOD, DEFAULT_SEEDS, Root, numbers, output
from readbench.cli.progress import Terminal, scale_listener
from readbench.common.files import cache_root, data_root
from readbench.common.progress import Progress, each, within
from readbench.errors import UsageError

if TYPE_CHECKING:
    from readbench.benchmark.protocol import Composition, Task
    from readbench.benchmark.report import LearningCurve, OpinionQuality
    from readbench.benchmark.runs import Cell, Plan

SCALED = ("dtw-i", "sbd-d", "sax-bm25", "sonde+nr")
"""Methods of `readbench scale`."""
QUERIES = 1000
"""Most queries of a task: with the hundred of a run, chance alone makes a large calibration error."""


def opinions_command(
    datasets: Annotated[str, typer.Option(help="Names separated by commas.")],
    method: Annotated[str, typer.Option(help="A method that ends with +verdict.")] = DEFAULT_METHOD,
    rho: Annotated[str, typer.Option(help="Pollution levels in percent.")] = "0",
    seeds: Annotated[str, typer.Option(help="Split seeds.")] = DEFAULT_SEEDS,
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
    from readbench.benchmark.runs import Plan, require_opinions
    from readbench.engine.spec import parse_dataset, split_specs

    plan = Plan(
        datasets=tuple(str(parse_dataset(text)) for text in split_specs([datasets])),
        methods=(str(require_opinions(method)),),
        seeds=numbers(seeds, "--seeds"),
        levels=numbers(rho, "--rho"),
    )
    measure_opinions(plan, out, root, novelty=novelty)


def measure_opinions(plan: Plan, out: Path, root: Path | None, *, novelty: bool = True) -> None:
    """Measure the opinions of the one method of a plan; print the tables, write them and the figures into a folder."""
    from readbench.benchmark.report import draw_novelty, draw_reliability, novelty_table, opinion_table, show_table
    from readbench.benchmark.runs import EVERY_LABEL, require_opinions
    from readbench.common.plots import save

    if len(plan.methods) != 1 or plan.labels != EVERY_LABEL:
        raise UsageError("Opinions are measured for one method with all labels: give one --methods, no label budget.")
    require_opinions(plan.methods[0])
    console = Console(stderr=True)
    measured = _measure_opinions(plan, root, console, novelty=novelty)
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


def _measure_opinions(plan: Plan, root: Path | None, console: Console, *, novelty: bool) -> list[OpinionQuality]:
    """All cells of the plan, one after the other; one linear-algebra thread, as in a run."""
    from threadpoolctl import threadpool_limits

    settings = replace(plan.composition, query_cap=QUERIES)
    with threadpool_limits(1), Terminal(console) as progress:
        cells = each(list(plan.cells()), "cells", progress)
        return [_measured(cell, _task(cell, settings, root, progress), progress, novelty=novelty) for cell in cells]


def _measured(cell: Cell, task: Task, progress: Progress, *, novelty: bool) -> OpinionQuality:
    from readbench.benchmark.report import OpinionQuality
    from readbench.benchmark.runs import form_opinions, novel_faults, quality, require_opinions

    spec, cache, encoding = require_opinions(cell.method).spec, cache_root(), within(progress, "encoding")
    answers = form_opinions(task, cell.rho, spec, cache, encoding)
    held_out = novel_faults(task, cell.rho, spec, cache, encoding) if novelty else []
    return OpinionQuality(cell, answers, quality(answers, held_out), tuple(held_out))


def active_command(
    datasets: Annotated[str, typer.Option(help="Names separated by commas.")],
    method: Annotated[str, typer.Option(help="A method that ends with +verdict.")] = DEFAULT_METHOD,
    rho: Annotated[int, typer.Option(min=0, max=99, help="Pollution level in percent.")] = 0,
    seeds: Annotated[str, typer.Option(help="Split seeds.")] = DEFAULT_SEEDS,
    out: Annotated[Path, typer.Option(help="Where to write.")] = Path("runs/active"),
    root: Root = None,
) -> None:
    """Measure which cases to label first: the most telling ones against a random order.

    Example: `readbench active --datasets sim_ecg --seeds 0 --method "rocket+verdict" --out runs/active`
    """
    from readbench.benchmark.report import active_table, draw_active, show_table
    from readbench.benchmark.runs import Plan, require_opinions
    from readbench.common.plots import save
    from readbench.engine.spec import parse_dataset, split_specs

    plan = Plan(
        datasets=tuple(str(parse_dataset(text)) for text in split_specs([datasets])),
        methods=(str(require_opinions(method)),),
        seeds=numbers(seeds, "--seeds"),
        levels=(rho,),
    )
    console = Console(stderr=True)
    lessons = _measure_lessons(plan, root, console)
    table = active_table(lessons)
    show_table(table, output())
    out.mkdir(parents=True, exist_ok=True)
    (out / "active.csv").write_text(table.csv())
    for suffix in ("svg", "png"):
        save(draw_active(lessons), out / f"active.{suffix}")
    console.print(f"wrote active.csv, active.svg and active.png into {out}", highlight=False)


def _measure_lessons(plan: Plan, root: Path | None, console: Console) -> list[LearningCurve]:
    """All cells of the plan, one after the other; one linear-algebra thread, as in a run."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), Terminal(console) as progress:
        cells = each(list(plan.cells()), "cells", progress)
        return [_lesson(cell, _task(cell, plan.composition, root, progress), progress) for cell in cells]


def _lesson(cell: Cell, task: Task, progress: Progress) -> LearningCurve:
    from readbench.benchmark.report import LearningCurve
    from readbench.benchmark.runs import require_opinions
    from readbench.benchmark.studies import simulate_labelling

    return LearningCurve(
        cell,
        simulate_labelling(
            task, cell.rho, require_opinions(cell.method).spec, cache_root(), within(progress, "encoding")
        ),
    )


def _task(cell: Cell, settings: Composition, root: Path | None, progress: Progress) -> Task:
    """The task of a cell, built where it is not yet."""
    from readbench.benchmark.protocol import load_task

    return load_task(cell.dataset, cell.seed, root, settings=settings, progress=progress)


def scale_command(
    sizes: Annotated[str, typer.Option(help="Windows of the corpora, separated by commas.")] = "10000,100000",
    methods: Annotated[
        list[str] | None, typer.Option(help="A method of one leg; repeatable.", show_default=",".join(SCALED))
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
    from readbench.benchmark.report import measured_tables, show_table, two_stage_table, write_scale
    from readbench.benchmark.studies import ScaleStudy, World, run_study
    from readbench.engine.spec import parse_dataset, split_specs

    named = tuple(split_specs(methods or SCALED))
    text = str(parse_dataset(source))
    study = ScaleStudy(World(text, queries, cache_root()), numbers(sizes, "--sizes"), named, two_stage, jobs)
    console = Console(stderr=True)
    with Terminal(console) as progress:
        findings = run_study(study, out, scale_listener(progress, study.windows))
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


def ucr_command(
    methods: Annotated[list[str], typer.Option(help="A method; give the option once for each.")],
    out: Annotated[Path | None, typer.Option(help="Write a CSV with every dataset, too.")] = None,
    root: Root = None,
) -> None:
    """Nearest-neighbour accuracy on the UCR archive's own train and test sides, where its files are at hand (`ctsr`).

    Example: `readbench ucr --methods sonde --methods rocket --methods euclidean`
    """
    import numpy as np

    from readbench.benchmark.studies import accuracy, archive_sets
    from readbench.engine.spec import parse, split_specs

    specs = [str(parse(text)) for text in split_specs(methods)]
    found: dict[str, list[float]] = {}
    with Terminal() as progress:
        for dataset in each(list(archive_sets(data_root(root))), "datasets", progress):
            found[dataset.name] = [accuracy(spec, dataset, cache_root()) for spec in specs]
    means = np.mean(list(found.values()), axis=0)
    table = Table("Method", f"Mean over {len(found)} datasets", title="1-NN accuracy, UCR archive")
    for spec, mean in zip(specs, means, strict=True):
        table.add_row(spec, f"{mean:.3f}")
    output().print(table)
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        rows = [",".join([name, *(f"{value:.6f}" for value in values)]) for name, values in found.items()]
        out.write_text("\n".join([",".join(["dataset", *(f'"{spec}"' for spec in specs)]), *rows]) + "\n")
