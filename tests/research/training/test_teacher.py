"""A small network that is taught by the shipped one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from readbench.engine.encoders._sonde import find_shipped_weights
from readbench.engine.encoders.sonde_network import Draws, SondeNetwork, load
from research.training import loop
from research.training.data import carriers
from research.training.loop import SMALL, TINY, Teacher, Training
from tests.research.training.test_loop import equal, interrupted, trained

PUPIL = replace(
    SMALL, steps=5, pairs=8, plants=2, channels=2, faults=2, normals=2, warmup=2,
    shape=replace(TINY.shape, vector=512),
)  # fmt: skip


def test_the_small_recipe_has_the_losses_it_names_and_learns_from_its_teacher(tmp_path: Path) -> None:
    training = Training(replace(PUPIL, steps=40, reuse=40, rate=3e-3), tmp_path, "cpu")
    losses = [training.advance() for _ in range(40)]
    assert set(losses[0]) == {"teacher", "fault", "fleet"}
    taught = [float(loss["teacher"].detach()) for loss in losses]
    assert sum(taught[-5:]) < 0.9 * sum(taught[:5])


def test_an_interrupted_pupil_ends_in_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = trained(PUPIL, tmp_path / "whole")
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", -1.0)
    monkeypatch.setattr(loop, "REPORT_SECONDS", -1.0)
    interrupted(PUPIL, tmp_path / "torn", 3)
    assert equal(Training(PUPIL, tmp_path / "torn", "cpu").run(lambda _: None).state_dict(), expected)


def test_the_teacher_is_standardised_and_folds_its_scale_into_the_pupil() -> None:
    series = carriers(Draws("cpu", 0), 40, 1)[:, 0]
    teacher = Teacher(find_shipped_weights(), "cpu")
    taught = teacher(series)
    assert taught.mean(0).abs().max() < 1e-3
    with torch.no_grad():
        plain = load(find_shipped_weights())(series)
        body = SondeNetwork(PUPIL.shape).eval()
        before = body(series)
        after = teacher.fold(body)(series)
    assert teacher.spread is not None
    assert teacher.centre is not None
    torch.testing.assert_close(taught * teacher.spread + teacher.centre, plain, atol=2e-3, rtol=1e-3)
    torch.testing.assert_close(before * teacher.spread + teacher.centre, after, atol=1e-4, rtol=1e-4)


def test_a_pupil_without_a_head_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="needs a head"):
        Training(replace(PUPIL, shape=TINY.shape), tmp_path, "cpu")
