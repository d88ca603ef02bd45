"""`readbench doctor`: what is missing, and the one command that helps."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from readbench.cli import app, doctor
from readbench.engine import registry

Facts = dict[str, dict[str, str]]


def typed(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["doctor", *words])
    assert done.exit_code == code, done.output
    return done.stdout


def facts(code: int = 0) -> Facts:
    return {row["part"]: row for row in json.loads(typed("--json", code=code))}


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without weights and language models."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    for name in ("READBENCH_MODELS", "READBENCH_LLM", "READBENCH_DATA"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


DECLARED = (
    "numpy>=2.3",
    "torch>=2.6; extra == 'models'",
    "mantis-tsfm>=1.1; extra == 'models'",
    "torch>=2.6; extra == 'training'",
    "fastapi>=0.1; extra == 'service'",
    "lancedb>=0.3; extra == 'service'",
    "anthropic[bedrock]>=2; extra == 'llm'",
    "ruff; extra == 'dev'",
    "readbench[models,llm]; extra == 'all'",
)
"""What a package may declare, whatever is installed here."""


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A machine that has everything but these modules and distributions."""

    def hide(*modules: str, distributions: tuple[str, ...] = ()) -> None:
        def found(name: str) -> str:
            if name in distributions:
                raise PackageNotFoundError(name)
            return "99"

        monkeypatch.setattr(registry, "_importable", lambda name: name not in modules)
        monkeypatch.setattr(doctor, "requires", lambda _: DECLARED)
        monkeypatch.setattr(doctor, "version", found)

    return hide


def test_a_healthy_installation_is_told_in_few_lines() -> None:
    found = facts()
    assert found["readbench needs"]["state"].endswith("packages, all here")
    assert {"data root", "cache", "extras", "methods"} <= set(found)
    assert not {"numpy", "ruff", "extra dev", "extra all"} & set(found), "one line for all that is well"


def test_no_command_is_told_twice(without: Callable[..., None]) -> None:
    without("torch", "mantis", "chronos", "tirex", distributions=("torch", "mantis-tsfm", "fastapi", "anthropic"))
    rows = json.loads(typed("--json"))
    remedies = [row["what to do"] for row in rows if row["what to do"]]
    assert len(set(remedies)) == len(remedies)
    assert len({row["part"] for row in rows}) == len(rows)
    found = {row["part"]: row for row in rows}
    assert found["extra service"] == {
        "part": "extra service",
        "state": "lacks fastapi",
        "what to do": "pip install 'readbench[service]'",
    }
    assert found["extra llm"]["what to do"] == "pip install 'readbench[llm]'"
    assert "extra models" not in found, "its methods ask for it"
    named = next(row for row in rows if row["what to do"] == "pip install 'readbench[models]'")
    assert {"mantis", "chronos-2", "tirex", "ts2vec"} <= set(named["part"].split(", "))
    assert named["state"].startswith("needs torch, ")


def test_each_method_says_what_it_lacks_and_the_one_command_that_helps(without: Callable[..., None]) -> None:
    without("mantis")
    found = facts()
    assert found["mantis"] == {
        "part": "mantis",
        "state": "needs mantis",
        "what to do": "pip install 'readbench[models]'",
    }
    assert found["classify, llm"]["what to do"].startswith("export READBENCH_LLM=")
    assert found["onnx"]["what to do"] == "onnx(FILE)"
    assert found["charm"]["state"] == "needs weights, which are not public"


def test_extras_are_not_taken_for_markup(without: Callable[..., None]) -> None:
    without("mantis")
    assert "readbench[models]" in "".join(typed().split()).replace("│", "")
    shown = CliRunner().invoke(app, ["list", "methods"], env={"COLUMNS": "200"}).stdout
    assert "readbench[models]" in "".join(shown.split()).replace("│", "")


def test_weights_are_asked_for_by_the_command_that_fetches_them_and_shown_once_they_are_here(bare: Path) -> None:
    pytest.importorskip("chronos")
    lacking = facts()
    assert lacking["chronos-2"]["state"] == "needs the weights amazon/chronos-2"
    assert lacking["chronos-2"]["what to do"] == "readbench models fetch chronos-2"
    home = bare / "hub" / "models--amazon--chronos-2"
    (home / "snapshots" / "abc123").mkdir(parents=True)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text("abc123")
    for name in ("config.json", "model.safetensors"):
        (home / "snapshots" / "abc123" / name).write_bytes(b"{}")
    found = facts()
    assert "chronos-2" not in found
    assert found["weights of chronos-2"]["state"] == "amazon/chronos-2@abc123, 0.0 MB"


def test_language_models_are_told_by_profile(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profiles = bare / "llm.toml"
    profiles.write_text(
        '[local]\nprovider = "toto-http"\nmodel = "toto"\nbase_url = "http://localhost:1"\n'
        '[keyed]\nprovider = "toto-http"\nmodel = "toto"\nbase_url = "http://localhost:1"\nkey_env = "NO_SUCH_KEY"\n'
        '[wrong]\nprovider = "toto-http"\n'
    )
    monkeypatch.setenv("READBENCH_LLM", str(profiles))
    found = facts(code=1)
    assert found["language model local"]["state"].startswith("ready: toto of toto-http; spent so far 0 calls")
    assert found["language model keyed"]["what to do"] == "export NO_SUCH_KEY=..."
    assert "it needs a provider and a model" in found["language model wrong"]["state"]
    assert "classify, llm" not in found


def test_versions_that_do_not_fit_are_broken_and_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "version", lambda name: "0.1" if name == "numpy" else version(name))
    found = facts(code=1)
    assert found["numpy"]["state"].startswith("broken: 0.1, needs >=2")
    assert found["numpy"]["what to do"].startswith("pip install 'numpy>=2")


@pytest.mark.parametrize("name", ["", "NVIDIA H200"])
def test_doctor_says_where_encoders_vector_search_and_dtw_would_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.setattr("readbench.engine.devices.name_gpu", lambda: name)
    doctor.doctor_command(as_json=True)
    facts = {row["part"]: row for row in json.loads(capsys.readouterr().out)}
    assert facts["GPU"]["state"] == (name or "none")
    assert facts["encoders on torch"]["state"] == ("cuda" if name else "cpu")
    assert facts["vector search"]["state"].startswith("cuda" if name else "cpu")
    assert facts["DTW"]["state"].startswith("cpu: ")
    assert ("device=cuda" in facts["DTW"]["what to do"]) == bool(name)


def test_doctor_names_a_data_root_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("READBENCH_DATA", str(tmp_path / "nowhere"))
    assert facts(code=1)["data root"]["what to do"] == "point READBENCH_DATA at an existing folder"
