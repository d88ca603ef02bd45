"""Normal operation is an option, taught by normals and by false alarms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from readbench.cases import NORMAL_OPERATION, Answer, Library
from readbench.cases._evidence import measure_departure, reference_for
from readbench.cases._normal import (
    LIKELY,
    MOST_NAMED,
    UNFILED,
    NormalModel,
    NormalOpinion,
    NormalSizes,
    TimeBefore,
    bound_faults,
    fit_logistic,
    name_held_out,
)
from readbench.engine.context import Context
from readbench.engine.preparation import ChannelStats
from readbench.engine.windows import NORMAL, WindowSet
from tests.cases.samples import CHANNELS, FAST, filled, normals, window, windows


def share(answer: Answer) -> float:
    return next(option.probability for option in answer.faults if option.label == NORMAL_OPERATION)


def test_normal_windows_are_called_normal_and_faults_are_not(tmp_path: Path) -> None:
    library = filled(tmp_path / "l", 30)
    quiet = library.search_many(normals(6, seed=5), method=FAST)
    faulty = library.search_many(windows(6, seed=5, labelled=False), method=FAST)
    assert min(map(share, quiet)) > 0.5 > max(map(share, faulty))
    assert quiet[0].faults[0].label == NORMAL_OPERATION
    assert sum(option.probability for option in quiet[0].faults) == pytest.approx(1.0)
    assert (quiet[0].hits[0].probability or 0.0) < 0.5


def test_without_normals_it_is_no_option(tmp_path: Path) -> None:
    library = Library.create(tmp_path / "l")
    library.add(windows(12))
    assert NORMAL_OPERATION not in {option.label for option in library.search("w0", method=FAST).faults}


def test_labelling_false_alarms_changes_the_answers(tmp_path: Path) -> None:
    library = filled(tmp_path / "l", 30)
    rng = np.random.default_rng(3)
    alarms = [window("leak", rng) for _ in range(11)]
    before = library.search(alarms[0], channels=CHANNELS, method=FAST)
    for number, values in enumerate(alarms[1:]):
        library.add_one(values, CHANNELS, id=f"alarm {number}")
    assert share(library.search(alarms[0], channels=CHANNELS, method=FAST)) == pytest.approx(share(before))
    for number in range(10):
        library.label(f"alarm {number}", "normal")
    assert share(library.search(alarms[0], channels=CHANNELS, method=FAST)) > share(before) + 0.1


def test_faults_are_not_called_normal_because_more_normal_windows_are_kept(tmp_path: Path) -> None:
    rng, seen = np.random.default_rng(3), []
    faint = [window("", rng) + 0.4 * np.linspace(-1, 1, 40) for _ in range(60)]
    for count in (15, 300):
        library = Library.create(tmp_path / str(count))
        library.add(faint[:30], channels=CHANNELS, labels=["leak"] * 30)
        library.add_normals(normals(count))
        answers = library.search_many(WindowSet.from_arrays(faint[30:], channels=CHANNELS), method=FAST)
        seen.append(np.mean([share(answer) for answer in answers]))
    assert seen[0] > 0.1
    assert seen[1] <= seen[0]


def test_false_alarms_among_the_cases_make_normal_operation_likelier_before_any_look(tmp_path: Path) -> None:
    library = filled(tmp_path / "l", 30)

    def often() -> float:
        model = NormalModel.of(library.snapshot(), library.snapshot().profile)
        assert model is not None
        return model.often

    assert often() == pytest.approx(UNFILED)
    for number in range(6):
        library.add_one(normals(1, seed=9 + number)[0].values, CHANNELS, id=f"alarm {number}", label="normal")
    assert often() == pytest.approx(UNFILED + 6 / 30)


def test_a_case_that_nobody_resolved_changes_nothing(tmp_path: Path) -> None:
    library, asked = filled(tmp_path / "l", 30), WindowSet.of([*normals(4, seed=5), *windows(4, seed=5)])

    def judge() -> list[NormalOpinion]:
        snapshot = library.snapshot()
        model = NormalModel.of(snapshot, snapshot.profile)
        assert model is not None
        return model.judge(asked)

    before = judge()
    library.add(windows(5, seed=8, labelled=False, prefix="open "))
    assert judge() == before


def test_a_bound_leaves_as_many_named_normals_as_allowed_and_recordings_vote() -> None:
    rng = np.random.default_rng(0)
    faults, named, groups = rng.random(400), np.full(400, 0.9), np.arange(400) // 2
    bound = bound_faults(faults, named, groups)
    above, also = (np.sum((faults * named > LIKELY) & own) / 2 for own in (faults > bound, faults >= bound))
    assert (1 + above) / 201 <= MOST_NAMED < (1 + also) / 201, "the question's recording counts as one"
    few = bound_faults(faults[:20], named[:20], groups[:20])  # ten recordings cannot promise it: none is named
    assert few == faults[:20].max() > LIKELY / 0.9
    assert bound_faults(faults, np.full(400, 0.4), groups) == 0.0
    one_long = np.array([0] * 300 + list(range(1, 101)))
    often = np.array([0.99] * 300 + [0.1] * 100)
    assert bound_faults(often, np.ones(400), one_long) == 0.0


def test_faults_are_named_for_normals_by_other_recordings_only() -> None:
    """A normal window beside a fault of its own recording is not told by it."""
    types = np.array([NORMAL, 1, 2, 1, 2, 1, 2], np.int32)
    kernel = np.eye(7) + 0.9 * (types[:, None] == types) * (types > 0) * (1 - np.eye(7))
    kernel[0, 1] = kernel[1, 0] = 1.0
    apart, together = np.arange(7), np.array([0, 0, 2, 3, 4, 1, 6])
    assert name_held_out([kernel], types, apart)[0] > name_held_out([kernel], types, together)[0]


def test_where_normal_is_not_ruled_out_no_fault_is_above_one_half() -> None:
    for likeliest in (0.3, 0.6, 1.0):
        share = NormalOpinion(0.1, held=1.0).beside(likeliest)
        assert (1 - share) * likeliest <= LIKELY + 1e-12
        assert share <= LIKELY
    assert NormalOpinion(0.1, held=0.0).beside(1.0) == 0.1


def test_one_more_case_moves_no_other_answer_by_much(tmp_path: Path) -> None:
    library, rng = filled(tmp_path / "l", 60), np.random.default_rng(4)
    faint = [(window("", rng) + size * np.linspace(-1, 1, 40)).astype(np.float32) for size in np.linspace(0.1, 1.5, 40)]
    asked = WindowSet.from_arrays(faint, channels=CHANNELS)

    def judge() -> list[float]:
        model = NormalModel.of(library.snapshot(), library.snapshot().profile)
        assert model is not None
        return [opinion.beside(0.9) for opinion in model.judge(asked)]

    seen = [judge()]
    for number in range(6):
        library.add(windows(3, seed=50 + number, prefix=f"{number} more ")[np.array([number % 3])])
        seen.append(judge())
    assert np.abs(np.diff(seen, axis=0)).max() < 0.15
    assert np.std(seen[0]) > 0.1, "the questions are of many kinds"


def test_how_far_a_normal_window_departs_is_told_by_other_recordings() -> None:
    """A recording that is far from all others does not make itself usual."""
    rng = np.random.default_rng(0)
    described, vectors = rng.normal(size=(40, 6)), np.eye(40)
    groups = np.arange(40) // 4
    described[groups == 9] += 30.0
    sizes = NormalSizes.of(described, vectors, groups)
    assert sizes.held_out.groups == 10
    assert sizes.held_out.values[-4:].min() > 5 * sizes.held_out.values[:-4].max()
    assert sizes.least == 1 / 11
    usual, far = described[:1], described[:1] + 1e4
    nowhere = np.zeros((1, 40))
    assert sizes.beyond(usual, nowhere).tolist() == [False]
    assert sizes.beyond(far, nowhere).tolist() == [True]
    assert sizes.beyond(far, vectors[:1]).tolist() == [False], "a copy of a normal window is normal"


def with_before(own: WindowSet, seed: int, steps: int = 60) -> WindowSet:
    rng = np.random.default_rng(seed)
    return own.with_context(Context.of(len(own), befores=[rng.normal(size=(3, steps)) for _ in range(len(own))]))


def test_what_departs_from_the_time_before_more_than_any_normal_is_not_normal(tmp_path: Path) -> None:
    library = Library.create(tmp_path / "l")
    library.add_normals(with_before(normals(20), 1))
    library.add(with_before(windows(30), 2))
    values = window("", np.random.default_rng(7))
    same = library.search(values, channels=CHANNELS, before=values[:, :20], method=FAST)
    moved = library.search(values, channels=CHANNELS, before=values[:, :20] - 40.0, method=FAST)
    assert share(moved) <= 1 / 21 < 0.5 < share(same)
    model = NormalModel.of(library.snapshot(), library.snapshot().profile)
    assert model is not None
    assert model.before is not None
    assert model.before.weights[1] > 0


def test_the_departure_is_the_number_that_the_evidence_shows(tmp_path: Path) -> None:
    library = filled(tmp_path / "l")
    own = with_before(windows(1), 3)[0]
    snapshot = library.snapshot()
    shown = reference_for(snapshot, own).departures(own, list(CHANNELS))
    assert measure_departure(own, snapshot.reference) == pytest.approx(np.sqrt((shown**2).mean(axis=1)).max())
    assert np.isnan(measure_departure(with_before(windows(1), 3, steps=2)[0], snapshot.reference))
    assert np.isnan(measure_departure(windows(1)[0], snapshot.reference))


def test_departures_count_where_enough_windows_bring_the_time_before() -> None:
    rng = np.random.default_rng(0)
    normal, groups, whole = np.arange(60) < 30, np.arange(60), ChannelStats({}, {})
    departures = np.where(normal, 1.0, 4.0) * np.exp(0.3 * rng.normal(size=60))
    blind = TimeBefore.of(np.zeros(60), departures, normal, groups, whole)
    assert blind is not None
    joined = blind.join(np.zeros(3), np.array([1.0, 4.0, np.nan]))
    assert joined[0] < -1 < 1 < joined[1]
    assert joined[2] == 0.0
    few = np.where(np.arange(60) % 30 < 9, departures, np.nan)
    assert TimeBefore.of(np.zeros(60), few, normal, groups, whole) is None
    assert TimeBefore.of(np.zeros(60), departures, normal, np.where(normal, 0, groups), whole) is None
    # Departures that speak the other way are chance: a larger one never makes a window more normal.
    reverse = TimeBefore.of(np.zeros(60), 1 / departures, normal, groups, whole)
    assert reverse is not None
    assert reverse.weights[1] == 0.0


def test_the_logistic_model_is_the_likeliest() -> None:
    rng = np.random.default_rng(1)
    shown = rng.normal(size=(400, 2)) * [1.0, 5.0] + [0.0, 3.0]
    positive = rng.random(400) < 1 / (1 + np.exp(-(1.5 * shown[:, 0] + 0.4 * shown[:, 1] - 1.0)))
    found = np.array(fit_logistic(shown, positive, np.ones(400)))
    assert found == pytest.approx([1.5, 0.4, -1.0], abs=0.35)

    def loss(given: np.ndarray) -> float:
        odds = shown @ given[:2] + given[2]
        return float(np.logaddexp(0, np.where(positive, -odds, odds)).mean())

    for step in np.vstack([np.eye(3), -np.eye(3)]) * 0.1:
        assert loss(found) < loss(found + step)
