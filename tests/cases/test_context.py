"""What windows bring along is kept beside them: it survives undo, copies and kills, and old libraries take it up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from readbench.cases import Library, encode_cases
from readbench.cases._lance import LanceStore
from readbench.engine.context import Context
from readbench.engine.spec import parse
from readbench.engine.windows import WindowSet
from readbench.errors import DataError, UsageError
from tests.cases.samples import CHANNELS, FAST, filled, normals, windows

BY_BEFORE = "raw(norm=before)"
"""An encoder that sees the time before."""
RNG = np.random.default_rng(4)
BEFORE = RNG.normal(size=(3, 64)).astype(np.float32)


def with_context(cases: WindowSet) -> WindowSet:
    """The first window with everything, the second with the same time before, the others bare."""
    count = len(cases)
    return cases.with_context(
        Context.of(
            count,
            befores=[BEFORE, BEFORE] + [None] * (count - 2),
            rates=[10.0] + [np.nan] * (count - 1),
            units=[("bar", "m3/h", "")] + [()] * (count - 1),
            facts=[{"speed": 29.5, "load": 0.8}] + [{}] * (count - 1),
        )
    )


@pytest.fixture
def carrying(tmp_path: Path) -> Library:
    """Six cases, two of them with context, and normals of two pumps."""
    library = Library.create(tmp_path / "carrying")
    library.add_normals(normals(10), rate=10.0, facts={"speed": 30.0})
    library.add(with_context(windows(6)))
    return library


def older(where: Path) -> Library:
    """A library as it was made before there was context."""
    library = filled(where)
    store = library.store
    assert isinstance(store, LanceStore)
    store._database.drop_table("contexts")
    store._tables["journal"].drop_columns(["context"])
    return Library.open(where)


def test_context_comes_back_with_the_windows(carrying: Library) -> None:
    found = Library.open(carrying.store.where).snapshot().windows(range(6))
    assert found.context is not None
    np.testing.assert_array_equal(found[0].before, BEFORE)
    assert (found[0].rate, found[0].units) == (10.0, ("bar", "m3/h", ""))
    assert found[0].facts == {"speed": 29.5, "load": 0.8}
    np.testing.assert_array_equal(found[1].before, BEFORE)
    assert found[2].before is None
    assert len(carrying.normals().context.rates) == 10  # type: ignore[union-attr]
    assert carrying.normals()[3].facts == {"speed": 30.0}


def test_a_window_is_kept_once_whatever_it_brings_along(carrying: Library) -> None:
    first = carrying.window("w0")[0]
    carrying.add_one(first.values, first.channels, id="same", before=BEFORE[:, :9])
    entries = carrying.snapshot().state.cases
    assert entries["same"].digest == entries["w0"].digest
    assert carrying.window("same")[0].before is not None
    assert carrying.window("same")[0].before.shape == (3, 9)  # type: ignore[union-attr]
    np.testing.assert_array_equal(carrying.window("w0")[0].before, BEFORE)


def test_context_survives_edits_and_comes_back_with_undo(carrying: Library) -> None:
    before = carrying.window("w0").fingerprint()
    carrying.edit("w0", notes="seen")
    assert carrying.window("w0").fingerprint() == before
    carrying.delete(["w0"])
    carrying.add(windows(1), [carrying.cases()[0].model_copy(update={"id": "w0"})])
    assert carrying.window("w0")[0].before is None
    carrying.undo()
    carrying.undo()
    assert carrying.window("w0").fingerprint() == before


def test_what_a_killed_writer_left_belongs_to_nobody(carrying: Library) -> None:
    late = windows(1, seed=3, prefix="late").with_context(Context.of(1, facts=[{"speed": 1.0}]))
    carrying.store.file_windows(late)
    carrying.store.file_contexts(late)
    carrying.add(late.with_context(None))
    assert carrying.window("late0").context is None


def test_a_library_from_before_there_was_context_opens_and_stays_as_it_is(tmp_path: Path) -> None:
    library = older(tmp_path / "old")
    before = library.snapshot().windows(range(12)).fingerprint()
    library.add(windows(1, seed=1, prefix="x"))
    library.label("w0", "leak")
    assert "context" not in library.store.journal().schema.names
    assert library.snapshot().windows(range(12)).fingerprint() == before
    reader = Library.open(tmp_path / "old")
    library.add(with_context(windows(2, seed=2, prefix="y")))
    for one in (library, reader, Library.open(tmp_path / "old")):
        assert one.window("y0")[0].facts == {"speed": 29.5, "load": 0.8}
        assert one.snapshot().windows(range(12)).with_context(None).fingerprint() == before
        assert one.search("y0", method=FAST, k=1).total == 15
    library.store.optimise()
    assert Library.open(tmp_path / "old").window("y1")[0].before is not None


def test_cases_without_a_time_before_are_lent_normals_of_their_asset(carrying: Library) -> None:
    searched = carrying.snapshot().searched(range(6))
    np.testing.assert_array_equal(searched[0].before, BEFORE)
    own = normals(10)
    expected = np.concatenate([own.values(i) for i in range(10) if own.assets[i] == "pump 0"], axis=1)
    np.testing.assert_array_equal(searched[2].before, expected)
    assert carrying.window("w2").context is None, "what is asked about, or copied, has no more than it brought"


def test_methods_that_know_no_context_answer_as_without(carrying: Library, tmp_path: Path) -> None:
    bare = Library.create(tmp_path / "bare")
    bare.add_normals(normals(10))
    bare.add(windows(6))
    asked = windows(1, seed=9, labelled=False)
    answers = [one.search(asked, method=FAST).hits for one in (carrying, bare)]
    assert [(hit.case.id, hit.score) for hit in answers[0]] == [(hit.case.id, hit.score) for hit in answers[1]]
    brought = carrying.search(asked, method=FAST, before=BEFORE, rate=5.0, units=["", "", "rpm"], facts={"load": 1.0})
    assert [hit.score for hit in brought.hits] == [hit.score for hit in answers[0]]


def test_methods_that_use_the_time_before_see_it(carrying: Library) -> None:
    asked = windows(1, seed=9, labelled=False)
    scores = [
        [hit.score for hit in carrying.search(asked, method=BY_BEFORE, before=before).hits]
        for before in (None, BEFORE, BEFORE + 100)
    ]
    assert scores[0] != scores[1] != scores[2]


def test_a_method_that_uses_context_is_fitted_anew_when_an_asset_changes(carrying: Library) -> None:
    asked = windows(1, seed=9, labelled=False)
    moved = WindowSet.from_arrays(normals(2).chunks[0].reshape(2, 3, 40) + 50, channels=CHANNELS, assets=["far"] * 2)
    carrying.add_normals(moved)

    def score(name: str) -> float:
        return next(h.score for h in carrying.search(asked, method=BY_BEFORE, before=BEFORE).hits if h.case.id == name)

    before = score("w3")
    carrying.edit("w3", asset="far")
    assert score("w3") != before


def test_vectors_of_context_are_those_that_a_search_looks_for(carrying: Library) -> None:
    method = parse(BY_BEFORE)
    assert encode_cases(carrying.snapshot(), method) == 6
    assert encode_cases(carrying.snapshot(), method) == 0
    assert carrying.warm(BY_BEFORE) == 0


def test_the_site_s_names_and_units_hold_for_the_time_before(library: Library) -> None:
    library.name_channel("pressure", "bar", ["PT-101 [kPa]"])
    values = np.arange(6.0).reshape(2, 3)
    library.add_one(values, ["PT-101", "flow"], id="a", before=values * 100)
    library.add_one(values, ["pressure", "flow"], id="b", before=values, units=["kPa", "l/s"])
    for name, scale in (("a", 100), ("b", 1)):
        own = library.window(name)[0]
        assert own.before is not None
        np.testing.assert_allclose(own.before[0], values[0] * scale / 100, rtol=1e-6)
        np.testing.assert_allclose(own.before[1], values[1] * scale)
        np.testing.assert_allclose(own.values[0], values[0] / 100, rtol=1e-6)
    assert library.window("a")[0].units == ("bar", "")
    assert library.window("b")[0].units == ("bar", "l/s")


def test_gaps_in_the_time_before_are_filled_and_lost_channels_left_out(library: Library) -> None:
    nan = np.nan
    library.add_one(
        [[1, nan, 3], [nan] * 3], ["flow", "lost"], id="g", before=[[nan, 5], [nan, nan]], units=["l/s", ""]
    )
    own = library.window("g")[0]
    assert own.channels == ("flow",)
    assert own.units == ("l/s",)
    assert own.before is not None
    assert own.before.tolist() == [[5, 5]]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"before": np.ones((2, 4))}, "has 2 channels, the window 3"),
        ({"before": np.ones((3, 0))}, "is empty"),
        ({"before": np.ones(4)}, r"give a matrix \(channels, time\)"),
        ({"before": np.full((3, 4), np.nan)}, "no reading of channel 'pressure'"),
        ({"before": [["x"]]}, "is no matrix"),
        ({"rate": 0.0}, "positive number"),
        ({"rate": np.inf}, "positive number"),
        ({"units": ["bar"]}, "3 channels, but units of 1"),
        ({"facts": {"speed": np.inf}}, "no finite number"),
        ({"facts": {"a\nb": 1.0}}, "control characters"),
        ({"facts": {str(i): 1.0 for i in range(101)}}, "at most 100"),
    ],
)
def test_a_context_that_does_not_fit_is_refused(library: Library, given: dict[str, Any], says: str) -> None:
    changes = library.history()
    with pytest.raises((DataError, UsageError), match=says):
        library.add_one(np.ones((3, 4)), CHANNELS, **given)
    with pytest.raises((DataError, UsageError), match=says):
        library.search(np.ones((3, 4)), channels=CHANNELS, method=FAST, **given)
    assert library.history() == changes


def test_the_context_of_a_stored_case_is_its_own(library: Library) -> None:
    with pytest.raises(UsageError, match="stored context"):
        library.search("w0", method=FAST, rate=3.0)


def test_a_window_is_compared_with_the_time_before_it(library: Library) -> None:
    values = np.stack([np.linspace(500, 506, 40), np.full(40, 3.0), np.zeros(40)])
    before = np.stack([np.full(512, 500.0) + RNG.normal(size=512), np.full(512, 3.0), np.zeros(512)])
    asked = WindowSet.from_arrays([values], channels=CHANNELS)
    assert library.explain(asked, "w0").reference.startswith("10 normal windows of all assets")
    evidence = library.explain(asked, "w0", before=before)
    assert evidence.reference == "the 512 steps before it; for the case, 5 normal windows of pump 0"
    departures = {channel.name: channel.window for channel in evidence.channels}
    assert departures["pressure"] == pytest.approx(np.sqrt(((values[0] - 500) ** 2).mean()), rel=0.2)
    assert departures["flow"] == 0


def test_what_stood_still_before_is_measured_by_the_spread_among_cases(library: Library) -> None:
    values, before = np.zeros((3, 40)), np.zeros((3, 8))
    values[1, 20:] = 1.0
    evidence = library.explain(WindowSet.from_arrays([values], channels=CHANNELS), "w0", before=before)
    flow = next(channel for channel in evidence.channels if channel.name == "flow")
    assert 0.1 < flow.window < 20
