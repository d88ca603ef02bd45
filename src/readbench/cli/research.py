"""Speed benchmarks and training live beside the package, in a checkout."""

from __future__ import annotations

from importlib.util import find_spec

from readbench.errors import UsageError


def require_research() -> None:
    """Say in one sentence what to do where `research` cannot be imported."""
    if find_spec("research") is None:
        raise UsageError(
            "Speed benchmarks are part of the repository, not of the installed package: run this in a checkout"
            " that is installed with `pip install --editable .`"
        )
