"""No row of the paper can be lost: each has a name in the grammar, and what it scores on a small task is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from readbench.benchmark.protocol import read_shipped_rows
from readbench.engine.method import Method
from readbench.engine.spec import parse
from readbench.errors import DataError
from readbench.testing import sample_windows
from tests.paper.rows import charm, measure, methods, models, read_frozen, read_rows, write_networks

OWN, OTHERS = 1e-3, 0.05
"""How far a score may be from the kept one: of our code, and of packages that compute a network or classifier."""
GRIDS = 58
"""Tables of one method each, whose numbers the paper leaves out."""
ENCODERS = {"mantis": "paris-noah/MantisV2", "chronos-2": "amazon/chronos-2", "tirex": "NX-AI/TiRex"}
NEEDS = {"mantis": "mantis.architecture", "chronos-2": "chronos.chronos2", "tirex": "tirex"}
PLAIN = ("random", "majority", "euclidean", "sbd-d", "dtw-i", "dtw-d", "sax-bm25", "sfa-bm25")
REFERENCES = ("mr-hydra", "rdst")


def first_part(method: str) -> str:
    """The encoder or retriever that a method begins with."""
    return method.partition("+")[0].partition("|")[0]


def named(first: str) -> list[str]:
    """Methods that begin with a part, those that ask a model aside."""
    return [method for method in methods() if first_part(method) == first and "model=" not in method]


def check(scores: dict[str, list[float]], within: float) -> None:
    frozen = read_frozen()
    assert scores == {method: pytest.approx(frozen[method], abs=within) for method in scores}


def test_every_row_has_a_method_and_every_method_a_kept_score() -> None:
    values = read_shipped_rows("readbench.benchmark.report._paper_values", "paper_values.csv")
    printed = {(row["table"], row["method"]) for row in values}
    rows = {(row["table"], row["method"]) for row in read_rows()}
    grids = {(table, method) for table, method in rows if table.startswith("tab:a8-")}
    assert len(grids) == GRIDS
    assert rows - grids == printed
    assert set(read_frozen()) == set(methods())
    places = [(row["table"], row["row"], row["column"]) for row in read_rows()]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("method", methods())
def test_the_grammar_knows_it(method: str) -> None:
    assert str(parse(method)) == method


def test_methods_without_a_network_score_what_they_did() -> None:
    check({method: measure(method) for first in PLAIN for method in named(first)}, OWN)


@pytest.mark.parametrize("method", REFERENCES)
def test_the_supervised_references_score_what_they_did(method: str) -> None:
    pytest.importorskip("aeon", reason="needs aeon")
    check({method: measure(method)}, OTHERS)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_public_networks_and_what_is_made_of_them_score_what_they_did(
    encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(NEEDS[encoder], reason=f"needs the package of {encoder}")
    write_networks(tmp_path, [ENCODERS[encoder]])
    monkeypatch.setenv("READBENCH_MODELS", str(tmp_path))
    check({method: measure(method) for method in named(encoder)}, OTHERS)


def test_charm_with_a_file_and_what_is_made_of_it_scores_what_it_did(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs torch")
    check({method: measure(charm(tmp_path, method)) for method in named("charm")}, OTHERS)


def test_charm_without_weights_says_that_there_are_none() -> None:
    pytest.importorskip("torch", reason="needs torch")
    windows = sample_windows(3)
    with pytest.raises(DataError, match="charm needs weights, which are not public"):
        Method("charm").fit(windows, windows[:0]).rank(windows, k=1)


def test_language_models_score_what_they_did(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs torch")
    asked = [method for method in methods() if "model=" in method]
    with models():
        check({method: measure(charm(tmp_path, method)) for method in asked}, OTHERS)


def test_the_tests_above_run_every_method() -> None:
    firsts = {first_part(method) for method in methods() if "model=" not in method}
    assert firsts == {*PLAIN, *REFERENCES, *ENCODERS, "charm"}
