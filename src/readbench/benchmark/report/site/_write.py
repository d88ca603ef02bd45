"""The page of a run: one HTML file with style, modules, data and cases, which loads nothing else."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

from readbench.benchmark.metrics import DEFAULT_METRIC
from readbench.benchmark.report import Gallery, Results, figure_captions, read_gallery, read_results
from readbench.benchmark.report.site._cases import find_points, list_found, pack_windows, read_lists, shown_methods
from readbench.benchmark.report.site._content import CellScores, content, judge_means, read_answers
from readbench.common import web
from readbench.common.files import write_text

ASSETS = files("readbench.benchmark.report.site") / "assets"
STYLES = ("site.css", "cases.css")
NAME = "#site/"
"""Prefix of imports from the folder of the site."""
ENTRY = "app.js"
"""Module that starts the page."""
BODY = """<a class="skip" href="#main">Skip to content</a>
<header id="top"></header>
<main id="main" tabindex="-1">
<noscript>This page draws its tables with JavaScript, all of it in this file.</noscript>
</main>
<footer id="foot"></footer>
<p id="announcer" class="unseen" aria-live="polite"></p>"""


def page(title: str, data: Mapping[str, Any], packs: Mapping[str, bytes]) -> str:
    """HTML of the page: window title, data of `content`, and bytes by element id."""
    style = "\n".join(web.asset(name, ASSETS) for name in STYLES)
    parts = [
        BODY,
        f'<script type="application/json" id="data">{_embedded(data)}</script>',
        *(
            f'<script type="text/plain" id="{name}">{base64.b64encode(content).decode()}</script>'
            for name, content in packs.items()
        ),
    ]
    return web.closed_page(title, style, "\n".join(parts), f'import "{NAME}{ENTRY}";', web.modules(NAME, ASSETS))


def _embedded(data: Mapping[str, Any]) -> str:
    """JSON in which every `<` is escaped, so that no text ends the script element."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


PAGE = "index.html"
MAX_PAIRS = 2_000_000
"""Most covariances on the page; a run with more pairs of methods shows no ties."""


def write_site(
    run: Path,
    out: Path | None = None,
    figures: Sequence[Path] = (),
    metric: str = DEFAULT_METRIC,
    no_cases: str = "This run keeps no cases. Where its data are at hand: readbench report",
    documents: str = "",
) -> Path:
    """Write the page of a run and return its path; it opens from disk without a network.

    Args:
        run: run folder.
        out: target folder; `report` in the run folder by default.
        figures: figure files of the report; the page shows those in SVG.
        metric: the headline.
        no_cases: text for a run folder without a gallery; see `keep_gallery`.
        documents: address of the documents to link; without it they are only named.
    """
    results, gallery = read_results(run, metric), read_gallery(Path(run))
    answers = {dataset: read_answers(results.folder, dataset) for dataset in results.datasets}
    measured = judge_means(results, list(answers.values()), gallery)
    tasks, packs = _packed(results, answers, gallery)
    if measured.joint.size <= MAX_PAIRS:
        packs["joint"] = gzip.compress(measured.joint.astype("<f4").tobytes(), mtime=0)
    drawings = {path.stem: path.read_bytes() for path in figures if path.suffix == ".svg"}
    captions = figure_captions()
    shown = [{"name": name, "shows": captions[name], "id": f"figure-{name}"} for name in drawings]
    packs |= {f"figure-{name}": drawing for name, drawing in drawings.items()}
    data = content(results, gallery, measured) | {"joint": "joint" in packs, "figures": shown}
    data |= {"cases": tasks, "no_cases": no_cases, "documents": documents}
    target = (out or results.folder / "report") / PAGE
    write_text(target, page(f"{data['name']} · READ-Bench", data, packs))
    return target


def _packed(
    results: Results, answers: dict[str, CellScores], gallery: Gallery | None
) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
    """Tasks with cases and their element ids, and the packs by id."""
    kept = {key: own for key, own in gallery.exhibits.items() if key[0] in answers} if gallery else {}
    methods = shown_methods(results)
    lists = {key: read_lists(results.folder, *key, methods) for key in kept}
    exhibits = {key: list_found(lists[key].values(), own) for key, own in kept.items() if lists[key]}
    points = find_points(chain.from_iterable(exhibits.values()))
    tasks: list[dict[str, Any]] = []
    packs: dict[str, bytes] = {}
    for (dataset, seed), own in exhibits.items():
        name = f"cases-{len(tasks)}"
        tasks.append({"dataset": dataset, "seed": seed, "id": name})
        packs[name] = pack_windows(results, answers[dataset], lists[dataset, seed], own, points)
    return tasks, packs
