"""The journal tells every state: checked against a plain dictionary that does what the changes say."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import example, given, strategies as st

from readbench.cases import Case, _journal as journal
from readbench.cases._journal import JournalEntry

Action = tuple[str, int]
ACTIONS = st.lists(st.tuples(st.sampled_from(["add", "edit", "delete", "undo"]), st.integers(0, 5)), max_size=25)


class Life:
    """A naive library: after each change a whole copy of the cases, in their order."""

    def __init__(self) -> None:
        self.states: list[dict[str, str]] = [{}]
        self.standing: list[int] = []
        self.log: list[tuple[str, str, str]] = []
        self.rows: list[pa.Table] = []
        self.places: dict[str, int] = {}
        self.steps = 0

    def act(self, what: str, number: int) -> None:
        name, cases = f"case {number}", self.states[-1]
        if what == "undo" and self.standing:
            target = self.standing.pop()
            self.log.append(("undo", str(target), ""))
            self.rows.append(journal.undo_row(target, len(self.log), self.steps, 0.0))
        elif (what == "add" and name not in cases) or (what in {"edit", "delete"} and name in cases):
            if what == "add":
                self.places[name] = self.steps
            self.log.append((what, name, f"label {len(self.log)}"))
            self.standing.append(len(self.log))
            entry = JournalEntry(Case(id=name, label=self.log[-1][2]), self.places[name], "digest")
            self.rows.append(journal.journal_rows([entry], what, len(self.log), self.steps, 0.0))  # type: ignore[arg-type]
        else:
            return
        self.steps += 1
        self.states.append(self.replayed(len(self.log)))

    def replayed(self, upto: int) -> dict[str, str]:
        undone = {int(target) for what, target, _ in self.log[:upto] if what == "undo"}
        cases: dict[str, str] = {}
        for number, (what, name, label) in enumerate(self.log[:upto], start=1):
            if what == "undo" or number in undone:
                continue
            if what == "delete":
                cases.pop(name, None)
            else:
                cases[name] = label
        return cases


@given(ACTIONS, st.integers(0, 2**32 - 1))
def test_every_state_can_be_told_from_the_journal(actions: list[Action], seed: int) -> None:
    life = Life()
    for what, number in actions:
        life.act(what, number)
    table = pa.concat_tables(life.rows) if life.rows else journal.SCHEMA.empty_table()
    shuffled = table.take(np.random.default_rng(seed).permutation(len(table)))
    for change, expected in enumerate(life.states):
        state = journal.fold(shuffled, as_of=change)
        assert {name: entry.case.label for name, entry in state.cases.items()} == expected
        assert state.change == change
    for first in range(1, len(table)):
        head, rest = journal.fold(table[:first]), table[first:]
        later, whole = journal.advance(head, rest), journal.fold(table)
        assert (later is None) == ("undo" in rest["what"].to_pylist())
        if later is not None:
            assert list(later.cases.items()) == list(whole.cases.items())
            assert (later.changes, later.steps, later.named) == (whole.changes, whole.steps, whole.named)
    assert journal.fold(shuffled).cases == journal.fold(shuffled, as_of=len(life.log)).cases
    assert journal.fold(table).steps == len(table)


def test_cases_stand_in_the_order_in_which_they_came() -> None:
    entries = [JournalEntry(Case(id=name), place, "d") for place, name in enumerate("cab")]
    later = journal.journal_rows([entries[0]], "edit", 2, 3, 0.0)
    table = pa.concat_tables([journal.journal_rows(entries, "add", 1, 0, 0.0), later])
    assert list(journal.fold(table).cases) == ["c", "a", "b"]


def test_all_that_is_known_of_a_case_survives() -> None:
    case = Case(
        id="a", label="leak", asset="p", time=5.0, group="g", notes="n", tags=("t",), links=("l",), rejected=("x",)
    )
    state = journal.fold(journal.journal_rows([JournalEntry(case, 0, "digest")], "add", 1, 0, 7.0))
    assert state.cases["a"] == JournalEntry(case.model_copy(update={"changed": 7.0}), 0, "digest")
    assert [(change.number, change.what, change.cases, change.time) for change in state.changes] == [(1, "add", 1, 7.0)]


class Told:
    """A naive library of one case: each change sets one field, and is replayed where it stands."""

    FIELDS = ("label", "notes", "asset")

    def __init__(self) -> None:
        self.table = journal.journal_rows([JournalEntry(Case(id="a"), 0, "d")], "add", 1, 0, 0.0)
        self.sets: dict[int, tuple[str, str]] = {}
        self.undos: dict[int, int] = {}

    def act(self, field: int, target: int) -> None:
        number = journal.fold(self.table).change + 1
        standing = [*self.sets, *self.undos]
        standing = [own for own in standing if own not in self.undone()]
        if field < len(self.FIELDS):
            self.sets[number] = self.FIELDS[field], f"said in {number}"
            entry = journal.fold(self.table).cases["a"]
            case = entry.case.model_copy(update=dict([self.sets[number]]))
            entry = JournalEntry(case, 0, "d")
            rows = journal.journal_rows([entry], "edit", number, len(self.table), 0.0)
        elif standing:
            self.undos[number] = standing[target % len(standing)]
            rows = journal.revert(self.table, self.undos[number], number, 0.0)
        else:
            return
        self.table = pa.concat_tables([self.table, rows])

    def undone(self) -> set[int]:
        undone: set[int] = set()
        for number in sorted(self.undos, reverse=True):
            undone |= set() if number in undone else {self.undos[number]}
        return undone

    def replayed(self) -> dict[str, str]:
        return dict(said for number, said in sorted(self.sets.items()) if number not in self.undone())


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), max_size=12))
@example([(0, 0), (0, 0), (3, 0), (3, 0)])
def test_any_change_is_taken_back_alone_and_made_again(actions: list[tuple[int, int]]) -> None:
    told = Told()
    for field, target in actions:
        told.act(field, target)
    case = journal.fold(told.table).cases["a"].case
    assert {name: value for name in Told.FIELDS if (value := getattr(case, name))} == told.replayed()
    assert {own.number for own in journal.fold(told.table).changes if own.undone} == told.undone()


def test_an_addition_is_taken_back_with_all_that_was_said_later() -> None:
    entry = JournalEntry(Case(id="a"), 0, "d")
    table = pa.concat_tables(
        [
            journal.journal_rows([entry], "add", 1, 0, 0.0),
            journal.journal_rows([JournalEntry(Case(id="a", notes="n"), 0, "d")], "edit", 2, 1, 0.0),
        ]
    )
    gone = pa.concat_tables([table, journal.revert(table, 1, 3, 0.0)])
    assert journal.fold(gone).cases == {}
    back = pa.concat_tables([gone, journal.revert(gone, 3, 4, 0.0)])
    assert journal.fold(back).cases["a"].case.notes == "n"


def test_changes_are_signed() -> None:
    with journal.sign_changes("shift desk"):
        rows = journal.journal_rows([JournalEntry(Case(id="a"), 0, "d")], "add", 1, 0, 0.0)
    later = journal.undo_row(1, 2, 1, 0.0)
    assert [own.author for own in journal.fold(pa.concat_tables([rows, later])).changes] == ["shift desk", ""]
