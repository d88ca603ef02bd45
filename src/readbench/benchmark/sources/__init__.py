"""Real data sources, a module each; importing this room registers all of them."""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.benchmark.sources._bearings import Bearings as Bearings
    from readbench.benchmark.sources._ctsr import Ctsr as Ctsr
    from readbench.benchmark.sources._damadics import Damadics as Damadics
    from readbench.benchmark.sources._dbsherlock import DbSherlock as DbSherlock
    from readbench.benchmark.sources._exathlon import Exathlon as Exathlon
    from readbench.benchmark.sources._files import fingerprint_files as fingerprint_files, plain_name as plain_name
    from readbench.benchmark.sources._hai import Hai as Hai
    from readbench.benchmark.sources._haizhe_auv import HaizheAuv as HaizheAuv
    from readbench.benchmark.sources._itsc_motor import ItscMotor as ItscMotor
    from readbench.benchmark.sources._itu_5gc import Itu5gc as Itu5gc
    from readbench.benchmark.sources._lbnl_ahu import LbnlAhu as LbnlAhu
    from readbench.benchmark.sources._mit_bih import MitBih as MitBih
    from readbench.benchmark.sources._nppad import Nppad as Nppad
    from readbench.benchmark.sources._petrobras_3w import Petrobras3W as Petrobras3W
    from readbench.benchmark.sources._phmap23 import Phmap23 as Phmap23
    from readbench.benchmark.sources._rats40k import Rats40k as Rats40k
    from readbench.benchmark.sources._rcaeval import RcaEval as RcaEval
    from readbench.benchmark.sources._road import Road as Road
    from readbench.benchmark.sources._robot_failures import RobotFailures as RobotFailures
    from readbench.benchmark.sources._skab import Skab as Skab
    from readbench.benchmark.sources._telecomts import TelecomTs as TelecomTs
    from readbench.benchmark.sources._tennessee_eastman import TennesseeEastman as TennesseeEastman
    from readbench.benchmark.sources._voraus import Voraus as Voraus

open_room(__name__)
