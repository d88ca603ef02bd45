"""The table and the curves of fault types held out, against values worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from readbench.studies._opinions import RATES, HeldOut, draw_novelty, novelty_table
from tests.studies.test_opinion_tables import measured

PERFECT = HeldOut("leak", np.array([3.0, 4.0]), np.array([1.0, 2.0]))
HOPELESS = HeldOut("leak", np.array([0.0]), np.array([1.0, 2.0]))
EVEN = HeldOut("stall", np.array([1.5]), np.array([1.0, 2.0]))
GIVEN = [
    replace(measured("one", 0, 0, 0.1), held_out=(PERFECT, EVEN)),
    replace(measured("one", 1, 0, 0.1), held_out=(HOPELESS,)),
    replace(measured("two", 0, 0, 0.1), held_out=(EVEN,)),
]


def test_a_row_is_a_fault_of_a_dataset_over_its_seeds() -> None:
    table = novelty_table(GIVEN)
    assert table is not None
    assert table.rows == [
        ["one", "leak", "0", "3", "0.500", "0.500"],
        ["one", "stall", "0", "1", "0.500", "0.500"],
        ["two", "stall", "0", "1", "0.500", "0.500"],
    ]


def test_a_panel_for_each_dataset_with_every_fault_and_their_mean() -> None:
    figure = draw_novelty(GIVEN)
    assert figure is not None
    first, second = figure.axes
    assert first.get_title(loc="left") == "one: AUROC 0.50"
    assert len(first.lines) == 1 + 3 + 1
    assert len(second.lines) == 1 + 1 + 1
    mean = np.asarray(first.lines[-1].get_ydata())
    at = dict(zip(RATES.tolist(), mean.tolist(), strict=True))
    assert at[0.0] == pytest.approx(1 / 3)
    assert at[0.5] == pytest.approx(2 / 3)
    assert at[1.0] == 1.0


def test_only_the_lowest_level_is_drawn() -> None:
    figure = draw_novelty([*GIVEN, replace(measured("three", 0, 20, 0.1), held_out=(EVEN,))])
    assert figure is not None
    assert len(figure.axes) == 2


def test_where_nothing_was_held_out_there_is_no_figure() -> None:
    assert draw_novelty([measured("one", 0, 0, 0.1)]) is None
