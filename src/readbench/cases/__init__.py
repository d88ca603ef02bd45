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

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.cases._asking import (
        DEFAULT_METHOD as DEFAULT_METHOD,
        Count as Count,
        GivenBy as GivenBy,
        Question as Question,
        QuestionParameter as QuestionParameter,
        Sheet as Sheet,
        Shown as Shown,
        question as question,
    )
    from readbench.cases._backtest import (
        Assumptions as Assumptions,
        Backtest as Backtest,
        Replayed as Replayed,
        replay_history as replay_history,
    )
    from readbench.cases._backup import export_library as export_library, import_library as import_library
    from readbench.cases._bulk import (
        encode_cases as encode_cases,
        join_windows as join_windows,
        read_files as read_files,
    )
    from readbench.cases._check import LibraryCheck as LibraryCheck, check_library as check_library
    from readbench.cases._evidence import (
        CLIP_SIGMA as CLIP_SIGMA,
        DEPARTURE_THRESHOLD as DEPARTURE_THRESHOLD,
        MAX_ALIGNED_STEPS as MAX_ALIGNED_STEPS,
        NormalReference as NormalReference,
        draw_evidence as draw_evidence,
        reference_for as reference_for,
    )
    from readbench.cases._incidents import IncidentReport as IncidentReport, add_incidents as add_incidents
    from readbench.cases._intake import (
        FIRST_DATE as FIRST_DATE,
        UNSEEN as UNSEEN,
        Interval as Interval,
        ReadRecording as ReadRecording,
        ToldContext as ToldContext,
        attach_context as attach_context,
        describe_context as describe_context,
        describe_still as describe_still,
        facts_of as facts_of,
        format_time as format_time,
        parse_facts as parse_facts,
        parse_time as parse_time,
        read_recording as read_recording,
        windows_from as windows_from,
    )
    from readbench.cases._journal import Snapshot as Snapshot, sign_changes as sign_changes
    from readbench.cases._library import Library as Library
    from readbench.cases._models import (
        NORMAL_OPERATION as NORMAL_OPERATION,
        UNLIKE as UNLIKE,
        AddedCase as AddedCase,
        Answer as Answer,
        Case as Case,
        CaseDetails as CaseDetails,
        CasePair as CasePair,
        Change as Change,
        ChannelEvidence as ChannelEvidence,
        Doubt as Doubt,
        Evidence as Evidence,
        Fault as Fault,
        Filter as Filter,
        Hit as Hit,
        HitGroup as HitGroup,
        LibraryOverview as LibraryOverview,
        MapPoint as MapPoint,
        Record as Record,
        Remark as Remark,
        Separation as Separation,
        Suggestion as Suggestion,
        Summary as Summary,
        Vote as Vote,
        WindowCheck as WindowCheck,
    )
    from readbench.cases._paper import write_page as write_page
    from readbench.cases._processes import SearchPool as SearchPool
    from readbench.cases._questions import (
        QUESTIONS as QUESTIONS,
        describe_oddities as describe_oddities,
        shorten_note as shorten_note,
    )
    from readbench.cases._reports import (
        link_case as link_case,
        list_backtest as list_backtest,
        report_backtest as report_backtest,
        report_case as report_case,
    )

open_room(__name__)
