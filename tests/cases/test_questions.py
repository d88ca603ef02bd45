"""Questions are declared once: every door offers them, and all doors give the same answer."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

pytest.importorskip("fastapi", reason="the doors of the library need the extra `service`")
pytest.importorskip("mcp", reason="the doors of the library need the extra `service`")

from fastapi.testclient import TestClient
from mcp import Client

from readbench.cases import QUESTIONS, Library
from readbench.cases.mcp import agent_server
from readbench.cases.server import Settings
from readbench.cases.server._app import create_app
from readbench.cli.cases import list_command
from readbench.cli.cases_questions import REVIEW_QUESTIONS, add_questions
from readbench.errors import ParameterError, UnknownNameError, UsageError
from tests.cases.samples import CHANNELS, FAST, filled

DOCUMENT = Path(__file__).parents[2] / "docs" / "extending.md"
DAY_S = 86400.0


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """Twelve cases, one of them open and one under a wrong label; pump 0 has had no case for some weeks."""
    library = filled(tmp_path_factory.mktemp("asked") / "library")
    library.label("w0", None)
    library.label("w4", "noise")
    for number, case in enumerate(library.cases()):
        late = 40 * DAY_S if case.asset == "pump 1" else 0.0
        library.edit(case.id, time=1.7e9 + number * DAY_S + late, notes=f"Note of {case.id}.")
    return library


@pytest.fixture
def quiet() -> Iterator[None]:
    """The question of the document, declared as its code stands there."""
    blocks = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    code = next(block for block in blocks if "@question(" in block)
    before = dict(QUESTIONS)
    exec(compile(code, str(DOCUMENT), "exec"), {"__name__": "quiet"})  # noqa: S102 - our own document
    yield
    QUESTIONS.clear()
    QUESTIONS.update(before)


def over_http(library: Library, path: str, **given: Any) -> Any:  # noqa: ANN401
    app = create_app(library, Settings(methods=(FAST,)))
    with TestClient(app, base_url="http://localhost") as client:
        return client.post(path, json=given["json"]) if "json" in given else client.get(path, **given)


def typed(*words: str) -> Any:  # noqa: ANN401
    """What a command line with all questions of this moment prints."""
    app = typer.Typer()
    add_questions(app)
    app.command("list")(list_command)
    return CliRunner().invoke(app, list(words), catch_exceptions=False)


def as_agent(library: Library, tool: str, given: dict[str, Any]) -> tuple[set[str], Any]:
    async def talk() -> tuple[set[str], Any]:
        async with Client(agent_server(library, method=FAST)) as client:
            names = {own.name for own in (await client.list_tools()).tools}
            return names, await client.call_tool(tool, given)

    return asyncio.run(talk())


@pytest.mark.usefixtures("quiet")
def test_the_question_of_the_document_is_at_every_door(asked: Library) -> None:
    expected = [own.model_dump() for own in asked.ask("quiet", days=7)]
    assert [own["asset"] for own in expected] == ["pump 0"]
    assert over_http(asked, "/api/v1/quiet", params={"days": 7}).json() == expected
    assert over_http(asked, "/api/v1/quiet", params={"days": -1}).status_code == 422
    assert json.loads(typed("quiet", asked.store.where, "--days", "7", "--json").output) == expected
    assert "pump 0" in typed("quiet", asked.store.where, "--days", "7").output
    assert "How long a while is." in typed("quiet", "--help").output
    names, answer = as_agent(asked, "quiet", {"days": 7})
    assert "quiet" in names
    assert answer.structured_content["result"] == expected
    page = over_http(asked, "/ask/quiet", params={"days": 7}, headers={"accept": "text/html"}).text
    assert "<td>pump 0</td>" in page
    assert "no asset has been quiet for so long" in over_http(asked, "/ask/quiet", params={"days": 999}).text


ARGUMENTS: dict[str, dict[str, Any]] = {
    "find": {"text": "note", "k": 100},
    "explain": {"window": "w0", "like": "w1"},
    "check": {"window": "w0"},
    "show": {"case": "w1"},
}


def typed_as(name: str, where: str, given: dict[str, Any]) -> list[str]:
    """The words of a question on the command line."""
    if name in REVIEW_QUESTIONS:
        return ["review", where, "--what", name]
    listed = {"find": ("--text", given.get("text", "")), "stats": ("--counts",)}
    return ["list", where, *listed[name]] if name in listed else [name, where, *given.values()]


@pytest.mark.parametrize("name", list(QUESTIONS))
def test_all_doors_give_the_same_answer(asked: Library, name: str) -> None:
    question, given = QUESTIONS[name], ARGUMENTS.get(name, {})
    method = {"method": FAST} if "method" in question.parameters else {}
    answer = asked.ask(name, **given, **method)
    expected = (
        [own.model_dump(mode="json") for own in answer] if isinstance(answer, list) else answer.model_dump(mode="json")
    )
    assert expected
    if "window" in given:
        body = {"case": given["window"]} | {key: value for key, value in given.items() if key != "window"}
        assert over_http(asked, f"/api/v1/{name}", json=body).json() == expected
    else:
        assert over_http(asked, f"/api/v1/{name}", params=given).json() == expected
    options = [word for key, value in method.items() for word in (f"--{key}", value)]
    words = [*typed_as(name, asked.store.where, given), *options]
    assert json.loads(typed(*words, "--json").output) == expected
    assert typed(*words).exit_code == 0
    page = over_http(asked, f"/ask/{name}", params=given)
    assert page.status_code == 200
    assert "<td>" in page.text


@pytest.mark.parametrize("name", list(QUESTIONS))
def test_every_question_says_what_it_is(name: str) -> None:
    question = QUESTIONS[name]
    assert question.summary.endswith(".")
    assert all(own.help for own in question.parameters.values() if own.given_by is None)
    assert repr(question).count("\n") < 5


def test_routes_keep_their_parameters(asked: Library) -> None:
    """What programs have been written against."""
    paths = create_app(asked, Settings(methods=(FAST,))).openapi()["paths"]
    found = {
        name: {
            own["name"]: (own["schema"]["default"], own["schema"]["minimum"], own["schema"]["maximum"])
            for own in paths[f"/api/v1/{name}"]["get"].get("parameters", [])
        }
        for name in ("stats", "history", "next", "doubtful")
    }
    assert found == {
        "stats": {},
        "history": {"limit": (100, 1, 1000)},
        "next": {"k": (10, 1, 100)},
        "doubtful": {"k": (20, 1, 100)},
    }
    assert paths["/api/v1/next"]["get"]["operationId"] == "next_to_label_api_v1_next_get"
    body = paths["/api/v1/explain"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/ExplainBody"}


def test_a_page_asks_for_what_is_missing(asked: Library) -> None:
    page = over_http(asked, "/ask/find").text
    assert 'name="text"' in page
    assert "<table>" not in page
    assert over_http(asked, "/ask/nonsense").status_code == 404
    assert over_http(asked, "/ask/next", params={"k": "many"}).status_code == 400
    refused = over_http(asked, "/ask/next", params={"k": 1000})
    assert (refused.status_code, "at most 100" in refused.text) == (400, True)


def test_wrong_questions_get_a_sentence(asked: Library) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'doubtful'"):
        asked.ask("doubtfull")
    with pytest.raises(UsageError, match=r"'doubtful' has no parameter 'n'. It has: k, method"):
        asked.ask("doubtful", n=3)
    with pytest.raises(UsageError, match="'find' needs the parameter 'text'"):
        asked.ask("find")
    with pytest.raises(ParameterError, match=r"'k' parameter of next must be an int in the range \[1, inf\)"):
        asked.ask("next", k=0)


def test_agents_get_few_and_never_many(asked: Library) -> None:
    _, some = as_agent(asked, "find", {"text": "note"})
    _, most = as_agent(asked, "history", {"limit": 500})
    assert len(some.structured_content["result"]) == 5
    assert len(most.structured_content["result"]) == 16
    _, glance = as_agent(asked, "library_overview", {})
    assert glance.structured_content["faults"] == {"": 1, "leak": 3, "noise": 5, "stuck valve": 3}


def test_a_window_of_a_file_is_explained(asked: Library, tmp_path: Path) -> None:
    own = asked.window("w3")
    rows = [",".join([str(step), *map(str, row)]) for step, row in enumerate(own.values(0).T)]
    (tmp_path / "new.csv").write_text("\n".join([",".join(("t", *CHANNELS)), *rows]))
    words = ("explain", asked.store.where, str(tmp_path / "new.csv"), "w3", "--time", "t", "--asset", "pump 1")
    evidence = json.loads(typed(*words, "--figure", str(tmp_path / "why.png"), "--json").output)
    assert evidence["distance"] == pytest.approx(0.0, abs=1e-3)
    assert evidence["reference"] == "5 normal windows of pump 1"
    assert (tmp_path / "why.png").stat().st_size > 10_000
