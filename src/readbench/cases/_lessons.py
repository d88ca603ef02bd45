"""Cache of label models (lessons) on disk, so that the next process need not fit them again.

A lesson depends on the vectors, labels, recordings, assets and rejections of the cases, and on the fitting code. The
hash of all these names its file, so that a stale file is never found. The file begins with a checksum; a damaged one is
ignored. Arrays are stored in NumPy's format, the rest as JSON that names dataclasses of the engine; no code is loaded.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readbench.common.files import cache_root, open_atomic
from readbench.engine.method import FittedMethod, Knowledge
from readbench.engine.protocols import Vectors
from readbench.engine.rerankers import FittedLabels, LabelModel
from readbench.engine.vectors import code_key

FOLDER = "lessons"
KEPT_FILES = 3
"""Lessons kept per library, over all methods and reviews."""
MIN_CASES = 200
"""Fewest labelled cases of a kept lesson; with fewer, fitting is faster than reading."""
TRUSTED_MODULES = ("readbench.engine.rerankers.", "readbench.engine.protocols")
"""Modules whose dataclasses a lesson may contain."""
_HASH = 32


class LessonShelf:
    """Lessons of one library.

    Args:
        folder: folder that holds nothing else.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of(cls, address: str) -> LessonShelf:
        """Lessons in the library's folder, or in the user's cache if the library is in a database."""
        if "://" not in address:
            return cls(Path(address) / FOLDER)
        return cls(cache_root() / FOLDER / hashlib.sha256(address.encode()).hexdigest()[:24])

    def recall(self, fitted: FittedMethod, knowledge: Knowledge) -> LabelModel | None:
        """Read the lesson of a fitted method; None if there is none."""
        key = _key_of(fitted, knowledge) if self.folder.is_dir() else None
        if key is None:
            return None
        try:
            content = (self.folder / f"{key}.lesson").read_bytes()
        except OSError:
            return None
        if hashlib.blake2b(content[_HASH:], digest_size=_HASH).digest() != content[:_HASH]:
            return None
        return unpack_lesson(content[_HASH:], fitted.units)

    def keep(self, fitted: FittedMethod, knowledge: Knowledge, lesson: LabelModel) -> None:
        """Write a lesson of at least `MIN_CASES` cases; a failure is ignored."""
        key = _key_of(fitted, knowledge)
        if key is None:
            return
        with suppress(OSError, TypeError):
            content = pack_lesson(lesson, fitted.units)
            with open_atomic(self.folder / f"{key}.lesson") as file:
                file.write(hashlib.blake2b(content, digest_size=_HASH).digest())
                file.write(content)
            by_age = sorted(self.folder.glob("*.lesson"), key=lambda path: path.stat().st_mtime)
            for old in by_age[:-KEPT_FILES]:
                old.unlink(missing_ok=True)


def _key_of(fitted: FittedMethod, knowledge: Knowledge) -> str | None:
    """Hash of everything that a lesson depends on; None if it is not kept."""
    former = fitted.method.opinion_former
    if former is None or (knowledge.labels >= 0).sum() < MIN_CASES:
        return None
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{code_key(type(former.component))} {fitted.method.spec} {fitted.method.opinions_by}".encode())
    known = (knowledge.labels, knowledge.rejected, fitted.groups, fitted.assets)
    for array in (*fitted.units, *known):
        if array is None:
            digest.update(b"none")
            continue
        contiguous = np.ascontiguousarray(array)
        digest.update(f"{contiguous.dtype.str} {contiguous.shape}".encode())
        digest.update(contiguous.view(np.uint8).data if contiguous.size else b"")
    return digest.hexdigest()


def pack_lesson(lesson: LabelModel, units: Sequence[Vectors]) -> bytes:
    """Encode a lesson without vectors and queries.

    Args:
        lesson: the lesson.
        units: vectors that it was fitted on.
    """
    labels = lesson.fitted
    packer = _Packer(units)
    whole = FittedLabels(labels.judgement, labels.rejected, labels.calibration)
    tree = packer.pack({"fitted": whole, "guesses": labels.guesses})
    file = io.BytesIO()
    text = np.frombuffer(json.dumps(tree).encode(), np.uint8)
    named: dict[str, Any] = {f"a{i}": array for i, array in enumerate(packer.arrays)}
    np.savez(file, tree=text, **named)
    return file.getvalue()


def unpack_lesson(content: bytes, units: Sequence[Vectors]) -> LabelModel:
    """Decode the bytes of `pack_lesson`, with the same vectors."""
    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        arrays = [stored[f"a{i}"] for i in range(len(stored.files) - 1)]
        tree = json.loads(stored["tree"].tobytes())
    found = _Unpacker(arrays, units).unpack(tree)
    fitted: FittedLabels = found["fitted"]
    vars(fitted)["guesses"] = found["guesses"]
    return LabelModel(fitted, tuple(unit[:0] for unit in units))


class _Packer:
    """Converts dataclasses, tuples and dictionaries to JSON values; repeated objects are written once."""

    def __init__(self, units: Sequence[Vectors]) -> None:
        self.arrays: list[NDArray[Any]] = []
        self._units = {id(unit): place for place, unit in enumerate(units)}
        self._places: dict[int, int] = {}
        self._known: dict[int, int] = {}
        self._alive: list[object] = []

    def pack(self, value: object) -> Any:  # noqa: ANN401, PLR0911 - for JSON; a line a kind
        """One value and all below it."""
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return {"float": value.hex()}
        if isinstance(value, np.generic):
            return self.pack(value.item())
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, tuple | list):
            return {type(value).__name__: [self.pack(part) for part in value]}
        if isinstance(value, dict):
            return {"dict": [[self.pack(key), self.pack(part)] for key, part in value.items()]}
        return self._object(value)

    def _array(self, array: NDArray[Any]) -> dict[str, int]:
        if id(array) in self._units:
            return {"unit": self._units[id(array)]}
        if id(array) not in self._places:
            if array.dtype.hasobject:
                raise TypeError(f"An array of {array.dtype} cannot be kept.")
            self._places[id(array)] = len(self.arrays)
            self.arrays.append(array)
        return {"array": self._places[id(array)]}

    def _object(self, value: object) -> dict[str, Any]:
        kind = type(value)
        if not is_dataclass(kind) or not kind.__module__.startswith(TRUSTED_MODULES):
            raise TypeError(f"{kind.__name__} cannot be kept.")
        if id(value) in self._known:
            return {"same": self._known[id(value)]}
        packed = {field.name: self.pack(getattr(value, field.name)) for field in fields(kind)}
        self._known[id(value)] = len(self._alive)  # numbered when whole, as they are made again
        self._alive.append(value)
        return {"class": [kind.__module__, kind.__name__], "fields": packed}


class _Unpacker:
    """Inverse of `_Packer`."""

    def __init__(self, arrays: Sequence[NDArray[Any]], units: Sequence[Vectors]) -> None:
        self._arrays, self._units = arrays, units
        self._known: list[object] = []

    def unpack(self, tree: Any) -> Any:  # noqa: ANN401 - what it was
        """One value and all below it."""
        if not isinstance(tree, dict):
            return tree
        kind, content = next(iter(tree.items()))
        if kind == "float":
            return float.fromhex(content)
        if kind in {"array", "unit", "same"}:
            return {"array": self._arrays, "unit": self._units, "same": self._known}[kind][content]
        if kind in {"tuple", "list"}:
            found = [self.unpack(part) for part in content]
            return tuple(found) if kind == "tuple" else found
        if kind == "dict":
            return {self.unpack(key): self.unpack(part) for key, part in content}
        module, name = content
        part = getattr(import_module(module), name) if module.startswith(TRUSTED_MODULES) else None
        if not (isinstance(part, type) and is_dataclass(part)):
            raise TypeError(f"{module}.{name} is not allowed in a lesson.")
        made = part(**{k: self.unpack(v) for k, v in tree["fields"].items()})
        self._known.append(made)
        return made
