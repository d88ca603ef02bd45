"""`readbench bench`."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from readbench.cli.options import Json, output
from readbench.cli.progress import Terminal
from readbench.cli.research import require_research
from readbench.errors import UnknownNameError

if TYPE_CHECKING:
    from research.speed.measure import Result

PEERS = ("aeon", "dtaidistance", "tslearn", "bm25s", "faiss-cpu", "scikit-learn")


def bench_command(
    only: Annotated[str, typer.Option(help="Benchmarks to run, separated by commas.", show_default="all")] = "",
    repeats: Annotated[int, typer.Option(min=1, help="Repetitions; the median is reported.")] = 5,
    threads: Annotated[int, typer.Option(min=1, help="Threads for our kernels and the peers.")] = 1,
    as_json: Json = False,
) -> None:
    """Measure the speed of our kernels against installed peer libraries, on the same arrays in the same process.

    Results are checked for equality first. The ratios carry over to other machines, the seconds do not. The roof is
    the rate of the same arithmetic on values held in registers. Install the peers: `pip install 'readbench[bench]'`.
    Example: `readbench bench --only dtw,sbd-d`
    """
    from threadpoolctl import threadpool_limits

    require_research()
    from research.speed.measure import measure

    require_research()
    from research.speed.contests import cases

    known = cases(threads)
    chosen = [name.strip() for name in only.split(",") if name.strip()] or list(known)
    for name in chosen:
        if name not in known:
            raise UnknownNameError("benchmark", name, known)
    results = []
    with threadpool_limits(threads), Terminal() as progress:
        for name in chosen:
            progress(f"measuring {name}", 0, 1)
            results.append(measure(known[name](), repeats))
            progress(f"measuring {name}", 1, 1)
    machine = _machine(threads)
    if as_json:
        print(json.dumps({"machine": machine, "results": [asdict(r) for r in results]}, indent=1))  # noqa: T201
    else:
        _show(results, machine)


def _machine(threads: int) -> dict[str, Any]:
    from readbench.engine.retrievers import kernel_in_use

    return {
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "threads": threads,
        "kernel": kernel_in_use(),
        "peers": {name: _version(name) for name in PEERS},
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _show(results: list[Result], machine: dict[str, Any]) -> None:
    console = output()
    console.print(f"kernel: {machine['kernel']}; {machine['cores']} cores", highlight=False)
    table = Table("Benchmark", "Library", "Seconds", "Rate", "Times ours", "Share of roof", box=SIMPLE_HEAD)
    for result in results:
        for i, timing in enumerate(result.timings):
            ratio = "1" if i == 0 else f"{timing.ratio:.2f}"
            rate = f"{timing.rate:.3g} {result.unit}"
            share = "" if timing.share_of_roof is None else f"{timing.share_of_roof:.0%}"
            table.add_row(result.name if i == 0 else "", timing.name, f"{timing.seconds:.4g}", rate, ratio, share)
    console.print(table)
    for result in results:
        roof = "" if result.roof is None else f"; roof {result.roof:.3g} {result.unit}"
        console.print(f"{result.name}: {result.what}{roof}", highlight=False, style="dim")
    missing = [name for name, found in machine["peers"].items() if found == "not installed"]
    if missing:
        console.print(
            f"not installed: {', '.join(missing)} (pip install 'readbench[bench]')", style="yellow", markup=False
        )
