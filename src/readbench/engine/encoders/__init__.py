"""Encoders map windows to vectors; importing this package registers them."""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.engine.encoders._departure import Departure, FactEncoder, Residual
    from readbench.engine.encoders._foundation import Chronos2, ChronosBolt, Mantis, TimesFM, TiRex
    from readbench.engine.encoders._orders import Orders
    from readbench.engine.encoders._pretrained import FrozenEncoder
    from readbench.engine.encoders._programs import Charm, Onnx, Program
    from readbench.engine.encoders._raw import Raw
    from readbench.engine.encoders._rocket import Rocket
    from readbench.engine.encoders._shortcuts import BeforeLevel, Presence
    from readbench.engine.encoders._sonde import Sonde
    from readbench.engine.encoders._ts2vec import TS2Vec
    from readbench.engine.encoders._weights import HeldWeights, find_weights, locate_weights

__all__ = [
    "BeforeLevel",
    "Charm",
    "Chronos2",
    "ChronosBolt",
    "Departure",
    "FactEncoder",
    "FrozenEncoder",
    "HeldWeights",
    "Mantis",
    "Onnx",
    "Orders",
    "Presence",
    "Program",
    "Raw",
    "Residual",
    "Rocket",
    "Sonde",
    "TS2Vec",
    "TiRex",
    "TimesFM",
    "find_weights",
    "locate_weights",
]

__getattr__ = open_room(__name__)
