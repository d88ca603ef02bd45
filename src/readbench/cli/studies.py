"""`readbench assets`, `compound`, `opinions`, `active`, `scale` and `ucr`: what is measured beside the ranking."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from readbench.cli.options import (
    DEFAULT_METHOD,
    DEFAULT_SEEDS,
    Datasets,
    OneMethod,
    Plugins,
    Root,
    Seeds,
    many_methods,
    numbers,
    output,
)
from readbench.cli.progress import resumable
from readbench.common.files import cache_root, write_text
from readbench.errors import UsageError

if TYPE_CHECKING:
    from readbench.benchmark.protocol import SplitUnit
    from readbench.benchmark.runs import Executor, Plan
    from readbench.benchmark.studies import Failure

PAIRED = ("ours-dtw", "ours-before", "flagship-window", "flagship")
"""Methods of `readbench assets`: without labels and with them, each without context and with it."""
PROBES = ("presence", "presence+verdict", "before-level", "before-level+verdict", "stats", "random")
"""Shortcuts that stand beside them."""
COMPOUND = (
    "random",
    "stats",
    "euclidean",
    "dtw-i",
    "rocket",
    "sonde",
    "departure",
    "ours",
    "flagship",
    "flagship-spread",
)
"""Methods of `readbench compound`."""
COMPOUND_SOURCE = "dbsherlock(compound=true)"
SCALED = ("dtw-i", "sbd-d", "sax-bm25", "sonde+nr")
"""Methods of `readbench scale`."""
Jobs = Annotated[int, typer.Option(min=1, help="Processes to use.")]


def opinions_command(  # noqa: PLR0917 - typer reads options from the signature
    datasets: Datasets,
    method: OneMethod = DEFAULT_METHOD,
    rho: Annotated[str, typer.Option(help="Pollution levels in percent.")] = "0",
    seeds: Seeds = DEFAULT_SEEDS,
    split_by: Annotated[
        str, typer.Option(help="What is held out: group, or asset, to see whether unseen machines are called novel.")
    ] = "group",
    novelty: Annotated[
        bool, typer.Option("--novelty/--no-novelty", help="Hold out fault types too, with a fit for each of them.")
    ] = True,
    out: Annotated[Path, typer.Option(help="Where to write; finished cells are kept there.")] = Path("runs/opinions"),
    jobs: Jobs = 1,
    root: Root = None,
    plugin: Plugins = None,  # noqa: ARG001 - loaded as it is read
) -> None:
    """Measure opinions on the fault type: calibration, prediction sets, and whether new faults are noticed.

    Each fault type is held out of the corpus in turn to measure the last. `readbench run --suite novel` does the same
    on all data at hand. With `--split-by asset` all queries come from machines that the corpus has no case of.
    Example: `readbench opinions --datasets sim_ecg --seeds 0 --method "rocket+verdict" --out runs/opinions`
    """
    from readbench.benchmark.runs import Plan, executor_of
    from readbench.benchmark.studies import require_opinions
    from readbench.engine.spec import parse_dataset, split_specs

    plan = Plan(
        datasets=tuple(str(parse_dataset(text)) for text in split_specs(datasets)),
        methods=(str(require_opinions(method)),),
        seeds=numbers(seeds, "--seeds"),
        levels=numbers(rho, "--rho"),
        split_by=_split_unit(split_by),
    )
    opinions_of_plan(plan, out, root, executor_of(workers=jobs), novelty=novelty)


def opinions_of_plan(plan: Plan, out: Path, root: Path | None, executor: Executor, *, novelty: bool = True) -> None:
    """Measure the opinions of the one method of a plan; print the tables, write them and the figures into a folder."""
    from readbench.benchmark.report import draw_novelty, draw_reliability, novelty_table, opinion_table, show_table
    from readbench.benchmark.studies import measure_opinions
    from readbench.common.plots import save

    console = Console(stderr=True)
    with resumable(console, out) as progress:
        measured, failures = measure_opinions(
            plan, out, novelty=novelty, root=root, executor=executor, progress=progress
        )
    if not measured:
        _conclude(failures, console)
    written = []
    for table in (opinion_table(measured), *([novelty_table(measured)] if novelty else [])):
        show_table(table, output())
        written.append(f"{table.name}.csv")
        write_text(out / written[-1], table.csv())
    for name, figure in (("reliability", draw_reliability(measured)), ("novelty", draw_novelty(measured))):
        for suffix in ("svg", "png") if figure else ():
            written.append(f"{name}.{suffix}")
            save(figure, out / written[-1])
    console.print(f"wrote {', '.join(written)} into {out}", highlight=False)
    _conclude(failures, console)


def active_command(  # noqa: PLR0917 - typer reads options from the signature
    datasets: Datasets,
    method: OneMethod = DEFAULT_METHOD,
    rho: Annotated[int, typer.Option(min=0, max=99, help="Pollution level in percent.")] = 0,
    seeds: Seeds = DEFAULT_SEEDS,
    out: Annotated[Path, typer.Option(help="Where to write; finished cells are kept there.")] = Path("runs/active"),
    jobs: Jobs = 1,
    root: Root = None,
    plugin: Plugins = None,  # noqa: ARG001 - loaded as it is read
) -> None:
    """Measure which cases to label first: the most telling ones against a random order.

    Example: `readbench active --datasets sim_ecg --seeds 0 --method "rocket+verdict" --out runs/active`
    """
    from readbench.benchmark.report import active_table, draw_active, show_table
    from readbench.benchmark.runs import Plan, executor_of
    from readbench.benchmark.studies import measure_labelling, require_opinions
    from readbench.common.plots import save
    from readbench.engine.spec import parse_dataset, split_specs

    plan = Plan(
        datasets=tuple(str(parse_dataset(text)) for text in split_specs(datasets)),
        methods=(str(require_opinions(method)),),
        seeds=numbers(seeds, "--seeds"),
        levels=(rho,),
    )
    console = Console(stderr=True)
    with resumable(console, out) as progress:
        lessons, failures = measure_labelling(
            plan, out, root=root, executor=executor_of(workers=jobs), progress=progress
        )
    if not lessons:
        _conclude(failures, console)
    table = active_table(lessons)
    show_table(table, output())
    write_text(out / "active.csv", table.csv())
    for suffix in ("svg", "png"):
        save(draw_active(lessons), out / f"active.{suffix}")
    console.print(f"wrote active.csv, active.svg and active.png into {out}", highlight=False)
    _conclude(failures, console)


def assets_command(  # noqa: PLR0917 - typer reads options from the signature
    datasets: Datasets,
    methods: Annotated[
        list[str] | None,
        many_methods(",".join(PAIRED), "A method; others are compared with the first"),
    ] = None,
    split_by: Annotated[str, typer.Option(help="What is held out: group, asset or both.")] = "both",
    rho: Annotated[str, typer.Option(help="Pollution levels in percent.")] = "0,20",
    seeds: Seeds = DEFAULT_SEEDS,
    probes: Annotated[
        bool,
        typer.Option("--probes/--no-probes", help="Measure shortcuts too, with and without labels."),
    ] = True,
    out: Annotated[Path, typer.Option(help="Where to write; finished cells are kept there.")] = Path("runs/assets"),
    jobs: Jobs = 1,
    root: Root = None,
    plugin: Plugins = None,  # noqa: ARG001 - loaded as it is read
) -> None:
    """Compare methods with and without context, on machines that the corpus knows and on machines that it does not.

    Example: `readbench assets --datasets sim_tanks --seeds 0 --methods euclidean --methods departure`
    """
    from readbench.benchmark.report import asset_table, fault_table, show_table
    from readbench.benchmark.runs import Plan, executor_of
    from readbench.benchmark.studies import CONSTANT, measure_assets
    from readbench.engine.spec import COMPOSED, parse, parse_dataset, split_specs

    named = [text if text in COMPOSED else str(parse(text)) for text in split_specs(methods or PAIRED)]
    plan = Plan(
        datasets=tuple(str(parse_dataset(text)) for text in split_specs(datasets)),
        methods=tuple(dict.fromkeys([*named, *((*PROBES, CONSTANT) if probes else ())])),
        seeds=numbers(seeds, "--seeds"),
        levels=numbers(rho, "--rho"),
    )
    console = Console(stderr=True)
    with resumable(console, out) as progress:
        measured, failures = measure_assets(
            plan, _splits(split_by), out, root=root, executor=executor_of(workers=jobs), progress=progress
        )
    if not measured:
        _conclude(failures, console)
    for table in (asset_table(measured), fault_table(measured)):
        write_text(out / f"{table.name}.csv", table.csv())
        if table.name == "assets":
            show_table(table, output())
    console.print(f"wrote assets.csv and faults.csv into {out}", highlight=False)
    _conclude(failures, console)


def _split_unit(text: str) -> SplitUnit:
    known: dict[str, SplitUnit] = {"group": "group", "asset": "asset"}
    if text not in known:
        raise UsageError(f"--split-by is group or asset. Got {text!r}.")
    return known[text]


def _splits(text: str) -> tuple[SplitUnit, ...]:
    known: dict[str, tuple[SplitUnit, ...]] = {"group": ("group",), "asset": ("asset",), "both": ("group", "asset")}
    if text not in known:
        raise UsageError(f"--split-by is group, asset or both. Got {text!r}.")
    return known[text]


def compound_command(
    datasets: Annotated[
        list[str] | None,
        typer.Option("--datasets", "--dataset", help="Names separated by commas.", show_default=COMPOUND_SOURCE),
    ] = None,
    methods: Annotated[list[str] | None, many_methods(",".join(COMPOUND))] = None,
    out: Annotated[Path, typer.Option(help="Where to write; finished cells are kept there.")] = Path("runs/compound"),
    jobs: Jobs = 1,
    root: Root = None,
    plugin: Plugins = None,  # noqa: ARG001 - loaded as it is read
) -> None:
    """Search faults of several causes at once among cases of single ones: does the list name all of them?

    Example: `readbench compound --methods stats --methods sonde`
    """
    from readbench.benchmark.report import compound_table, show_table
    from readbench.benchmark.runs import executor_of
    from readbench.benchmark.studies import measure_compound
    from readbench.engine.spec import COMPOSED, parse, parse_dataset, split_specs

    sources = [str(parse_dataset(text)) for text in split_specs(datasets or [COMPOUND_SOURCE])]
    named = [text if text in COMPOSED else str(parse(text)) for text in split_specs(methods or COMPOUND)]
    console = Console(stderr=True)
    with resumable(console, out) as progress:
        measured, failures = measure_compound(
            sources, named, out, root=root, executor=executor_of(workers=jobs), progress=progress
        )
    if measured:
        table = compound_table(measured)
        show_table(table, output())
        write_text(out / f"{table.name}.csv", table.csv())
        console.print(f"wrote {table.name}.csv into {out}", highlight=False)
    _conclude(failures, console)


def cost_command(
    folder: Annotated[Path, typer.Argument(help="A run, or published rows, whose methods are measured.")],
    methods: Annotated[list[str] | None, many_methods("all of the run")] = None,
    dataset: Annotated[str, typer.Option(help="The task: its split of seed 0.")] = "sim_ecg",
    out: Annotated[Path, typer.Option(help="Finished measurements are kept there.")] = Path("runs/cost"),
    root: Root = None,
    plugin: Plugins = None,  # noqa: ARG001 - loaded as it is read
) -> None:
    """Measure what the methods of a run cost: processor seconds of one task, on one thread, with nothing remembered.

    Writes `costs.csv` into the folder; its reports then show these seconds. Example: `readbench cost runs/quick`
    """
    from readbench.benchmark.runs import open_folder
    from readbench.benchmark.studies import measure_costs, write_costs
    from readbench.engine.spec import parse, split_specs

    named = [str(parse(text)) for text in split_specs(methods or ())]
    planned = named or open_folder(folder).read_manifest()["plan"]["methods"]
    console = Console(stderr=True)
    with resumable(console, out) as progress:
        measured, failures = measure_costs(planned, out, dataset, root=root, progress=progress)
    if measured:
        table = Table("Method", "Processor seconds", title=measured[0].task)
        for one in sorted(measured, key=lambda one: one.cpu_s):
            table.add_row(one.method, f"{one.cpu_s:.3g}")
        output().print(table)
        console.print(f"wrote {write_costs(folder, measured)}", highlight=False)
    _conclude(failures, console)


def readx_of_plan(plan: Plan, out: Path, root: Path | None, executor: Executor) -> None:
    """Search the faults of each asset on the same one and on others; print the ranking, write tables and picture."""
    from readbench.benchmark.report import ranking_table, readx_table, show_table, write_readx
    from readbench.benchmark.studies import measure_readx

    console = Console(stderr=True)
    with resumable(console, out) as progress:
        measured, failures = measure_readx(plan, out, root=root, executor=executor, progress=progress)
    if not measured:
        _conclude(failures, console)
    for table in (readx_table(measured, brief=True), ranking_table(measured)):
        if table:
            show_table(table, output())
    console.print(f"wrote {', '.join(write_readx(measured, out))} into {out}", highlight=False)
    _conclude(failures, console)


def early_of_plan(plan: Plan, out: Path, root: Path | None, executor: Executor) -> None:
    """Ask about windows as they grow into a fault; print the table, write tables and picture."""
    from readbench.benchmark.report import early_table, notice_table, show_table, write_early
    from readbench.benchmark.studies import measure_early

    console = Console(stderr=True)
    with resumable(console, out) as progress:
        measured, failures = measure_early(plan, out, root=root, executor=executor, progress=progress)
    if not measured:
        _conclude(failures, console)
    for table in (early_table(measured, brief=True), notice_table(measured)):
        show_table(table, output())
    console.print(f"wrote {', '.join(write_early(measured, out))} into {out}", highlight=False)
    _conclude(failures, console)


def scale_command(  # noqa: PLR0917 - typer reads options from the signature
    sizes: Annotated[str, typer.Option(help="Windows of the corpora, separated by commas.")] = "10000,100000",
    methods: Annotated[list[str] | None, many_methods(",".join(SCALED), "A method of one leg")] = None,
    source: Annotated[
        str, typer.Option("--source", "--dataset", "--datasets", help="A simulated dataset.")
    ] = "sim_tanks",
    queries: Annotated[int, typer.Option(min=1, help="Held-out faults that are searched for.")] = 100,
    two_stage: Annotated[
        str, typer.Option(help="Also measure this encoder as a shortlist, and as seeds, for DTW-I.", show_default=False)
    ] = "",
    jobs: Annotated[int, typer.Option(min=1, help="Processes that build the corpus, and that encode.")] = 1,
    out: Annotated[Path, typer.Option(help="Where to write; finished cells are kept there.")] = Path("runs/scale"),
    plugin: Plugins = None,  # noqa: ARG001 - loaded as it is read
) -> None:
    """Measure what methods find and cost as the corpus grows to a million windows and beyond.

    Each size and method runs in a process of its own: NDCG@10, time, memory, disk, and how fast they grow. The corpus
    is streamed to the cache once. What is finished is kept: the same command goes on after a kill.
    Example: `readbench scale --sizes 1000,10000 --methods dtw-i --methods sax-bm25`
    """
    from readbench.benchmark.report import measured_tables, show_table, two_stage_table, write_scale
    from readbench.benchmark.studies import ScaleStudy, World, measure_scale
    from readbench.engine.spec import parse_dataset, split_specs

    named = tuple(split_specs(methods or SCALED))
    text = str(parse_dataset(source))
    study = ScaleStudy(World(text, queries, cache_root()), numbers(sizes, "--sizes"), named, two_stage, jobs)
    console = Console(stderr=True)
    with resumable(console, out) as progress:
        findings = measure_scale(study, out, progress)
    for table in measured_tables(findings.measured, text):
        show_table(table, output())
    if findings.two_stage:
        show_table(two_stage_table(findings.two_stage, text), output())
    files = write_scale(findings, text, out)
    console.print(f"wrote {', '.join(file.name for file in files)} into {out}", highlight=False)
    _conclude(findings.failures, console)


def ucr_command(
    methods: Annotated[list[str], many_methods("")],
    out: Annotated[Path | None, typer.Option(help="Write a CSV with every dataset, too.")] = None,
    folder: Annotated[Path, typer.Option(help="Where finished cells are kept.")] = Path("runs/ucr"),
    jobs: Jobs = 1,
    root: Root = None,
    plugin: Plugins = None,  # noqa: ARG001 - loaded as it is read
) -> None:
    """Nearest-neighbour accuracy on the UCR archive's own train and test sides, where its files are at hand (`ctsr`).

    Example: `readbench ucr --methods sonde --methods rocket --methods euclidean`
    """
    import numpy as np

    from readbench.benchmark.runs import executor_of
    from readbench.benchmark.studies import measure_archive
    from readbench.engine.spec import parse, split_specs

    specs, console = [str(parse(text)) for text in split_specs(methods)], Console(stderr=True)
    with resumable(console, folder) as progress:
        found, failures = measure_archive(
            specs, folder, root=root, executor=executor_of(workers=jobs), progress=progress
        )
    table = Table("Method", f"Mean over {len(found)} datasets", title="1-NN accuracy, UCR archive")
    for spec, mean in zip(specs, np.mean(list(found.values()), axis=0), strict=True):
        table.add_row(spec, f"{mean:.3f}")
    output().print(table)
    if out:
        rows = [",".join([name, *(f"{value:.6f}" for value in values)]) for name, values in found.items()]
        header = ",".join(["dataset", *(f'"{spec}"' for spec in specs)])
        write_text(out, "\n".join([header, *rows]) + "\n")
    _conclude(failures, console)


def _conclude(failures: Sequence[Failure], console: Console) -> None:
    """Name what failed, with the reason."""
    for failure in failures:
        console.print(f"{failure.cell}: {failure.reason}", style="bold red", markup=False)
    if failures:
        raise typer.Exit(1)
