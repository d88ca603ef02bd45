"""Parameters of components: types, defaults and ranges, checked with one error message.

A component declares its parameters in its constructor:

>>> from typing import Annotated
>>> class Warped:
...     def __init__(self, band: Annotated[float, ParameterRange(0, 1)] = 0.1) -> None:
...         self.band = band
>>> band = parameters_of(Warped)["band"]
>>> band.read("0.2")
0.2
>>> band.check("Warped", 3.0)
Traceback (most recent call last):
readbench.errors.ParameterError: The 'band' parameter of Warped must be a float in the range [0, 1]. Got 3.0 instead.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from readbench.errors import ParameterError

Value = bool | int | float | str | None


@dataclass(frozen=True)
class ParameterRange:
    """Range from `low` to `high`, inclusive."""

    low: float = -math.inf
    high: float = math.inf

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | float) and self.low <= value <= self.high

    def __str__(self) -> str:
        left = "(-inf" if self.low == -math.inf else f"[{self.low:g}"
        right = "inf)" if self.high == math.inf else f"{self.high:g}]"
        return f"in the range {left}, {right}"


@dataclass(frozen=True)
class Parameter:
    """A constructor argument: type, default and permitted values."""

    name: str
    kind: type
    default: Value
    choices: tuple[str, ...] = ()
    interval: ParameterRange | None = None
    optional: bool = False

    def read(self, text: str) -> Value:
        """Parse the text of a method spec into a value of the declared type."""
        if self.optional and text.lower() == "none":
            return None
        try:
            if self.kind is bool:
                return {"true": True, "false": False}[text.lower()]
            if self.kind is int:
                return int(text)
            if self.kind is float:
                return float(text)
        except (ValueError, KeyError):
            return text  # `check` raises the error
        return text

    def check(self, owner: str, value: Value) -> None:
        """Raise `ParameterError` unless `value` is permitted."""
        if self.optional and value is None:
            return
        number = isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
        typed = number if self.kind is float else type(value) is self.kind
        if typed and (not self.choices or value in self.choices) and (not self.interval or value in self.interval):
            return
        raise ParameterError(f"The {self.name!r} parameter of {owner} must be {self}. Got {value!r} instead.")

    def __str__(self) -> str:
        if self.choices:
            return f"one of {', '.join(map(repr, self.choices))}"
        article = "an" if self.kind is int else "a"
        return f"{article} {self.kind.__name__}" + (f" {self.interval}" if self.interval else "")


def parameters_of(factory: Callable[..., Any]) -> dict[str, Parameter]:
    """Parameters of a component by name, in order of its constructor's signature."""
    hints = get_type_hints(_declaring(factory), include_extras=True)
    signature = inspect.signature(factory)
    return {name: _parameter(name, hints.get(name, str), p.default) for name, p in signature.parameters.items()}


def _declaring(factory: Callable[..., Any]) -> Any:  # noqa: ANN401 - a class or a function
    """The object whose annotations declare the parameters: a dataclass, or the function itself."""
    if not inspect.isclass(factory):
        return factory
    owner = next(kind for kind in factory.__mro__ if "__init__" in vars(kind))
    made = vars(owner).get("__dataclass_params__")
    return owner if made and made.init else vars(owner)["__init__"]


def _parameter(name: str, hint: Any, default: Any) -> Parameter:  # noqa: ANN401 - hints are anything
    if default is inspect.Parameter.empty:
        raise TypeError(f"Parameter {name!r} of a registered component needs a default.")
    hint, interval = _bare(hint)
    optional = type(None) in get_args(hint) and get_origin(hint) is not Literal
    if optional:
        hint = Union[tuple(a for a in get_args(hint) if a is not type(None))]  # noqa: UP007 - built at run time
        hint, inner = _bare(hint)
        interval = interval or inner
    if get_origin(hint) is Literal:
        return Parameter(name, str, default, choices=get_args(hint), optional=optional)
    return Parameter(name, hint, default, interval=interval, optional=optional)


def _bare(hint: Any) -> tuple[Any, ParameterRange | None]:  # noqa: ANN401 - hints are anything
    """Split `Annotated` into the type and its range."""
    if get_origin(hint) is not Annotated:
        return hint, None
    inner, *extras = get_args(hint)
    return inner, next((e for e in extras if isinstance(e, ParameterRange)), None)
