"""How built-in sources cut and label windows can be varied, and is the published way when it is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from readbench.benchmark.protocol import CutSource, build
from readbench.engine.registry import SOURCES
from readbench.engine.spec import build_source
from readbench.errors import ParameterError

CUT = [entry.name for entry in SOURCES if isinstance(entry.factory, type) and issubclass(entry.factory, CutSource)]


def test_all_real_sources_that_cut_by_a_rule_take_it_as_parameters() -> None:
    cut = {
        entry.name
        for entry in SOURCES
        if not entry.name.startswith("sim_") and build_source(entry.name).info.protocol.stride is not None
    }
    assert cut == set(CUT)


@pytest.mark.parametrize("name", CUT)
def test_without_parameters_the_protocol_is_the_one_of_the_class(name: str) -> None:
    source = build_source(name)
    assert source.info == type(source).info


@pytest.mark.parametrize("name", CUT)
def test_parameters_reach_the_protocol_and_leave_the_rest(name: str) -> None:
    own = build_source(name).info
    rule = "label_rule=majority-or-coverage,min_coverage=0.3"
    varied = build_source(f"{name}(window=40,stride=7,normal_stride=9,{rule})")
    found = varied.info.protocol
    assert (found.length, found.stride, found.normal_stride) == (40, 7, 9)
    assert (found.label_rule, found.min_coverage) == ("majority-or-coverage", 0.3)
    assert (found.missing, found.test_share, found.native_split) == (
        own.protocol.missing,
        own.protocol.test_share,
        own.protocol.native_split,
    )
    assert build_source(name).info == own  # the class keeps its own


def test_a_share_that_would_not_count_is_refused() -> None:
    with pytest.raises(ParameterError, match="add label_rule=majority-or-coverage"):
        build_source("petrobras_3w(min_coverage=0.1)")


def test_the_windows_are_cut_as_asked(real_data: Path, private_cache: Path) -> None:
    plain = build(build_source("skab"), real_data, private_cache)
    asked = build(build_source("skab(window=64,stride=32)"), real_data, private_cache)
    strict = build(build_source("skab(min_coverage=0.4)"), real_data, private_cache)
    short = build(build_source("skab(window=32)"), real_data, private_cache)
    assert asked.folder == plain.folder
    assert len({plain.folder, strict.folder, short.folder}) == 3
    assert set(np.unique(short.windows.lengths)) == {32}
    assert len(strict.windows) == len(plain.windows)
    assert (strict.windows.labels > 0).sum() < (plain.windows.labels > 0).sum()
