"""Prompt sets: what models are told, as a versioned file.

The package's own set is `wording/readbench-1.toml`. Another file of the same form takes its place when a profile names
it. Text between braces is filled in: {topk}, {id}, {label}, {description}, {number} and {option_lines}, each where it
makes sense; everything else, braces of JSON included, stays as it is written.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from readbench.errors import UnknownNameError, UsageError

OWN = "readbench-1"
_FIELD = re.compile(r"\{(topk|id|label|description|number|option_lines)\}")


@dataclass(frozen=True)
class Prompt:
    """One section: what a model is told for one task.

    Args:
        system: its role.
        context: appended to it where the source describes itself.
        query: heading of the query.
        item: heading of a candidate or of an example.
        label: line about the label of a candidate, where it has one.
        question: what it is asked, after everything it is shown.
    """

    system: str
    context: str
    query: str
    item: str
    label: str
    question: str


@dataclass(frozen=True)
class PromptSet:
    """All sections of a file, and the hash of its text."""

    name: str
    digest: str
    sections: tuple[tuple[str, Prompt], ...]

    def section(self, name: str) -> Prompt:
        """The section of a task; `UnknownNameError` where the set has none."""
        known = dict(self.sections)
        if name not in known:
            raise UnknownNameError(f"section of the prompts {self.name}", name, known)
        return known[name]


def fill(template: str, **values: str) -> str:
    """A template with its fields filled in, once: what is filled in is not looked at again.

    >>> fill('{id} of {"a": 1}', id="{label}", label="x")
    '{label} of {"a": 1}'
    """
    return _FIELD.sub(lambda field: values.get(field[1], field[0]), template)


def load_prompts(path: str = "") -> PromptSet:
    """The prompts of a file, or the package's own."""
    if not path:
        return _parsed(OWN, (files("readbench.llm") / "wording" / f"{OWN}.toml").read_text())
    if not Path(path).is_file():
        raise UsageError(f"There is no file of prompts at {path}.")
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
