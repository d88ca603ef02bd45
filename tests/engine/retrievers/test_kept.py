"""What fitted retrievers keep of a corpus: no more than allowed, and nothing that travels with them."""

from __future__ import annotations

import pickle

import pytest

from readbench.engine.kernels.memory import PieceCache, cache_bytes
from readbench.engine.retrievers import DependentShapeBased, DtwIndependent
from readbench.errors import ParameterError
from readbench.testing import sample_windows

METHODS = (DtwIndependent, DependentShapeBased)


@pytest.mark.parametrize(("size", "made"), [(2**20, 1), (2**20 + 1, 3)])
def test_pieces_are_kept_up_to_the_budget(size: int, made: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READBENCH_KEPT_MB", "1")
    kept, calls = PieceCache[str](size), []
    for _ in range(3):
        assert kept.get(7, lambda: calls.append("made") or "piece") == "piece"  # type: ignore[func-returns-value]
    assert len(calls) == made


@pytest.mark.parametrize("value", ["-1", "lots", "", "1.5"])
def test_a_senseless_budget_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READBENCH_KEPT_MB", value)
    with pytest.raises(ParameterError, match="READBENCH_KEPT_MB must be a whole number from 0 on"):
        cache_bytes()


@pytest.mark.parametrize("method", METHODS)
def test_what_is_kept_is_not_pickled(method: type[DtwIndependent | DependentShapeBased]) -> None:
    corpus, queries = sample_windows(200), sample_windows(3, seed=1)
    fitted = method().fit(corpus, corpus[:0])
    before = len(pickle.dumps(fitted))
    scores = fitted.score(queries)
    travelled = pickle.dumps(fitted)
    assert len(travelled) == before
    assert (pickle.loads(travelled).score(queries) == scores).all()  # noqa: S301 - our own bytes
