"""Follow signals, see departures from normal operation, and say which case an event is like, as it grows.

```
from readbench.cases.watch import Watcher, WatchSettings

watcher = Watcher(library, source, folder, WatchSettings(false_alarms_a_day=1.0))
watcher.start()          # learns what is normal of each asset, or goes on where it was
watcher.tick()           # one round: what was told
```
"""

from readbench.cases.watch._alerts import AlertListener, WatchHealth
from readbench.cases.watch._notices import (
    Notice,
    NoticeCase,
    NoticeEvidence,
    NoticeFault,
    NoticeLog,
    Webhook,
    note_trouble,
)
from readbench.cases.watch._tracks import AssetTrack, WatchedEvent
from readbench.cases.watch._watcher import LOOKS, Watcher, WatchSettings

__all__ = [
    "LOOKS",
    "AlertListener",
    "AssetTrack",
    "Notice",
    "NoticeCase",
    "NoticeEvidence",
    "NoticeFault",
    "NoticeLog",
    "WatchHealth",
    "WatchSettings",
    "WatchedEvent",
    "Watcher",
    "Webhook",
    "note_trouble",
]
