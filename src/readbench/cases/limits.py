"""What a case library takes at most, in one table: every door in front of it refuses what lies outside.

`readbench.cases._intake` checks whatever is written; request models of the service may refuse the same earlier. What an
older version kept outside these bounds still opens, and pages show it.
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
"""Fault types that one case is known not to be."""
MAX_FACTS: Final = 100
"""Numbers that are known of a window beforehand."""
MAX_CHANNELS: Final = 10_000
"""Channels of a window, as columns of a file."""
MAX_UNITS: Final = MAX_CHANNELS
"""Units of a window: one for each channel."""
MAX_READINGS: Final = 10_000_000
"""Readings of one window, and of the time before it."""
MAX_READING: Final = 1e30
"""A reading is smaller than this either way: its square and sums of it stay finite. Anything else is a gap."""
MIN_RATE: Final = 1e-9
"""Samples a second, at least: one in thirty years."""
MAX_RATE: Final = 1e9
"""Samples a second, at most: one each nanosecond."""
EARLIEST_MOMENT: Final = EARLIEST
"""Seconds since 1970 of the first moment that is taken: the beginning of 1900 in UTC."""
LATEST_MOMENT: Final = LATEST
"""Seconds since 1970 of the end of time here: the beginning of 2200 in UTC, which is outside."""
