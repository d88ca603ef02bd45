"""The loop: draw, encode, learn; a checkpoint now and then, from which a killed run goes on."""

from __future__ import annotations

import copy
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from readbench.training.augment import augmented
from readbench.training.body import Body, Learner
from readbench.training.carriers import carriers
from readbench.training.config import Config
from readbench.training.draws import Draws
from readbench.training.mechanisms import Fault, inject
from readbench.training.objective import hidden_patches, redrawn, same_fault, same_program
from readbench.training.plants import Plants, plants

CHECKPOINT_SECONDS = 60.0
REPORT_SECONDS = 15.0
Hook = Callable[[int, Body], None]
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

    def run(self, report: Callable[[str], None], hook: Hook | None = None) -> Body:
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
        with torch.no_grad():
            programs, plant = self._drawn()
            series = augmented(self.draws, programs).transpose(0, 1).flatten(0, 1)
            inputs, mask = hidden_patches(self.draws, series, self.config.shape.patches)
            channels = [] if plant is None else [plant.faulty.flatten(0, 3), plant.normal.flatten(0, 2)]
            every = torch.cat([inputs, *channels])
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.device == "cuda"):
            vectors, projections, picture = self._forward(every)
        count, temperature = len(inputs), self.config.temperature
        first, second = projections[:count].chunk(2)
        losses = {
            "program": same_program(first, second, temperature),
            "picture": redrawn(picture[:count], series, mask),
        }
        if plant is not None:
            faulty, normal = vectors[count:].split([len(part) for part in channels])
            losses["fault"] = same_fault(
                faulty.unflatten(0, plant.faulty.shape[:4]), normal.unflatten(0, plant.normal.shape[:3]), temperature
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
        self.checkpoint.parent.mkdir(parents=True, exist_ok=True)
        partial = self.checkpoint.with_suffix(".partial")
        torch.save(state, partial)
        partial.replace(self.checkpoint)

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
            changed = inject(self.draws, series[:faulty], Fault.draw(self.draws, faulty))
            series = torch.cat([changed, series[faulty:]])
        return torch.nan_to_num(series).clamp(-30, 30)

    def _plants(self) -> Plants | None:
        config = self.config
        if not config.plants:
            return None
        return plants(self.draws, config.plants, config.channels, config.faults, config.normals, config.families)

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
    weights = {"program": 1.0, "picture": config.picture_weight, "fault": config.plant_weight}
    return torch.stack([weights[name] * loss for name, loss in losses.items()]).sum()


def _groups(learner: Learner, config: Config) -> list[dict[str, Any]]:
    """Matrices decay; norms, biases and positions do not."""
    decaying = [p for name, p in learner.named_parameters() if p.dim() > 1 and not name.endswith(("place", "summary"))]
    known = {id(p) for p in decaying}
    others = [p for p in learner.parameters() if id(p) not in known]
    return [{"params": decaying, "weight_decay": config.decay}, {"params": others, "weight_decay": 0.0}]
