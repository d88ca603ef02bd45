"""What windows bring along: kept through slicing, joining, disk and gate; hidden from methods that do not use it."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from readbench.engine.abilities import UsesContext
from readbench.engine.context import Context, check_before, find_still, join_contexts
from readbench.engine.legs import conceal
from readbench.engine.method import Method
from readbench.engine.preparation import Scaler, lend_before
from readbench.engine.testing import sample_windows
from readbench.engine.vectors import window_digests
from readbench.engine.window_files import WindowWriter, load_windows, save_windows
from readbench.engine.windows import WindowSet, concatenate, cut_befores
from readbench.errors import DataError

BEFORE = np.arange(8, dtype=np.float32).reshape(2, 4)


def with_context() -> WindowSet:
    """Three windows; the first two share a `before`, the last brings nothing."""
    context = Context.of(
        3,
        befores=[BEFORE, BEFORE, None],
        rates=[10.0, np.nan, np.nan],
        units=[("bar", "K"), ("bar", ""), ()],
        facts=[{"speed": 29.5}, {"load": 2.0, "speed": 30.0}, {}],
    )
    return WindowSet.from_arrays(
        np.arange(18.0).reshape(3, 2, 3), channels=("p", "T"), assets=["a", "a", "b"], context=context
    )


def test_a_window_brings_its_context() -> None:
    first, second, third = with_context()
    assert first.before is not None
    np.testing.assert_array_equal(first.before, BEFORE)
    assert (first.rate, first.units, first.facts) == (10.0, ("bar", "K"), {"speed": 29.5})
    assert second.facts == {"load": 2.0, "speed": 30.0}
    assert third.before is None
    assert np.isnan(third.rate)
    assert (third.units, third.facts) == ((), {})


def test_windows_that_share_a_before_keep_it_once() -> None:
    context = with_context().context
    assert context is not None
    assert len(context.befores) == 1


@pytest.mark.parametrize("order", [[2, 0, 1], [1], [0, 0]])
def test_context_goes_with_its_window_through_slicing_copying_and_joining(order: list[int]) -> None:
    windows = with_context()
    for made in (windows[order], windows[order].compact(), concatenate([windows[[i]] for i in order])):
        for own, i in zip(made, order, strict=True):
            other = windows[i]
            assert (own.facts, own.units) == (other.facts, other.units)
            assert (own.before is None) == (other.before is None)
            np.testing.assert_equal(own.rate, other.rate)


def test_windows_without_context_are_joined_with_others() -> None:
    joined = concatenate([sample_windows(2), with_context()])
    assert joined[0].before is None
    assert joined[2].facts == {"speed": 29.5}


def test_a_set_made_of_its_windows_again_is_the_same() -> None:
    windows = with_context()
    again = replace(WindowSet.of(list(windows)), classes=windows.classes, spans=windows.spans)
    assert again.fingerprint() == windows.fingerprint()


def test_context_is_the_same_from_disk(tmp_path: Path) -> None:
    windows = concatenate([with_context(), sample_windows(2)])
    save_windows(windows, tmp_path / "set")
    assert load_windows(tmp_path / "set").fingerprint() == windows.fingerprint()


def test_facts_of_later_parts_may_have_other_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("readbench.engine.window_files.PART_BYTES", 1)
    one, two = with_context()[:1], with_context()[1:]
    two = replace(two, ids=np.array(["1", "2"], dtype=np.dtypes.StringDType()))
    with WindowWriter(tmp_path / "set", ()) as writer:
        writer.append(one)
        writer.checkpoint(1)
        writer.append(two)
    assert [window.facts for window in load_windows(tmp_path / "set")] == [window.facts for window in with_context()]


def test_windows_that_bring_nothing_are_as_before() -> None:
    windows = sample_windows(3)
    empty = windows.with_context(Context.of(3, facts=[{}, {}, {}]))
    assert empty.context is None
    assert empty.fingerprint() == windows.fingerprint()


def test_the_gate_shows_context_and_nothing_else() -> None:
    seen = conceal(with_context())
    assert seen[0].facts == {"speed": 29.5}
    assert set(seen.assets.tolist()) == {""}


class Spy:
    """A retriever that remembers what it saw."""

    uses_labels = False
    corpus_dependent = False

    def __init__(self) -> None:
        self.seen: list[WindowSet] = []

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Spy:
        self.seen += [corpus, normals]
        self.size = len(corpus)
        return self

    def score(self, queries: WindowSet) -> np.ndarray:
        self.seen.append(queries)
        return np.zeros((len(queries), self.size), np.float32)


@pytest.mark.parametrize("declared", [True, False])
def test_only_a_part_that_declares_its_use_sees_context(declared: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001
    spy, windows = Spy(), with_context()
    method = Method("euclidean")
    leg = method.legs[0]
    monkeypatch.setattr(type(leg), "again", lambda self, stored=None: self)  # noqa: ARG005
    leg.retriever = spy
    monkeypatch.setattr(spy, "uses_context", declared, raising=False)
    leg.part = replace(leg.part, component=spy, abilities=frozenset({UsesContext}))
    method.fit(windows, windows).rank(windows)
    assert len(spy.seen) == 3
    for seen in spy.seen:
        assert (seen.context is not None) == declared
        assert set(seen.assets.tolist()) == {""}
        assert set(seen.labels.tolist()) == {-1}


def test_vectors_are_filed_apart_only_where_the_context_is_seen() -> None:
    windows = with_context()
    bare = windows.with_context(None)
    assert window_digests(windows)[2] == window_digests(bare)[2]
    assert window_digests(windows)[0] != window_digests(bare)[0]


@pytest.mark.parametrize(
    ("before", "message"),
    [
        ([[1.0]], "1 channels, the window 2"),
        (np.empty((2, 0)), "is empty"),
        ([[1.0, np.nan], [1.0, 1.0]], "gap in channel 'p'"),
        ([1.0, 2.0], "shape"),
        ([["x"], ["y"]], "no matrix"),
    ],
)
def test_a_before_that_does_not_fit_is_refused(before: list[float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_before(before, ("p", "T"), "case 7")


def test_channels_that_never_move_are_named() -> None:
    assert find_still(np.array([[1, 1], [1, 2]], np.float32), ("p", "T")) == ("p",)


def test_scaling_by_the_time_before_is_by_hand() -> None:
    corpus = WindowSet.from_arrays([[[0.0, 10.0]]])
    window = WindowSet.from_arrays([[[9.0, 11.0]]], context=Context.of(1, befores=[[[6.0, 8.0]]]))
    scaled = Scaler.of("before", corpus)(window).values(0)
    np.testing.assert_allclose(scaled, [[2.0, 4.0]])  # mean 7, deviation 1


def test_a_still_before_is_scaled_by_a_share_of_the_corpus() -> None:
    corpus = WindowSet.from_arrays([[[0.0, 10.0]]])
    window = WindowSet.from_arrays([[[7.0, 7.5]]], context=Context.of(1, befores=[[[7.0, 7.0]]]))
    np.testing.assert_allclose(Scaler.of("before", corpus)(window).values(0), [[0.0, 1.0]])


def test_without_a_before_normals_scale_and_without_these_the_corpus() -> None:
    corpus, normals = WindowSet.from_arrays([[[0.0, 10.0]]]), WindowSet.from_arrays([[[2.0, 4.0]]])
    window = WindowSet.from_arrays([[[5.0, 5.0]]])
    assert Scaler.of("before", corpus, normals)(window).values(0)[0, 0] == 2.0
    assert Scaler.of("before", corpus)(window).values(0)[0, 0] == 0.0


def test_a_case_may_borrow_the_normals_of_its_own_asset_only() -> None:
    cases = WindowSet.from_arrays([[[5.0]], [[6.0]], [[7.0]]], assets=["a", "b", ""])
    normals = WindowSet.from_arrays([[[1.0, 2.0]], [[3.0, 4.0]]], assets=["a", "c"])
    found = lend_before(cases, normals)
    assert [None if window.before is None else window.before.tolist() for window in found] == [[[1.0, 2.0]], None, None]


def test_a_case_keeps_its_own_before() -> None:
    cases = WindowSet.from_arrays([[[5.0]]], assets=["a"], context=Context.of(1, befores=[[[9.0]]]))
    lent = lend_before(cases, WindowSet.from_arrays([[[1.0, 2.0]]], assets=["a"]))
    assert lent[0].before is not None
    assert lent[0].before.tolist() == [[9.0]]


def machines(levels: tuple[float, ...]) -> WindowSet:
    """A sine on machines of different level, all of which were flat before."""
    course = np.sin(np.linspace(0, 6, 24))[None]
    flat = np.random.default_rng(0).normal(0, 0.1, (1, 96))
    return WindowSet.from_arrays(
        [course + level for level in levels],
        context=Context.of(len(levels), befores=[flat + level for level in levels]),
    )


@pytest.mark.parametrize(
    "method",
    [
        "raw(norm=before)",
        "euclidean(norm=before)",
        "dtw-i(norm=before)",
        "sbd-d(norm=before)",
        "sonde(reference=before)",
    ],
)
def test_by_the_time_before_machines_of_different_level_are_alike(method: str) -> None:
    windows = machines((0.0, 40.0, -900.0))
    scores = Method(method).fit(windows).score(windows)
    np.testing.assert_allclose(scores, scores[:1].repeat(3, axis=0), atol=2e-2)


@pytest.mark.parametrize("method", ["raw", "dtw-i", "sonde", "rocket+nr", "raw+nr(reference=before)"])
def test_without_any_context_a_method_is_as_it_was(method: str) -> None:
    windows = machines((0.0, 40.0, -900.0))
    bare = windows.with_context(None)
    plain = method.replace("(reference=before)", "")
    np.testing.assert_array_equal(Method(method).fit(bare, bare).score(bare), Method(plain).fit(bare, bare).score(bare))


def test_the_residual_against_the_time_before_is_by_hand() -> None:
    windows = WindowSet.from_arrays(
        [[[3.0, 4.0]], [[0.0, 1.0]]], context=Context.of(2, befores=[[[1.0, 0.0, 0.0, 1.0]], None])
    )
    normals = WindowSet.from_arrays([[[1.0, 1.0]]])
    leg = Method("raw(norm=none)+nr(reference=before)").fit(windows, normals).legs[0]
    found = leg.represent(windows).items
    first = np.array([0.6, 0.8]) - np.array([0.5, 0.5])  # less the mean of the two unit stretches before
    second = np.array([0.0, 1.0]) - np.array([1.0, 1.0]) / np.sqrt(2)  # brings none: less the nearest normal
    np.testing.assert_allclose(found, [v / np.linalg.norm(v) for v in (first, second)], atol=1e-6)


def test_sonde_measures_by_normal_operation_where_a_window_brings_no_time_before() -> None:
    windows = machines((0.0, 5.0, 10.0))
    mixed = windows.with_context(Context.of(3, befores=[windows[0].before, None, None]))
    vectors = Method("sonde(reference=before)").fit(mixed, mixed).legs[0].represent(mixed).items
    assert np.isfinite(vectors).all()
    assert not np.allclose(vectors[0], vectors[1])


def test_the_gate_numbers_and_copies_what_windows_bring_anew() -> None:
    windows = with_context()[[2, 1, 0]]
    seen = conceal(windows)
    assert seen.context is not None
    assert windows.context is not None
    assert seen.context.before.tolist() == [-1, 0, 1], "each window has its own, in the order of the windows"
    assert seen.context.unit_sets == (("bar", ""), ("bar", "K")), "as they first appear"
    assert seen.context.fact_names == ("load", "speed"), "by name"
    assert seen.context.befores[0] is not seen.context.befores[1]
    for own in seen.context.befores:
        np.testing.assert_array_equal(own, BEFORE)
        assert not np.shares_memory(own, BEFORE)
        assert not np.shares_memory(own, windows.context.befores[0])
    first, second = (own.ctypes.data for own in seen.context.befores)
    assert second - first == BEFORE.nbytes, "one after the other"


def test_the_gate_does_not_say_whose_time_before_is_lent() -> None:
    cases = WindowSet.from_arrays(np.zeros((2, 1, 4)), assets=["a", "b"])
    lent = lend_before(cases, WindowSet.from_arrays([[[1.0, 2.0]]], assets=["a"]))
    assert lent.context is not None
    assert lent.context.lent.tolist() == [True, False]
    seen = conceal(lent).context
    assert seen is not None
    assert seen.has_before.tolist() == [True, False]
    assert not seen.lent.any()


def test_a_time_before_that_windows_share_is_cut_once_behind_the_gate() -> None:
    windows = with_context()
    for own in (windows, conceal(windows)):
        stretches, of, of_window = cut_befores(own, most=8)
        assert [stretch.values.tolist() for stretch in stretches] == [BEFORE[:, 1:].tolist()]
        assert (of.tolist(), of_window.tolist()) == ([0], [0, 0, -1])


@pytest.mark.parametrize("declared", [True, False])
def test_an_object_sees_context_only_where_it_declares_its_use(declared: bool) -> None:  # noqa: FBT001
    spy, windows = Spy(), with_context()
    if declared:
        vars(spy)["uses_context"] = True
    fitted = Method(spy).fit(windows, windows)
    fitted.rank(windows)
    copy = fitted.legs[0].built.retriever
    assert isinstance(copy, Spy)
    assert len(copy.seen) == 3
    assert {own.context is not None for own in copy.seen} == {declared}


def test_joining_contexts_of_very_many_facts_and_units_takes_time_that_grows_as_they_do() -> None:
    names = [f"f{number}" for number in range(100_000)]
    one = Context.of(1, facts=[dict.fromkeys(names, 1.0)])
    many = Context.of(20_000, units=[(f"u{number}",) for number in range(20_000)])
    began = time.thread_time()
    facts = join_contexts([(1, one), (1, one)])
    units = join_contexts([(20_000, many), (20_000, many)])
    assert time.thread_time() - began < 5
    assert facts is not None
    assert units is not None
    assert (len(facts.fact_names), len(units.unit_sets)) == (100_000, 20_000)
