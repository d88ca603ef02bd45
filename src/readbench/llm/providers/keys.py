"""Keys, read from the environment at the moment of a call and kept nowhere."""

from __future__ import annotations

import os

from readbench.errors import UsageError


def key(variable: str) -> str:
    """The value of a variable that must be set."""
    if value := os.environ.get(variable):
        return value
    raise UsageError(f"Set {variable} in the environment: the provider does not answer without it.")
