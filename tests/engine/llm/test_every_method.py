"""One run of every method and provider over two real datasets, against a server that misbehaves; killed and resumed."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from readbench.benchmark.protocol import load_task
from readbench.engine.spec import build_source
from readbench.engine.windows import WindowSet
from tests.engine.llm.server import KEYS, SETTINGS, Loopback, serving, write_profiles
from tests.engine.llm.test_run import rankings
from tests.engine.llm.unruly import ANSWERED, GONE, MISCHIEF, OK, Unruly, hopeless

DATASETS = ("rcaeval", "road")
POOL = 4
SHOWN = "channels=3,points=16"
LISTS = ("claude", "claude-tsad", "claude-evidence", "bedrock", "openai")
RATINGS = ("chatts", "toto")
CLASSIFIERS = ("claude", "claude-tsad", "bedrock", "openai", "chatts", "toto")
PROVIDERS = {
    "claude": "anthropic",
    "bedrock": "bedrock",
    "openai": "openai",
    "chatts": "chatts-http",
    "toto": "toto-http",
    GONE: "anthropic",
}
KILLED_AFTER = 150
SECRETS = [value for name, value in KEYS.items() if "KEY" in name]
BASE = "euclidean"


def llm(model: str) -> str:
    return f"{BASE}+llm(model={model},pool={POOL},{SHOWN})"


def classify(model: str) -> str:
    return f"classify(model={model},{SHOWN})"


METHODS = (BASE, *map(llm, (*LISTS, *RATINGS, GONE)), *map(classify, CLASSIFIERS))
TOLD = {llm(m): f"llm({m})" for m in (*LISTS, *RATINGS)} | {classify(m): f"classify({m})" for m in CLASSIFIERS}
"""Methods that the server answers, as it knows them."""


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: None) -> Path:  # noqa: ARG001
    path = tmp_path / "llm.toml"
    monkeypatch.setenv("READBENCH_LLM", str(path))
    return path


def configured(path: Path, loopback: Loopback) -> None:
    """One profile a provider, each model under the name of its profile."""
    shared = {"backoff_s": 0, "input_price": 3.0, "output_price": 15.0}
    write_profiles(
        path,
        {
            name: {"provider": provider, "model": name, "base_url": loopback.base(provider), **shared}
            | SETTINGS.get(provider, {})
            | {"max_series": 100}
            for name, provider in PROVIDERS.items()
        },
    )


def started(folder: Path) -> subprocess.Popen[str]:
    """The command itself, in a process of its own."""
    options = ["--datasets", ",".join(DATASETS), "--rho", "0", "--seed", "0", "--out", str(folder)]
    options += [word for method in METHODS for word in ("--methods", method)]
    command = [sys.executable, "-m", "readbench", "run", *options]
    return subprocess.Popen(command, env=os.environ, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def ended(folder: Path) -> tuple[int, str]:
    process = started(folder)
    said = process.communicate(timeout=300)[1]
    return process.returncode, said


def expected(method: str, items: list[str], letters: dict[str, int]) -> list[str]:
    """What the server's rules make of the base order of a query."""
    pool, rest = items[:POOL], items[POOL:]
    if method.startswith("classify"):
        return sorted(letters, key=lambda item: -letters[item])[:100]
    if method in map(llm, RATINGS):
        return sorted(pool, key=lambda item: 1 if hopeless([letters[item]]) else -letters[item]) + rest
    return items if hopeless([letters[item] for item in pool]) else pool[::-1] + rest


def corpus_of(dataset: str, root: Path, cache: Path) -> WindowSet:
    return load_task(build_source(dataset), seed=0, root=root, cache=cache).corpus_at(0)


def usage(folder: Path) -> dict[str, Counter[str]]:
    """Method -> what it took on both datasets."""
    found: dict[str, Counter[str]] = {}
    with (folder / "usage.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["method"], Counter())[row["what"]] += float(row["value"])  # type: ignore[assignment]
    return found


def statuses(folder: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    with (folder / "scores.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["method"], set()).add(row["status"])
    return found


def test_every_method_survives_its_server_and_a_kill(
    real_data: Path, profiles: Path, own_cache: Path, tmp_path: Path
) -> None:
    server, folder = Unruly(hold_after=KILLED_AFTER), tmp_path / "run"
    with serving(server) as loopback:
        configured(profiles, loopback)
        killed = started(folder)
        assert server.enough.wait(240)
        killed.kill()
        killed.communicate()
        answers = len(list((own_cache / "llm" / "answers").rglob("*.json")))
        server.epoch, server.hold_after = 1, sys.maxsize
        server.gate.set()
        code, said = ended(folder)
        before = server.count()
        again = ended(folder)
    first, second = server.asked_in(0), server.asked_in(1)
    assert len(first - second) == answers > 0
    assert code == again[0] == 1
    assert "chatts on rcaeval: up to" in said
    assert server.count() == before
    assert "2 failed" in again[1]
    assert_rankings(folder, real_data, own_cache)
    assert_usage(folder, server)
    files = [path.read_bytes() for place in (folder, own_cache) for path in place.rglob("*") if path.is_file()]
    assert not any(key.encode() in content for content in (said.encode(), *files) for key in SECRETS)


def assert_rankings(folder: Path, root: Path, cache: Path) -> None:
    for dataset in DATASETS:
        corpus, found = corpus_of(dataset, root, cache), rankings(folder, dataset)
        letters = {str(i): len(corpus.classes[c]) for i, c in zip(corpus.ids, corpus.labels, strict=True)}
        assert set(found) == {BASE, *TOLD}
        for method in TOLD:
            for query, items in found[BASE].items():
                assert found[method][query] == expected(method, items, letters), (method, query)


def assert_usage(folder: Path, server: Unruly) -> None:
    """Failures are told as they were, and a model that is not there fails its own cells only."""
    for method, reasons in statuses(folder).items():
        if GONE in method:
            assert all("status 404" in reason and "model: gone" in reason for reason in reasons)
        else:
            assert reasons == {"ok"}
    found = usage(folder)
    assert set(found) == set(TOLD)
    for method, name in TOLD.items():
        told = server.told(name)
        charged = sum(told[kind] for kind in ANSWERED)
        del told[OK]
        told.update(input_tokens=100 * charged, output_tokens=10 * charged)
        told.update(server.answered(name))
        own = Counter({what: int(value) for what, value in found[method].items() if what != "cost"})
        assert +own == +told, method
        assert found[method]["cost"] == pytest.approx(charged * (100 * 3.0 + 10 * 15.0) / 1e6)
    assert {*MISCHIEF, "given_up"} <= {what for own in found.values() for what in own}
