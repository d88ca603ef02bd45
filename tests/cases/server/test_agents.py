"""An agent, through the official client of the protocol, over standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="agents need the mcp package: pip install 'readbench[service]'")

import httpx2
import mcp
import numpy as np
from fastapi.testclient import TestClient
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from readbench.cases import Library
from readbench.cases.mcp import agent_server
from readbench.cases.server import KeyFile, Role
from tests.cases.samples import CHANNELS, FAST, filled, window
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
    command += ["--root", str(tmp_path)]
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
    server = agent_server(library, roots=[tmp_path], method=FAST, writable=True)
    tools, (added, labelled) = talk(server, ("add_case", given), ("label_case", {"case": "w1", "fault": "noise"}))
    assert tools == sorted([*READING, "add_case", "label_case", "undo_change"])
    assert library.case(added.structured_content["id"]).asset == "pump 7"
    assert labelled.is_error
    assert "says something already: label is 'stuck valve'" in labelled.content[0].text
    seen = library.case("w1").changed
    _, (sure, stale, history, undone) = talk(
        server,
        ("label_case", {"case": "w1", "fault": "noise", "seen": seen}),
        ("label_case", {"case": "w1", "fault": "leak", "seen": seen}),
        ("history", {"limit": 1}),
        ("undo_change", {"change": 4}),
    )
    assert sure.structured_content["label"] == "noise"
    assert "was changed since you saw it" in stale.content[0].text
    assert history.structured_content["result"][0] | {"time": 0} == {
        "number": 4,
        "what": "edit",
        "cases": 1,
        "time": 0,
        "undone": False,
        "author": "agent",
        "takes_back": None,
        "detail": "w1: label stuck valve -> noise",
    }
    assert undone.structured_content["number"] == 4
    assert library.case("w1").label == "stuck valve"


def test_tools_say_what_they_do_and_what_every_parameter_means(library: Library) -> None:
    async def run() -> list[Any]:
        async with Client(agent_server(library, method=FAST, writable=True)) as client:
            return list((await client.list_tools()).tools)

    tools = {tool.name: tool for tool in asyncio.run(run())}
    for tool in tools.values():
        assert tool.description
        for name, about in tool.input_schema["properties"].items():
            assert about.get("description"), (tool.name, name)
    hints = {name: (tool.annotations.read_only_hint, tool.annotations.destructive_hint) for name, tool in tools.items()}
    assert {name for name, (read_only, _) in hints.items() if not read_only} == {
        "add_case",
        "label_case",
        "undo_change",
    }
    assert {name for name, (_, destroys) in hints.items() if destroys} == {"label_case", "undo_change"}


def dated(fault: str) -> bytes:
    """A recording with a date in each row and a channel more."""
    head, *rows = csv(fault).decode().splitlines()
    lines = [f"2024-05-01T00:00:{i:02d},{row.split(',', 1)[1]},{i}" for i, row in enumerate(rows)]
    return "\n".join([f"{head},extra", *lines]).encode()


def test_an_agent_chooses_an_interval_and_columns_and_the_time_is_kept(library: Library, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_bytes(dated("leak"))
    told = {
        "file": str(tmp_path / "new.csv"),
        "first": "2024-05-01T00:00:10",
        "last": "2024-05-01T00:00:29",
        "channels": ["pressure", "flow"],
    }
    _, (added, again, found) = talk(
        agent_server(library, roots=[tmp_path], method=FAST, writable=True),
        ("add_case", told | {"notes": "wet floor"}),
        ("add_case", told),
        ("find", {"text": "floor"}),
    )
    own = library.case(added.structured_content["id"])
    assert (own.time, own.end) == (1714521610.0, 1714521629.0)
    assert library.window(own.id).channels(0) == ("pressure", "flow")
    assert library.window(own.id).values(0).shape == (2, 20)
    assert again.structured_content["id"] == own.id
    assert again.structured_content["remarks"][-1].startswith("The library already has this window")
    assert [case["id"] for case in found.structured_content["result"]] == [own.id]


def inline(fault: str) -> dict[str, list[float | None]]:
    values = window(fault, np.random.default_rng(5)).tolist()
    return dict(zip(CHANNELS, values, strict=True))


def test_an_agent_sends_values(library: Library) -> None:
    values = inline("leak")
    holed = {name: [None, *row[1:]] for name, row in values.items()}
    _, (found, chosen, begun, uneven, both, unknown) = talk(
        agent_server(library, method=FAST),
        ("find_similar_cases", {"values": holed, "k": 2}),
        ("find_similar_cases", {"values": values, "channels": ["pressure", "flow"], "k": 2}),
        ("explain_match", {"values": values, "onset": "10", "like": "w0"}),
        ("find_similar_cases", {"values": values | {"flow": [1.0]}}),
        ("find_similar_cases", {"values": values, "case": "w0"}),
        ("find_similar_cases", {"values": values, "channels": ["level"]}),
    )
    assert [case["fault"] for case in found.structured_content["cases"]] == ["leak"] * 2
    assert chosen.structured_content["cases"]
    assert begun.structured_content["normal_is"].startswith("the 10 steps before it")
    assert "the same number of readings" in uneven.content[0].text
    assert "Give either a case" in both.content[0].text
    assert "no values of channel 'level'" in unknown.content[0].text


def test_agents_come_over_http_with_a_key(tmp_path: Path) -> None:
    where = tmp_path / "library"
    library = filled(where)
    keys = KeyFile(where / "keys.json")
    tokens = {role: keys.add(role, Role.parse(role)) for role in ("read", "write")}
    process = subprocess.Popen(
        [sys.executable, "-m", "readbench", "cases", "serve", str(where), "--port", "0", "--method", FAST],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ.copy(),
    )
    try:
        assert process.stderr is not None
        said = next(line for line in process.stderr if " at http://" in line)
        assert said.startswith("12 cases at http://127.0.0.1:")
        address = f"{said.split(' at ')[1].split()[0]}/mcp"

        async def run(token: str, *calls: tuple[str, dict[str, Any]]) -> tuple[dict[str, Any], list[Any]]:
            headers = {"Authorization": f"Bearer {token}"}
            async with (
                httpx2.AsyncClient(headers=headers) as http,
                Client(streamable_http_client(address, http_client=http)) as client,
            ):
                tools = {tool.name: tool for tool in (await client.list_tools()).tools}
                return tools, [await client.call_tool(name, given) for name, given in calls]

        label = "label_case", {"case": "w0", "fault": "noise", "seen": library.case("w0").changed}
        calls = ("find_similar_cases", {"values": inline("leak"), "k": 3}), label
        tools, (found, refused) = asyncio.run(asyncio.wait_for(run(tokens["read"], *calls), 60))
        assert "file" not in tools["find_similar_cases"].input_schema["properties"]
        assert [case["fault"] for case in found.structured_content["cases"]] == ["leak"] * 3
        assert "needs a key with the role write" in refused.content[0].text
        _, (labelled,) = asyncio.run(asyncio.wait_for(run(tokens["write"], label), 60))
        assert labelled.structured_content["label"] == "noise"
        assert library.history()[-1].author == "write"
        assert httpx2.post(address, json={}).status_code == 401
        events = [json.loads(line) for line in (where / "audit.jsonl").read_text().splitlines()]
        assert ["3: edit of w0"] in [event["changes"] for event in events if event["key"] == "write"]
    finally:
        process.terminate()
        process.communicate(timeout=30)


def test_an_agent_says_by_which_clock(library: Library, tmp_path: Path) -> None:
    header, *rows = csv("leak").decode().split("\n")
    dated = [f"2025-06-01 12:{int(step):02}:00,{rest}" for step, rest in (row.split(",", 1) for row in rows)]
    (tmp_path / "new.csv").write_text("\n".join([header, *dated]))
    told = {"file": str(tmp_path / "new.csv"), "zone": "+01:00", "first": "2025-06-01 12:05"}
    _, (added, wrong) = talk(
        agent_server(library, roots=[tmp_path], method=FAST, writable=True),
        ("add_case", told),
        ("find_similar_cases", told | {"zone": "Atlantis"}),
    )
    case = library.case(added.structured_content["id"])
    assert (case.time, case.zone) == (datetime(2025, 6, 1, 11, 5, tzinfo=UTC).timestamp(), "+01:00")
    assert "no time zone" in wrong.content[0].text


def test_an_agent_says_when_it_began(library: Library, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_bytes(csv("leak"))
    told = {"file": str(tmp_path / "new.csv"), "time_column": "t", "onset": "10", "facts": {"speed": 29.5}}
    _, (found, match, added, wrong) = talk(
        agent_server(library, roots=[tmp_path], method=FAST, writable=True),
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


def test_an_agent_over_http_holds_no_connection_open(client: TestClient) -> None:
    for method in ("GET", "DELETE"):
        assert client.request(method, "/mcp", headers={"Accept": "text/event-stream"}).status_code == 405
