"""The case library: an engineer on call gives a window, and gets the cases with the same fault first.

```
from readbench.cases import Library

library = Library.create("plant")                           # or Library.open("plant")
library.add_normals(normal_windows, channels=names)         # what normal looks like here
library.add(values, channels=names, labels=["leak"])        # a case: (C, T) values; or many
new = library.add_one(values, names, asset="pump 3", before=quiet)   # nobody knows yet; the hour before it
answer = library.search(new.id)                             # or library.search(values, channels=names)
answer.hits[0].case.notes, answer.faults[0]                 # what was done then; what it may be
library.explain(new.id, answer.hits[0].case.id).channels    # why
library.confirm(new.id, like=answer.hits[0].case.id)        # counts in the next search
library.next_to_label(5)                                    # which open cases an expert should look at first
library.ask("overview")                                     # any question of `QUESTIONS`, by its name
library.undo()
```

The names below are imported when first used: a command that only shows its help computes nothing.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

_EXPORTS = {
    "_asking": ("DEFAULT_METHOD", "Count", "GivenBy", "Question", "QuestionParameter", "Sheet", "Shown", "question"),
    "_backtest": ("Assumptions", "Backtest", "Replayed", "replay_history"),
    "_backup": ("export_library", "import_library"),
    "_bulk": ("encode_cases", "join_windows", "read_files"),
    "_check": ("LibraryCheck", "check_library"),
    "_evidence": (
        "DEPARTURE_THRESHOLD",
        "CLIP_SIGMA",
        "MAX_ALIGNED_STEPS",
        "NormalReference",
        "draw_evidence",
        "reference_for",
    ),
    "_incidents": ("IncidentReport", "add_incidents"),
    "_intake": (
        "FIRST_DATE",
        "UNSEEN",
        "Interval",
        "ReadRecording",
        "ToldContext",
        "attach_context",
        "describe_context",
        "describe_still",
        "facts_of",
        "format_time",
        "parse_facts",
        "parse_time",
        "read_recording",
        "windows_from",
    ),
    "_journal": ("Snapshot", "sign_changes"),
    "_library": ("Library",),
    "_models": (
        "NORMAL_OPERATION",
        "UNLIKE",
        "AddedCase",
        "Answer",
        "Case",
        "CaseDetails",
        "CasePair",
        "Change",
        "ChannelEvidence",
        "Doubt",
        "Evidence",
        "Fault",
        "Filter",
        "Hit",
        "HitGroup",
        "LibraryOverview",
        "MapPoint",
        "Record",
        "Remark",
        "Separation",
        "Suggestion",
        "Summary",
        "Vote",
        "WindowCheck",
    ),
    "_paper": ("write_page",),
    "_processes": ("SearchPool",),
    "_questions": ("QUESTIONS", "describe_oddities", "shorten_note"),
    "_reports": ("link_case", "list_backtest", "report_backtest", "report_case"),
}
_PLACES = {name: module for module, names in _EXPORTS.items() for name in names}

if TYPE_CHECKING:
    from readbench.cases._asking import (
        DEFAULT_METHOD,
        Count,
        GivenBy,
        Question,
        QuestionParameter,
        Sheet,
        Shown,
        question,
    )
    from readbench.cases._backtest import Assumptions, Backtest, Replayed, replay_history
    from readbench.cases._backup import export_library, import_library
    from readbench.cases._bulk import encode_cases, join_windows, read_files
    from readbench.cases._check import LibraryCheck, check_library
    from readbench.cases._evidence import (
        CLIP_SIGMA,
        DEPARTURE_THRESHOLD,
        MAX_ALIGNED_STEPS,
        NormalReference,
        draw_evidence,
        reference_for,
    )
    from readbench.cases._incidents import IncidentReport, add_incidents
    from readbench.cases._intake import (
        FIRST_DATE,
        UNSEEN,
        Interval,
        ReadRecording,
        ToldContext,
        attach_context,
        describe_context,
        describe_still,
        facts_of,
        format_time,
        parse_facts,
        parse_time,
        read_recording,
        windows_from,
    )
    from readbench.cases._journal import Snapshot, sign_changes
    from readbench.cases._library import Library
    from readbench.cases._models import (
        NORMAL_OPERATION,
        UNLIKE,
        AddedCase,
        Answer,
        Case,
        CaseDetails,
        CasePair,
        Change,
        ChannelEvidence,
        Doubt,
        Evidence,
        Fault,
        Filter,
        Hit,
        HitGroup,
        LibraryOverview,
        MapPoint,
        Record,
        Remark,
        Separation,
        Suggestion,
        Summary,
        Vote,
        WindowCheck,
    )
    from readbench.cases._paper import write_page
    from readbench.cases._processes import SearchPool
    from readbench.cases._questions import QUESTIONS, describe_oddities, shorten_note
    from readbench.cases._reports import link_case, list_backtest, report_backtest, report_case

__all__ = [
    "CLIP_SIGMA",
    "DEFAULT_METHOD",
    "DEPARTURE_THRESHOLD",
    "FIRST_DATE",
    "MAX_ALIGNED_STEPS",
    "NORMAL_OPERATION",
    "QUESTIONS",
    "UNLIKE",
    "UNSEEN",
    "AddedCase",
    "Answer",
    "Assumptions",
    "Backtest",
    "Case",
    "CaseDetails",
    "CasePair",
    "Change",
    "ChannelEvidence",
    "Count",
    "Doubt",
    "Evidence",
    "Fault",
    "Filter",
    "GivenBy",
    "Hit",
    "HitGroup",
    "IncidentReport",
    "Interval",
    "Library",
    "LibraryCheck",
    "LibraryOverview",
    "MapPoint",
    "NormalReference",
    "Question",
    "QuestionParameter",
    "ReadRecording",
    "Record",
    "Remark",
    "Replayed",
    "SearchPool",
    "Separation",
    "Sheet",
    "Shown",
    "Snapshot",
    "Suggestion",
    "Summary",
    "ToldContext",
    "Vote",
    "WindowCheck",
    "add_incidents",
    "attach_context",
    "check_library",
    "describe_context",
    "describe_oddities",
    "describe_still",
    "draw_evidence",
    "encode_cases",
    "export_library",
    "facts_of",
    "format_time",
    "import_library",
    "join_windows",
    "link_case",
    "list_backtest",
    "parse_facts",
    "parse_time",
    "question",
    "read_files",
    "read_recording",
    "reference_for",
    "replay_history",
    "report_backtest",
    "report_case",
    "shorten_note",
    "sign_changes",
    "windows_from",
    "write_page",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any exported object
    if name == "CaseLibrary":
        warnings.warn("CaseLibrary is now Library: from readbench.cases import Library.", DeprecationWarning, 2)
        name = "Library"
    if name not in _PLACES:
        raise AttributeError(f"module 'readbench.cases' has no attribute {name!r}")
    return getattr(import_module(f"readbench.cases.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
