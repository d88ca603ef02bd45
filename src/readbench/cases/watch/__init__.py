"""Follow signals, see departures from normal operation, and say which case an event is like, as it grows.

```
from readbench.cases.watch import Watcher, WatchSettings

watcher = Watcher(library, source, folder, WatchSettings(false_alarms_a_day=1.0))
watcher.start()          # learns what is normal of each asset, or goes on where it was
watcher.tick()           # one round: what was told
```
"""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.cases.watch._alerts import AlertListener as AlertListener, WatchHealth as WatchHealth
    from readbench.cases.watch._notices import (
        Notice as Notice,
        NoticeCase as NoticeCase,
        NoticeEvidence as NoticeEvidence,
        NoticeFault as NoticeFault,
        NoticeLog as NoticeLog,
        Webhook as Webhook,
        note_trouble as note_trouble,
    )
    from readbench.cases.watch._tracks import AssetTrack as AssetTrack, WatchedEvent as WatchedEvent
    from readbench.cases.watch._watcher import LOOKS as LOOKS, Watcher as Watcher, WatchSettings as WatchSettings

open_room(__name__)
