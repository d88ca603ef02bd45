"""From a run folder to `index.html`."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from readbench.evaluate import DEFAULT_METRIC
from readbench.experiment.gallery import Gallery, read_gallery
from readbench.report.figures import SHOWS
from readbench.report.results import Results, read_results
from readbench.report.site.answers import Answers, read_answers
from readbench.report.site.cases import finest, listed, pack, read_lists, shown_methods
from readbench.report.site.content import content
from readbench.report.site.judged import judge_means
from readbench.report.site.page import page

PAGE = "index.html"
MOST_PAIRS = 2_000_000
"""Covariances that the page holds; a run with more pairs of methods goes without marking ties."""


def write_site(run: Path, out: Path | None = None, figures: Sequence[Path] = (), metric: str = DEFAULT_METRIC) -> Path:
    """Write the page of a run; it opens from disk, needs no network, and depends on nothing but the run folder.

    Args:
        run: a run folder.
        out: folder to write to; `report` in the run folder by default.
        figures: files of the report's figures, of which the page shows those in SVG.
        metric: the headline.

    Returns:
        The file.
    """
    results, gallery = read_results(run, metric), read_gallery(Path(run))
    answers = {dataset: read_answers(results.folder, dataset) for dataset in results.datasets}
    measured = judge_means(results, list(answers.values()), gallery)
    tasks, packs = _packed(results, answers, gallery)
    if measured.joint.size <= MOST_PAIRS:
        packs["joint"] = gzip.compress(measured.joint.astype("<f4").tobytes(), mtime=0)
    drawings = {path.stem: path.read_bytes() for path in figures if path.suffix == ".svg"}
    shown = [{"name": name, "shows": SHOWS[name], "id": f"figure-{name}"} for name in drawings]
    packs |= {f"figure-{name}": drawing for name, drawing in drawings.items()}
    data = content(results, gallery, measured) | {"cases": tasks, "joint": "joint" in packs, "figures": shown}
    target = (out or results.folder / "report") / PAGE
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{PAGE}.partial")
    partial.write_text(page(f"{data['name']} · READ-Bench", data, packs), encoding="utf-8")
    partial.replace(target)
    return target


def _packed(
    results: Results, answers: dict[str, Answers], gallery: Gallery | None
) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
    """Which tasks have cases and under which element id, and the packs themselves."""
    kept = {key: own for key, own in gallery.exhibits.items() if key[0] in answers} if gallery else {}
    methods = shown_methods(results)
    lists = {key: read_lists(results.folder, *key, methods) for key in kept}
    exhibits = {key: listed(lists[key].values(), own) for key, own in kept.items() if lists[key]}
    points = finest(chain.from_iterable(exhibits.values()))
    tasks: list[dict[str, Any]] = []
    packs: dict[str, bytes] = {}
    for (dataset, seed), own in exhibits.items():
        name = f"cases-{len(tasks)}"
        tasks.append({"dataset": dataset, "seed": seed, "id": name})
        packs[name] = pack(results, answers[dataset], lists[dataset, seed], own, points)
    return tasks, packs
