"""The page of a run: what is in it, against the files it is made from."""

from __future__ import annotations

import base64
import gzip
import json
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from readbench.benchmark.metrics import paired_bootstrap
from readbench.benchmark.report import read_results
from readbench.benchmark.report._gallery import DEPTH, LEVELS, read_gallery
from readbench.benchmark.report.site import _cases as cases, write_site
from readbench.benchmark.report.site._cases import shown_methods
from readbench.benchmark.report.site._content import covariance, read_answers
from readbench.engine.spec import parse
from tests.benchmark.report.made_up import made_up_run
from tests.benchmark.report.site_runs import DATASETS, HOSTILE, METHODS


@pytest.fixture(scope="module")
def page(poisoned: Path) -> str:
    return (poisoned / "report" / "index.html").read_text()


def embedded(page: str, name: str) -> str:
    found = re.search(rf'<script type="[a-z/]+" id="{name}">([^<]*)</script>', page)
    assert found
    return found[1]


def unpacked(page: str, name: str) -> tuple[dict[str, Any], bytes]:
    content = gzip.decompress(base64.b64decode(embedded(page, name)))
    (size,) = struct.unpack("<I", content[:4])
    assert size % 4 == 0
    return json.loads(content[4 : 4 + size]), content[4 + size :]


def test_values_are_the_means_over_the_seeds(poisoned: Path, page: str) -> None:
    results, data = read_results(poisoned), json.loads(embedded(page, "data"))
    for metric in ("NDCG@10", "P@1", "macro_F1"):
        np.testing.assert_allclose(data["values"][metric], results.values[metric].mean(axis=1), atol=5.1e-5)
    assert [method["text"] for method in data["methods"]] == list(METHODS)
    assert [stage["role"] for stage in data["methods"][-1]["stages"]] == ["leg", "reranker"]


def test_a_class_has_the_mean_over_its_own_queries(poisoned: Path, page: str) -> None:
    data, gallery = json.loads(embedded(page, "data")), read_gallery(poisoned)
    assert gallery is not None
    labels = {one.window: one.label for one in gallery.exhibits[DATASETS[1], 7] if one.query}
    filters = [
        ("dataset", "=", DATASETS[1]),
        ("method", "=", "euclidean"),
        ("rho", "=", 20),
        ("metric", "=", "NDCG@10"),
    ]
    rows = pq.read_table(poisoned / "per_query.parquet", filters=filters).to_pylist()
    own = [row["value"] for row in rows if labels[row["query"]] == HOSTILE]
    assert own
    shown = data["datasets"][1]["by_class"][HOSTILE][1][0][METHODS.index("euclidean")]
    assert shown == pytest.approx(np.mean(own), abs=5.1e-5)


def test_a_pack_holds_the_first_ten_of_every_list_and_what_they_scored(poisoned: Path, page: str) -> None:
    data = json.loads(embedded(page, "data"))
    task = next(task for task in data["cases"] if task["dataset"] == "sim_tanks")
    header, payload = unpacked(page, task["id"])
    cells, queries = len(header["columns"]), len(header["queries"])
    values = np.frombuffer(payload[: 4 * cells * queries], "<f4").reshape(cells, queries)
    lists = np.frombuffer(payload[4 * cells * queries :][: 2 * DEPTH * cells * queries], "<u2")
    ids = np.array(header["windows"]["id"])
    found = ids[lists.reshape(cells, queries, DEPTH)]
    answers = read_answers(poisoned, "sim_tanks")
    rankings = pq.read_table(poisoned / "rankings" / "sim_tanks.parquet", filters=[("place", "<=", DEPTH)])
    assert ids[header["queries"]].tolist() == answers.queries[7]
    for c, (level, labels, m) in enumerate(header["columns"]):
        place = (7, (0, 20)[level], labels, METHODS[m])
        np.testing.assert_allclose(values[c], answers.metric("NDCG@10", place), rtol=1e-6)
        own = [r["item"] for r in rankings.to_pylist() if (r["rho"], r["method"]) == (place[1], place[3])]
        assert found[c].ravel().tolist() == own


def test_sketches_in_a_pack_are_those_of_the_gallery(poisoned: Path, page: str) -> None:
    data, gallery = json.loads(embedded(page, "data")), read_gallery(poisoned)
    assert gallery is not None
    header, payload = unpacked(page, data["cases"][1]["id"])
    windows = header["windows"]
    codes = np.frombuffer(payload[len(header["columns"]) * len(header["queries"]) * (4 + 2 * DEPTH) :], np.uint8)
    for i, exhibit in enumerate(gallery.exhibits[DATASETS[1], 7]):
        assert exhibit.drawn is not None
        start, points = windows["at"][i], windows["points"][i]
        own = codes[start : start + points * len(exhibit.channels)].reshape(len(exhibit.channels), points)
        np.testing.assert_allclose(own / 255, exhibit.drawn.codes / LEVELS, atol=1 / 255)
        assert [windows["channel_names"][c] for c in windows["channels"][i]] == list(exhibit.channels)
        assert windows["labels"][windows["label"][i]] == exhibit.label


def test_no_text_can_leave_its_place_in_the_page(page: str) -> None:
    assert HOSTILE not in page
    assert "<img" not in page
    data = json.loads(embedded(page, "data"))
    assert data["datasets"][1]["description"] == HOSTILE


def test_the_policy_allows_no_connection_and_no_other_script(page: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    assert policy[1].startswith("default-src 'none'; script-src data: 'sha256-")
    assert "unsafe-inline" not in policy[1].partition("style-src")[0]
    assert not re.search(r'(src|href)="(https?:)?//', page)


def test_the_same_run_gives_the_same_bytes(poisoned: Path, tmp_path: Path, page: str) -> None:
    figures = sorted((poisoned / "report" / "figures").iterdir())
    assert write_site(poisoned, tmp_path, figures).read_text() == page


def test_a_run_without_a_gallery_still_has_its_page(tmp_path: Path) -> None:
    path = write_site(made_up_run(tmp_path / "run", failed=("road", "charm")))
    data = json.loads(embedded(path.read_text(), "data"))
    assert data["cases"] == []
    assert "no cases" in data["no_cases"]
    road, charm = (next(i for i, one in enumerate(data[k]) if one[f] == n) for k, f, n in FAILED)
    assert data["values"]["NDCG@10"][road][0][0][charm] is None
    assert data["errors"]["NDCG@10"][road][0][0][charm] is None
    assert data["errors"]["NDCG@10"][road][0][0][charm - 1] is not None


FAILED = (("datasets", "name", "road"), ("methods", "text", "charm"))


def test_points_and_methods_of_the_case_browser_are_bounded(
    poisoned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cases, "MAX_METHODS", 3)
    monkeypatch.setattr(cases, "MAX_VALUES", 1_200_000)
    page = write_site(poisoned, tmp_path).read_text()
    header, _ = unpacked(page, "cases-0")
    assert {m for _, _, m in header["columns"]} == {0, 1, 2}
    assert max(header["windows"]["points"]) == 64
    filters = [("place", "<=", DEPTH), ("method", "in", list(METHODS[:3]))]
    table = pq.read_table(poisoned / "rankings" / f"{DATASETS[0]}.parquet", filters=filters)
    assert set(header["windows"]["id"]) == {*table["item"].to_pylist(), *table["query"].to_pylist()}


def test_the_case_browser_offers_bases_references_and_the_best_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    methods = ("charm+gpc", "mr-hydra", "charm|dtw-i", "flagship", "dtw-i", "charm+nr", "charm")
    texts = tuple(str(parse(text)) for text in methods)
    results = read_results(made_up_run(tmp_path, texts))
    means = results.at("NDCG@10", 0).mean(axis=(0, 1))
    others = sorted(("charm+gpc", "charm|dtw-i", "charm+nr"), key=lambda text: -means[texts.index(text)])
    monkeypatch.setattr(cases, "MAX_METHODS", 5)
    assert set(shown_methods(results)) == {"dtw-i", "charm", "mr-hydra", texts[3], others[0]}
    monkeypatch.setattr(cases, "MAX_METHODS", 7)
    assert shown_methods(results) == list(texts)


def test_partial_data_are_told(tmp_path: Path) -> None:
    folder = made_up_run(tmp_path)
    manifest = json.loads((folder / "run.json").read_text())
    manifest["datasets"]["hai"]["files"] = "partial"
    (folder / "run.json").write_text(json.dumps(manifest))
    data = json.loads(embedded(write_site(folder).read_text(), "data"))
    assert {own["name"] for own in data["datasets"] if "§" in own["marks"]} == {"road", "hai"}


def test_the_interval_is_that_of_a_bootstrap_over_groups() -> None:
    rng = np.random.default_rng(1)
    groups = [f"g{i % 40}" for i in range(200)]
    shift = rng.normal(size=40)[[i % 40 for i in range(200)]]
    values = np.column_stack([shift + rng.normal(size=200), 0.5 * shift + rng.normal(size=200)])
    joint = covariance([values], [groups])
    error = float(np.sqrt(joint[0, 0] + joint[1, 1] - 2 * joint[0, 1]))
    interval = paired_bootstrap(values[:, 0], values[:, 1], seed=0, clusters=groups)
    assert 2 * 1.96 * error == pytest.approx(interval.high - interval.low, rel=0.08)


def test_a_group_asked_under_two_seeds_counts_once() -> None:
    values = np.array([[0.0], [1.0], [1.0], [0.0]])
    groups = ["a", "b", "c", "d"]
    once = covariance([values], [groups])
    assert covariance([values, values], [groups, groups]) == pytest.approx(once)
    apart = covariance([values, values], [groups, ["e", "f", "g", "h"]])
    assert apart[0, 0] < 0.6 * once[0, 0]


def test_one_group_tells_nothing_about_the_spread() -> None:
    assert np.isnan(covariance([np.ones((3, 2))], [["a", "a", "a"]])).all()


def test_all_datasets_have_their_facts(page: str) -> None:
    data = json.loads(embedded(page, "data"))
    assert [dataset["name"] for dataset in data["datasets"]] == list(DATASETS)
    tanks = data["datasets"][0]
    assert tanks["licence"] == "Apache-2.0"
    assert tanks["sizes"]["queries"] == 100
    assert sum(own["queries"] for own in tanks["classes"]) == 100
