"""What methods cost in seconds of a processor, as measured beside a run (`readbench study cost`)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from readbench.common.files import write_text
from readbench.errors import RunError

COSTS = "costs.csv"
"""Beside the rows of a run, or published ones, whose methods were measured."""


@dataclass(frozen=True)
class MethodCost:
    """What one method costs.

    Args:
        method: canonical text.
        task: of what size, in words.
        cpu_s: seconds of a processor to fit the corpus and rank all queries.
    """

    method: str
    task: str
    cpu_s: float


def read_costs(folder: Path) -> dict[str, MethodCost]:
    """Method -> what it costs, as measured beside a run; empty where nothing was."""
    path = folder / COSTS
    if not path.exists():
        return {}
    try:
        rows = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))
        return {row["method"]: MethodCost(row["method"], row["task"], float(row["cpu_s"])) for row in rows}
    except (KeyError, TypeError, ValueError) as error:
        again = f"readbench study cost --set run={folder}"
        raise RunError(f"{path} is damaged ({error}). Remove it, and measure again: {again}") from error


def write_costs(folder: Path, costs: Iterable[MethodCost]) -> Path:
    """Write them beside a run; those of other methods stay, if they are of the same task."""
    own = list(costs)
    kept = [one for one in read_costs(folder).values() if all(one.task == other.task for other in own)]
    joined = {one.method: one for one in (*kept, *own)}
    text = io.StringIO()
    table = csv.DictWriter(text, [field.name for field in fields(MethodCost)], lineterminator="\n")
    table.writeheader()
    table.writerows(asdict(one) | {"cpu_s": f"{one.cpu_s:.4g}"} for one in joined.values())
    write_text(folder / COSTS, text.getvalue())
    return folder / COSTS
