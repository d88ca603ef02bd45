"""The paper's datasets are there in the shape that its composition table gives, and say what was not verified."""

from __future__ import annotations

import pytest

from readbench.benchmark.protocol import PAPER_COMPOSITION, Source
from readbench.engine.spec import build_source

UNVERIFIED = ("damadics", "exathlon", "hai", "rats40k", "rcaeval", "telecomts", "voraus")
OTHER_CHANNELS = {"petrobras_3w": 7, "rats40k": 1, "rcaeval": 0}
"""Where channels differ from window to window, or follow from the files."""
OTHER_CLASSES = {"ctsr": 0, "rats40k": 21, "rcaeval": 6}
"""Where classes follow from the files, or the official files have more than the paper counts."""


@pytest.mark.parametrize("name", PAPER_COMPOSITION)
def test_the_paper_s_datasets_have_its_shape(name: str) -> None:
    source: Source = build_source(name)
    info, paper = source.info, PAPER_COMPOSITION[name]
    assert str(info.protocol.length or "16-128") == paper.length
    assert len(info.channels) == OTHER_CHANNELS.get(name) or str(len(info.channels)) == paper.channels
    assert len(info.faults) == OTHER_CLASSES.get(name, paper.classes)


@pytest.mark.parametrize("name", UNVERIFIED)
def test_what_was_not_verified_says_so(name: str) -> None:
    source: Source = build_source(name)
    assert source.info.description.endswith("Not verified against the official files.")


def test_a_collection_is_chosen_in_the_grammar() -> None:
    source = build_source("rcaeval(collection=sock-shop-1)")
    assert source.collection == "sock-shop-1"
