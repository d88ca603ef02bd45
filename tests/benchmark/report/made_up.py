"""Run folders with made-up numbers: the real files, any study, in no time."""

from __future__ import annotations

import csv
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from readbench.benchmark.protocol import PAPER_COMPOSITION, find_origin
from readbench.benchmark.runs import KEY, OPINION, TIMES, score_columns
from readbench.engine.registry import METRICS, SOURCES
from readbench.engine.spec import parse

QUERIES = 6
STUDY = (
    *("random", "majority", "euclidean", "sbd-i", "sbd-d", "dtw-i", "sax-bm25", "sfa-bm25", "mr-hydra"),
    *("charm", "charm+nr", "mantis", "mantis+nr", "charm+nr(k=1)", "charm(metric=cosine)", "euclidean(norm=none)"),
    *("charm|dtw-i", "charm|ws|dtw-i", "charm+nr|dtw-i", "charm+nr|2step|dtw-i", "charm+nr|sbd-d"),
    *("charm+gpc", "charm+majvote", "charm+nr+gpc", "dtw-i+gpc", "charm+nr|dtw-i+gpc", "charm+gpc(k=50)"),
    *("charm+llm(model=claude)", "classify(model=claude)", "mantis|dtw-i+verdict"),
)
"""Something for every table."""


def score(dataset: str, seed: int, rho: int, method: str, metric: str = "NDCG@10") -> float:
    """A number between 0.1 and 0.9 that is always the same."""
    return 0.1 + 0.8 * (zlib.crc32(f"{dataset} {seed} {rho} {method} {metric}".encode()) % 1000) / 1000


def made_up_run(
    folder: Path,
    methods: tuple[str, ...] = STUDY,
    datasets: tuple[str, ...] = ("skab", "road", "sim_tanks", "hai"),
    levels: tuple[int, ...] = (0, 10, 20),
    seeds: tuple[int, ...] = (0, 1),
    *,
    failed: tuple[str, str] = ("", ""),
    smaller: tuple[str, ...] = ("road",),
    scores: Any = score,  # noqa: ANN401
) -> Path:
    """Write `scores.csv`, `per_query.parquet`, `run.json` and, for methods that end with Verdict, `opinions.parquet`.

    `failed` names a dataset and a method without result, `smaller` datasets that are not of the paper's size.
    """
    folder.mkdir(parents=True, exist_ok=True)
    cells = [(d, s, r, m) for d in datasets for s in seeds for r in levels for m in methods]
    with (folder / "scores.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, score_columns(METRICS.names()), restval="")
        writer.writeheader()
        for dataset, seed, rho, method in cells:
            row = {"dataset": dataset, "seed": seed, "rho": rho, "labels": "all", "method": method, "queries": QUERIES}
            if (dataset, method) == failed:
                writer.writerow(row | {"status": "failed: made up"})
                continue
            row |= {name: f"{scores(dataset, seed, rho, method, name):.6f}" for name in METRICS.names()}
            row |= {name: f"{10 * scores(dataset, seed, rho, method, name):.4f}" for name in TIMES}
            writer.writerow(row | {"status": "ok"})
    done = [cell for cell in cells if (cell[0], cell[3]) != failed]
    pq.write_table(_per_query(done, scores), folder / "per_query.parquet")
    if stated := [cell for cell in done if cell[3].endswith("+verdict")]:
        pq.write_table(_opinions(stated), folder / "opinions.parquet")
    manifest = _manifest(methods, datasets, levels, seeds)
    manifest["sizes"] = {f"{d}/seed-{s}": _sizes(d, smaller=d in smaller) for d in datasets for s in seeds}
    (folder / "run.json").write_text(json.dumps(manifest))
    return folder


def opinion(dataset: str, seed: int, rho: int, query: int) -> tuple[float, bool, float]:
    """Certainty, whether it is right and the probability of the truth: the same for every method."""
    confidence = score(dataset, seed, rho, f"opinion {query}")
    correct = query % 3 > 0
    return confidence, correct, confidence if correct else (1 - confidence) / 2


def _opinions(cells: list[tuple[str, int, int, str]]) -> pa.Table:
    rows = [
        (*cell[:3], "all", cell[3], f"q{q}", f"g{q // 2}", *opinion(*cell[:3], q))
        for cell in cells
        for q in range(QUERIES)
    ]
    names = (*KEY, "query", "group", *OPINION)
    return pa.table({name: pa.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)})


def _per_query(cells: list[tuple[str, int, int, str]], scores: Any) -> pa.Table:  # noqa: ANN401
    n = len(cells)
    base = np.repeat([scores(*cell, "NDCG@10") for cell in cells], QUERIES)
    columns = [pa.array([cell[i] for cell in cells for _ in range(QUERIES)]) for i in range(4)]
    offsets = np.tile(np.linspace(-0.05, 0.05, QUERIES), n)
    return pa.table(
        {
            **dict(zip(("dataset", "seed", "rho", "method"), columns, strict=True)),
            "labels": pa.array(["all"] * n * QUERIES),
            "query": pa.array([f"q{q}" for _ in cells for q in range(QUERIES)]),
            "group": pa.array([f"g{q // 2}" for _ in cells for q in range(QUERIES)]),
            "metric": pa.array(["NDCG@10"] * n * QUERIES),
            "value": base + offsets,
        }
    )


def _manifest(
    methods: tuple[str, ...], datasets: tuple[str, ...], levels: tuple[int, ...], seeds: tuple[int, ...]
) -> dict[str, Any]:
    specs = {method: parse(method) for method in methods}
    infos = {dataset: SOURCES.get(dataset).build().info for dataset in datasets}
    return {
        "plan": {"datasets": datasets, "seeds": seeds, "levels": levels, "labels": ["all"], "methods": methods},
        "datasets": {
            name: {"title": info.title, "domain": info.domain, "data_origin": find_origin(name)}
            for name, info in infos.items()
        },
        "methods": {
            text: {"title": spec.title, "family": spec.entries()[0].family, "labels": ["all"]}
            for text, spec in specs.items()
        },
        "notes": {},
    }


def _sizes(dataset: str, *, smaller: bool) -> dict[str, Any]:
    """The paper's composition, or one query less; something else for what the paper does not have."""
    paper = PAPER_COMPOSITION.get(dataset)
    if paper is None:
        sizes = ("8", "64", 7, [100, 111, 125], 20, 14.0, 2.0)
    else:
        queries = paper.queries - smaller
        sizes = (paper.channels, paper.length, paper.classes, list(paper.corpus), queries, 1.0, 1.0)
    names = ("channels", "length", "classes", "corpus", "queries", "relevant_per_query", "imbalance")
    return dict(zip(names, sizes, strict=True))
