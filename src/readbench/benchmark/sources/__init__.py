"""Real data sources, a module each; importing this room registers all of them."""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.benchmark.sources._bearings import Bearings
    from readbench.benchmark.sources._ctsr import Ctsr
    from readbench.benchmark.sources._damadics import Damadics
    from readbench.benchmark.sources._dbsherlock import DbSherlock
    from readbench.benchmark.sources._exathlon import Exathlon
    from readbench.benchmark.sources._files import fingerprint_files, plain_name
    from readbench.benchmark.sources._hai import Hai
    from readbench.benchmark.sources._haizhe_auv import HaizheAuv
    from readbench.benchmark.sources._itsc_motor import ItscMotor
    from readbench.benchmark.sources._itu_5gc import Itu5gc
    from readbench.benchmark.sources._lbnl_ahu import LbnlAhu
    from readbench.benchmark.sources._mit_bih import MitBih
    from readbench.benchmark.sources._nppad import Nppad
    from readbench.benchmark.sources._petrobras_3w import Petrobras3W
    from readbench.benchmark.sources._phmap23 import Phmap23
    from readbench.benchmark.sources._rats40k import Rats40k
    from readbench.benchmark.sources._rcaeval import RcaEval
    from readbench.benchmark.sources._road import Road
    from readbench.benchmark.sources._robot_failures import RobotFailures
    from readbench.benchmark.sources._skab import Skab
    from readbench.benchmark.sources._telecomts import TelecomTs
    from readbench.benchmark.sources._tennessee_eastman import TennesseeEastman
    from readbench.benchmark.sources._voraus import Voraus

__all__ = [
    "Bearings",
    "Ctsr",
    "Damadics",
    "DbSherlock",
    "Exathlon",
    "Hai",
    "HaizheAuv",
    "ItscMotor",
    "Itu5gc",
    "LbnlAhu",
    "MitBih",
    "Nppad",
    "Petrobras3W",
    "Phmap23",
    "Rats40k",
    "RcaEval",
    "Road",
    "RobotFailures",
    "Skab",
    "TelecomTs",
    "TennesseeEastman",
    "Voraus",
    "fingerprint_files",
    "plain_name",
]

__getattr__ = open_room(__name__)
