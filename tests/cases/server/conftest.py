"""The service is an optional part; its tests run against a small library with known faults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("lancedb", reason="the service needs the extra `service`: pip install 'readbench[dev,service]'")
pytest.importorskip("fastapi", reason="the service needs the extra `service`: pip install 'readbench[dev,service]'")
pytest.importorskip("prometheus_client", reason="the service needs the extra `service`")
pytest.importorskip("httpx2", reason="needs httpx2: pip install 'readbench[dev]'")

from fastapi.testclient import TestClient

from readbench.cases import Library
from readbench.cases.server import AuditLog, KeyFile, Role, Settings
from readbench.cases.server._app import create_app
from tests.cases.samples import FAST, filled

SETTINGS = Settings(methods=(FAST, "euclidean"), max_bytes=400_000, max_points=20_000, max_channels=60)


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """Twelve labelled cases of three faults, ten normals."""
    return filled(tmp_path / "library")


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, str]:
    """A token for each role, kept in `keys.json`."""
    file = KeyFile(tmp_path / "keys.json")
    return {name: file.add(name, Role.parse(name)) for name in ("read", "write", "admin")}


@pytest.fixture
def client(library: Library) -> Iterator[TestClient]:
    """The service without keys, as it runs on loopback."""
    with TestClient(create_app(library, SETTINGS), base_url="http://localhost") as client:
        yield client


@pytest.fixture
def guarded(library: Library, keys: dict[str, str], tmp_path: Path) -> Iterator[TestClient]:
    """The service with the keys of `keys` and an audit log."""
    assert keys
    app = create_app(library, SETTINGS, KeyFile(tmp_path / "keys.json"), AuditLog(tmp_path / "audit.jsonl", None))
    with TestClient(app, base_url="https://cases.example") as client:
        yield client
