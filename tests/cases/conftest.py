"""The case library is an optional part."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("lancedb", reason="the case library needs LanceDB: pip install 'readbench[cases]'")

from readbench.cases import Library
from tests.cases.samples import filled


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """Twelve labelled cases of three faults, ten normals."""
    return filled(tmp_path / "library")
