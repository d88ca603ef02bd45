"""From windows to questions: the query, what it is compared with, and what is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from readbench.llm.comparing import MOST_CHANNELS, Comparison
from readbench.llm.drawing import Drawing
from readbench.llm.exhibits import Exhibit, numbers
from readbench.llm.messages import Part, Request, Series, Text
from readbench.llm.prompts import Prompt, fill
from readbench.llm.quoting import PROSE, quoted
from readbench.llm.settings import Images

Task = Literal["list", "similarity", "match", "classify"]
_PERCENT = {"type": "integer", "minimum": 0, "maximum": 100}


@dataclass(frozen=True, eq=False)
class Item:
    """A candidate or an example.

    Args:
        exhibit: its window.
        label: name of its class; None where it is not known, or not shown.
        chance: probability that it has the query's fault, NaN where unknown.
        comparison: how it differs from the query, where that is shown.
    """

    exhibit: Exhibit
    label: str | None = None
    chance: float = float("nan")
    comparison: Comparison | None = None


def item_id(place: int) -> str:
    """The id of the candidate at a place of the pool.

    >>> item_id(6)
    'sample_00007'
    """
    return f"sample_{place + 1:05d}"


class Composer:
    """Writes the questions of one task.

    Args:
        task: which one.
        prompt: what is said.
        images: how windows are drawn.
        plotter: draws them.
        description: of the data, empty where there is none.
    """

    def __init__(self, task: Task, prompt: Prompt, images: Images, plotter: Drawing, description: str = "") -> None:
        self.task: Task = task
        self.prompt = prompt
        self.images: Images = images
        self.plotter = plotter
        context = fill(prompt.context, description=quoted(description, PROSE)) if description else ""
        self.system = f"{prompt.system}\n\n{context}".strip()

    def request(self, query: Exhibit, items: Sequence[Item]) -> Request:
        """The query, then each item under its id or number, then the question."""
        parts = [Text(self.prompt.query), *self._shown(0, query, None)]
        for place, item in enumerate(items):
            parts += [Text(self._heading(place, item)), *self._shown(place + 1, item.exhibit, item.comparison)]
        options = "\n".join(f"{k + 1}: {_named(item)}" for k, item in enumerate(items))
        question = fill(self.prompt.question, topk=str(len(items)), option_lines=options)
        return Request(self.system, (*parts, Text(question)), _schema(self.task, len(items)))

    def _heading(self, place: int, item: Item) -> str:
        lines = [fill(self.prompt.item, id=item_id(place), number=str(place + 1))]
        if item.label is not None:
            lines.append(fill(self.prompt.label, label=quoted(item.label)))
        if item.comparison is not None:
            lines.append(_evidence(item.chance, item.comparison))
        return "\n".join(lines)

    def _shown(self, entity: int, exhibit: Exhibit, comparison: Comparison | None) -> list[Part]:
        """A window as pictures and as numbers."""
        parts: list[Part] = []
        names, values = exhibit.channels, exhibit.values
        behind = comparison.overlay if comparison else None
        if self.images == "sheet":
            parts.append(self.plotter.sheet(names, values, behind))
        elif self.images == "channels":
            for c, name in enumerate(names):
                own = None if behind is None else behind[c : c + 1]
                parts.append(self.plotter.sheet((name,), values[c : c + 1], own))
        for name, row, note in zip(names, values, exhibit.notes, strict=True):
            text = f"channel {quoted(name)}{f' ({note})' if note else ''}: {numbers(row)}"
            parts.append(Series(entity, quoted(name), row, text))
        return parts


def _named(item: Item) -> str:
    return quoted(item.label) if item.label is not None else "no name"


def _evidence(chance: float, comparison: Comparison) -> str:
    known = "unknown" if np.isnan(chance) else f"{chance:.2f}"
    largest = sorted(comparison.residuals, key=lambda own: -own[1])[:MOST_CHANNELS]
    told = ", ".join(f"{quoted(name)} {apart:.2f}" for name, apart in largest) or "no channel in common"
    return (
        f"Evidence: probability of the same fault {known}; query shifted by {comparison.lag} steps;"
        f" largest channel residuals: {told}"
    )


def _schema(task: Task, count: int) -> dict[str, Any]:
    if task == "list":
        return _object({"ranked_ids": {"type": "array", "items": {"type": "string"}}})
    if task == "similarity":
        return _object({"similarity": _PERCENT})
    if task == "match":
        return _object({"match": {"enum": ["yes", "no"]}, "confidence": _PERCENT})
    return _object({"scores": _object({str(k + 1): _PERCENT for k in range(count)})})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
