"""`readbench doctor`."""

from __future__ import annotations

import json
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import typer
from rich.table import Table

from readbench.cli.options import Json, output
from readbench.cli.research import require_research
from readbench.common.files import cache_root, data_root


def doctor_command(as_json: Json = False) -> None:
    """Say what is installed, what is missing, and what to do about it.

    Example: `readbench doctor`
    """
    facts = [*_platform(), *_packages(), *_folders(), *_models(), *_plugins()]
    if as_json:
        rows = [dict(zip(("part", "state", "what to do"), row, strict=True)) for row in facts]
        print(json.dumps(rows, indent=1))  # noqa: T201 - this is the output
    else:
        table = Table("Part", "State", "What to do")
        for row in facts:
            table.add_row(*row)
        output().print(table)
    if any(state.startswith("broken") for _, state, _ in facts):
        raise typer.Exit(1)


Fact = tuple[str, str, str]


def _platform() -> list[Fact]:
    from readbench import __version__

    require_research()
    from research.speed.contests import gpu

    return [
        ("readbench", __version__, ""),
        ("python", platform.python_version(), "" if sys.version_info >= (3, 11) else "install Python 3.11 or newer"),
        ("cores", str(os.cpu_count()), ""),
        *_devices(gpu()),
    ]


def _devices(name: str) -> list[Fact]:
    """The GPU of this name, "" for none, and where what is slow would run.

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


def _packages() -> list[Fact]:
    """Declared requirements; those of an extra are optional and named with it."""
    from packaging.requirements import Requirement

    facts: list[Fact] = []
    for text in requires("readbench") or []:
        requirement = Requirement(text)
        extra = text.partition("extra ==")[2].strip(" '\"")
        part = f"{requirement.name} [{extra}]" if extra else requirement.name
        try:
            found = version(requirement.name)
        except PackageNotFoundError:
            state, remedy = (
                ("not installed", f"pip install 'readbench[{extra}]'") if extra else ("broken", "install again")
            )
        else:
            fits = requirement.specifier.contains(found, prereleases=True)
            state = found if fits else f"broken: {found}, needs {requirement.specifier}"
            remedy = "" if fits else f"pip install '{requirement.name}{requirement.specifier}'"
        facts.append((part, state, remedy))
    return facts


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


def _models() -> list[Fact]:
    """Language models: one line a profile, with what it lacks; one where there is none."""
    from readbench.engine.llm import describe_profiles, explain_no_models

    if reason := explain_no_models():
        return [("language models", "none", reason)]
    return [
        (f"language model {name}", "ready" if state == "ready" else state.partition(":")[0], state.partition(": ")[2])
        for name, _, _, state, _ in describe_profiles()
    ]


def _plugins() -> list[Fact]:
    from readbench.engine.registry import load_plugins

    facts: list[Fact] = []
    for point, reason in load_plugins():
        origin = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
        remedy = "repair or uninstall the plug-in" if reason else ""
        facts.append((f"plug-in {point.name}", f"broken: {reason}" if reason else origin, remedy))
    return facts
