from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from readbench.engine.encoders import Charm
from readbench.errors import DataError
from tests.engine.encoders.checkpoints import write_charm
from tests.engine.encoders.frozen_checks import FROZEN_CHECKS, RAGGED, Build

pytest.importorskip("torch")


@pytest.fixture
def build(tmp_path: Path) -> Build:
    def make(seed: int = 0, **parameters: Any) -> Charm:  # noqa: ANN401 - of any type
        folder = tmp_path / str(seed)
        return Charm(weights=str(folder if folder.exists() else write_charm(folder, seed)), **parameters)

    return make


@pytest.mark.parametrize("check", FROZEN_CHECKS, ids=lambda check: check.__name__)
def test_it_keeps_the_promises_of_frozen_encoders(check: Callable[[Build], None], build: Build) -> None:
    check(build)


def test_without_weights_it_says_that_none_are_public() -> None:
    with pytest.raises(DataError, match=r"charm has no public weights.*charm\(weights=FILE\)"):
        Charm().fit(RAGGED, RAGGED[:0]).encode(RAGGED)


def test_a_program_of_another_width_is_refused(tmp_path: Path) -> None:
    encoder = Charm(weights=str(write_charm(tmp_path, width=100) / "charm.pt2"))
    with pytest.raises(DataError, match=r"must give \(B, 384\)"):
        encoder.fit(RAGGED, RAGGED[:0]).encode(RAGGED)
