"""Prompt sets, and the requests composed from them.

A prompt set is a versioned file. The default set is `wording/readbench-1.toml`; a profile may name another file of the
same form. The placeholders {topk}, {id}, {label}, {description}, {number} and {option_lines} are replaced; all other
text, including JSON braces, is kept.

A `Composer` builds the questions of one task: the query, the windows to compare it with, and the question.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np

from readbench.engine.llm._exhibits import MAX_RESIDUALS, Drawing, WindowComparison, WindowExcerpt, numbers
from readbench.engine.llm._messages import MAX_PROSE_CHARACTERS, ModelRequest, Part, SeriesPart, Text, quote
from readbench.engine.llm._settings import Images
from readbench.errors import UnknownNameError, UsageError

DEFAULT_SET, PAPER = "readbench-1", "paper"
SETS = (DEFAULT_SET, PAPER)
"""Shipped prompt sets: ours, and those printed in the paper."""
_FIELD = re.compile(r"\{(topk|id|label|description|number|option_lines)\}")


@dataclass(frozen=True)
class Prompt:
    """One section: the prompts of one task.

    Args:
        system: role of the model.
        context: appended to it if the source has a description.
        query: heading of the query.
        item: heading of a candidate or an example.
        label: line about the label of a candidate, if it has one.
        question: the question, after all windows.
    """

    system: str
    context: str
    query: str
    item: str
    label: str
    question: str


@dataclass(frozen=True)
class PromptSet:
    """All sections of a file, with the hash of its text."""

    name: str
    digest: str
    sections: tuple[tuple[str, Prompt], ...]

    def section(self, name: str) -> Prompt:
        """The section of a task; `UnknownNameError` if the set has none."""
        known = dict(self.sections)
        if name not in known:
            raise UnknownNameError(f"section of the prompts {self.name}", name, known)
        return known[name]


def fill_prompt(template: str, **values: str) -> str:
    """Fill the placeholders of a template once, without looking at the filled-in text.

    >>> fill_prompt('{id} of {"a": 1}', id="{label}", label="x")
    '{label} of {"a": 1}'
    """
    return _FIELD.sub(lambda field: values.get(field[1], field[0]), template)


def load_prompts(path: str = "") -> PromptSet:
    """Load prompts from a file or a shipped set; the default is ours."""
    if path in ("", *SETS):
        name = path or DEFAULT_SET
        return _parsed(name, (files("readbench.engine.llm") / "wording" / f"{name}.toml").read_text())
    if not Path(path).is_file():
        raise UsageError(f"There is no file of prompts at {path}, and the package ships {' and '.join(SETS)}.")
    return _parsed(path, Path(path).read_text())


@lru_cache(maxsize=8)
def _parsed(name: str, text: str) -> PromptSet:
    try:
        tables = tomllib.loads(text)
    except ValueError as error:
        raise UsageError(f"The prompts {name} cannot be read as TOML: {error}.") from None
    shared = {key: value for key, value in tables.items() if not isinstance(value, dict)}
    sections = [
        (section, _prompt(shared | table, f"[{section}] of the prompts {name}"))
        for section, table in tables.items()
        if isinstance(table, dict)
    ]
    return PromptSet(name, hashlib.sha256(text.encode()).hexdigest(), tuple(sections))


def _prompt(table: dict[str, object], where: str) -> Prompt:
    names = [field.name for field in fields(Prompt)]
    for key, value in table.items():
        if key not in names:
            raise UnknownNameError(f"field in {where}", key, names)
        if not isinstance(value, str):
            raise UsageError(f"{key} in {where} must be a text.")
    missing = [name for name in names if name not in table]
    if missing:
        raise UsageError(f"{where} lacks {', '.join(missing)}.")
    return Prompt(**{name: str(table[name]).strip() for name in names})


Task = Literal["list", "similarity", "match", "classify"]
_PERCENT = {"type": "integer"}
"""An integer from 0 to 100; services that enforce schemas reject limits, so the reader checks them."""


@dataclass(frozen=True, eq=False)
class Item:
    """A candidate or an example.

    Args:
        exhibit: its window.
        label: name of its class; None if unknown or not shown.
        chance: probability that it has the query's fault, NaN if unknown.
        comparison: how it differs from the query, if shown.
    """

    exhibit: WindowExcerpt
    label: str | None = None
    chance: float = float("nan")
    comparison: WindowComparison | None = None


def item_id(place: int) -> str:
    """Id of the candidate at a position of the pool.

    >>> item_id(6)
    'sample_00007'
    """
    return f"sample_{place + 1:05d}"


@dataclass(frozen=True)
class Asking:
    """How one model is asked about one task.

    Args:
        task: the task.
        section: section of the prompts.
        prompts: the prompt set.
        images: how windows are drawn.
        items_first: show the examples, which all questions share, before the query.
    """

    task: Task
    section: str
    prompts: PromptSet
    images: Images
    items_first: bool = False

    @property
    def prompt(self) -> Prompt:
        """The prompts of the section."""
        return self.prompts.section(self.section)


class Composer:
    """Composes the questions of one task.

    Args:
        asking: prompts and images.
        plotter: draws windows.
        description: of the data, "" for none.
    """

    def __init__(self, asking: Asking, plotter: Drawing, description: str = "") -> None:
        self.asking = asking
        self.prompt = prompt = asking.prompt
        self.plotter = plotter
        context = (
            fill_prompt(prompt.context, description=quote(description, MAX_PROSE_CHARACTERS)) if description else ""
        )
        self.system = f"{prompt.system}\n\n{context}".strip()

    def request(self, query: WindowExcerpt, items: Sequence[Item], sample: int = 0) -> ModelRequest:
        """Compose the query, each item with its id or number, and the question; shared parts may come first."""
        asked = [Text(self.prompt.query), *self._shown(0, query, None)]
        shown: list[Part] = []
        for place, item in enumerate(items):
            shown += [Text(self._heading(place, item)), *self._shown(place + 1, item.exhibit, item.comparison)]
        options = "\n".join(f"{k + 1}: {_named(item)}" for k, item in enumerate(items))
        question = Text(fill_prompt(self.prompt.question, topk=str(len(items)), option_lines=options))
        schema, first = _schema(self.asking.task, len(items)), self.asking.items_first
        parts = (*shown, *asked, question) if first else (*asked, *shown, question)
        pairs = self.asking.task in ("similarity", "match")
        return ModelRequest(self.system, parts, schema, len(shown) if first else len(asked) * pairs, sample)

    def _heading(self, place: int, item: Item) -> str:
        lines = [fill_prompt(self.prompt.item, id=item_id(place), number=str(place + 1))]
        if item.label is not None:
            lines.append(fill_prompt(self.prompt.label, label=quote(item.label)))
        if item.comparison is not None:
            lines.append(_evidence(item.chance, item.comparison))
        return "\n".join(lines)

    def _shown(self, entity: int, exhibit: WindowExcerpt, comparison: WindowComparison | None) -> list[Part]:
        """A window as images and as numbers."""
        parts: list[Part] = []
        names, values = exhibit.channels, exhibit.values
        behind = comparison.overlay if comparison else None
        if self.asking.images == "sheet":
            parts.append(self.plotter.sheet(names, values, behind))
        elif self.asking.images == "channels":
            for c, name in enumerate(names):
                grey = None if behind is None else behind[c : c + 1]
                parts.append(self.plotter.sheet((name,), values[c : c + 1], grey))
        for name, row, note in zip(names, values, exhibit.notes, strict=True):
            text = f"channel {quote(name)}{f' ({note})' if note else ''}: {numbers(row)}"
            parts.append(SeriesPart(entity, quote(name), row, text))
        return parts


def _named(item: Item) -> str:
    return quote(item.label) if item.label is not None else "no name"


def _evidence(chance: float, comparison: WindowComparison) -> str:
    known = "unknown" if np.isnan(chance) else f"{chance:.2f}"
    largest = sorted(comparison.residuals, key=lambda residual: -residual[1])[:MAX_RESIDUALS]
    told = ", ".join(f"{quote(name)} {apart:.2f}" for name, apart in largest) or "no channel in common"
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
        return _object({"match": {"type": "string", "enum": ["yes", "no"]}, "confidence": _PERCENT})
    return _object({"scores": _object({str(k + 1): _PERCENT for k in range(count)})})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
