"""`readbench run`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from readbench.cli.costs import show_costs
from readbench.cli.opinions import measure_opinions
from readbench.cli.options import Root, numbers, output
from readbench.cli.progress import RunProgress
from readbench.errors import UsageError
from readbench.experiment import DEFAULT_SEEDS, Plan, Suite, Summary, parse_budgets, run, suite, with_noise
from readbench.experiment.costs import forecasts
from readbench.experiment.encode import encode_first
from readbench.experiment.execute import Setting
from readbench.experiment.executors import ExecutorName, executor_of
from readbench.experiment.shard import WHOLE, parse_shard
from readbench.experiment.suites import NOVEL
from readbench.llm import ModelOptions
from readbench.paths import data_root
from readbench.report import read_results, show_report
from readbench.spec import parse, parse_dataset, split_specs


def run_command(  # noqa: PLR0917 - typer reads options from the signature
    suite_name: Annotated[
        str, typer.Option("--suite", help="A named plan; other options change parts of it.")
    ] = "quick",
    datasets: Annotated[str, typer.Option(help="Names separated by commas.", show_default="of the suite")] = "",
    methods: Annotated[
        list[str] | None, typer.Option(help="A method; may be repeated.", show_default="of the suite")
    ] = None,
    rho: Annotated[str, typer.Option(help="Pollution levels in percent.", show_default="of the suite")] = "",
    seeds: Annotated[str, typer.Option(help="Split seeds.", show_default="of the suite")] = "",
    seed: Annotated[int | None, typer.Option(help="One split seed.", show_default=False)] = None,
    label_budget: Annotated[
        str,
        typer.Option(
            help="Known labels: those of a query's first hits (0,5,20), of a share of the corpus (1%,10%), or all.",
            show_default="of the suite",
        ),
    ] = "",
    label_noise: Annotated[
        str, typer.Option(help="Shares of wrong labels in percent (0,10,20,30).", show_default="of the suite")
    ] = "",
    cap: Annotated[str, typer.Option(help="Most anomalies in a corpus, or none.")] = "1000",
    split_by: Annotated[
        Literal["group", "asset"], typer.Option(help="Hold out split groups, or whole assets.")
    ] = "group",
    out: Annotated[Path | None, typer.Option(help="Run folder.", show_default="runs/SUITE")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes to use.")] = 1,
    executor: Annotated[ExecutorName | None, typer.Option(help="Where jobs run.", show_default="by --jobs")] = None,
    address: Annotated[str | None, typer.Option(help="A running Ray cluster.", show_default="a new one")] = None,
    gpus: Annotated[float, typer.Option(min=0, help="GPUs that each job on Ray needs.")] = 0,
    vectors_first: Annotated[
        bool, typer.Option("--vectors-first", help="Encode all windows before the first cell, on all workers.")
    ] = False,
    shard: Annotated[str, typer.Option(help="Part i of n; see `readbench merge`.")] = str(WHOLE),
    prompts: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="Prompts for language models.", show_default="of their profiles"
        ),
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option(min=0, help="Most dollars that a language model may cost.", show_default="of its profile"),
    ] = None,
    max_calls: Annotated[
        int | None, typer.Option(min=0, help="Most calls of a language model.", show_default="of its profile")
    ] = None,
    root: Root = None,
) -> None:
    """Run methods on datasets; started again with the same folder, it continues.

    Example: `readbench run --datasets sim_tanks --methods euclidean --methods random --rho 0,20 --seed 7 --out runs/ed`
    """
    if seed is not None and seeds:
        raise UsageError("Give either --seed or --seeds.")
    chosen = suite(suite_name, data_root(root))
    if label_budget:
        chosen = chosen.under(parse_budgets(label_budget))
    if label_noise:
        chosen = chosen.under(with_noise(chosen.plan.labels, numbers(label_noise, "--label-noise")))
    plan = _changed(chosen.plan, datasets, methods, rho, str(seed) if seed is not None else seeds)
    plan = replace(plan, corpus_cap=_cap(cap), split_by=split_by)
    part = parse_shard(shard)
    folder = out or Path("runs") / suite_name
    console = Console(stderr=True)
    if not methods:
        _show_skipped(chosen, console)
    if suite_name == NOVEL:
        measure_opinions(plan, folder, root)
        return
    try:
        models = ModelOptions(str(prompts.resolve()) if prompts else None, max_calls, max_cost)
        with RunProgress(console, total=sum(len(job.cells()) for job in part.of(list(plan.jobs())))) as listener:
            show_costs(
                forecasts(plan, folder, shard=part, root=root, models=models, listener=listener), models, console
            )
            where = executor_of(executor, jobs, address, gpus)
            if vectors_first:
                encode_first(part.of(list(plan.jobs())), Setting.of(plan, folder, root), where, listener.encoding)
            summary = run(plan, folder, executor=where, shard=part, root=root, models=models, listener=listener)
    except KeyboardInterrupt:
        console.print(f"Interrupted. What was finished is in {folder}; the same command continues.", style="yellow")
        raise typer.Exit(130) from None
    show_report(read_results(folder), output())
    _conclude(summary, console)


def _changed(plan: Plan, datasets: str, methods: list[str] | None, rho: str, seeds: str) -> Plan:
    """The suite's plan with what the options change."""
    if datasets:
        plan = replace(plan, datasets=tuple(str(parse_dataset(text)) for text in split_specs([datasets])))
    if methods:
        named = tuple(str(parse(text)) for text in split_specs(methods))
        plan = replace(plan, methods=named, seeds=DEFAULT_SEEDS)  # also where the suite itself makes do with fewer
    if rho:
        plan = replace(plan, levels=numbers(rho, "--rho"))
    if seeds:
        plan = replace(plan, seeds=numbers(seeds, "--seeds"))
    return plan


def _show_skipped(chosen: Suite, console: Console) -> None:
    """Say what of a suite cannot run here: one line per reason."""
    reasons: dict[str, list[str]] = {}
    for method, reason in chosen.skipped.items():
        reasons.setdefault(reason, []).append(method)
    for reason, methods in reasons.items():
        more = f" and {len(methods) - 3} more" if len(methods) > 3 else ""
        console.print(f"skipped: {', '.join(methods[:3])}{more}: {reason}", style="yellow", markup=False)


def _cap(text: str) -> int | None:
    if text.lower() == "none":
        return None
    if not text.isdigit() or not int(text):
        raise UsageError(f"--cap takes a positive number or none. Got {text!r}.")
    return int(text)


def _conclude(summary: Summary, console: Console) -> None:
    console.print(
        f"{summary.computed} cells computed, {summary.reused} already there, {len(summary.failures)} failed"
        f" in {summary.seconds:.1f} s; results in {summary.folder}"
    )
    if summary.failures:
        raise typer.Exit(1)
