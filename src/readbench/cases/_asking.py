"""Declaration of questions to the library: each becomes a route, a page, an agent tool and a command.

```
@question("quiet")
def quiet_assets(library: Library, days: Days = 30.0) -> list[QuietAsset]:
    '''Assets without a case for a while.'''

@quiet_assets.view
def show_quiet_assets(found: list[QuietAsset]) -> Shown: ...
```

This declares `library.ask("quiet", days=7)`, the route `GET /api/v1/quiet`, the page `/ask/quiet`, the agent tool
`quiet` and the command `readbench cases quiet LIBRARY`. Names, types and defaults come from the signature, ranges from
its annotations, help texts from the docstring; the answer is a pydantic model or a list of them.

This module imports no numeric code, since the command line imports it for every command.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from importlib import import_module
from types import SimpleNamespace
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from readbench.engine.parameters import Parameter, ParameterRange
from readbench.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike, NDArray

    from readbench.cases._intake import ReadRecording
    from readbench.cases._library import Library
    from readbench.engine.windows import Window, WindowSet

DEFAULT_METHOD = "flagship-spread"
P = ParamSpec("P")
R = TypeVar("R")
QUESTIONS: dict[str, Question[Any]] = {}
"""Questions by name, in order of declaration."""


class GivenBy(Enum):
    """Parameters that the command line, the service and agents supply differently."""

    WINDOW = "a window, or the name of a case"
    METHOD = "a method; over a network, that of the service"


@dataclass(frozen=True)
class Most:
    """Upper limit of a parameter for requests over a network."""

    number: int


if TYPE_CHECKING:
    AskedWindow = ReadRecording | WindowSet | Window | str | Path | NDArray[np.floating[Any]] | Sequence[ArrayLike]
    MethodText = str
else:
    AskedWindow = Annotated[object, GivenBy.WINDOW]
    MethodText = Annotated[str, GivenBy.METHOD]
Count = Annotated[int, ParameterRange(1), Most(100)]


@dataclass(frozen=True)
class Sheet:
    """A table of texts with headings."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[str]]


Shown = Sequence[Sheet | str]
"""An answer as text: sentences and tables, in order."""


@dataclass(frozen=True)
class QuestionParameter:
    """One parameter of a question.

    Args:
        declared: name, type, default and range.
        hint: type annotation.
        required: True without a default.
        help: help text from the docstring.
        given_by: special supply of the value; None for a plain value.
        most: upper limit over a network.
    """

    declared: Parameter
    hint: Any
    required: bool
    help: str
    given_by: GivenBy | None
    most: int | None

    @property
    def name(self) -> str:
        """Name in the signature."""
        return self.declared.name

    @property
    def counts(self) -> bool:
        """True if it limits the number of results."""
        return self.most is not None


class Question(Generic[R]):
    """A question to a library; made by the decorator `question`.

    Args:
        name: name of command, route and tool.
        ask: function that answers it.

    Attributes:
        draw: draws the figure of an answer; None if it has none.
    """

    def __init__(self, name: str, ask: Callable[..., R]) -> None:
        self.name = name
        self.ask = ask
        self.draw: Callable[[R], Figure] | None = None
        self._view: Callable[[R], Shown] | None = None

    def __repr__(self) -> str:
        return f"Question({self.name!r}, {', '.join(self.parameters) or 'no parameters'})"

    def __call__(self, library: Library, **given: Any) -> R:  # noqa: ANN401 - as the function declares them
        """Check the parameters and answer the question."""
        if unknown := next((name for name in given if name not in self.parameters), None):
            known = ", ".join(self.parameters) or "none"
            raise UsageError(f"The question {self.name!r} has no parameter {unknown!r}. It has: {known}.")
        for name, parameter in self.parameters.items():
            if name not in given and parameter.required:
                raise UsageError(f"The question {self.name!r} needs the parameter {name!r}.")
            if name in given and parameter.given_by is not GivenBy.WINDOW:
                parameter.declared.check(self.name, given[name])
        return self.ask(library, **given)

    def view(self, show: Callable[[R], Shown]) -> Callable[[R], Shown]:
        """Decorator: declare the text of an answer."""
        self._view = show
        return show

    def figure(self, draw: Callable[[R], Figure]) -> Callable[[R], Figure]:
        """Decorator: declare the figure of an answer."""
        self.draw = draw
        return draw

    def show(self, answer: R) -> Shown:
        """Text of an answer."""
        if self._view is None:
            raise TypeError(f"The question {self.name!r} has no view. Decorate a function with `.view`.")
        return self._view(answer)

    @cached_property
    def summary(self) -> str:
        """First paragraph of the docstring."""
        return inspect.cleandoc(self.ask.__doc__ or "").split("\n\n")[0].replace("\n", " ")

    @cached_property
    def example(self) -> str:
        """Paragraph of the docstring that begins with `Example:`, or ""."""
        parts = inspect.cleandoc(self.ask.__doc__ or "").split("\n\n")
        return next((part for part in parts if part.startswith("Example:")), "")

    @cached_property
    def parameters(self) -> Mapping[str, QuestionParameter]:
        """Parameters by name."""
        others = list(inspect.signature(self.ask).parameters.values())[1:]
        hints = self._resolve({p.name: p.annotation for p in others})
        words = _words_of_parameters(self.ask.__doc__ or "")
        return {p.name: _declare(p.name, hints[p.name], p.default, words.get(p.name, "")) for p in others}

    @cached_property
    def result(self) -> Any:  # noqa: ANN401 - a type
        """Type of the answer."""
        return self._resolve({"return": inspect.signature(self.ask).return_annotation})["return"]

    def _resolve(self, annotations: dict[str, Any]) -> dict[str, Any]:
        function: Any = self.ask
        written: Any = SimpleNamespace(__annotations__=annotations)
        return get_type_hints(written, _Names(function.__globals__), include_extras=True)


def question(name: str) -> Callable[[Callable[Concatenate[Library, P], R]], Question[R]]:
    """Decorator: declare a question from a function of a library and typed parameters.

    Args:
        name: name of command, route and tool; lower case, words joined by hyphens.
    """

    def declare(ask: Callable[Concatenate[Library, P], R]) -> Question[R]:
        if name in QUESTIONS:
            raise UsageError(f"There is a question {name!r} already.")
        QUESTIONS[name] = declared = Question(name, ask)
        return declared

    return declare


class _Names(dict[str, Any]):
    """Names of a module, then those of `_models`, which modules import for type checking only."""

    def __missing__(self, name: str) -> Any:  # noqa: ANN401 - a model
        return vars(import_module("readbench.cases._models"))[name]


def _declare(name: str, hint: Any, default: Any, words: str) -> QuestionParameter:  # noqa: ANN401 - types are anything
    inner, *extras = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    options = tuple(kind for kind in get_args(inner) if kind is not type(None))
    literal, optional = get_origin(inner) is Literal, len(options) < len(get_args(inner))
    required = default is inspect.Parameter.empty
    return QuestionParameter(
        Parameter(
            name=name,
            kind=str if literal else options[0] if optional else inner,
            default=None if required else default,
            choices=options if literal else (),
            interval=next((extra for extra in extras if isinstance(extra, ParameterRange)), None),
            optional=optional,
        ),
        hint=inner,
        required=required,
        help=words,
        given_by=next((extra for extra in extras if isinstance(extra, GivenBy)), None),
        most=next((extra.number for extra in extras if isinstance(extra, Most)), None),
    )


def _words_of_parameters(doc: str) -> dict[str, str]:
    r"""Help text of each parameter, from the section `Args:` of a docstring.

    >>> _words_of_parameters("Ask.\n\nArgs:\n    k: most cases,\n        best first.\n")
    {'k': 'Most cases, best first.'}
    """
    _, _, section = inspect.cleandoc(doc).partition("Args:\n")
    words: dict[str, str] = {}
    for line in inspect.cleandoc(section.split("\n\n")[0]).splitlines():
        name, colon, rest = line.partition(":")
        if colon and name.isidentifier():
            words[name] = rest.strip()
        elif words:
            last = next(reversed(words))
            words[last] += f" {line.strip()}"
    return {name: text[:1].upper() + text[1:] for name, text in words.items()}
