"""`readbench run`: do a plan, whole or in parts, and say before what it may cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from readbench.cli.former import refuse_others, was_given
from readbench.cli.options import (
    DEFAULT_SEEDS,
    MOST_SEED,
    SUITES,
    SWEEPS,
    WHOLE,
    ExecutorName,
    Plugins,
    Root,
    SplitUnit,
    many_methods,
    numbers,
    output,
)
from readbench.cli.progress import resumable
from readbench.common.files import data_root
from readbench.errors import UsageError

if TYPE_CHECKING:
    from readbench.benchmark.runs import Forecast, Plan, RunSummary, Suite
    from readbench.engine.llm import ModelOptions


def run_command(  # noqa: PLR0917 - typer reads options from the signature
    ctx: typer.Context,
    suite_name: Annotated[
        str, typer.Option("--suite", help=f"A named plan, of which other options change parts: {', '.join(SUITES)}.")
    ] = "quick",
    sweep_name: Annotated[
        str,
        typer.Option(
            "--sweep", help=f"Instead of a suite, what varies one thing: {', '.join(SWEEPS)}.", show_default=False
        ),
    ] = "",
    datasets: Annotated[
        list[str] | None,
        typer.Option("--datasets", "--dataset", help="Names separated by commas.", show_default="of the suite"),
    ] = None,
    methods: Annotated[
        list[str] | None,
        many_methods("of the suite", "ours, flagship or any other method (`readbench list methods`)"),
    ] = None,
    rho: Annotated[str, typer.Option(help="Pollution levels in percent.", show_default="of the suite")] = "",
    seeds: Annotated[
        str,
        typer.Option(help="Split seeds.", show_default=f"of the suite; with --methods {DEFAULT_SEEDS}"),
    ] = "",
    seed: Annotated[int | None, typer.Option(min=0, max=MOST_SEED, help="One split seed.", show_default=False)] = None,
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
    cap: Annotated[str, typer.Option(help="Most anomalies in a corpus, or none.", show_default="of the suite")] = "",
    split_by: Annotated[SplitUnit, typer.Option(help="Hold out split groups, or whole assets.")] = "group",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Run folder.", show_default="runs/SUITE, or where another run is there, the next number behind it"
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes to use.")] = 1,
    executor: Annotated[ExecutorName | None, typer.Option(help="Where jobs run.", show_default="by --jobs")] = None,
    address: Annotated[str | None, typer.Option(help="A running Ray cluster.", show_default="a new one")] = None,
    gpus: Annotated[float, typer.Option(min=0, help="GPUs that each job on Ray needs.")] = 0,
    vectors_first: Annotated[
        bool, typer.Option("--vectors-first", help="Encode all windows before the first cell, on all workers.")
    ] = False,
    shard: Annotated[str, typer.Option(help="Part i of n; `--merge` puts them together.")] = WHOLE,
    merge: Annotated[
        list[Path] | None,
        typer.Option(help="A part (`--shard i/n`) to put together in --out; may be repeated.", show_default=False),
    ] = None,
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
    plugin: Plugins = None,  # noqa: ARG001 - loaded as it is read
) -> None:
    """Run methods on datasets; started again with the same folder, it continues.

    Example: `readbench run --datasets sim_tanks --methods euclidean --methods random --rho 0,20 --seed 7 --out runs/ed`
    """
    if merge:
        refuse_others(ctx, "--merge", "merge", "out")
        merge_parts(merge, out)
        return
    if sweep_name and was_given(ctx, "suite_name"):
        raise UsageError("Give either --suite or --sweep.")
    if seed is not None and seeds:
        raise UsageError("Give either --seed or --seeds.")
    # Wrong options are told before anything slow is imported.
    changes: dict[str, Any] = {"split_by": split_by} | ({"corpus_cap": _cap(cap)} if cap else {})
    noise = numbers(label_noise, "--label-noise")
    changes |= _changes(datasets or [], methods, rho, str(seed) if seed is not None else seeds)

    from readbench.benchmark.report import read_results, show_report
    from readbench.benchmark.runs import (
        Setting,
        encode_first,
        executor_of,
        forecasts,
        parse_budgets,
        parse_shard,
        run,
        suite,
        sweep,
        with_noise,
    )
    from readbench.engine.llm import ModelOptions

    named = changes.get("methods", ())
    chosen = sweep(sweep_name, data_root(root), named) if sweep_name else suite(suite_name, data_root(root), named)
    if label_budget:
        chosen = chosen.under(parse_budgets(label_budget))
    if noise:
        chosen = chosen.under(with_noise(chosen.plan.labels, noise))
    plan = replace(chosen.plan, **changes)
    part = parse_shard(shard)
    console = Console(stderr=True)
    folder = _choose_folder(out, sweep_name or suite_name, plan, console)
    if not methods:
        _show_skipped(chosen, console)
    models = ModelOptions(str(prompts.resolve()) if prompts else None, max_calls, max_cost)
    with resumable(console, folder) as progress:
        costs = forecasts(plan, folder, shard=part, root=root, models=models, progress=progress)
        _show_costs(costs, models, console)
        where = executor_of(executor, jobs, address, gpus)
        if vectors_first:
            encode_first(part.of(list(plan.jobs())), Setting.of(plan, folder, root), where, progress)
        summary = run(plan, folder, executor=where, shard=part, root=root, models=models, progress=progress)
    show_report(read_results(folder), output())
    _conclude(summary, console)


def _choose_folder(out: Path | None, suite_name: str, plan: Plan, console: Console) -> Path:
    """The folder that was named; else one of the suite that holds no other run, so that none is written over."""
    from readbench.benchmark.runs import RunFolder, plan_of
    from readbench.errors import RunError

    def held(folder: Path) -> Plan | None:
        """The plan of the run in a folder, None for no run; one that cannot be read is another run."""
        run = RunFolder(folder)
        return plan_of(run.read_manifest()) if run.holds_run else None

    def free(folder: Path) -> bool:
        try:
            return held(folder) in (None, plan)
        except (OSError, ValueError, KeyError, TypeError, UsageError, RunError):
            return False

    first = out or Path("runs") / suite_name
    if free(first):
        return first
    if out:
        _line(console, f"{out} holds another run. Its cells stay; its tables are written anew for this one.")
        return out
    beside = next(candidate for n in count(2) if free(candidate := first.with_name(f"{suite_name}-{n}")))
    _line(console, f"{first} holds another run, which stays as it is. This one goes to {beside}.")
    return beside


def _changes(datasets: Sequence[str], methods: list[str] | None, rho: str, seeds: str) -> dict[str, Any]:
    """Fields of a suite's plan that the options change."""
    changes: dict[str, Any] = {}
    if rho:
        changes["levels"] = numbers(rho, "--rho")
    if methods or seeds:  # named methods run on all seeds, also where the suite itself makes do with fewer
        changes["seeds"] = numbers(seeds or DEFAULT_SEEDS, "--seeds")
    from readbench.engine.spec import parse, parse_dataset, split_specs

    if methods:
        changes["methods"] = tuple(str(parse(text)) for text in split_specs(methods))
    if datasets:
        changes["datasets"] = tuple(str(parse_dataset(text)) for text in split_specs(datasets))
    return changes


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


def _conclude(summary: RunSummary, console: Console) -> None:
    console.print(
        f"{summary.computed} cells computed, {summary.reused} already there, {len(summary.failures)} failed"
        f" in {summary.seconds:.1f} s; results in {summary.folder}"
    )
    if summary.failures:
        raise typer.Exit(1)


def _show_costs(forecasts: Sequence[Forecast], models: ModelOptions, console: Console) -> None:
    """One line a model and dataset, and one with the sum and the budget a model; nothing where no model is asked.

    Args:
        forecasts: those of one model stand together.
        models: what goes before the profiles.
        console: where to.
    """
    from readbench.engine.llm import Spending, describe_spending

    for model, group in groupby(forecasts, key=lambda forecast: forecast.model):
        of_model = list(group)
        most = [forecast.most for forecast in of_model]
        *told, total, budget = describe_spending(model, [*most, sum(most, Spending())], models)
        for forecast, cost in zip(of_model, told, strict=True):
            _line(console, f"{model} on {forecast.dataset}: {cost}")
        _line(console, f"{model}: {total}; {budget}")


def _line(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def merge_parts(parts: Sequence[Path], out: Path | None) -> None:
    """Put parts of one run together."""
    from readbench.benchmark.report import read_results, show_report
    from readbench.benchmark.runs import merge

    if out is None:
        raise UsageError("--merge needs the run folder to write. Give --out.")
    plan = merge(list(parts), out)
    show_report(read_results(out), output())
    cells = len(list(plan.cells()))
    Console(stderr=True).print(f"{cells} cells of {len(parts)} parts; results in {out}")
