"""A library to try the service with: cases of a simulated plant, with notes, and a few that nobody resolved yet."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from readbench.cases import Case, CaseLibrary
from readbench.cases.library import facts_of
from readbench.cli.case_trials import write_csv
from readbench.data import Task, load_task
from readbench.data.compose import Composition
from readbench.paths import cache_root
from readbench.spec import build_source
from readbench.windows import WindowSet

SOURCE = "sim_tanks(difficulty=0.5)"
CASES = 160
OPEN = 6
NORMALS = 400
FIRST_S = 1_735_689_600.0
"""The first case, as seconds since 1970; the others follow in a day or two each."""
LAST_S = FIRST_S + 86400 * 300
"""The first of the open cases."""
SAMPLE = "sample.csv"
NOTES = {
    "leak in tank 1": "Water under tank 1. Drain fitting re-seated, new gasket.",
    "leak in tank 3": "Hairline crack at the weld of tank 3; patched, replacement ordered.",
    "pump 1 efficiency loss": "Impeller of pump 1 worn. Replaced; flow back to its curve.",
    "clogged pipe between tanks": "Scale in the connecting pipe. Flushed with citric acid, then clear.",
    "stuck outlet valve": "Outlet valve did not follow its command. Actuator freed and greased.",
    "level sensor bias": "Level transmitter read high after the service; zero set again.",
    "level sensor drift": "Transmitter drifted over weeks. Exchanged, old one sent in.",
    "level sensor stuck": "Reading frozen while the pressure moved. Cable corroded, replaced.",
    "level sensor excess noise": "Noisy level: shield was not grounded. Grounded at the cabinet.",
}


def demo_library(where: Path) -> CaseLibrary:
    """The demo at a folder: opened where it is, made where it is not. All of its data are simulated."""
    if (where / SAMPLE).is_file():
        return CaseLibrary.open(where)
    settings = Composition(corpus_cap=CASES, query_cap=OPEN + 1)
    task = load_task(build_source(SOURCE), seed=0, cache=cache_root(), settings=settings)
    library = CaseLibrary.create(where)
    library.add_normals(task.normals[:NORMALS])
    library.add(task.corpus_at(0), _resolved(task))
    library.add(task.queries[1:], _unresolved(task.queries[1:]))
    _add_twin(library)
    write_csv(task.queries[:1], where / SAMPLE)
    return library


def _resolved(task: Task) -> list[Case]:
    """What is known of the cases: every third one has notes."""
    days = np.random.default_rng(0).uniform(0.5, 2.5, CASES).cumsum()
    return [
        case.model_copy(
            update={
                "id": f"T-{100 + number}",
                "time": FIRST_S + 86400 * float(days[number % CASES]),
                "notes": NOTES.get(case.label or "", "") if number % 3 == 0 else "",
            }
        )
        for number, case in enumerate(facts_of(task.corpus_at(0)))
    ]


def _add_twin(library: CaseLibrary) -> None:
    """One incident that a second recorder kept too."""
    first = library.cases()[CASES // 2]
    values = library.window(first.id).values(0)
    noise = np.random.default_rng(1).normal(size=values.shape) * values.std(axis=1, keepdims=True)
    facts = first.model_dump(exclude={"changed"}) | {"id": f"{first.id}-b", "notes": "Kept by the second recorder."}
    library.add_one(values + 0.02 * noise, library.window(first.id).channels(0), **facts)


def _unresolved(windows: WindowSet) -> list[Case]:
    return [
        case.model_copy(update={"id": f"T-{901 + number}", "label": None, "time": LAST_S + 3600.0 * number})
        for number, case in enumerate(facts_of(windows))
    ]
