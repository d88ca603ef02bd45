"""From columns with roles to cases, wide and long."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from readbench.common.tables import Table, read_table
from readbench.engine.window_tables import Roles, TableSeries, series_of, window_set
from readbench.errors import DataError, UsageError

WIDE = b"""time,run,plant,speed,heat,fault
2,A,P,3,30,leak
0,A,P,1,10,
1,A,P,2,20,leak
0,B,Q,7,,normal
1,B,Q,8,,normal
"""
ROLES = Roles(time="time", case="run", asset="plant", label="fault")


def csv(text: bytes) -> Table:
    return read_table(("runs.csv", text))


def test_a_wide_table_gives_its_cases_in_order_of_time() -> None:
    one, two = series_of(csv(WIDE), ROLES)
    assert (one.id, one.group, one.asset, one.channels) == ("A", "A", "P", ("speed", "heat"))
    assert one.values.tolist() == [[1, 2, 3], [10, 20, 30]]
    assert one.labels.tolist() == [-1, 0, 0]
    assert (one.start, one.step) == (0.0, 1.0)
    assert two.label == "normal"
    assert np.isnan(two.values[1]).all()


def test_without_a_case_column_the_groups_are_the_cases_or_the_table_is_one() -> None:
    table = csv(b"speed,trip\n1,x\n2,y\n3,x\n")
    assert [(s.id, s.values.tolist()) for s in series_of(table, Roles(group="trip"))] == [("x", [[1, 3]]), ("y", [[2]])]
    (whole,) = series_of(table, Roles())
    assert (whole.id, whole.values.tolist(), whole.label) == ("runs", [[1, 2, 3]], "")
    assert np.isnan(whole.start)


def test_channels_can_be_chosen() -> None:
    one, _ = series_of(csv(WIDE), Roles(time="time", case="run", channels=("heat",)))
    assert one.channels == ("heat",)


@given(steps=st.integers(1, 6), channels=st.integers(1, 4), seed=st.integers(0, 100))
def test_a_long_table_gives_the_same_as_the_wide_one(steps: int, channels: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(2, channels, steps)).round(3)
    names = [f"c{c}" for c in range(channels)]
    cells = [(k, c, t) for k in range(2) for c in range(channels) for t in range(steps)]
    cells = [cells[i] for i in rng.permutation(len(cells))]
    long = pa.table(
        {
            "case": [f"k{k}" for k, _, _ in cells],
            "when": [float(t) for _, _, t in cells],
            "what": [names[c] for _, c, _ in cells],
            "reading": [values[cell] for cell in cells],
            "fault": [f"f{t}" for _, _, t in cells],
        }
    )
    roles = Roles(time="when", case="case", channel="what", value="reading", label="fault", channels=tuple(names))
    for series in series_of(Table("long", long), roles):
        np.testing.assert_array_equal(series.values, values[int(series.id[1])])
        assert [series.names[code] for code in series.labels] == [f"f{t}" for t in range(steps)]


def test_a_reading_that_a_long_table_lacks_is_missing() -> None:
    table = csv(b"t,what,x\n0,a,1\n1,a,2\n1,b,3\n")
    (series,) = series_of(table, Roles(time="t", channel="what", value="x"))
    np.testing.assert_array_equal(series.values, [[1, 2], [np.nan, 3]])


@pytest.mark.parametrize(
    ("text", "roles", "message"),
    [
        (b"t,x\n0,1\n0,2\n", Roles(time="t"), "row 2: the time of another row"),
        (b"t,x\n0,1\n,2\n", Roles(time="t"), "row 2: no time"),
        (b"k,x\na,1\n,2\n", Roles(case="k"), "row 2: no name of the case"),
        (b"k,p,x\na,P,1\na,Q,2\n", Roles(case="k", asset="p"), "row 2: another text in column 'p'"),
        (b"k\na\n", Roles(case="k"), "no column with numbers is left"),
        (b"t,c,x\n0,a,1\n0,a,2\n", Roles(time="t", channel="c", value="x"), "row 2: a second reading"),
        (b"t,c,x\n0,,1\n", Roles(time="t", channel="c", value="x"), "row 1: no channel"),
        (
            b"t,c,x,f\n0,a,1,u\n0,b,2,v\n",
            Roles(time="t", channel="c", value="x", label="f"),
            "row 2: another label at the same time",
        ),
        (b"t,c,x\n0,a,1\n", Roles(time="t", channel="c", value="x", channels=("z",)), "channel 'z' is not in"),
    ],
)
def test_what_is_wrong_is_said_with_its_row(text: bytes, roles: Roles, message: str) -> None:
    with pytest.raises(DataError) as error:
        series_of(csv(text), roles)
    assert message in str(error.value)


def test_roles_of_a_long_table_come_together() -> None:
    with pytest.raises(UsageError, match="needs both"):
        Roles(channel="what")
    with pytest.raises(UsageError, match="needs a time"):
        Roles(channel="what", value="x")


def test_a_case_with_two_labels_has_not_one() -> None:
    one, _ = series_of(csv(WIDE), ROLES)
    with pytest.raises(DataError, match="2 labels in one case"):
        _ = one.label


def test_series_become_windows() -> None:
    table = csv(b"k,x,f\na,1,leak\na,2,leak\nb,3,normal\nc,4,\n")
    windows = window_set(series_of(table, Roles(case="k", label="f")))
    assert windows.classes == ("normal", "leak")
    assert windows.labels.tolist() == [1, 0, -1]
    assert [w.values.tolist() for w in windows] == [[[1, 2]], [[3]], [[4]]]


def test_types_of_a_series() -> None:
    (series,) = series_of(csv(b"x\n1\n"), Roles())
    assert isinstance(series, TableSeries)
    assert series.values.dtype == np.float64


ONSET = b"""t,run,flow [m3/h],heat,began,at,speed,fault
0,A,1,10,0,2,29.5,leak
1,A,2,20,0,2,,leak
2,A,3,30,1,2,29.5,leak
3,A,4,40,1,2,29.5,leak
0,B,7,70,0,,30,normal
1,B,8,80,0,,30,normal
"""
TOLD = Roles(time="t", case="run", label="fault", channels=("flow [m3/h]", "heat"), onset="began", facts=("speed",))


@pytest.mark.parametrize("column", ["began", "at"])
def test_rows_before_the_onset_are_the_time_before(column: str) -> None:
    one, two = series_of(csv(ONSET), replace(TOLD, onset=column))
    assert one.values.tolist() == [[3, 4], [30, 40]]
    assert one.before is not None
    assert one.before.tolist() == [[1, 2], [10, 20]]
    assert (one.start, one.stop, one.label, len(one.labels)) == (2.0, 3.0, "leak", 2)
    assert two.before is None
    assert two.values.tolist() == [[7, 8], [70, 80]]


@pytest.mark.parametrize(
    "marks", [("0", "0", "1", "0"), ("false", "false", "true", "true"), ("", "", "x", ""), ("no", "no", "trip", "trip")]
)
def test_the_first_mark_is_the_onset(marks: tuple[str, ...]) -> None:
    rows = "".join(f"{t},{mark}\n" for t, mark in enumerate(marks))
    (one,) = series_of(csv(f"flow,began\n{rows}".encode()), Roles(onset="began"))
    assert one.values.tolist() == [[2, 3]]
    assert one.channels == ("flow",)


def test_a_long_table_has_its_onset_too() -> None:
    table = csv(b"t,name,value,began\n0,a,1,0\n0,b,2,0\n1,a,3,1\n1,b,4,1\n")
    roles = Roles(time="t", channel="name", value="value", onset="began")
    (one,) = series_of(table, roles)
    assert one.before is not None
    assert (one.before.tolist(), one.values.tolist()) == ([[1], [2]], [[3], [4]])
    with pytest.raises(DataError, match="row 4: another onset at the same time"):
        series_of(csv(b"t,name,value,began\n0,a,1,0\n0,b,2,0\n1,a,3,1\n1,b,4,0\n"), roles)


@pytest.mark.parametrize(("roles", "first"), [(Roles(time="t"), 12.0), (Roles(), 2.0)])
def test_an_onset_can_be_given_for_all_cases(roles: Roles, first: float) -> None:
    (one,) = series_of(csv(b"t,flow\n10,1\n11,2\n12,3\n"), replace(roles, channels=("flow",)), first)
    assert one.values.tolist() == [[3]]


def test_windows_of_a_table_bring_its_context() -> None:
    one, two = window_set(series_of(csv(ONSET), TOLD))
    assert one.before is not None
    assert one.before.tolist() == [[1, 2], [10, 20]]
    assert (one.rate, one.units, one.facts) == (1.0, ("m3/h", ""), {"speed": 29.5})
    assert (two.before, two.facts) == (None, {"speed": 30.0})
    (given, _) = window_set(series_of(csv(ONSET), replace(TOLD, rate=50.0, units=(("heat", "K"),))))
    assert (given.rate, given.units) == (50.0, ("m3/h", "K"))


def test_without_times_a_table_without_context_has_none() -> None:
    assert window_set(series_of(csv(b"flow\n1\n2\n"), Roles())).context is None


def test_the_rate_follows_from_dates_as_from_numbers() -> None:
    dates = csv(b"t,x\n2024-01-01 00:00:00.10,1\n2024-01-01 00:00:00.12,2\n2024-01-01 00:00:00.14,3\n")
    numbers = csv(b"t,x\n0.10,1\n0.12,2\n0.14,3\n")
    rates = [series_of(table, Roles(time="t"))[0].rate for table in (dates, numbers)]
    assert rates[1] == 50.0
    assert rates[0] == pytest.approx(50.0, rel=1e-4)


@pytest.mark.parametrize(
    ("text", "roles", "message"),
    [
        (b"t,x,at\n0,1,5\n1,2,5\n", Roles(time="t", onset="at"), "row 1: the fault begins after the last row"),
        (b"t,x,at\n0,1,5\n1,2,6\n", Roles(time="t", onset="at"), "row 2: another time in column 'at' within one case"),
        (b"x,at\n1,5\n2,5\n", Roles(onset="at"), "'at' holds no marks"),
        (b"x,speed\n1,5\n2,6\n", Roles(facts=("speed",)), "row 2: another number in column 'speed' within one case"),
        (b"x,speed\n1,fast\n", Roles(facts=("speed",)), "'fast' in column 'speed' is no number"),
    ],
)
def test_what_does_not_fit_is_named(text: bytes, roles: Roles, message: str) -> None:
    with pytest.raises(DataError) as error:
        series_of(csv(text), roles)
    assert message in str(error.value)


def test_what_is_part_of_the_truth_is_no_fact() -> None:
    with pytest.raises(UsageError, match="'fault' is no fact"):
        Roles(label="fault", facts=("speed", "fault"))
    with pytest.raises(UsageError, match="positive number of samples a second"):
        Roles(rate=0.0)
