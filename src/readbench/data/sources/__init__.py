"""Real data sources, a module or folder each; importing this room registers all of them."""

from readbench.data.sources.ctsr import Ctsr
from readbench.data.sources.damadics import Damadics
from readbench.data.sources.exathlon import Exathlon
from readbench.data.sources.hai import Hai
from readbench.data.sources.mit_bih import MitBih
from readbench.data.sources.petrobras_3w import Petrobras3W
from readbench.data.sources.rats40k import Rats40k
from readbench.data.sources.rcaeval import RcaEval
from readbench.data.sources.road import Road
from readbench.data.sources.robot_failures import RobotFailures
from readbench.data.sources.skab import Skab
from readbench.data.sources.telecomts import TelecomTs
from readbench.data.sources.tennessee_eastman import TennesseeEastman
from readbench.data.sources.voraus import Voraus

__all__ = [
    "Ctsr",
    "Damadics",
    "Exathlon",
    "Hai",
    "MitBih",
    "Petrobras3W",
    "Rats40k",
    "RcaEval",
    "Road",
    "RobotFailures",
    "Skab",
    "TelecomTs",
    "TennesseeEastman",
    "Voraus",
]
