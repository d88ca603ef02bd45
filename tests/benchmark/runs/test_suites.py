"""Suites: what can run is planned, and for the rest there is a reason before anything starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from readbench.benchmark.runs import SUITES, SWEEPS, _suites as module, suite, sweep
from readbench.engine.registry import ENCODERS
from readbench.engine.spec import COMPOSED, parse
from readbench.errors import UnknownNameError, UsageError


@pytest.fixture
def without_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with the packages of every encoder and the weights of none."""
    for name in ("READBENCH_MODELS", "HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", [*SUITES, *SWEEPS])
def test_every_suite_plans_what_is_available_and_nothing_else(name: str) -> None:
    try:
        chosen = (suite if name in SUITES else sweep)(name, None)
    except UsageError as error:
        assert "can run here" in str(error)  # noqa: PT017 - only where nothing of a suite is installed
        return
    assert all(not entry.unavailable() for text in chosen.plan.methods for entry in parse(text).entries())
    assert all(chosen.skipped.values())
    wanted = {str(parse(text)) for text in {**SUITES, **SWEEPS}[name]()}
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


@pytest.mark.parametrize(
    ("name", "now"), [("nr-k", "run --sweep nr-k"), ("novel", "study opinions"), ("early", "study early")]
)
def test_a_former_suite_answers_with_what_it_is_now(name: str, now: str) -> None:
    with pytest.raises(UsageError, match=f"readbench {now}"):
        suite(name, None)


def test_suites_run_on_the_sources_at_hand_and_not_on_fragments(tmp_path: Path) -> None:
    for name in (*module.COVERED, "road", "hai", "voraus"):
        (tmp_path / name).mkdir()
    assert len(module.COVERED) == 13
    assert suite("classical", tmp_path).plan.datasets == module.COVERED
    (tmp_path / "skab").rmdir()
    assert "skab" not in suite("classical", tmp_path).plan.datasets


def test_the_suite_without_labels_reads_none() -> None:
    plan = suite("label-free", None).plan
    assert {"dtw-i", "rocket", "ts2vec", "sonde", "departure"} <= {*plan.methods, *suite("label-free", None).skipped}
    assert all(budgets == ("all",) for budgets in replace(plan, labels=("0", "5")).budgets.values())


@pytest.mark.parametrize("name", ["label-free", "paper", "full"])
def test_ts2vec_stands_in_the_suites_wherever_torch_is_installed(name: str) -> None:
    chosen = suite(name, None)
    assert "ts2vec" in (chosen.skipped if ENCODERS.get("ts2vec").unavailable() else chosen.plan.methods)


def test_stacks_with_gpc_stand_with_and_without_normal_residuals() -> None:
    wanted = {f"{encoder}{nr}|dtw-i+gpc" for encoder in ("charm", "mantis", "rocket") for nr in ("", "+nr")}
    assert wanted <= set(SWEEPS["rerank"]())
    assert f"{COMPOSED['flagship-pool'].rpartition('+')[0]}+gpc" in SUITES["flagship"]()
