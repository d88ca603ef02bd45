"""The case library: an engineer on call gives a window, and gets the cases with the same fault first.

```
from readbench.cases import CaseLibrary
from readbench.engine.windows import WindowSet

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

from readbench.cases._answer import Filter
from readbench.cases._archive import export_library, import_library
from readbench.cases._bulk import encode_cases, join_windows, read_files
from readbench.cases._evidence import DEPARTS, MOST_STEPS, NormalReference, draw_evidence, reference_for
from readbench.cases._library import DEFAULT_METHOD, CaseLibrary, facts_of
from readbench.cases._models import (
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
from readbench.cases._reading import FIRST_DATE, Interval, format_time, parse_time, windows_from
from readbench.cases._search import coarse_encoder
from readbench.cases._snapshot import Snapshot

__all__ = [
    "DEFAULT_METHOD",
    "DEPARTS",
    "FIRST_DATE",
    "MOST_STEPS",
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
    "Interval",
    "NormalReference",
    "Snapshot",
    "Suggestion",
    "Summary",
    "Vote",
    "coarse_encoder",
    "draw_evidence",
    "encode_cases",
    "export_library",
    "facts_of",
    "format_time",
    "import_library",
    "join_windows",
    "parse_time",
    "read_files",
    "reference_for",
    "windows_from",
]
