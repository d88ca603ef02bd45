"""Parts of one plan, run anywhere, become one run: the same bytes as if it had run at once, times aside."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from readbench.benchmark.runs._gallery import merge_galleries
from readbench.benchmark.runs._plan import WHOLE, Cell, Plan
from readbench.benchmark.runs._store import RunStore, qrels_path
from readbench.errors import RunError, UsageError

SAME = ("plan", "composition", "code", "methods")
"""Entries of `run.json` that all parts of a run share."""
JOINED = ("tasks", "notes", "sizes", "computed_by", "versions")
"""Entries by task, method or package: each part knows those of its own jobs."""


@dataclass(frozen=True, eq=False)
class RunPart:
    """A run folder and its `run.json`."""

    folder: Path
    manifest: dict[str, Any]

    @property
    def store(self) -> RunStore:
        """Its cells."""
        return RunStore(self.folder)


def merge(folders: Sequence[Path], out: Path) -> Plan:
    """Put the cells of several run folders into one, and write its tables.

    Where two parts hold the same cell, one that succeeded goes first. Nothing is written unless everything fits.

    Args:
        folders: parts of one plan.
        out: a folder without a run.
    """
    if (out / "run.json").exists():
        raise UsageError(f"{out} already holds a run. Choose another folder with --out.")
    parts = [RunPart(folder, _manifest(folder)) for folder in folders]
    _check(parts)
    plan = plan_of(parts[0].manifest)
    chosen = _chosen(plan, parts)
    store = RunStore(out)
    for cell, part in chosen.items():
        _copy(part.store.path(cell), store.path(cell))
        _copy(qrels_path(part.folder, cell.dataset, cell.seed), qrels_path(out, cell.dataset, cell.seed))
    store.write_tables(plan)
    merge_galleries(folders, out, plan.datasets)
    store.write_manifest(_merged([part.manifest for part in parts]))
    return plan


def plan_of(manifest: dict[str, Any]) -> Plan:
    """The plan that a `run.json` holds."""
    fields: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in manifest["plan"].items()}
    return Plan(**fields)


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads((folder / "run.json").read_text())
        # runs of earlier versions do not say what computed them
        missing = {*SAME, *JOINED, "shard", "cells", "wall_s"} - {"computed_by"} - manifest.keys()
    except (OSError, ValueError, AttributeError) as error:
        raise RunError(f"{folder} is not a run folder ({error}). Merge the folders of finished parts.") from error
    if missing:
        raise RunError(f"{folder / 'run.json'} lacks {', '.join(sorted(missing))}. Start its run again, it continues.")
    return manifest


def _check(parts: Sequence[RunPart]) -> None:
    """Refuse parts that are not of one run."""
    first = parts[0]
    for part in parts[1:]:
        for name in SAME:
            if part.manifest[name] != first.manifest[name]:
                raise RunError(
                    f"{part.folder} and {first.folder} are not parts of one run: they differ in {name}"
                    f" ({_difference(first.manifest[name], part.manifest[name])}). Run them anew with the same options"
                    " and the same version."
                )
    if differing := _first_conflict(parts, "tasks"):
        raise RunError(f"{differing}. They ran on different data: use the same data root everywhere.")
    if differing := _first_conflict(parts, "computed_by"):
        raise RunError(f"{differing}. They ran with other packages or weights: use the same everywhere.")


def _first_conflict(parts: Sequence[RunPart], entry: str) -> str:
    """Where two parts say different things of the same task or method; empty where none do."""
    known: dict[str, tuple[object, Path]] = {}
    for part in parts:
        for name, fact in part.manifest.get(entry, {}).items():
            before, folder = known.setdefault(name, (fact, part.folder))
            if before != fact:
                return f"{part.folder} and {folder} differ in {name} ({_difference(fact, before)})"
    return ""


def _difference(one: object, two: object) -> str:
    """The first thing that differs, in a few words."""
    if isinstance(one, dict) and isinstance(two, dict):
        name = next(n for n in [*one, *two] if one.get(n) != two.get(n))
        return f"{name}: {_difference(one.get(name), two.get(name))}"
    return f"{one} and {two}"


def _chosen(plan: Plan, parts: Sequence[RunPart]) -> dict[Cell, RunPart]:
    """The part to take each cell from; every cell must be somewhere."""
    chosen = {}
    for cell in plan.cells():
        holding = [part for part in parts if part.store.path(cell).exists()]
        if not holding:
            raise RunError(f"No part holds {cell}. {_absent(parts)}")
        succeeded = {part: fingerprint for part in holding if (fingerprint := part.store.finished(cell))}
        if len(set(succeeded.values())) > 1:
            raise RunError(
                f"The parts hold different results of {cell}: {', '.join(str(part.folder) for part in succeeded)}."
                " Remove the outdated one, or start its run again."
            )
        chosen[cell] = next(iter(succeeded), holding[0])
    return chosen


def _absent(parts: Sequence[RunPart]) -> str:
    """Which parts were not given, as far as it can be told."""
    given = {part.manifest["shard"] for part in parts}
    counts = {text.split("/")[1] for text in given}
    if len(counts) == 1:
        count = int(counts.pop())
        absent = [f"{n}/{count}" for n in range(1, count + 1) if f"{n}/{count}" not in given]
        if absent:
            return f"Also give the folder of part {', '.join(absent)}."
    return "A part did not end: start it again, it continues."


def _copy(source: Path, target: Path) -> None:
    if source.exists() and not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def _merged(manifests: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One `run.json`: what is known by task joined, numbers of cells and seconds added up."""
    joined = {name: _joined(manifest.get(name, {}) for manifest in manifests) for name in JOINED}
    counts = {name: sum(manifest["cells"][name] for manifest in manifests) for name in manifests[0]["cells"]}
    wall = round(sum(manifest["wall_s"] for manifest in manifests), 2)
    return manifests[0] | joined | {"shard": str(WHOLE), "cells": counts, "wall_s": wall}


def _joined(entries: Iterable[dict[str, Any]]) -> dict[str, Any]:
    together: dict[str, Any] = {}
    for entry in entries:
        together |= entry
    return dict(sorted(together.items()))
