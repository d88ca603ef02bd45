"""Suites: what can run is planned, and for the rest there is a reason before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from readbench.benchmark.runs import SUITES, suite
from readbench.benchmark.runs import _suites as module
from readbench.engine.registry import ENCODERS
from readbench.engine.spec import parse
from readbench.errors import UnknownNameError, UsageError


@pytest.fixture
def without_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with the packages of every encoder and the weights of none."""
    for name in ("READBENCH_MODELS", "HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", SUITES)
def test_every_suite_plans_what_is_available_and_nothing_else(name: str) -> None:
    try:
        chosen = suite(name, None)
    except UsageError as error:
        assert "can run here" in str(error)  # noqa: PT017 - only where nothing of a suite is installed
        return
    assert all(not entry.unavailable() for text in chosen.plan.methods for entry in parse(text).entries())
    assert all(chosen.skipped.values())
    wanted = {str(parse(text)) for text in SUITES[name]()}
    assert wanted == {*chosen.plan.methods, *chosen.skipped}


@pytest.mark.usefixtures("without_weights")
def test_encoders_without_weights_are_skipped_with_a_reason() -> None:
    chosen = suite("paper", None)
    for name in ("charm", "chronos-2", "mantis", "tirex"):
        assert not [text for text in chosen.plan.methods if text.startswith(name)]
        assert chosen.skipped[name].startswith(f"{name} ")
    assert "rocket+nr|dtw-i+gpc" in chosen.plan.methods


def test_a_suite_of_which_nothing_can_run_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    @ENCODERS.register("framed", unavailable=lambda: "needs weights: fetch them")
    class Framed:
        """Never built."""

    monkeypatch.setitem(module.SUITES, "framed", lambda: ["framed", "framed+nr"])
    try:
        with pytest.raises(
            UsageError, match=r"Nothing of suite 'framed' can run here: framed needs weights: fetch them"
        ):
            suite("framed", None)
    finally:
        del ENCODERS._entries["framed"]


def test_an_unknown_suite_answers_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="quick"):
        suite("quik", None)
