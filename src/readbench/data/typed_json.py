"""Typed facts as JSON files: what comes back is of the declared types, or an error says where it is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from readbench.errors import DataError
from readbench.windows.disk import write_json

T = TypeVar("T")


def write_facts(path: Path, facts: object) -> None:
    """Write a dataclass of plain values as JSON, whole or not at all."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - slow to import

    write_json(path, TypeAdapter(type(facts)).dump_python(facts, mode="json"))


def read_facts(path: Path, kind: type[T], remedy: str) -> T:
    """Read a dataclass from JSON.

    Args:
        path: the file.
        kind: the dataclass.
        remedy: what to do about a file that does not fit.
    """
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - slow to import

    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
        return TypeAdapter(kind).validate_python(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise DataError(f"{path}: {place or 'the whole'} does not fit ({first['msg']}). {remedy}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read ({error}). {remedy}") from error
