"""`readbench run`: run a plan or one shard of it, with a forecast of language-model costs."""

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
    MAX_SEED,
    SUITES,
    SWEEPS,
    WHOLE_RUN,
    Address,
    ExecutorName,
    Gpus,
    Jobs,
    Plugins,
    Root,
    SplitBy,
    many_datasets,
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
        str, typer.Option("--suite", help=f"Suite to run; other options replace parts of it: {', '.join(SUITES)}.")
    ] = "quick",
    sweep_name: Annotated[
        str,
        typer.Option(
            "--sweep", help=f"Instead of a suite: sweep over one parameter: {', '.join(SWEEPS)}.", show_default=False
        ),
    ] = "",
    datasets: Annotated[list[str] | None, many_datasets("of the suite")] = None,
    methods: Annotated[
        list[str] | None,
        many_methods("of the suite", "Method, such as ours or flagship (`readbench list methods`)"),
    ] = None,
    rho: Annotated[
        str, typer.Option(help="Pollution levels in percent, separated by commas.", show_default="of the suite")
    ] = "",
    seeds: Annotated[
        str,
        typer.Option(
            help="Split seeds, separated by commas.", show_default=f"of the suite; with --methods {DEFAULT_SEEDS}"
        ),
    ] = "",
    seed: Annotated[
        int | None, typer.Option(min=0, max=MAX_SEED, help="A single split seed.", show_default=False)
    ] = None,
    label_budget: Annotated[
        str,
        typer.Option(
            help="Number of labelled hits per query (0,5,20), labelled share of the corpus (1%,10%), or all; separated"
            " by commas.",
            show_default="of the suite",
        ),
    ] = "",
    label_noise: Annotated[
        str,
        typer.Option(
            help="Percent of labels made wrong, separated by commas (0,10,20,30).", show_default="of the suite"
        ),
    ] = "",
    cap: Annotated[
        str,
        typer.Option(
            help="Largest number of anomalies in a corpus, or none for no limit.", show_default="of the suite"
        ),
    ] = "",
    split_by: SplitBy = "group",
    out: Annotated[
        Path | None,
        typer.Option(help="Run folder.", show_default="runs/SUITE, or runs/SUITE-2 and so on if another run is there"),
    ] = None,
    jobs: Jobs = 1,
    executor: Annotated[
        ExecutorName | None, typer.Option(help="Executor of the jobs.", show_default="by --jobs")
    ] = None,
    address: Address = None,
    gpus: Gpus = 0,
    vectors_first: Annotated[
        bool, typer.Option("--vectors-first", help="Encode all windows on all workers before ranking.")
    ] = False,
    shard: Annotated[str, typer.Option(help="Run shard i of n; join the shards with --merge.")] = WHOLE_RUN,
    merge: Annotated[
        list[Path] | None,
        typer.Option(help="Join this shard's run folder into --out; repeatable.", show_default=False),
    ] = None,
    prompts: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="File with prompts for language models.", show_default="of their profiles"
        ),
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option(min=0, help="Largest cost of a language model in US dollars.", show_default="of its profile"),
    ] = None,
    max_calls: Annotated[
        int | None,
        typer.Option(min=0, help="Largest number of calls of a language model.", show_default="of its profile"),
    ] = None,
    root: Root = None,
    plugin: Plugins = None,  # noqa: ARG001 - loaded as it is read
) -> None:
    """Run methods on datasets; run again with the same folder, it continues.

    Example: `readbench run --datasets sim_tanks --methods euclidean --methods random --rho 0,20 --seed 7 --out runs/ed`
    """
    if merge:
        refuse_others(ctx, "--merge", "merge", "out")
        _merge_shards(merge, out)
        return
    if sweep_name and was_given(ctx, "suite_name"):
        raise UsageError("Give either --suite or --sweep.")
    if seed is not None and seeds:
        raise UsageError("Give either --seed or --seeds.")
    # Options are checked before slow imports.
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
    """`out`, or the first of runs/SUITE, runs/SUITE-2, ... that holds no other run."""
    from readbench.benchmark.runs import RunFolder, plan_of
    from readbench.errors import RunError

    def held(folder: Path) -> Plan | None:
        """Plan of the run in a folder; None if there is no run."""
        run = RunFolder(folder)
        return plan_of(run.read_manifest()) if run.holds_run else None

    def free(folder: Path) -> bool:
        try:
            return held(folder) in (None, plan)
        except (OSError, ValueError, KeyError, TypeError, UsageError, RunError):  # an unreadable run is another run
            return False

    first = out or Path("runs") / suite_name
    if free(first):
        return first
    if out:
        _line(console, f"{out} holds another run. Its cells are kept; its tables are replaced by those of this run.")
        return out
    beside = next(candidate for n in count(2) if free(candidate := first.with_name(f"{suite_name}-{n}")))
    _line(console, f"{first} holds another run. This run is written to {beside}.")
    return beside


def _changes(datasets: Sequence[str], methods: list[str] | None, rho: str, seeds: str) -> dict[str, Any]:
    """Fields of a suite's plan that the options change."""
    changes: dict[str, Any] = {}
    if rho:
        changes["levels"] = numbers(rho, "--rho")
    if methods or seeds:  # named methods run on all seeds, even if the suite has fewer
        changes["seeds"] = numbers(seeds or DEFAULT_SEEDS, "--seeds")
    from readbench.engine.spec import parse, parse_dataset, split_specs

    if methods:
        changes["methods"] = tuple(str(parse(text)) for text in split_specs(methods))
    if datasets:
        changes["datasets"] = tuple(str(parse_dataset(text)) for text in split_specs(datasets))
    return changes


def _show_skipped(chosen: Suite, console: Console) -> None:
    """Print the methods of a suite that cannot run here, one line per reason."""
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
    """Print the forecast cost per language model and dataset, and per model the sum and its budget.

    Args:
        forecasts: sorted by model.
        models: options that override the profiles.
        console: to print to.
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


def _merge_shards(parts: Sequence[Path], out: Path | None) -> None:
    from readbench.benchmark.report import read_results, show_report
    from readbench.benchmark.runs import merge

    if out is None:
        raise UsageError("--merge needs a run folder to write to. Give --out FOLDER.")
    plan = merge(list(parts), out)
    show_report(read_results(out), output())
    cells = len(list(plan.cells()))
    Console(stderr=True).print(f"{cells} cells of {len(parts)} shards; results in {out}")
