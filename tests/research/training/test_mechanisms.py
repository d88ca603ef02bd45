from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from readbench.engine.encoders.sonde_network import LENGTH, Draws
from research.training.data import MECHANISMS, Action, SyntheticFault, inject, smooth

COUNT = 24
SERIES = smooth(Draws("cpu", 0), COUNT, 2)


def faults(name: str, *, sign: float = 1.0) -> SyntheticFault:
    """One fault for every series, in the middle of it."""
    every = torch.ones(COUNT)
    return SyntheticFault(
        kind=torch.full((COUNT,), list(MECHANISMS).index(name)),
        sign=sign * every,
        size=3 * every,
        speed=30 * every,
        start=0.3 * every,
        duration=0.4 * every,
        fixed_start=every.bool(),
    )


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_changes_the_signal_only_while_it_acts(name: str, sign: float) -> None:
    fault = faults(name, sign=sign)
    active = Action.draw(Draws("cpu", 5), fault, 2).active
    changed = inject(Draws("cpu", 5), SERIES, fault)
    assert torch.isfinite(changed).all()
    assert torch.equal(changed[~active], SERIES[~active])
    assert 0.3 < active.float().mean() < 0.5
    moved = ((changed != SERIES) & active).any(-1)
    assert moved.float().mean() > 0.8


def roughness(series: Tensor) -> Tensor:
    return series.diff(dim=-1).abs().mean(-1)


Measure = Callable[[Tensor, Tensor], Tensor]
"""From series before and after, (COUNT, 2, T) each, to whether each changed as it should."""
EFFECTS: dict[str, Measure] = {
    "shift": lambda old, new: (new - old - (new - old)[..., :1]).abs().amax(-1) < 1e-4,
    "drift": lambda old, new: (new - old)[..., -1] > (new - old)[..., 10] + 1,
    "spikes": lambda old, new: ((new - old).abs() > 1).float().mean(-1) < 0.12,
    "freeze": lambda _, new: new.std(-1) < 1e-4,
    "noise": lambda old, new: roughness(new) > 3 * roughness(old),
    "speed": lambda old, new: roughness(new) > 1.3 * roughness(old),
    "gain": lambda old, new: new.std(-1) > 2 * old.std(-1),
    "dropout": lambda old, new: new.amin(-1) < old.amin(-1) - 0.2,
    "oscillation": lambda old, new: torch.fft.rfft(new - old).abs().argmax(-1).float().sub(30).abs() < 8,
    "saturation": lambda old, new: new.amax(-1) < old.amax(-1),
    "transient": lambda old, new: (new - old)[..., 0] > 10 * (new - old)[..., -1],
    "smoothing": lambda old, new: roughness(new) < roughness(old),
    "coarse": lambda _, new: torch.tensor([[len(v.unique()) < 12 for v in pair] for pair in new]),
    "response": lambda old, new: (new - old).amax(-1) > (new - old)[..., -1] + 0.1,
    "dead": lambda _, new: (new.std(-1) < 1e-6) & (new.mean(-1) > 1),
    "impacts": lambda old, new: (new - old).abs().amax(-1) > 3 * (new - old).abs().median(-1).values,
    "modulation": lambda old, new: ((new / old - 1).abs().amax(-1) - 0.7).abs() < 0.3,
    "delay": lambda old, new: (new[..., 150:] - old[..., 119:-31]).abs().mean(-1) < (new - old).abs().mean(-1),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_does_what_its_name_says(name: str) -> None:
    """From the beginning, rising, at a size of three deviations."""
    action = Action.draw(Draws("cpu", 0), faults(name), 2)
    action = replace(action, begin=torch.zeros(COUNT, 2, 1), size=torch.full((COUNT, 2, 1), 3.0))
    changed = MECHANISMS[name](SERIES, action)
    assert changed.shape == SERIES.shape
    assert EFFECTS[name](SERIES, changed).float().mean() > 0.85


def test_time_that_runs_faster_is_folded_back_at_the_end() -> None:
    action = replace(Action.draw(Draws("cpu", 0), faults("speed"), 2), begin=torch.zeros(COUNT, 2, 1))
    found = MECHANISMS["speed"](SERIES, action)[0, 0]
    ratio, grid = 1.6 + 0.8 * float(action.size[0, 0, 0]), np.linspace(0, 1, LENGTH)
    place = [at % 2 if at % 2 <= 1 else 2 - at % 2 for at in ratio * grid]
    np.testing.assert_allclose(found, np.interp(place, grid, SERIES[0, 0]), atol=1e-3)


def test_a_fault_without_a_fixed_start_begins_anywhere_in_each_view() -> None:
    fault = faults("shift")
    fixed = Action.draw(Draws("cpu", 0), fault, 2).begin
    free = Action.draw(Draws("cpu", 0), replace(fault, fixed_start=torch.zeros(COUNT).bool()), 2).begin
    assert (fixed - 0.3).abs().max() < 0.15
    assert (free[:, 0] - free[:, 1]).abs().mean() > 0.15


def test_drawn_faults_have_every_mechanism_and_nearly_half_act_throughout() -> None:
    fault = SyntheticFault.draw(Draws("cpu", 0), 2000)
    throughout = fault.duration == 2
    assert fault.kind.unique().tolist() == list(range(len(MECHANISMS)))
    assert float(throughout.float().mean()) == pytest.approx(0.45, abs=0.05)
    assert fault.start[throughout].max() <= 0 <= fault.start[~throughout].min()
    assert fault.fixed_start[throughout].all()


def test_rows_of_faults_are_taken_together() -> None:
    fault = SyntheticFault.draw(Draws("cpu", 0), 9)
    rows = torch.tensor([4, 1])
    assert torch.equal(fault[rows].kind, fault.kind[rows])
    assert torch.equal(fault[rows].start, fault.start[rows])
