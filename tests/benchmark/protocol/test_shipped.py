"""Facts of sources in TOML are complete, of the declared types, and each file belongs to one source."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from readbench.benchmark import simulators, sources
from readbench.benchmark.protocol import Channel, Protocol, SourceInfo, read_info
from readbench.engine.registry import SOURCES
from readbench.engine.spec import build_source

NAMES = [name for name in SOURCES.names() if SOURCES.get(name).origin == "readbench"]


@pytest.mark.parametrize("name", NAMES)
def test_facts_have_the_declared_types(name: str) -> None:
    info = build_source(name).info
    assert TypeAdapter(SourceInfo).validate_json(json.dumps(asdict(info)), strict=True) == info
    assert not any(text.startswith("\n") or "  " in text for text in (info.description, info.citation))


def test_every_file_of_facts_is_of_a_source_and_every_source_has_one() -> None:
    files = [path.stem for room in (sources, simulators) for path in (Path(room.__path__[0]) / "facts").glob("*.toml")]
    assert sorted(files) == sorted(NAMES)


def test_what_the_module_computes_goes_before_the_file() -> None:
    info = read_info(sources.__name__ + "._skab", "skab", channels=[Channel("a")], faults=["b"], length=9)
    assert (info.name, info.channels, info.faults) == ("skab", (Channel("a"),), ("b",))
    assert info.protocol == Protocol(length=9, stride=32, label_rule="majority-or-coverage")
