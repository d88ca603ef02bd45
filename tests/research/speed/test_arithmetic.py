"""The arithmetic that a network takes, against the layers themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from readbench.engine.encoders._sonde import find_shipped_weights
from research.speed.arithmetic import multiply_adds

torch = pytest.importorskip("torch")
network = pytest.importorskip("readbench.engine.encoders.sonde_network", reason="needs the extra 'training'")


def counted(weights: Path) -> int:
    """Multiply-adds of convolutions and maps, counted while a series passes; attention's own products beside them."""
    body, total = network.load(weights), 0

    def note(layer: Any, _: object, output: Any) -> None:  # noqa: ANN401 - torch
        nonlocal total
        if isinstance(layer, torch.nn.Conv1d):
            total += output.shape[-1] * layer.weight.numel()
        elif isinstance(layer, torch.nn.Linear):
            total += output[0].numel() // layer.out_features * layer.weight.numel()

    for layer in body.modules():
        layer.register_forward_hook(note)
    body(torch.zeros(1, network.LENGTH))
    tokens = body.shape.patches + 1
    codes = (body.patch_codes.weight.numel() * body.shape.patches) + body.window_codes.weight.numel()
    return total - codes + body.shape.depth * 2 * tokens**2 * body.shape.width


def test_the_formula_counts_what_the_layers_do() -> None:
    assert multiply_adds(find_shipped_weights()) == counted(find_shipped_weights())
