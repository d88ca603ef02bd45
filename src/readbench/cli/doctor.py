"""`readbench doctor`."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.table import Table
from rich.text import Text

from readbench.cli.options import Json, output
from readbench.common.files import cache_root, data_root

if TYPE_CHECKING:
    from packaging.requirements import Requirement

    from readbench.engine.registry import Entry

Fact = tuple[str, str, str]
"""Part, state, remedy; the remedy is "" where nothing is wrong."""
INTERNAL_EXTRAS = ("dev", "all")
"""Extras that are not suggested to users."""
REQUIRED = "readbench needs"
"""Row of all required packages."""


def doctor_command(as_json: Json = False) -> None:
    """Check the installation: packages, devices, folders, methods, and what to run for each that is missing.

    Example: `readbench doctor`
    """
    methods, extras = _methods()
    sections = [_platform(), _packages(told=extras), _folders(), methods, _language_models(), _plugins()]
    facts = [fact for section in sections for fact in section]
    if as_json:
        rows = [dict(zip(("part", "state", "what to do"), row, strict=True)) for row in facts]
        print(json.dumps(rows, indent=1))  # noqa: T201 - this is the output
    else:
        table = Table("Part", "State", "What to do")
        for section in sections:
            for row in section:
                table.add_row(*map(Text, row), end_section=row is section[-1])  # as text: [extra] is no markup
        output().print(table)
    if any(state.startswith("broken") for _, state, _ in facts):
        raise typer.Exit(1)


def _platform() -> list[Fact]:
    from readbench.engine.devices import name_gpu
    from readbench.version import __version__

    return [
        ("readbench", __version__, ""),
        ("python", platform.python_version(), "" if sys.version_info >= (3, 11) else "install Python 3.11 or newer"),
        ("cores", str(os.cpu_count()), ""),
        *_devices(name_gpu()),
    ]


def _devices(name: str) -> list[Fact]:
    """Rows on the GPU named `name` ("" for none), and the device of each slow computation.

    >>> [state for _, state, _ in _devices("NVIDIA H200")][:4]
    ['NVIDIA H200', 'cuda', 'cpu', 'cuda after encoders on cuda, else cpu']
    """
    from readbench.engine.retrievers import kernel_in_use

    lacking = "device=cuda needs an NVIDIA GPU, and torch in a build for CUDA; all else works without"
    return [
        ("GPU", name or "none", "" if name else lacking),
        ("encoders on torch", "cuda" if name else "cpu", "device=cpu keeps them off the GPU" if name else ""),
        ("sonde", "cpu", "sonde(device=cuda) encodes on the GPU" if name else ""),
        ("vector search", "cuda after encoders on cuda, else cpu" if name else "cpu", ""),
        ("DTW", f"cpu: {kernel_in_use()}", "dtw-i(device=cuda) compares on the GPU" if name else ""),
    ]


def _packages(told: set[str]) -> list[Fact]:
    """Rows on packages: one for all required, one for complete extras, one for each that lacks or misfits.

    Args:
        told: extras that rows on methods already ask to install; left out here.
    """
    declared = list(_declared())
    required = [requirement for extra, requirement in declared if not extra]
    lacking = [requirement.name for requirement in required if _installed(requirement) is None]
    state = f"broken: lacks {', '.join(lacking)}" if lacking else f"{len(required)} packages, all here"
    facts: list[Fact] = [(REQUIRED, state, "pip install --force-reinstall readbench" if lacking else "")]
    complete = []
    for extra in dict.fromkeys(extra for extra, _ in declared if extra not in ("", *INTERNAL_EXTRAS)):
        absent = [
            requirement.name for name, requirement in declared if name == extra and _installed(requirement) is None
        ]
        if not absent:
            complete.append(extra)
        elif extra not in told:
            facts.append((f"extra {extra}", f"lacks {', '.join(absent)}", f"pip install 'readbench[{extra}]'"))
    facts.append(("extras", ", ".join(complete) or "none", ""))
    return [*facts, *dict.fromkeys(_misfits(requirement for _, requirement in declared))]


def _misfits(requirements: Iterable[Requirement]) -> Iterator[Fact]:
    """Rows on packages installed in a version outside the required range."""
    for requirement in requirements:
        found = _installed(requirement)
        if found is not None and not requirement.specifier.contains(found, prereleases=True):
            yield (
                requirement.name,
                f"broken: {found}, needs {requirement.specifier}",
                f"pip install '{requirement.name}{requirement.specifier}'",
            )


def _declared() -> Iterator[tuple[str, Requirement]]:
    """Declared requirements with their extra, "" for none; references to our other extras are skipped."""
    from packaging.requirements import Requirement

    for text in requires("readbench") or []:
        requirement = Requirement(text)
        if requirement.name != "readbench":
            yield text.partition("extra ==")[2].strip(" '\""), requirement


def _installed(requirement: Requirement) -> str | None:
    try:
        return version(requirement.name)
    except PackageNotFoundError:
        return None


def _folders() -> list[Fact]:
    root, cache = data_root(), cache_root()
    if root is None:
        data: Fact = ("data root", "not set", "set READBENCH_DATA to use real data; simulated data need none")
    elif root.is_dir():
        data = ("data root", str(root), "")
    else:
        data = ("data root", f"broken: {root} is no folder", "point READBENCH_DATA at an existing folder")
    return [data, ("cache", *_cache_state(cache))]


def _cache_state(cache: Path) -> tuple[str, str]:
    existing = next(p for p in (cache, *cache.parents) if p.exists())
    if os.access(existing, os.W_OK):
        return str(cache), ""
    return f"broken: {cache} cannot be written", "set READBENCH_CACHE to a writable folder"


def _methods() -> tuple[list[Fact], set[str]]:
    """Rows on methods and weights, and the extras that they ask to install.

    Methods with the same remedy share a row.
    """
    from readbench.cli.catalogue import components
    from readbench.cli.models import describe_weights, published

    entries = [entry for _, entry in components()]
    weighty = {entry.name: describe_weights(entry) for entry in published()}
    names: dict[str, list[str]] = {}
    lacks: dict[str, dict[str, None]] = {}
    for entry in entries:
        lacking, remedy = _cure(entry, weighty.get(entry.name, {}).get("where", ""))
        if lacking:
            names.setdefault(remedy, []).append(entry.name)
            lacks.setdefault(remedy, {}).update(dict.fromkeys(lacking))
    ready = len(entries) - sum(map(len, names.values()))
    facts: list[Fact] = [("methods", f"{ready} of {len(entries)} ready", "")]
    facts += [(", ".join(methods), f"needs {', '.join(lacks[remedy])}", remedy) for remedy, methods in names.items()]
    for name, weights in weighty.items():
        if weights["where"]:
            revision = f"@{weights['revision'][:12]}" if weights["revision"] else f" in {weights['where']}"
            facts.append((f"weights of {name}", f"{weights['weights']}{revision}, {weights['bytes'] / 1e6:.1f} MB", ""))
    return facts, {entry.extra for entry in entries if entry.missing_modules()}


def _cure(entry: Entry, weights_at: str) -> tuple[list[str], str]:
    """What a method lacks, and the remedy; empty where it is ready."""
    if missing := entry.missing_modules():
        return missing, entry.installation
    reason = entry.unavailable()
    if not reason:
        return [], ""
    if "weights" in entry.parameters and entry.parameters["weights"].default and not weights_at:
        return [f"the weights {entry.parameters['weights'].default}"], f"readbench models fetch {entry.name}"
    lacking, colon, remedy = reason.rstrip(".").removeprefix("needs ").partition(": ")
    return ([lacking], remedy) if colon else (["what it says"], reason)


def _language_models() -> list[Fact]:
    """One row per language-model profile, with what it lacks."""
    from readbench.engine.llm import describe_profiles

    facts = []
    for name, provider, model, state, spending in describe_profiles():
        ready = state == "ready"
        said = f"ready: {model} of {provider}; {spending}" if ready else state.partition(":")[0]
        if state.startswith("broken"):
            said = state
        facts.append((f"language model {name}", said, "" if ready else state.partition(": ")[2]))
    return facts


def _plugins() -> list[Fact]:
    from readbench.engine.registry import load_plugins

    facts: list[Fact] = []
    for point, reason in load_plugins():
        origin = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
        remedy = "repair or uninstall the plug-in" if reason else ""
        facts.append((f"plug-in {point.name}", f"broken: {reason}" if reason else origin, remedy))
    return facts
