"""The official data of each source: what belongs to it, what of it is there, and how to get it."""

from readbench.data.official.facts import OFFICIAL, Extent, Official, RemoteFile
from readbench.data.official.fetch import fetch
from readbench.data.official.status import State, Status, status_of

__all__ = ["OFFICIAL", "Extent", "Official", "RemoteFile", "State", "Status", "fetch", "status_of"]
