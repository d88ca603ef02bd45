from __future__ import annotations

import inspect
import re
import time

import pytest

from readbench import errors
from readbench.errors import ReadbenchError, SpecError, UnknownNameError, UsageError, suggest_names


def drawn_parents() -> dict[str, str]:
    """Child -> parent, read from the tree in the module's docstring."""
    parents: dict[str, str] = {}
    path: list[str] = []
    for indent, name in re.findall(r"^([│├└─ ]*)([A-Z]\w+Error)\b", errors.__doc__ or "", re.MULTILINE):
        depth = len(indent) // 4
        path[depth:] = [name]
        if depth:
            parents[name] = path[depth - 1]
    return parents


def test_the_tree_of_errors_is_as_drawn() -> None:
    classes = {name: c for name, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, Exception)}
    actual = {name: c.__base__.__name__ for name, c in classes.items() if c is not ReadbenchError and c.__base__}
    assert actual == drawn_parents()
    assert "ReadbenchError" in classes


def test_every_error_on_purpose_is_caught_by_its_root() -> None:
    with pytest.raises(ReadbenchError):
        raise SpecError("unreadable")
    assert not issubclass(ReadbenchError, ValueError | KeyError | OSError)


def test_an_unknown_name_suggests_the_nearest_ones_first() -> None:
    error = UnknownNameError("method", "dtwi", ["random", "dtw-d", "dtw-i"])
    assert error.suggestions[0] == "dtw-i"
    assert error.name == "dtwi"
    assert str(error).startswith("Unknown method 'dtwi'. Did you mean 'dtw-i' or 'dtw-d'")
    assert isinstance(error, UsageError)


@pytest.mark.parametrize("name", ["EUCLIDIAN", "Euclidian", "euclidian"])
def test_suggestions_do_not_depend_on_case(name: str) -> None:
    assert UnknownNameError("method", name, ["random", "euclidean"]).suggestions == ["euclidean"]
    assert UnknownNameError("dataset", "ptb_xl", ["PTB-XL", "TEP"]).suggestions == ["PTB-XL"]


def test_at_most_three_names_are_suggested() -> None:
    assert len(UnknownNameError("dataset", "sim_x", [f"sim_{c}" for c in "abcdefg"]).suggestions) == 3


def test_without_a_near_name_all_known_ones_are_listed() -> None:
    assert str(UnknownNameError("fusion mode", "zzz", ["ws", "rrf"])) == "Unknown fusion mode 'zzz'. Known: rrf, ws."


def test_without_any_known_name_the_message_still_reads() -> None:
    assert str(UnknownNameError("encoder", "x", [])) == "Unknown encoder 'x'. Known: none."


def test_suggestions_take_little_whatever_name_is_asked_for() -> None:
    began = time.thread_time()
    known = [f"case-{number:06d}" for number in range(100_000)]
    for name in ("x" * 30_000_000, "case-0000zz", "y"):
        error = UnknownNameError("case", name, known)
        assert len(str(error)) < 5000
    assert str(error).endswith("and 99,900 more.")
    assert suggest_names("Case-000012", known)[0] == "case-000012"
    assert time.thread_time() - began < 5
