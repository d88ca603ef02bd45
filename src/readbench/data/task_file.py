"""`task.json`: what a folder with an exported task says about it, and what is needed to make it a task again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from readbench.data.source import SourceInfo
from readbench.data.typed_json import read_facts
from readbench.errors import DataError

TASK = "task.json"
_REMEDY = "Export the task again, or remove the file to import the folder as a task of your own."


@dataclass(frozen=True)
class TaskFile:
    """Facts of an exported task.

    Args:
        info: the source; its classes are those of the labels.
        levels: pollution levels in percent, ascending.
        origin: dataset and split seed.
        fingerprint: of the task at all its levels.
        format: version of the layout.
    """

    info: SourceInfo
    levels: tuple[int, ...]
    origin: tuple[str, int]
    fingerprint: str
    format: Literal[1] = 1


def read_task_file(folder: Path) -> TaskFile | None:
    """The facts in a folder; None where there are none."""
    path = folder / TASK
    if not path.is_file():
        return None
    facts = read_facts(path, TaskFile, _REMEDY)
    if not facts.levels or list(facts.levels) != sorted({rho for rho in facts.levels if 0 <= rho < 100}):
        raise DataError(f"{path}: levels {facts.levels} are no ascending percentages below 100. {_REMEDY}")
    return facts
