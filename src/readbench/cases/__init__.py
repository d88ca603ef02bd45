"""The case library: an engineer on call gives a window, and gets the cases with the same fault first.

```
from readbench.cases import CaseLibrary
from readbench.windows import WindowSet

library = CaseLibrary.create("plant")                       # or CaseLibrary.open("plant")
library.add_normals(normal_windows)                         # what normal looks like here
library.add_one(values, names, label="leak", asset="pump 2", notes="Replaced the seal.")
new = library.add_one(values, names, asset="pump 3")        # nobody knows yet
answer = library.search(new.id)                             # or library.search(WindowSet.from_arrays([values], ...))
answer.hits[0].case.notes, answer.faults[0]                 # what was done then; what it may be
library.explain(new.id, answer.hits[0].case.id).channels    # why
library.confirm(new.id, like=answer.hits[0].case.id)        # counts in the next search
library.next_to_label(5)                                    # which open cases an expert should look at first
library.undo()
```
"""

from readbench.cases.answering import Filter
from readbench.cases.answers import (
    UNLIKE,
    Answer,
    Case,
    Change,
    ChannelEvidence,
    Doubt,
    Evidence,
    Fault,
    Hit,
    Suggestion,
    Summary,
    Vote,
)
from readbench.cases.library import DEFAULT_METHOD, CaseLibrary

__all__ = [
    "DEFAULT_METHOD",
    "UNLIKE",
    "Answer",
    "Case",
    "CaseLibrary",
    "Change",
    "ChannelEvidence",
    "Doubt",
    "Evidence",
    "Fault",
    "Filter",
    "Hit",
    "Suggestion",
    "Summary",
    "Vote",
]
