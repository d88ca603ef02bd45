"""What a network asks of a processor: with the roof, the limit of `readbench bench --only encode`."""

from __future__ import annotations

import json
from pathlib import Path

from readbench.engine.encoders._sonde import open_session


def multiply_adds(weights: Path) -> int:
    """Multiplications, each with its addition, that one series of 512 points takes in the layers of a Sonde."""
    shape = json.loads(open_session(weights).get_modelmeta().custom_metadata_map["config"])["shape"]
    width, hidden, patches = shape["width"], shape["hidden"], shape["patches"]
    first, second = shape.get("stem", (64, 128))
    tokens, stride = patches + 1, 64 // patches
    stem = 256 * 9 * 2 * first + 64 * 9 * first * second + patches * (2 * stride + 1) * second * width
    block = tokens * (4 * width**2 + 2 * width * hidden) + 2 * tokens**2 * width
    return int(stem + shape["depth"] * block + 2 * width * shape.get("vector", 0))
