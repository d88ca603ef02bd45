from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from readbench.engine.encoders import Sonde
from readbench.engine.encoders.sonde_network import SondeNetwork
from readbench.testing import sample_windows
from research.training import ablations
from research.training.ablations import rows
from research.training.loop import TINY, Config


def test_each_row_but_the_base_differs_in_one_part() -> None:
    base = Config()
    for name, config in rows(base).items():
        changed = {f.name for f in fields(Config) if getattr(config, f.name) != getattr(base, f.name)}
        expected = {"base": 0, "no-faults": 2, "fleets": 2}.get(name, 1)
        assert len(changed) == expected, name


def test_rows_become_weights_that_the_encoder_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READBENCH_CACHE", str(tmp_path / "cache"))
    ablations.main(["--out", str(tmp_path), "--preset", "tiny", "--only", "steps-0,no-statistics"])
    windows = sample_windows(6)
    vectors = [
        Sonde(weights=weights, pool="mean").fit(windows, windows[:0]).encode(windows)
        for weights in (str(tmp_path / "steps-0"), str(tmp_path / "no-statistics"), "shipped")
    ]
    assert [v.shape[1] for v in vectors] == [2 * TINY.shape.width, 2 * TINY.shape.width, 512]
    assert not np.allclose(vectors[0], vectors[1])


def test_a_body_without_statistics_has_no_codes_of_patches() -> None:

    names = [set(SondeNetwork(replace(TINY.shape, statistics=on)).state_dict()) for on in (True, False)]
    assert names[0] - names[1] == {"patch_codes.weight", "patch_codes.bias"}


def test_an_unknown_row_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        ablations.main(["--out", "unused", "--only", "base,basis"])
    assert "no row basis; there are base," in capsys.readouterr().err
