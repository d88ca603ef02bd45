"""Encoders map windows to vectors; importing this package registers them."""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.engine.encoders._departure import (
        Departure as Departure,
        FactEncoder as FactEncoder,
        Residual as Residual,
    )
    from readbench.engine.encoders._foundation import (
        Chronos2 as Chronos2,
        ChronosBolt as ChronosBolt,
        Mantis as Mantis,
        TimesFM as TimesFM,
        TiRex as TiRex,
    )
    from readbench.engine.encoders._orders import Orders as Orders
    from readbench.engine.encoders._pretrained import FrozenEncoder as FrozenEncoder
    from readbench.engine.encoders._programs import Charm as Charm, Onnx as Onnx, Program as Program
    from readbench.engine.encoders._raw import Raw as Raw
    from readbench.engine.encoders._rocket import Rocket as Rocket
    from readbench.engine.encoders._shortcuts import BeforeLevel as BeforeLevel, Presence as Presence
    from readbench.engine.encoders._sonde import Sonde as Sonde
    from readbench.engine.encoders._ts2vec import TS2Vec as TS2Vec
    from readbench.engine.encoders._weights import (
        HeldWeights as HeldWeights,
        find_weights as find_weights,
        locate_weights as locate_weights,
    )

open_room(__name__)
