"""Runs say which model made their numbers, and can be computed again from their folder alone."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from readbench.benchmark.report import Declared, overview, read_bundle, read_results, write_bundle
from readbench.benchmark.runs import run, suite, sweep
from readbench.cli import app
from readbench.engine.llm import ModelOptions, check_model, describe_spending
from readbench.engine.llm._prompts import load_prompts
from readbench.engine.llm._settings import load_profile
from readbench.engine.method import Method
from readbench.engine.windows import WindowSet
from readbench.errors import UnknownNameError, UsageError
from readbench.testing import sample_windows
from tests.engine.llm.conftest import Configure
from tests.engine.llm.server import Answered, Asked, serving, write_profiles
from tests.engine.llm.test_rerank import backwards
from tests.engine.llm.test_run import BASE, CLASSIFY, LIST, plan, statuses

REAL = ("skab", "mit_bih")
OTHER = LIST.replace("model=m", "model=n")


def two_models(asked: Asked) -> Answered:
    """The first ranks backwards and classifies; the second is not the one that was asked."""
    if "EXAMPLE 1" in asked.text:
        return Answered('{"scores": {"1": 50, "2": 20}}')
    return Answered(backwards(asked).text, model="another" if asked.model == "two" else "one-2026-01-01")


def test_a_run_names_its_models_and_is_reproducible_from_its_folder_alone(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, methods = tmp_path / "run", (BASE, LIST, OTHER, CLASSIFY)
    with serving(two_models) as loopback:
        shared: dict[str, object] = {"provider": "openai", "base_url": f"{loopback.url}/v1", "images": "none"}
        own = {"m": {**shared, "model": "one", "temperature": 0.5}, "n": {**shared, "model": "two"}}
        monkeypatch.setenv("READBENCH_LLM", str(write_profiles(tmp_path / "llm.toml", own)))
        run(plan("sim_ecg", methods=methods), folder)
        asked = len(loopback.asked)
    assert asked == 300
    before = (folder / "rankings" / "sim_ecg.parquet").read_bytes(), (folder / "usage.csv").read_bytes()
    manifest = json.loads((folder / "run.json").read_text())
    told = manifest["computed_by"][LIST]["models"][0]
    assert (told["provider"], told["model"], told["decoding"]) == ("openai", "one", {"temperature": 0.5})
    assert told["prompts"]["digest"] == load_prompts().digest
    assert told["prompts"]["text"]["question"] == load_prompts().section("list").question
    assert told["client"].startswith("openai ")
    transcripts = list((folder / "llm").rglob("*.json.gz"))
    assert len(transcripts) == asked
    kept = json.loads(gzip.decompress(transcripts[0].read_bytes()))
    assert (kept["question"]["parts"][0], kept["answer"]["calls"]) == ("QUERY", 1)
    results = read_results(folder)
    assert any("100 answers came from another model" in line for line in overview(results).remarks)
    bundle = read_bundle(write_bundle(results, Declared(name="one"), tmp_path / "one.readbench.zip"))
    assert bundle.manifest.models[LIST].answered_by == {"one-2026-01-01": 100}
    assert bundle.manifest.models[LIST].asked[0]["model"] == "one"
    shutil.rmtree(own_cache)
    shutil.rmtree(folder / "cells")
    run(plan("sim_ecg", methods=methods), folder)  # nobody serves any more
    assert statuses(folder) == {"ok"}
    assert before == ((folder / "rankings" / "sim_ecg.parquet").read_bytes(), (folder / "usage.csv").read_bytes())


@pytest.mark.long
def test_a_run_over_two_real_datasets_with_two_models_is_reproducible_from_its_folder_alone(
    tmp_path: Path, own_cache: Path
) -> None:
    data = Path(os.environ.get("READBENCH_DATA", ""))
    if not all((data / name).is_dir() for name in REAL):
        pytest.skip("needs READBENCH_DATA with skab and mit_bih")
    with serving(two_models) as loopback:
        shared = f"{loopback.url}/v1"
        methods = (BASE, *(LIST.replace("model=m", f"model=openai:{name}@{shared}") for name in ("one", "two")))
        run(plan(*REAL, methods=methods), tmp_path / "run", root=data)
        assert len(loopback.asked) == 400
    shutil.copytree(tmp_path / "run", tmp_path / "moved")
    shutil.rmtree(tmp_path / "moved" / "cells")
    shutil.rmtree(own_cache)
    run(plan(*REAL, methods=methods), tmp_path / "moved", root=data)  # nobody serves any more
    assert statuses(tmp_path / "moved") == {"ok"}
    kept = ("usage.csv", *(f"rankings/{name}.parquet" for name in REAL))
    for name in kept:
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "moved" / name).read_bytes(), name
    asked_by = json.loads((tmp_path / "moved" / "run.json").read_text())["computed_by"]
    assert [asked_by[method]["models"][0]["model"] for method in methods[1:]] == ["one", "two"]


def biased(asked: Asked) -> Answered:
    """Prefers the class "fault", but more so whatever is shown early."""
    shown = re.findall(r"^CANDIDATE (\S+)\n.*?class \"(\w+)\"", asked.text, re.MULTILINE)
    value = {name: (label == "fault") - 0.2 * place for place, (name, label) in enumerate(shown)}
    return Answered(json.dumps({"ranked_ids": sorted(value, key=lambda name: -value[name])}))


def test_shuffled_candidates_take_the_bias_of_places_away(configure: Configure) -> None:
    """Ten candidates, the five true ones last in base order: a model that likes the first places leaves them there."""
    steps = np.arange(10, dtype=np.float32)
    values = np.stack([np.full((1, 8), step) for step in steps])
    labels = np.array([0] * 5 + [1] * 5, np.int32)
    corpus = WindowSet.from_arrays(values, labels=labels, classes=("normal", "fault"))
    queries = WindowSet.from_arrays(np.stack([np.full((1, 8), -0.01 * k, np.float32) for k in range(8)]))
    found = {}
    with serving(biased) as loopback:
        configure("m", provider="openai", base_url=f"{loopback.url}/v1", images="none", key_env="")
        for options in ("", ",shuffle=true", ",shuffle=true,samples=5"):
            ranking = Method(f"euclidean+llm(m,pool=10{options})").fit(corpus, corpus[:0]).rank(queries)
            found[options] = float((corpus.labels[ranking.order[:, :5]] == 1).mean())
        assert len(loopback.asked) == 8 * 6  # the first sample is that of the run before
        assert ranking.usage["spread"] > 0
    assert found[""] == pytest.approx(0.4)
    assert found[",shuffle=true"] == pytest.approx(0.675)  # told in docs/language-models.md
    assert found[",shuffle=true,samples=5"] == pytest.approx(0.925)


def test_draws_are_samples_of_the_same_store(configure: Configure) -> None:
    windows = sample_windows(6)
    with serving(backwards) as loopback:
        configure("m", provider="anthropic", base_url=loopback.url, images="none")
        for options, asked in (("samples=2", 12), ("draw=1", 12), ("draw=2", 18)):
            Method(f"euclidean+llm(m,pool=3,{options})").fit(windows, windows[:0]).rank(windows)
            assert len(loopback.asked) == asked


def test_a_server_of_one_s_own_needs_no_file_and_gets_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    windows = sample_windows(6)
    with serving(backwards) as loopback:
        name = f"openai:qwen3@{loopback.url}/v1"
        method = Method(f"euclidean+llm({name},pool=3)")
        method.fit(windows, windows[:0]).rank(windows)
        assert loopback.asked[0].model == "qwen3"
        assert all("authorization" not in asked.headers for asked in loopback.asked)
        found = check_model(name)
        assert found.complaint == ""
        assert found.facts["answered by"] == "qwen3"


@pytest.mark.parametrize(
    ("answered", "complaint"),
    [
        (Answered("no", stop="refusal"), "would not answer"),
        (Answered('{"ranked', stop="max_tokens"), "Raise max_tokens"),
        (Answered("who knows"), "structured = true"),
        (Answered('{"ranked_ids": ["sample_00002"]}', model="other"), "other answered where m was asked"),
    ],
)
def test_checking_a_model_says_what_is_wrong(answered: Answered, complaint: str, configure: Configure) -> None:
    with serving(lambda _: answered) as loopback:
        configure("m", provider="anthropic", base_url=loopback.url)
        result = CliRunner().invoke(app, ["models", "check", "m"])
    assert result.exit_code == 1
    assert complaint in str(result.exception)


def test_a_check_that_fails_costs_nothing(configure: Configure) -> None:
    with serving(lambda _: Answered(status=403, raw=b"no")) as loopback:
        configure("m", provider="anthropic", base_url=loopback.url, input_price=3.0, output_price=15.0)
        assert CliRunner().invoke(app, ["models", "check", "m"]).exit_code == 1
    assert "1 calls, $0.00" in describe_spending("m")[-1]


def test_classes_come_first_where_the_provider_caches_them(configure: Configure) -> None:
    windows = sample_windows(6)
    with serving(lambda _: Answered('{"scores": {"1": 5}}')) as loopback:
        configure("m", provider="anthropic", base_url=loopback.url, images="none", caching=True)
        Method("classify(m)").fit(windows, windows[:0]).rank(windows)
        bodies = [asked.body["messages"][0]["content"] for asked in loopback.asked]
    ends = [[place for place, block in enumerate(body) if "cache_control" in block] for body in bodies]
    assert all(len(end) == 1 for end in ends)
    assert len({json.dumps(body[: end[0] + 1]) for body, end in zip(bodies, ends, strict=True)}) == 1
    assert bodies[0][0]["text"].startswith("EXAMPLE 1")
    assert bodies[0][ends[0][0] + 1]["text"] == "QUERY"


def test_more_series_than_chatts_takes_are_refused_before_they_are_sent(configure: Configure) -> None:
    windows = WindowSet.from_arrays(np.random.default_rng(0).normal(size=(4, 9, 16)).astype(np.float32))
    with serving(lambda _: Answered('{"similarity": 5}')) as loopback:
        configure("m", provider="chatts-http", base_url=f"{loopback.url}/v1")
        with pytest.raises(UsageError, match=r"at most 15 series .* one has 18 in 2 windows: channels=7 fits"):
            Method("euclidean+llm(m,labels=false)").fit(windows, windows[:0]).rank(windows)
        assert not loopback.asked
        Method("euclidean+llm(m,labels=false,channels=7)").fit(windows, windows[:0]).rank(windows)
        assert len(loopback.asked) == 16


def test_the_paper_s_profiles_are_shipped_and_a_profile_may_be_like_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paper = load_profile("paper-claude")
    assert (paper.provider, paper.thinking, paper.max_tokens) == ("bedrock", "disabled", 2048)
    assert "sonnet-5" in paper.model
    assert (
        load_prompts(paper.prompts).section("list").question.startswith("The first image and text block is the QUERY")
    )
    tables = {
        "claude": {"like": "paper-claude", "region": "eu-west-1"},
        "odd": {"like": "paper-gpt"},
    }
    monkeypatch.setenv("READBENCH_LLM", str(write_profiles(tmp_path / "llm.toml", tables)))
    assert (load_profile("claude").region, load_profile("claude").thinking) == ("eu-west-1", "disabled")
    with pytest.raises(UnknownNameError, match="paper-gpt"):
        load_profile("odd")
    for own in ("paper-chatts", "paper-toto"):
        assert load_profile(own, ModelOptions(max_cost=100.0)).cost(10**6, 10**6) == 0


def test_the_suite_of_the_paper_s_table_runs_what_has_a_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = {"claude": {"like": "paper-claude"}, "chatts": {"like": "paper-chatts"}}
    monkeypatch.setenv("READBENCH_LLM", str(write_profiles(tmp_path / "llm.toml", tables)))
    found = sweep("llm", None)
    pool = found.plan.methods[0]
    asked = ("llm(model=chatts,points=1024)", "llm(model=claude)", "llm(model=claude-tsad)")
    named = tuple(f"{pool}+{one}" for one in asked)
    assert found.plan.methods == (pool, *named, *(one.replace("llm", "classify", 1) for one in asked))
    assert len(found.skipped) == 2
    assert all("four large GPUs" in reason for reason in found.skipped.values())
    assert set(found.plan.methods) <= set(suite("paper", None).plan.methods)
