"""An agent, through the official client of the protocol, over standard input and output."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="agents need the mcp package: pip install 'readbench[service]'")

import mcp
from mcp.client.client import Client

from readbench.cases import Library
from readbench.cases.mcp import agent_server
from tests.cases.samples import FAST
from tests.cases.server.test_api import csv

READING = sorted(
    [
        *("cases_to_label_next", "doubtful_labels", "explain_match", "find", "find_similar_cases", "get_case"),
        *("check", "history", "library_overview", "separation", "show", "stats"),
    ]
)


def talk(server: Any, *calls: tuple[str, dict[str, Any]]) -> tuple[list[str], list[Any]]:  # noqa: ANN401
    """Names of the tools of a server, and the results of calls."""

    async def run() -> tuple[list[str], list[Any]]:
        async with Client(server) as client:
            tools = sorted(tool.name for tool in (await client.list_tools()).tools)
            return tools, [await client.call_tool(name, given) for name, given in calls]

    return asyncio.run(asyncio.wait_for(run(), 120))


def test_an_agent_finds_explains_and_reads(library: Library, tmp_path: Path) -> None:
    library.edit("w0", notes="Replaced the seal.")
    (tmp_path / "new.csv").write_bytes(csv("leak"))
    command = ["-m", "readbench", "cases", "mcp", str(tmp_path / "library"), "--method", FAST]
    tools, (found, match, case, unknown, refused) = talk(
        mcp.StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ)),
        ("find_similar_cases", {"file": str(tmp_path / "new.csv"), "time_column": "t", "k": 3}),
        ("explain_match", {"file": str(tmp_path / "new.csv"), "time_column": "t", "like": "w0"}),
        ("get_case", {"case": "w0"}),
        ("get_case", {"case": "w00"}),
        ("label_case", {"case": "w0", "fault": "x"}),
    )
    assert tools == READING
    cases = found.structured_content["cases"]
    assert [hit["fault"] for hit in cases] == ["leak"] * 3
    assert {hit["id"] for hit in cases} <= {case.id for case in library.cases()}
    assert len(found.content[0].text) < 2000
    alike = {channel["name"] for channel in match.structured_content["channels"] if channel["departs_alike"]}
    assert alike == {"pressure", "flow"}
    assert case.structured_content["notes"] == "Replaced the seal."
    assert unknown.is_error
    assert "Did you mean 'w0'" in unknown.content[0].text
    assert refused.is_error
    assert library.case("w0").label == "leak"


def test_an_agent_is_told_what_to_label_and_what_to_check(library: Library) -> None:
    library.label("w0", None)
    library.label("w4", "noise")
    _, (following, doubtful) = talk(
        agent_server(library, method=FAST), ("cases_to_label_next", {"k": 50}), ("doubtful_labels", {"k": 1})
    )
    first = following.structured_content["result"]
    assert [(case["id"], case["may_be"], case["tells_about"]) for case in first] == [("w0", "leak", 0)]
    assert [(case["id"], case["rather"]) for case in doubtful.structured_content["result"]] == [("w4", "stuck valve")]


def test_an_agent_that_may_write_adds_and_labels(library: Library, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_bytes(csv("noise"))
    given = {"file": str(tmp_path / "new.csv"), "time_column": "t", "asset": "pump 7"}
    server = agent_server(library, method=FAST, writable=True)
    tools, (added, labelled) = talk(server, ("add_case", given), ("label_case", {"case": "w1", "fault": "noise"}))
    assert tools == sorted([*READING, "add_case", "label_case"])
    assert library.case(added.structured_content["id"]).asset == "pump 7"
    assert labelled.structured_content["label"] == library.case("w1").label == "noise"


def test_an_agent_says_when_it_began(library: Library, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_bytes(csv("leak"))
    told = {"file": str(tmp_path / "new.csv"), "time_column": "t", "onset": "10", "facts": {"speed": 29.5}}
    _, (found, match, added, wrong) = talk(
        agent_server(library, method=FAST, writable=True),
        ("find_similar_cases", told),
        ("explain_match", told | {"like": "w0"}),
        ("add_case", told | {"rate": 10.0}),
        ("find_similar_cases", told | {"before_file": str(tmp_path / "none.csv")}),
    )
    assert found.structured_content["cases"]
    assert match.structured_content["normal_is"].startswith("the 10 steps before it")
    own = library.window(added.structured_content["id"])[0]
    assert own.before is not None
    assert (own.before.shape, own.rate, own.facts) == ((3, 10), 10.0, {"speed": 29.5})
    assert "There is no file" in wrong.content[0].text
