"""Routes and pages of the declared questions."""

from __future__ import annotations

import math
from inspect import Parameter, Signature
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query
from pydantic import BaseModel, Field, create_model

from readbench.cases import QUESTIONS, GivenBy, Question, QuestionParameter
from readbench.cases.server._api import PROBLEMS, requested_window
from readbench.cases.server._bodies import Asked
from readbench.cases.server._fields import MAX_QUERY
from readbench.cases.server._gate import Reader
from readbench.cases.server._keys import KeyHolder
from readbench.cases.server._reception import JsonRoute
from readbench.cases.server._service import CaseService, Served
from readbench.errors import UnknownNameError, UsageError


def build_routes() -> APIRouter:
    """`GET /api/v1/NAME` with parameters in the query, or `POST` for a question on a window."""
    router = APIRouter(prefix="/api/v1", tags=["read"], route_class=JsonRoute, responses={**PROBLEMS})
    for question in QUESTIONS.values():
        post = bool(_parameters(question, GivenBy.WINDOW))
        router.add_api_route(
            f"/{question.name}",
            _ask_with_body(question) if post else _ask_with_query(question),
            methods=["POST" if post else "GET"],
            response_model=question.result,
            description=question.summary,
        )
    return router


def ask_in_words(service: CaseService, name: str, texts: dict[str, str]) -> tuple[Question[Any], Any]:
    """Question of a page and its answer; None if a required parameter is missing.

    Args:
        service: the service.
        name: name of the question.
        texts: values from the page; empty ones are ignored, and a window is the name of a case.
    """
    if name not in QUESTIONS:
        raise UnknownNameError("question", name, list(QUESTIONS))
    question = QUESTIONS[name]
    given: dict[str, Any] = _site_parameters(question, service)
    for parameter in question.parameters.values():
        if parameter.given_by is not GivenBy.METHOD and texts.get(parameter.name, "").strip():
            given[parameter.name] = _check_most(parameter, parameter.declared.read(texts[parameter.name]))
    ready = all(parameter.name in given for parameter in question.parameters.values() if parameter.required)
    return question, question(service.library, **given) if ready else None


def _ask_with_query(question: Question[Any]) -> Any:  # noqa: ANN401 - a function with a signature of its own
    async def ask(service: CaseService, _caller: KeyHolder, **given: Any) -> Any:  # noqa: ANN401
        return await service.work.do(lambda: question(service.library, **given, **_site_parameters(question, service)))

    fields = [
        _keyword(
            parameter.name, Annotated[parameter.hint, Query(**_bounds(parameter))], _default(parameter, Parameter.empty)
        )
        for parameter in _parameters(question, None)
    ]
    return _sign(ask, question, *fields)


def _ask_with_body(question: Question[Any]) -> Any:  # noqa: ANN401 - a function with a signature of its own
    fields: dict[str, Any] = {
        parameter.name: (parameter.hint, Field(_default(parameter, ...), **_bounds(parameter)))
        for parameter in _parameters(question, None)
    }
    name = "".join(word.title() for word in question.name.split("-"))
    model: type[BaseModel] = create_model(f"{name}Body", __base__=Asked, __doc__=question.summary, **fields)
    window = _parameters(question, GivenBy.WINDOW)[0].name

    async def ask(service: CaseService, _caller: KeyHolder, body: Any) -> Any:  # noqa: ANN401
        def work() -> Any:  # noqa: ANN401
            given = {name: getattr(body, name) for name in fields} | {window: requested_window(body, service)}
            return question(service.library, **given, **_site_parameters(question, service))

        return await service.work.do(work)

    return _sign(ask, question, _keyword("body", Annotated[model, Body()], Parameter.empty))


def _sign(ask: Any, question: Question[Any], *fields: Parameter) -> Any:  # noqa: ANN401
    """Give a function the question's name and the signature that FastAPI reads."""
    always = _keyword("service", Served, Parameter.empty), _keyword("_caller", Reader, Parameter.empty)
    ask.__signature__ = Signature([*always, *fields])
    ask.__name__ = question.ask.__name__
    return ask


def _keyword(name: str, hint: Any, default: Any) -> Parameter:  # noqa: ANN401
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=hint, default=default)


def _parameters(question: Question[Any], given_by: GivenBy | None) -> list[QuestionParameter]:
    return [parameter for parameter in question.parameters.values() if parameter.given_by is given_by]


def _site_parameters(question: Question[Any], service: CaseService) -> dict[str, Any]:
    """Parameters set by the service: its default method."""
    return {parameter.name: service.settings.choose_method("") for parameter in _parameters(question, GivenBy.METHOD)}


def _default(parameter: QuestionParameter, needed: Any) -> Any:  # noqa: ANN401
    return needed if parameter.required else parameter.declared.default


def _bounds(parameter: QuestionParameter) -> dict[str, Any]:
    """Limits and description of a parameter, as keywords of `Query` and `Field`."""
    interval = parameter.declared.interval
    low, high = (interval.low, interval.high) if interval else (-math.inf, math.inf)
    high = high if parameter.most is None else min(high, parameter.most)
    ends = {name: end for name, end in (("ge", low), ("le", high)) if math.isfinite(end)}
    text = {"max_length": MAX_QUERY} if parameter.hint is str else {}
    return ends | text | {"description": parameter.help or None}


def _check_most(parameter: QuestionParameter, value: Any) -> Any:  # noqa: ANN401
    if parameter.most is not None and isinstance(value, int) and value > parameter.most:
        raise UsageError(f"{parameter.name}: at most {parameter.most} can be asked for; got {value}.")
    return value
