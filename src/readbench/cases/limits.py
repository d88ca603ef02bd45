"""Limits of the values that a case library stores.

`readbench.cases._intake` checks every write; request models of the service check earlier. Values of older versions
outside these limits can still be read.
"""

from __future__ import annotations

from typing import Final

from readbench.common.layouts import MAX_NAME_LENGTH
from readbench.common.times import EARLIEST, LATEST

MAX_NAME: Final = 200
"""Characters of the name of a case, a label, an asset, a group, a tag, a fact or a unit."""
MAX_CHANNEL_NAME: Final = MAX_NAME_LENGTH
"""Characters of the name of a channel, as of a column of a file."""
MAX_TEXT: Final = 100_000
"""Characters of notes."""
MAX_LINK: Final = 2000
"""Characters of a link."""
MAX_TAGS: Final = 100
"""Tags on one case."""
MAX_LINKS: Final = 100
"""Links on one case."""
MAX_REJECTED: Final = 1000
"""Rejected fault types of one case."""
MAX_FACTS: Final = 100
"""Known quantities of a window."""
MAX_CHANNELS: Final = 10_000
"""Channels of a window, as columns of a file."""
MAX_UNITS: Final = MAX_CHANNELS
"""Units of a window: one for each channel."""
MAX_READINGS: Final = 10_000_000
"""Readings of one window, and of its context."""
MAX_READING: Final = 1e30
"""Bound of the absolute value of a reading, so that squares and sums stay finite; others count as missing."""
MIN_RATE: Final = 1e-9
"""Smallest rate, in samples per second."""
MAX_RATE: Final = 1e9
"""Largest rate, in samples per second."""
EARLIEST_MOMENT: Final = EARLIEST
"""Earliest time, in seconds since 1970: start of 1900 in UTC."""
LATEST_MOMENT: Final = LATEST
"""End of the allowed times, exclusive, in seconds since 1970: start of 2200 in UTC."""
