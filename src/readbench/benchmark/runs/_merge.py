"""Parts of one plan, run anywhere, become one run: the same bytes as if it had run at once, times aside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from readbench.benchmark.runs._folder import RunFolder
from readbench.benchmark.runs._plan import WHOLE, Cell, Plan
from readbench.errors import RunError, UsageError

SAME = ("plan", "composition", "code", "methods")
"""Entries of `run.json` that all parts of a run share."""
JOINED = ("tasks", "notes", "sizes", "computed_by", "versions")
"""Entries by task, method or package: each part knows those of its own jobs."""


@dataclass(frozen=True, eq=False)
class RunPart:
    """A folder of cells, its `run.json` and its plan."""

    folder: RunFolder
    manifest: dict[str, Any]
    plan: Plan

    def __str__(self) -> str:
        return str(self.folder.path)

    @cached_property
    def cells(self) -> frozenset[Cell]:
        """All cells of its plan."""
        return frozenset(self.plan.cells())


def merge(folders: Sequence[Path], out: Path) -> Plan:
    """Put the cells of several run folders into one, and write its tables.

    Where two parts hold the same cell, one that succeeded goes first. Nothing is written unless everything fits.

    Args:
        folders: parts of one plan.
        out: a folder without a run.
    """
    folder = RunFolder(out)
    if folder.holds_run:
        raise UsageError(f"{out} already holds a run. Choose another folder with --out.")
    parts = [_open_part(RunFolder(part)) for part in folders]
    _check(parts)
    plan = parts[0].plan
    chosen = _choose(plan, parts)
    for cell, part in chosen.items():
        folder.take(part.folder, cell)
    folder.write_tables(plan)
    folder.write_manifest(_merge_manifests([part.manifest for part in parts]))
    return plan


def plan_of(manifest: dict[str, Any]) -> Plan:
    """The plan that a `run.json` holds."""
    fields: dict[str, Any] = {n: tuple(v) if isinstance(v, list | tuple) else v for n, v in manifest["plan"].items()}
    return Plan(**fields | {"copies": tuple(map(tuple, fields.get("copies", ())))})


def _open_part(folder: RunFolder) -> RunPart:
    try:
        manifest = folder.read_manifest()
        # runs of earlier versions do not say what computed them
        missing = {*SAME, *JOINED, "shard", "cells", "wall_s"} - {"computed_by"} - manifest.keys()
    except (OSError, ValueError, AttributeError) as error:
        raise RunError(f"{folder.path} is not a run folder ({error}). Merge the folders of finished parts.") from error
    if missing:
        absent = ", ".join(sorted(missing))
        raise RunError(f"{folder.path}: its run.json lacks {absent}. Start its run again, it continues.")
    return RunPart(folder, manifest, plan_of(manifest))


def _check(parts: Sequence[RunPart]) -> None:
    """Refuse parts that are not of one run."""
    first = parts[0]
    for part in parts[1:]:
        for name in SAME:
            if part.manifest[name] != first.manifest[name]:
                raise RunError(
                    f"{part} and {first} are not parts of one run: they differ in {name}"
                    f" ({_difference(first.manifest[name], part.manifest[name])}). Run them anew with the same options"
                    " and the same version."
                )
    check_same_data(parts)
    if differing := _first_conflict(parts, "computed_by"):
        raise RunError(f"{differing}. They ran with other packages or weights: use the same everywhere.")


def check_same_data(parts: Sequence[RunPart]) -> None:
    """Raise `RunError` where two parts ran the same task on different data."""
    if differing := _first_conflict(parts, "tasks"):
        raise RunError(f"{differing}. They ran on different data: use the same data root everywhere.")


def _first_conflict(parts: Sequence[RunPart], entry: str) -> str:
    """The first task or method on which two parts disagree, in words; empty where none do."""
    known: dict[str, tuple[object, RunPart]] = {}
    for part in parts:
        for name, fact in part.manifest.get(entry, {}).items():
            before, other = known.setdefault(name, (fact, part))
            if before != fact:
                return f"{part} and {other} differ in {name} ({_difference(fact, before)})"
    return ""


def _difference(one: object, two: object) -> str:
    """The first thing that differs, in a few words."""
    if isinstance(one, dict) and isinstance(two, dict):
        name = next(n for n in [*one, *two] if one.get(n) != two.get(n))
        return f"{name}: {_difference(one.get(name), two.get(name))}"
    return f"{one} and {two}"


def _choose(plan: Plan, parts: Sequence[RunPart]) -> dict[Cell, RunPart]:
    """The part to take each cell from; every cell must be somewhere."""
    chosen = {}
    for cell in plan.cells():
        holding = [part for part in parts if part.folder.cell_path(cell).exists()]
        if not holding:
            raise RunError(f"No part holds {cell}. {_absent(parts)}")
        succeeded = {part: fingerprint for part in holding if (fingerprint := part.folder.finished(cell))}
        if len(set(succeeded.values())) > 1:
            raise RunError(
                f"The parts hold different results of {cell}: {', '.join(map(str, succeeded))}."
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


def _merge_manifests(manifests: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One `run.json`: what is known by task joined, numbers of cells and seconds added up."""
    joined = {name: join_entries(manifests, name) for name in JOINED}
    counts = {name: sum(manifest["cells"][name] for manifest in manifests) for name in manifests[0]["cells"]}
    wall = round(sum(manifest["wall_s"] for manifest in manifests), 2)
    return manifests[0] | joined | {"shard": str(WHOLE), "cells": counts, "wall_s": wall}


def join_entries(manifests: Iterable[dict[str, Any]], name: str) -> dict[str, Any]:
    """An entry of several `run.json` as one, sorted by key; later ones win."""
    joined = {key: own for manifest in manifests for key, own in manifest.get(name, {}).items()}
    return dict(sorted(joined.items()))
