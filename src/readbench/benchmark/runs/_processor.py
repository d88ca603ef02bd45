"""Processor time of methods, as measured by `readbench study cost`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from readbench.benchmark.runs._folder import RunFolder, write_csv
from readbench.errors import RunError

COSTS = "costs.csv"
"""File beside the rows of a run or published rows."""


@dataclass(frozen=True)
class MethodCost:
    """Cost of one method.

    Args:
        method: canonical text.
        task: size of the task, in words.
        cpu_s: processor seconds to fit the corpus and rank all queries.
    """

    method: str
    task: str
    cpu_s: float


def read_costs(folder: Path) -> dict[str, MethodCost]:
    """Method -> measured cost; empty without measurements."""
    path = folder / COSTS
    if not path.exists():
        return {}
    try:
        rows = RunFolder(folder).read_csv(COSTS)
        return {row["method"]: MethodCost(row["method"], row["task"], float(row["cpu_s"])) for row in rows}
    except (KeyError, TypeError, ValueError) as error:
        again = f"readbench study cost --set run={folder}"
        raise RunError(f"{path} is damaged ({error}). Remove it, and measure again: {again}") from error


def write_costs(folder: Path, costs: Iterable[MethodCost]) -> Path:
    """Write costs beside a run; existing ones of other methods on the same task stay."""
    measured = list(costs)
    kept = [one for one in read_costs(folder).values() if all(one.task == other.task for other in measured)]
    joined = {one.method: one for one in (*kept, *measured)}
    rows = (asdict(one) | {"cpu_s": f"{one.cpu_s:.4g}"} for one in joined.values())
    write_csv(folder / COSTS, [field.name for field in fields(MethodCost)], rows)
    return folder / COSTS
