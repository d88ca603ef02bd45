"""Training of the encoder: its settings, its objective and its loop.

`Config` is everything that decides a training run; it is stored with the weights. The encoder learns to know a program
again, to know a fault again in its plant and on other units of the plant's fleet, and to redraw what is hidden. Parts
whose weight is zero cost nothing. The loop (`Training`) draws, encodes and learns, with a checkpoint now and then, from
which a killed run goes on.
"""

from __future__ import annotations

import copy
import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as ops

from readbench.common.files import write_atomically
from readbench.engine.encoders._channels import COMPRESSION_POWER, DEVIATION_OFFSET
from readbench.engine.encoders.sonde_network import HALF_DIGITS, LENGTH, Draws, Learner, NetworkShape, SondeNetwork
from research.training.data import FAMILIES, Plants, SyntheticFault, augment, carriers, inject, plants, sampled


@dataclass(frozen=True)
class Config:
    """One run.

    Args:
        steps: optimiser steps.
        pairs: programs per step, two windows each.
        plants: plants per step; 0 leaves out the search for faults.
        channels: of a plant, where there are so many plants.
        channel_counts: how many channels the plants of a step may have instead, each in fewer or more plants; empty
            for always the same.
        faults: of a plant, two windows each.
        normals: normal windows of a plant.
        units: plants of a fleet; 1 draws plants that have nothing to do with one another.
        families: which carriers.
        mechanisms: share of the programs that carry a fault.
        coarse: share of programs and plants with few readings a window.
        standardised: measure departures in the searches for faults as the encoder does: by the deviation of the
            plant's normal vectors, loud channels louder; else by their difference alone.
        rate: highest learning rate.
        warmup: steps until it is reached; then it falls along a cosine.
        decay: weight decay of matrices.
        temperature: of both searches.
        program_weight: of the search for programs in the loss.
        plant_weight: of the search for faults in the loss.
        fleet_weight: of the search for faults on other units in the loss.
        picture_weight: of redrawing in the loss.
        average: decay of the running mean of weights that is kept.
        reuse: steps that one draw of programs and plants serves, augmented anew in each.
        seed: of weights and data.
        digits: binary digits of a weight that the file keeps behind the first one.
        shape: of the network.
    """

    steps: int = 900
    pairs: int = 1536
    plants: int = 32
    channels: int = 6
    channel_counts: tuple[int, ...] = (2, 4, 8, 16, 32)
    faults: int = 6
    normals: int = 8
    units: int = 1
    families: tuple[str, ...] = tuple(FAMILIES)
    mechanisms: float = 0.5
    coarse: float = 0.5
    standardised: bool = True
    rate: float = 1.5e-3
    warmup: int = 100
    decay: float = 0.05
    temperature: float = 0.07
    program_weight: float = 1.0
    plant_weight: float = 0.2
    fleet_weight: float = 0.0
    picture_weight: float = 0.3
    average: float = 0.999
    reuse: int = 2
    seed: int = 0
    digits: int = HALF_DIGITS
    shape: NetworkShape = field(default_factory=NetworkShape)

    def __post_init__(self) -> None:
        if not self.families or not set(self.families) <= set(FAMILIES):
            known, given = ", ".join(FAMILIES), ", ".join(self.families)
            raise ValueError(f"families must be some of {known}. Got {given!r} instead.")
        if self.units < 1 or self.plants % self.units:
            raise ValueError(f"plants must be a multiple of units. Got {self.plants} and {self.units} instead.")
        if uneven := [c for c in self.channel_counts if self.plants * self.channels % (c * self.units)]:
            raise ValueError(
                f"{self.plants} plants of {self.channels} channels make no fleets of {uneven[0]} channels."
            )

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


TINY = Config(
    steps=6, pairs=8, plants=2, channels=2, channel_counts=(), faults=2, normals=2, warmup=2,
    shape=NetworkShape(width=32, depth=1, heads=2, hidden=64, patches=16, projection=16),
)  # fmt: skip
"""Seconds on any machine: what the tests train."""

SMALL = Config(steps=2846, digits=7, shape=NetworkShape(width=128, depth=4, heads=4, hidden=256, stem=(24, 48)))
"""The small encoder: an eighth of the parameters, a fifth of the cost."""


def same_program(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """InfoNCE: among all 2 N projections the two of one program (N, d) each find one another."""
    every = ops.normalize(torch.cat([first, second]).float(), dim=-1)
    likeness = every @ every.T / temperature
    likeness.fill_diagonal_(-1e4)
    n = len(first)
    partner = torch.cat([torch.arange(n, 2 * n), torch.arange(n)]).to(first.device)
    return ops.cross_entropy(likeness, partner)


def same_fault(faulty: Tensor, normal: Tensor, temperature: float, *, standardised: bool = False) -> Tensor:
    """The search itself, as a loss: within a plant the two windows of one fault find one another.

    Windows are compared by the cosine of what departs from the plant's mean normal vector, all channels side by side.

    Args:
        faulty: (P, F, 2, C, D) vectors of the channels.
        normal: (P, V, C, D).
        temperature: of the softmax over the plant's other windows, normal ones included.
        standardised: measure departures as the encoder does.
    """
    likeness = departures(faulty, normal, standardised=standardised) / temperature
    _, count, every = likeness.shape
    own = torch.eye(count, every, dtype=torch.bool, device=likeness.device)
    likeness = likeness.masked_fill(own, -1e4)
    partner = torch.arange(count, device=likeness.device) ^ 1
    return ops.cross_entropy(likeness.transpose(1, 2), partner.expand(len(likeness), -1))


def departures(faulty: Tensor, normal: Tensor, *, standardised: bool = False) -> Tensor:
    """(P, 2 F, 2 F + V) cosines of departures from normal, of the faulty windows to all windows of their plant."""
    units = ops.normalize(away_from_normal(faulty, normal, standardised=standardised).flatten(2), dim=-1)
    count = faulty.shape[1] * 2
    return units[:, :count] @ units.transpose(1, 2)


def away_from_normal(faulty: Tensor, normal: Tensor, *, standardised: bool = False) -> Tensor:
    """(P, 2 F + V, C, D) how far the channels of all windows of a plant are from their mean normal vector.

    Standardised, it is the encoder's own measure (`NormalOperation` in `readbench.engine.encoders`).
    """
    usual = normal.float().mean(1, keepdim=True)
    away = torch.cat([faulty.float().flatten(1, 2), normal.float()], 1) - usual
    if not standardised:
        return away
    residual = away / ((normal.float() - usual).square().mean(1, keepdim=True).add(1e-6).sqrt() + DEVIATION_OFFSET)
    far = residual.square().mean(-1, keepdim=True)
    loudness = COMPRESSION_POWER * math.log10(1 + normal.shape[2])
    return residual * torch.log1p(far) ** loudness / torch.sqrt(far + 1e-6)


def same_fault_elsewhere(
    faulty: Tensor, normal: Tensor, present: Tensor, units: int, temperature: float, *, standardised: bool = False
) -> Tensor:
    """The search on a machine that the library has never seen: windows of one fault find one another across units.

    Candidates are all windows of the *other* units of the fleet; several are right. A window is what departs from the
    mean normal vector of its own unit: compared channel by channel where both have the channel, and, with half the
    weight, by the mean over channels.

    Args:
        faulty: (P, F, 2, C, D) vectors of the channels.
        normal: (P, V, C, D).
        present: (P, C) which channels a unit has.
        units: plants of a fleet, which stand one after the other.
        temperature: of the softmax.
        standardised: measure departures as the encoder does.
    """
    likeness = elsewhere(faulty, normal, present, units, standardised=standardised) / temperature
    own, right = partners_elsewhere(faulty.shape[1], normal.shape[1], units, likeness.device)
    likeness = likeness.masked_fill(own, -1e4)
    return (likeness.logsumexp(-1) - likeness.masked_fill(~right, -1e4).logsumexp(-1)).mean()


def elsewhere(faulty: Tensor, normal: Tensor, present: Tensor, units: int, *, standardised: bool = False) -> Tensor:
    """(fleets, units 2 F, units (2 F + V)) likeness of the faulty windows of fleets to all their windows."""
    away = away_from_normal(faulty, normal, standardised=standardised) * present[:, None, :, None]
    parts = torch.cat([ops.normalize(away.flatten(2), dim=-1), 0.5**0.5 * ops.normalize(away.mean(2), dim=-1)], -1)
    parts = parts.unflatten(0, (-1, units))
    asked = parts[:, :, : faulty.shape[1] * 2].flatten(1, 2)
    return asked @ parts.flatten(1, 2).transpose(1, 2)


def partners_elsewhere(faults: int, normals: int, units: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Which windows of a fleet are of one's own unit, and which show the same fault on another: `elsewhere`'s shape."""
    fault = torch.cat([torch.arange(faults).repeat_interleave(2), torch.full((normals,), -1)]).repeat(units).to(device)
    unit = torch.arange(units, device=device).repeat_interleave(2 * faults + normals)
    asked = fault >= 0
    own = unit[asked, None] == unit
    return own, (fault[asked, None] == fault) & ~own


def hidden_patches(draws: Draws, series: Tensor, patches: int) -> tuple[Tensor, Tensor]:
    """Series (B, T) with up to 60 % of their patches at the mean, and which points those are (B, T)."""
    share = draws.uniform(len(series), 1, high=0.6)
    mask = (draws.uniform(len(series), patches) < share).repeat_interleave(LENGTH // patches, 1)
    return torch.where(mask, series.mean(-1, keepdim=True), series), mask


def reconstruction_error(picture: Tensor, series: Tensor, mask: Tensor) -> Tensor:
    """Mean squared error of the standardised series at the hidden points."""
    target = (series - series.mean(-1, keepdim=True)) / (series.std(-1, keepdim=True) + 1e-3)
    error = (picture.float() - target.clamp(-6, 6)) ** 2
    return (error * mask).sum() / mask.sum().clamp(min=1)


CHECKPOINT_SECONDS = 60.0
REPORT_SECONDS = 60.0
Hook = Callable[[int, SondeNetwork], None]
"""Called now and then with the step and the averaged body."""


class Training:
    """One run, from scratch or from its checkpoint: on a CPU both end in the same bits.

    Args:
        config: what to train.
        folder: where the checkpoint lies.
        device: `cuda` or `cpu`.
        compiled: compile the network first; pays on a GPU.
    """

    def __init__(self, config: Config, folder: Path, device: str, *, compiled: bool = False) -> None:
        torch.manual_seed(config.seed)
        self.config, self.device = config, device
        self.checkpoint = folder / "checkpoint.pt"
        self.draws = Draws(device, config.seed)
        self.learner = Learner(config.shape).to(device)
        self.average = copy.deepcopy(self.learner.body).eval().requires_grad_(requires_grad=False)
        self.optimiser = torch.optim.AdamW(_groups(self.learner, config), betas=(0.9, 0.98), fused=device == "cuda")
        self._batch: tuple[Tensor, Plants | None] | None = None
        self.step = 0
        if self.checkpoint.exists():
            self._restore(torch.load(self.checkpoint, map_location=device, weights_only=True))
        self._forward = torch.compile(self.learner, dynamic=False) if compiled else self.learner

    def run(self, report: Callable[[str], None], hook: Hook | None = None) -> SondeNetwork:
        """Train to the end and return the averaged body."""
        began, saved, told, first = time.monotonic(), time.monotonic(), 0.0, self.step
        while self.step < self.config.steps:
            losses = self.advance()
            now = time.monotonic()
            if now - told > REPORT_SECONDS or self.step == self.config.steps:
                told = now
                report(self._state_of_things(losses, (self.step - first) / (now - began)))
                if hook:
                    hook(self.step, self.average)
            if now - saved > CHECKPOINT_SECONDS and self._draws_next():
                saved = now
                self._save()
        self._save()
        return self.average

    def advance(self) -> dict[str, Tensor]:
        """One step; returns the losses."""
        for group in self.optimiser.param_groups:
            group["lr"] = rate(self.config, self.step)
        losses = self._losses()
        self.optimiser.zero_grad(set_to_none=True)
        _weighted(losses, self.config).backward()
        nn.utils.clip_grad_norm_(self.learner.parameters(), 1.0)
        self.optimiser.step()
        self._follow()
        self.step += 1
        return losses

    def _losses(self) -> dict[str, Tensor]:
        """The losses on the batch of this step, by name."""
        config = self.config
        with torch.no_grad():
            programs, plant = self._drawn()
            series = augment(self.draws, programs).transpose(0, 1).flatten(0, 1)
            inputs, mask = series, None
            if config.picture_weight:
                inputs, mask = hidden_patches(self.draws, series, config.shape.patches)
            channels = [] if plant is None else [plant.faulty.flatten(0, 3), plant.normal.flatten(0, 2)]
            every = torch.cat([inputs, *channels])
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.device == "cuda"):
            vectors, projections, picture = self._forward(every)
        count = len(inputs)
        losses = {}
        if config.program_weight:
            first, second = projections[:count].chunk(2)
            losses["program"] = same_program(first, second, config.temperature)
        if mask is not None:
            losses["picture"] = reconstruction_error(picture[:count], series, mask)
        if plant is not None:
            faulty, normal = vectors[count:].split([len(part) for part in channels])
            losses |= _searches(
                faulty.unflatten(0, plant.faulty.shape[:4]), normal.unflatten(0, plant.normal.shape[:3]), plant, config
            )
        return losses

    def _state_of_things(self, losses: dict[str, Tensor], speed: float) -> str:
        """One line about this step, at so many steps a second."""
        steps, numbers = self.config.steps, " ".join(f"{name} {value.item():.3f}" for name, value in losses.items())
        left = (steps - self.step) / speed
        return f"step {self.step}/{steps}  {numbers}  {speed:.1f} steps/s  {left:.0f} s left"

    def _draws_next(self) -> bool:
        """The next step begins with a draw: a run that goes on from here needs no batch of the step before."""
        return self.step % self.config.reuse == 0

    def _save(self) -> None:
        """Write the checkpoint whole or not at all; only where the next step draws, or none is left."""
        state = {
            "config": json.dumps(self.config.to_json()),
            "learner": self.learner.state_dict(),
            "average": self.average.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "random": self.draws.generator.get_state(),
            "step": self.step,
        }
        with write_atomically(self.checkpoint) as partial:
            torch.save(state, partial)

    def _restore(self, state: dict[str, Any]) -> None:
        if state["config"] != json.dumps(self.config.to_json()):
            raise ValueError(
                f"{self.checkpoint} belongs to a run with other settings: {state['config']}. "
                "Go on with those, or choose another folder."
            )
        self.learner.load_state_dict(state["learner"])
        self.average.load_state_dict(state["average"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.draws.generator.set_state(state["random"].cpu())
        self.step = state["step"]

    def _drawn(self) -> tuple[Tensor, Plants | None]:
        """Programs and plants: fresh ones, or those of the step before."""
        if self._batch is None or self._draws_next():
            self._batch = self._programs(), self._plants()
        return self._batch

    def _programs(self) -> Tensor:
        """(N, 2, T) two windows of each program."""
        config = self.config
        series = carriers(self.draws, config.pairs, 2, config.families)
        faulty = int(config.pairs * config.mechanisms)
        if faulty:
            changed = inject(self.draws, series[:faulty], SyntheticFault.draw(self.draws, faulty))
            series = torch.cat([changed, series[faulty:]])
        series = sampled(self.draws, series, config.coarse)
        return torch.nan_to_num(series).clamp(-30, 30)

    def _plants(self) -> Plants | None:
        config = self.config
        if not config.plants:
            return None
        counts = config.channel_counts or (config.channels,)
        channels = counts[int(self.draws.choice(len(counts), 1))]
        sizes = config.plants * config.channels // channels, channels, config.faults, config.normals
        return plants(self.draws, *sizes, config.families, config.units, coarse=config.coarse)

    @torch.no_grad()
    def _follow(self) -> None:
        """Move the averaged weights a little; faster at the beginning."""
        keep = min(self.config.average, (1 + self.step) / (10 + self.step))
        old, new = list(self.average.parameters()), list(self.learner.body.parameters())
        torch._foreach_lerp_(old, new, 1 - keep)


def rate(config: Config, step: int) -> float:
    """Learning rate: a line up to `config.rate`, times half a cosine down to nearly nothing."""
    cosine = 0.5 * (1 + math.cos(math.pi * min(1.0, step / config.steps))) + 0.002
    return config.rate * min(1.0, (step + 1) / config.warmup) * cosine


def _weighted(losses: dict[str, Tensor], config: Config) -> Tensor:
    weights = {
        "program": config.program_weight,
        "picture": config.picture_weight,
        "fault": config.plant_weight,
        "fleet": config.fleet_weight,
    }
    return torch.stack([weights[name] * loss for name, loss in losses.items()]).sum()


def _searches(faulty: Tensor, normal: Tensor, plant: Plants, config: Config) -> dict[str, Tensor]:
    """The losses of the searches for faults that have a weight."""
    losses = {}
    if config.plant_weight:
        losses["fault"] = same_fault(faulty, normal, config.temperature, standardised=config.standardised)
    if config.fleet_weight and plant.units > 1:
        losses["fleet"] = same_fault_elsewhere(
            faulty, normal, plant.present, plant.units, config.temperature, standardised=config.standardised
        )
    return losses


def _groups(learner: Learner, config: Config) -> list[dict[str, Any]]:
    """Matrices decay; norms, biases and positions do not."""
    decaying = [p for name, p in learner.named_parameters() if p.dim() > 1 and not name.endswith(("place", "summary"))]
    known = {id(p) for p in decaying}
    others = [p for p in learner.parameters() if id(p) not in known]
    return [{"params": decaying, "weight_decay": config.decay}, {"params": others, "weight_decay": 0.0}]
