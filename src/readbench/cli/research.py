"""Check for the `research` package, which only a checkout of the repository has."""

from __future__ import annotations

from importlib.util import find_spec

from readbench.errors import UsageError


def require_research() -> None:
    """Raise if `research` cannot be imported, and say how to install it."""
    if find_spec("research") is None:
        raise UsageError(
            "Speed benchmarks are part of the repository, not of the installed package: run this in a checkout"
            " that is installed with `pip install --editable .`"
        )
