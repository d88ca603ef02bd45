"""Real data sources, a module or folder each; importing this room registers all of them."""

from readbench.data.sources.ctsr import Ctsr
from readbench.data.sources.mit_bih import MitBih
from readbench.data.sources.petrobras_3w import Petrobras3W
from readbench.data.sources.road import Road
from readbench.data.sources.skab import Skab
from readbench.data.sources.tennessee_eastman import TennesseeEastman

__all__ = ["Ctsr", "MitBih", "Petrobras3W", "Road", "Skab", "TennesseeEastman"]
