"""What every reranker keeps, kept by a language model over pools with windows behind them."""

from __future__ import annotations

import json
import re
from functools import wraps
from typing import Any

import numpy as np
import pytest

from readbench.engine.llm import ModelRequest, SeriesPart, Text
from readbench.engine.llm._providers import Scripted
from readbench.engine.protocols import Pool, Scene
from readbench.engine.testing import RERANKER_CHECKS, RerankerCheck, _rerankers as rerankers, sample_pool
from readbench.engine.windows import WindowSet
from tests.engine.llm.conftest import Configure


def with_windows(pool: Pool) -> Pool:
    """The pool with a window for each vector."""
    sets = [WindowSet.from_arrays(v[:, None, :]) if len(v) else _none() for v in (pool.queries, pool.items)]
    classes = tuple(f"class {label}" for label in range(80))
    object.__setattr__(pool, "scene", Scene(sets[0], sets[1], classes))
    return pool


def _none() -> WindowSet:
    return WindowSet.from_arrays(np.ones((1, 1, 4)))[:0]


def by_shape(request: ModelRequest) -> str:
    """Ranks by the distance of the numbers to the query's."""
    query, *items = [part.values for part in request.parts if isinstance(part, SeriesPart)]
    ids = [m[1] for part in request.parts if isinstance(part, Text) and (m := re.match(r"CANDIDATE (\S+)", part.text))]
    nearest = np.argsort([((item - query) ** 2).sum() for item in items], kind="stable")
    return json.dumps({"ranked_ids": [ids[k] for k in nearest]})


@pytest.mark.parametrize("labels", ["true", "false"])
@pytest.mark.parametrize("check", RERANKER_CHECKS, ids=lambda check: check.__name__)
def test_a_language_model_keeps_the_contract(
    check: RerankerCheck, labels: str, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    @wraps(sample_pool)
    def pools(*args: Any, **kwargs: Any) -> Pool:  # noqa: ANN401
        return with_windows(sample_pool(*args, **kwargs))

    def only(pool: Pool, query: int) -> Pool:
        return with_windows(one(pool, query))

    one = rerankers._only
    monkeypatch.setattr(rerankers, "sample_pool", pools)
    monkeypatch.setattr(rerankers, "_only", only)
    monkeypatch.setattr("readbench.engine.llm._examiner.client_for", lambda _: Scripted(by_shape))
    configure("m", provider="anthropic", images="none")
    check(f"llm(m,labels={labels})")
