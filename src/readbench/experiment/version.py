"""The version of everything that decides a number."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import readbench

ROOMS = ("kernels", "windows", "data", "encoders", "llm", "retrieve", "rerank", "supervised", "evaluate")
MODULES = (
    "ranking.py",
    "pipeline.py",
    "spec.py",
    "parameters.py",
    "registry.py",
    "experiment/budget.py",
    "experiment/noise.py",
)


@cache
def code_version() -> str:
    """Package version and a hash of the source files that decide numbers: results of other code are never mixed in."""
    package = Path(readbench.__file__).parent
    digest = hashlib.sha256()
    files = [package / name for name in MODULES]
    files += [path for room in ROOMS for path in sorted((package / room).rglob("*.py"))]
    for path in files:
        digest.update(path.relative_to(package).as_posix().encode())
        digest.update(path.read_bytes())
    return f"{readbench.__version__}+{digest.hexdigest()[:12]}"
