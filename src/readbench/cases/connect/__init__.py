"""Where signals live: one small protocol for all sources, `list channels, read a range, follow`.

```
from readbench.cases.connect import open_source, read_range

source = open_source("prometheus://127.0.0.1:9090/?asset=rig")
source.channels()                                              # names, assets, units
asked = read_range(library, source, start, end, asset="rig-003")    # on the library's grid, with the time before
library.search(asked)
```

`readbench cases connect` keeps sources by name in `sources.toml` beside a library; secrets are named there, not kept.
"""

from readbench.cases.connect._answers import BoundedSession, TimedSocket, check_times, parse_answer
from readbench.cases.connect._named import NamedSource, SourceFile, sources_beside
from readbench.cases.connect._protocol import (
    AHEAD_S,
    FAMILIES,
    LATE_S,
    MOST_CATCH_UP_S,
    SampledChannel,
    SignalSource,
    SourceAddress,
    SourceChannel,
    SourceFollower,
    SourceReadings,
    open_source,
    read_secret,
)
from readbench.cases.connect._ranges import SLACK, LibraryGrid, on_clock, parse_moment, parse_range, read_range

__all__ = [
    "AHEAD_S",
    "FAMILIES",
    "LATE_S",
    "MOST_CATCH_UP_S",
    "SLACK",
    "BoundedSession",
    "LibraryGrid",
    "NamedSource",
    "SampledChannel",
    "SignalSource",
    "SourceAddress",
    "SourceChannel",
    "SourceFile",
    "SourceFollower",
    "SourceReadings",
    "TimedSocket",
    "check_times",
    "on_clock",
    "open_source",
    "parse_answer",
    "parse_moment",
    "parse_range",
    "read_range",
    "read_secret",
    "sources_beside",
]
