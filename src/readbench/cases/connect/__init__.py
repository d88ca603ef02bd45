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

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.cases.connect._answers import (
        BoundedSession as BoundedSession,
        TimedSocket as TimedSocket,
        check_times as check_times,
        parse_answer as parse_answer,
    )
    from readbench.cases.connect._named import (
        NamedSource as NamedSource,
        SourceFile as SourceFile,
        sources_beside as sources_beside,
    )
    from readbench.cases.connect._protocol import (
        AHEAD_S as AHEAD_S,
        FAMILIES as FAMILIES,
        LATE_S as LATE_S,
        MOST_CATCH_UP_S as MOST_CATCH_UP_S,
        SampledChannel as SampledChannel,
        SignalSource as SignalSource,
        SourceAddress as SourceAddress,
        SourceChannel as SourceChannel,
        SourceFollower as SourceFollower,
        SourceReadings as SourceReadings,
        open_source as open_source,
        read_secret as read_secret,
    )
    from readbench.cases.connect._ranges import (
        SLACK as SLACK,
        LibraryGrid as LibraryGrid,
        on_clock as on_clock,
        parse_moment as parse_moment,
        parse_range as parse_range,
        read_range as read_range,
    )

open_room(__name__)
