from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor

from readbench.engine.encoders.sonde_network import LENGTH, Draws, SondeNetwork
from research.training import loop
from research.training.data import augment, carriers
from research.training.loop import TINY, Config, Training, rate
from research.training.make import fault_found

SETTINGS = replace(TINY, steps=7, reuse=3)
"""Ends within a draw, and has checkpoints that fall within one if nothing prevents it."""


def trained(config: Config, folder: Path) -> dict[str, Tensor]:
    return Training(config, folder, "cpu").run(lambda _: None).state_dict()


def equal(one: dict[str, Tensor], two: dict[str, Tensor]) -> bool:
    return all(torch.equal(one[name], two[name]) for name in one)


def interrupted(config: Config, folder: Path, after: int) -> None:
    """A run that is killed after so many steps."""

    def kill(step: int, _: SondeNetwork) -> None:
        if step == after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Training(config, folder, "cpu").run(lambda _: None, kill)


@pytest.mark.parametrize("after", [1, 4, 5, 7])
def test_an_interrupted_run_ends_in_the_same_bits(after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = trained(SETTINGS, tmp_path / "whole")
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", -1.0)
    monkeypatch.setattr(loop, "REPORT_SECONDS", -1.0)
    interrupted(SETTINGS, tmp_path / "torn", after)
    resumed = Training(SETTINGS, tmp_path / "torn", "cpu")
    assert resumed.step == 3 * ((after - 1) // 3)
    assert equal(resumed.run(lambda _: None).state_dict(), expected)


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    expected = trained(TINY, tmp_path)
    again = Training(TINY, tmp_path, "cpu")
    assert again.step == TINY.steps
    assert equal(again.run(lambda _: None).state_dict(), expected)


def test_a_checkpoint_of_other_settings_is_refused(tmp_path: Path) -> None:
    trained(TINY, tmp_path)
    with pytest.raises(ValueError, match=r"other settings: .*choose another folder"):
        Training(replace(TINY, seed=1), tmp_path, "cpu")


def test_a_half_written_checkpoint_is_never_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def torn(_: object, path: Path) -> None:
        path.write_bytes(b"half a checkpoint")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", torn)
        with pytest.raises(KeyboardInterrupt):
            trained(TINY, tmp_path)
    assert Training(TINY, tmp_path, "cpu").step == 0


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(tmp_path: Path) -> None:
    one, two = trained(TINY, tmp_path / "1"), trained(TINY, tmp_path / "2")
    other = trained(replace(TINY, seed=1), tmp_path / "3")
    assert equal(one, two)
    assert not equal(one, other)


def test_a_draw_serves_as_many_steps_as_it_should(tmp_path: Path) -> None:
    training, batches = Training(SETTINGS, tmp_path, "cpu"), []
    for _ in range(SETTINGS.steps):
        training.advance()
        batches.append(training._batch)
    assert [later is not earlier for earlier, later in pairwise(batches)] == [False, False, True, False, False, True]


def test_plants_have_other_numbers_of_channels_and_never_more_series(tmp_path: Path) -> None:
    config = replace(TINY, plants=4, channels=2, channel_counts=(1, 4), reuse=1)
    training, seen = Training(config, tmp_path, "cpu"), set()
    for _ in range(8):
        training.advance()
        assert training._batch is not None
        assert training._batch[1] is not None
        seen.add(training._batch[1].normal.shape[::2])
    assert seen == {(8, 1), (2, 4)}
    with pytest.raises(ValueError, match="make no fleets of 3 channels"):
        replace(TINY, channel_counts=(3,))


def test_the_averaged_weights_equal_a_slow_loop(tmp_path: Path) -> None:
    training = Training(replace(TINY, average=0.3), tmp_path, "cpu")
    expected = {name: weight.clone() for name, weight in training.learner.body.named_parameters()}
    for step in range(5):
        training.advance()
        keep = min(0.3, (1 + step) / (10 + step))
        for name, weight in training.learner.body.named_parameters():
            expected[name] = keep * expected[name] + (1 - keep) * weight.detach()
    for name, weight in training.average.named_parameters():
        assert torch.allclose(weight, expected[name], atol=1e-6)


def test_the_learning_rate_rises_in_a_line_and_falls_along_a_cosine() -> None:
    config = replace(TINY, steps=100, warmup=10, rate=2.0)
    rates = [rate(config, step) for step in range(101)]
    assert rates[0] == pytest.approx(0.2 * 1.002)
    assert rates[50] == pytest.approx(2 * (0.5 + 0.002))
    assert rates[100] == pytest.approx(2 * 0.002)
    assert rates[75] == pytest.approx(1 + math.cos(0.75 * math.pi) + 0.004)
    assert max(rates) < 2.004
    assert rates[9:] == sorted(rates[9:], reverse=True)


def test_every_loss_is_finite_and_every_weight_learns(tmp_path: Path) -> None:
    training = Training(TINY, tmp_path, "cpu")
    before = {name: weight.detach().clone() for name, weight in training.learner.named_parameters()}
    losses = training.advance()
    assert set(losses) == {"program", "picture", "fault"}
    assert all(torch.isfinite(value) for value in losses.values())
    assert not [name for name, weight in training.learner.named_parameters() if torch.equal(weight, before[name])]


def test_plants_can_be_left_out(tmp_path: Path) -> None:
    assert set(Training(replace(TINY, plants=0), tmp_path, "cpu").advance()) == {"program", "picture"}


def test_training_learns(tmp_path: Path) -> None:
    """The same few programs again and again: the search among them gets easier."""
    training = Training(replace(TINY, steps=60, reuse=60, warmup=5, rate=3e-3), tmp_path, "cpu")
    losses = [float(training.advance()["program"].detach()) for _ in range(60)]
    assert sum(losses[-10:]) < 0.8 * sum(losses[:10])


def test_augmented_pairs_keep_their_shape_and_half_a_shared_level() -> None:
    pairs = carriers(Draws("cpu", 0), 200, 2)
    found = augment(Draws("cpu", 1), pairs)
    assert found.shape == (200, 2, LENGTH)
    assert torch.isfinite(found).all()
    level = found.mean(-1)
    placed = level.abs().amax(1) > 0.01
    assert 0.4 < placed.float().mean() < 0.6
    assert (level[placed, 0] - level[placed, 1]).abs().median() < 0.3 * level[placed].abs().median()


def test_the_probe_is_a_share_and_repeats() -> None:
    torch.manual_seed(0)
    body = SondeNetwork(TINY.shape).eval()
    found = fault_found(body, "cpu", count=2)
    assert 0 <= found <= 1
    assert fault_found(body, "cpu", count=2) == found
