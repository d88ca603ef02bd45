"""The case library is an optional part."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("lancedb", reason="the case library needs LanceDB: pip install 'readbench[cases]'")

from readbench.cases import Library
from tests.cases.postgres import PostgresServer, running_server
from tests.cases.samples import filled


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """Twelve labelled cases of three faults, ten normals."""
    return filled(tmp_path / "library")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A real server, or a skip that says what is missing."""
    pytest.importorskip("psycopg", reason="needs psycopg: pip install 'readbench[postgres]'")
    with running_server() as server:
        if server is None:
            pytest.skip("no PostgreSQL server: install it (Debian: apt install postgresql)")
        yield server


@pytest.fixture(params=["lance", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place where no library is yet, in each of the back ends."""
    if request.param == "lance":
        return str(tmp_path / "library")
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new()
