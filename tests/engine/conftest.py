"""Tests of methods run with unwritten memory shown: a number that nobody computed is NaN, not what lay there before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from readbench.engine.testing import unwritten_memory_shown


@pytest.fixture(autouse=True)
def unwritten_memory() -> Iterator[None]:
    with unwritten_memory_shown():
        yield
