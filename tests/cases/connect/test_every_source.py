"""What every family of sources does alike: a server that is slow or away is left in time and named."""

from __future__ import annotations

import time
from contextlib import ExitStack
from importlib.util import find_spec

import pytest

from readbench.cases.connect import FAMILIES, open_source
from readbench.errors import UnreachableError
from tests.cases.connect import servers

PLACES = {
    "prometheus": "/?timeout=0.3",
    "victoriametrics": "/?timeout=0.3",
    "influxdb": "/plant?timeout=0.3",
    "influxdb2": "/plant?timeout=0.3",
    "postgresql": "/plant?table=readings&timeout=0.3",
    "mqtt": "/plant/#?timeout=0.3",
    "opc.tcp": "/?timeout=0.3",
}


def test_every_family_with_a_server_is_here() -> None:
    assert set(PLACES) == set(FAMILIES) - {"folder"}


@pytest.mark.parametrize("how", ["slow", "away"])
@pytest.mark.parametrize("family", PLACES)
def test_a_server_that_does_not_answer_is_left_in_time_and_named(family: str, how: str) -> None:
    if find_spec(FAMILIES[family][2]) is None:
        pytest.skip(f"needs {FAMILIES[family][2]}: pip install 'readbench[{FAMILIES[family][3]}]'")
    with ExitStack() as stack:
        place = stack.enter_context(servers.SlowServer()) if how == "slow" else f"127.0.0.1:{servers.free_port()}"
        source = open_source(f"{family}://{place}{PLACES[family]}")
        began = time.monotonic()
        with pytest.raises(UnreachableError, match=r"does not answer: \S.*Is it running there\?"):
            source.channels()
        assert time.monotonic() - began < 8
        source.close()
