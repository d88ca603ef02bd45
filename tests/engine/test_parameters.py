from __future__ import annotations

from typing import Annotated, Literal

import pytest
from hypothesis import given, strategies as st

from readbench.engine.parameters import Parameter, ParameterRange, Value, parameters_of
from readbench.errors import ParameterError


class Everything:
    """One parameter of every kind."""

    def __init__(
        self,
        band: Annotated[float, ParameterRange(0, 1)] = 0.1,
        k: Annotated[int, ParameterRange(1)] = 20,
        norm: Literal["channel", "window"] = "channel",
        scope: Annotated[int | None, ParameterRange(1)] = None,
        cap: Annotated[int, ParameterRange(1)] | None = 5,
        metric: Literal["cosine", "euclid"] | None = None,
        *,
        fast: bool = False,
        model: str = "small",
    ) -> None:
        self.settings = (band, k, norm, scope, cap, metric, fast, model)


DECLARED = parameters_of(Everything)


def test_parameters_are_read_from_the_constructor_in_order() -> None:
    assert list(DECLARED) == ["band", "k", "norm", "scope", "cap", "metric", "fast", "model"]
    assert [p.default for p in DECLARED.values()] == [0.1, 20, "channel", None, 5, None, False, "small"]
    assert [p.kind for p in DECLARED.values()] == [float, int, str, int, int, str, bool, str]
    assert [p.optional for p in DECLARED.values()] == [False, False, False, True, True, True, False, False]


def test_ranges_and_choices_are_read_from_the_annotation() -> None:
    assert DECLARED["band"].interval == ParameterRange(0, 1)
    assert DECLARED["scope"].interval == DECLARED["cap"].interval == ParameterRange(1)
    assert DECLARED["norm"].choices == ("channel", "window")
    assert DECLARED["metric"].choices == ("cosine", "euclid")


def test_functions_are_components_too() -> None:
    def build(k: Annotated[int, ParameterRange(1)] = 3) -> int:
        return k

    assert parameters_of(build) == {"k": Parameter("k", int, 3, interval=ParameterRange(1))}


def test_a_component_without_a_constructor_has_no_parameters() -> None:
    class Bare:
        pass

    assert parameters_of(Bare) == {}


def test_a_parameter_without_a_default_is_refused_at_once() -> None:
    def build(k: int) -> int:
        return k

    with pytest.raises(TypeError, match="'k' of a registered component needs a default"):
        parameters_of(build)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("band", "0.25", 0.25),
        ("band", ".25", 0.25),
        ("band", "1", 1.0),
        ("band", "1e-3", 0.001),
        ("k", "7", 7),
        ("norm", "window", "window"),
        ("scope", "none", None),
        ("scope", "None", None),
        ("scope", "12", 12),
        ("cap", "none", None),
        ("fast", "true", True),
        ("fast", "FALSE", False),
        ("model", "7", "7"),
        ("model", "none", "none"),
    ],
)
def test_texts_become_values_of_the_declared_type(name: str, text: str, value: Value) -> None:
    read = DECLARED[name].read(text)
    assert read == value
    assert type(read) is type(value)
    DECLARED[name].check("Everything", read)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("band", 3.0, "a float in the range [0, 1]. Got 3.0 instead."),
        ("band", float("nan"), "a float in the range [0, 1]. Got nan instead."),
        ("band", "wide", "a float in the range [0, 1]. Got 'wide' instead."),
        ("band", True, "a float in the range [0, 1]. Got True instead."),
        ("band", None, "a float in the range [0, 1]. Got None instead."),
        ("k", 0, "an int in the range [1, inf). Got 0 instead."),
        ("k", 2.0, "an int in the range [1, inf). Got 2.0 instead."),
        ("k", True, "an int in the range [1, inf). Got True instead."),
        ("cap", 0, "an int in the range [1, inf). Got 0 instead."),
        ("norm", "z", "one of 'channel', 'window'. Got 'z' instead."),
        ("norm", "Channel", "one of 'channel', 'window'. Got 'Channel' instead."),
        ("fast", 1, "a bool. Got 1 instead."),
        ("model", 5, "a str. Got 5 instead."),
    ],
)
def test_every_bad_value_gets_the_same_sentence(name: str, value: Value, sentence: str) -> None:
    with pytest.raises(ParameterError) as caught:
        DECLARED[name].check("everything", value)
    assert str(caught.value) == f"The '{name}' parameter of everything must be {sentence}"


@pytest.mark.parametrize(("name", "text"), [("band", "wide"), ("k", "2.5"), ("k", ""), ("fast", "yes"), ("cap", "all")])
def test_a_text_that_is_no_value_is_refused_by_the_check(name: str, text: str) -> None:
    with pytest.raises(ParameterError, match=f"Got {text!r} instead"):
        DECLARED[name].check("everything", DECLARED[name].read(text))


@pytest.mark.parametrize("name", DECLARED)
def test_defaults_are_permitted(name: str) -> None:
    DECLARED[name].check("everything", DECLARED[name].default)


def test_nan_is_no_value_of_any_float() -> None:
    with pytest.raises(ParameterError, match=r"a float\. Got nan instead"):
        Parameter("weight", float, 1.0).check("everything", float("nan"))


def test_a_whole_number_is_a_permitted_float() -> None:
    DECLARED["band"].check("everything", 1)


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9), st.floats(allow_nan=True) | st.integers())
def test_an_interval_holds_its_ends_and_what_lies_between(low: float, high: float, value: float) -> None:
    assert (value in ParameterRange(low, high)) == (low <= value <= high)
    assert low in ParameterRange(low)
    assert high in ParameterRange(high=high)
    assert "1" not in ParameterRange()


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (ParameterRange(), "in the range (-inf, inf)"),
        (ParameterRange(1), "in the range [1, inf)"),
        (ParameterRange(high=0.5), "in the range (-inf, 0.5]"),
        (ParameterRange(-1, 1), "in the range [-1, 1]"),
    ],
)
def test_an_interval_reads_as_in_mathematics(interval: ParameterRange, text: str) -> None:
    assert str(interval) == text
