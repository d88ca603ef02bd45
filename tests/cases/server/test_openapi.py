"""Whatever is sent to a described route, rightly or wrongly, the service answers as described and never breaks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable

pytest.importorskip("schemathesis", reason="needs schemathesis: pip install 'readbench[dev]'")

import schemathesis
from schemathesis.checks import not_a_server_error, response_schema_conformance, status_code_conformance

from readbench.cases.server import KeyFile, Role
from readbench.cases.server._app import create_app
from tests.cases.samples import filled
from tests.cases.server.conftest import SETTINGS

EXAMPLES = settings().max_examples // 10
"""For each route; `make test-random` draws more."""
CHECKS = (not_a_server_error, response_schema_conformance, status_code_conformance)


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, dict[str, str]]:
    """The description, and the header of an administrator."""
    folder = tmp_path_factory.mktemp("openapi")
    keys = KeyFile(folder / "keys.json")
    header = {"Authorization": f"Bearer {keys.add('all', Role.ADMIN)}"}
    app = create_app(filled(folder / "library", 6), SETTINGS, keys)
    return schemathesis.openapi.from_asgi("/openapi.json", app), header


@pytest.mark.hypothesis  # of the examples inside it
@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode))
def test_no_request_breaks_the_service(described: tuple[Any, dict[str, str]], mode: Any) -> None:  # noqa: ANN401
    """`mode` is whether the requests fit the description or break it."""
    schema, header = described
    for found in schema.get_all_operations():
        operation = found.ok()

        @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy(generation_mode=mode))
        def probe(case: Any) -> None:  # noqa: ANN401
            case.call_and_validate(headers=header, checks=CHECKS)

        try:
            probe()
        except Unsatisfiable:
            assert not operation.body, f"{operation.label}: nothing could be sent"


def test_every_route_is_described(described: tuple[Any, dict[str, str]]) -> None:
    paths = {(method, path) for path, methods in described[0].raw_schema["paths"].items() for method in methods}
    assert len(paths) == 29
    assert ("post", "/api/v1/search") in paths
    for path, methods in described[0].raw_schema["paths"].items():
        for method, about in methods.items():
            assert about.get("description"), (method, path)
