"""Marked blocks in documents: tables that come from published rows, written by `python -m tools.docs` and tested.

A document marks where a block stands:

    <!-- results: label-free -->
    ...
    <!-- end -->

`fill_blocks` writes what is between the marks anew. A block shows only what the rows give; what is planned and not
computed is left out of it, and counted. Marks begin their line; indented or in a fence, as here, they are examples.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from readbench.benchmark.report import (
    GRIDS,
    LABEL_WORDS,
    PAGES,
    UNSEEN,
    LabelUse,
    Results,
    TableStudy,
    canonical,
    composition_table,
    describe,
    friedman_sentences,
    grid_tables,
    labelling_table,
    leaderboard,
    places_table,
    read_beside,
    retained_table,
    settings_table,
    state_method,
    tell_untested,
)
from readbench.benchmark.runs import LEFT_OUT, SUITES
from readbench.engine.spec import COMPOSED
from readbench.errors import DataError, UnknownNameError
from tools.docs.conclusions import OWN_CLAIMS, RERANKER_CLAIMS, conclusion_table
from tools.docs.row_tables import (
    dataset_rows,
    front_table,
    orders_table,
    rival_table,
    short_table,
    splits_table,
)

Block = Callable[[Results], str]
MARKED = re.compile(
    r"^(?P<open><!-- results: (?P<name>[a-z0-9-]+) -->\n)(?:(?!<!-- results: ).)*?^(?P<close><!-- end -->)",
    re.DOTALL | re.MULTILINE,
)
OPENED = re.compile(r"^<!-- results: ", re.MULTILINE)
FENCED = re.compile(r"^(?P<fence>`{3,}|~{3,})[^\n]*\n.*?^(?P=fence)[`~]*[ \t]*$", re.DOTALL | re.MULTILINE)
"""Code, in which marks are examples."""
EMBEDDED = "embedded"
"""Folder of published rows on the simulators that ship with the package."""
SPLITS = "splits"
"""Folder of published rows on more split seeds, of datasets on which splits differ much."""
TABLES = ("backbones", "normal-residuals", "fusion", "rerankers", "composition-of-stages", "sbd")
"""Tables of a report that may stand in a document, as `table-NAME`."""
SWEEPS = "sweeps"
"""Folder of published rows of methods whose settings are varied one by one."""
SWEPT = ("neighbours", "cosine")
"""Tables of a report on these rows, likewise."""
SCALING = "scaling"
"""Folder of published rows of distances on windows that are scaled in several ways."""
STAGES = "stages"
"""Folder of published rows of fusions and rerankers, on parts that are quick to compute."""
STAGED = {"fusion-modes": "fusion-modes", "all-rerankers": "rerankers"}
"""Names of tables of these rows in a document, and in a report."""


@dataclass(frozen=True)
class StaleBlock:
    """A block whose text is not what the rows give."""

    document: Path
    name: str


def fill_blocks(text: str, results: Results, document: str = "") -> str:
    """The text of a document with every marked block written anew.

    Args:
        text: of the document.
        results: published rows.
        document: its name, for errors.
    """
    blocks = find_blocks(text)
    if len(OPENED.findall(_blank_code(text))) != len(blocks):
        raise DataError(f"{document or 'The document'} opens a block of results that `<!-- end -->` does not close.")
    for found in reversed(blocks):
        text = text[: found.end("open")] + write_block(found["name"], results) + text[found.start("close") :]
    return text


def find_blocks(text: str) -> list[re.Match[str]]:
    """The marked blocks of a document, without the examples in its code."""
    return list(MARKED.finditer(_blank_code(text)))


def _blank_code(text: str) -> str:
    """The text of the same length and lines, with nothing in its fences."""
    return FENCED.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)


def find_stale(documents: Sequence[Path], results: Results) -> list[StaleBlock]:
    """The blocks that show something else than the rows give."""
    return [
        StaleBlock(document, found["name"])
        for document in documents
        for text in [document.read_text(encoding="utf-8")]
        for found in find_blocks(text)
        if text[found.end("open") : found.start("close")] != write_block(found["name"], results)
    ]


def write_block(name: str, results: Results) -> str:
    """The content of one block, with a line break before and after it."""
    if name not in BLOCKS:
        raise UnknownNameError("block of results", name, BLOCKS)
    return f"\n{_write(name, results).strip()}\n\n"


@lru_cache(maxsize=64)
def _write(name: str, results: Results) -> str:
    return BLOCKS[name](results)


def _rows_block(results: Results) -> str:
    versions = results.manifest["versions"]
    packages = ", ".join(
        f"{name} {versions[name]}" for name in ("python", "numpy", "numba", "scipy") if name in versions
    )
    lines = [f"{_count(results)} Code {results.manifest['code']}; {packages}."]
    if missing := results.missing():
        names = "; ".join(f"`{results.title(method)}` {count}" for method, count in missing.items())
        lines.append(f"\nPlanned, not computed (cells): {names}.")
    for method, reasons in results.manifest.get(LEFT_OUT, {}).items():
        told = "; ".join(f"{dataset} ({why})" for dataset, why in reasons.items())
        lines.append(f"\nLeft out: `{results.title(method)}` on {told}.")
    beside = {
        UNSEEN: "whole assets held out",
        EMBEDDED: "simulators that ship with the package",
        SPLITS: "more split seeds",
        SWEEPS: "settings varied one by one",
        STAGES: "fusions and rerankers of the paper",
        SCALING: "how raw windows are scaled",
    }
    for name, what in beside.items():
        if found := read_beside(results, name):
            lines.append(f"\n`{results.folder.name}/{name}`, {what}: {_count(found)}")
    return "\n".join(lines)


def _count(results: Results) -> str:
    """How much of what is planned is there."""
    missing = sum(results.missing().values())
    copied = [(results.datasets.index(name), results.seeds.index(seed)) for name, seed, _ in results.plan.copies]
    there = ~np.isnan(results.values[results.headline])
    computed = int(there.sum()) - sum(int(there[place].sum()) for place in copied)
    return (
        f"{computed} of {computed + missing + len(results.failures)} planned cells: {describe(results)}, split seeds"
        f" {_listed(results.seeds)}{_tell_copies(results)}, levels {_listed(results.levels)} %,"
        f" {len(results.methods)} methods."
    )


def _tell_copies(results: Results) -> str:
    """Which split seeds hold out the same as another."""
    told = ", ".join(f"{dataset} {seed} = {earlier}" for dataset, seed, earlier in results.plan.copies)
    return f" (taken once: {told})" if told else ""


def _table_of(suite: str, uses: Sequence[LabelUse]) -> Block:
    """A table of methods of a suite on each dataset, best first; (n of N) where one lacks datasets."""

    def write(results: Results) -> str:
        named = dict.fromkeys(canonical(text) for text in SUITES[suite]())
        planned = [m for m in named if m in results.methods and state_method(m).labels in uses]
        held = [m for m in planned if results.held(results.methods.index(m), results.levels[0])]
        if not held:
            return f"No row of the suite `{suite}` is computed yet."
        return dataset_rows(results, held, labels=len(uses) > 1)

    return write


def _embedded_block(results: Results) -> str:
    found = read_beside(results, EMBEDDED)
    if found is None:
        return "No row on embedded data is published yet."
    held = [m for i, m in enumerate(found.methods) if found.held(i, found.levels[0])]
    return dataset_rows(found, held, labels=True)


def _splits_block(results: Results) -> str:
    found = read_beside(results, SPLITS)
    return splits_table(found) if found else "No rows on more split seeds are published yet."


def _places_block(use: LabelUse) -> Block:
    def write(results: Results) -> str:
        table = places_table(results, (use,))
        if table is None:
            return f"Fewer than two methods that read {LABEL_WORDS[use]} have every cell."
        return table.markdown()

    return write


def _friedman_block(results: Results) -> str:
    return "\n".join(f"* {line}" for line in (*friedman_sentences(leaderboard(results)), *tell_untested(results)))


def _grid_block(name: str, beside: str = "") -> Block:
    grid = next(grid for grid in GRIDS if grid.name == name)

    def write(results: Results) -> str:
        rows = read_beside(results, beside) if beside else results
        tables = grid_tables(grid, TableStudy(rows)) if rows else []
        return "\n".join(t.markdown() for t in tables) or f"No row for the table `{name}` is complete yet."

    return write


def _reranker_claims_block(results: Results) -> str:
    rows = read_beside(results, STAGES)
    if rows is None:
        return "No row of other rerankers is published yet."
    return conclusion_table(rows, RERANKER_CLAIMS, "reranker-claims").markdown()


def _settings_block(number: int) -> Block:
    def write(results: Results) -> str:
        table = settings_table(PAGES[number], results)
        return table.markdown() if table else "No part of this kind."

    return write


def _labelling_block(results: Results) -> str:
    table = labelling_table(results)
    return table.markdown() if table else "Nothing is known of these datasets."


def _retained_block(results: Results) -> str:
    table = retained_table(results)
    return table.markdown() if table else "No rows with whole assets held out are published yet."


def _rival_block(results: Results) -> str:
    return rival_table(results, "ts2vec", ("sonde", COMPOSED["ours-dtw"], COMPOSED["ours"]))


BLOCKS: dict[str, Block] = {
    "rows": _rows_block,
    "front": front_table,
    "leaderboard": short_table,
    "classical": _table_of("classical", ("none", "all")),
    "label-free": _table_of("label-free", ("none",)),
    "with-labels": _table_of("flagship", ("pool", "all")),
    "embedded": _embedded_block,
    "splits": _splits_block,
    "orders": orders_table,
    "against-ts2vec": _rival_block,
    "unseen-assets": _retained_block,
    "places-none": _places_block("none"),
    "places-pool": _places_block("pool"),
    "places-all": _places_block("all"),
    "friedman": _friedman_block,
    "conclusions": lambda results: conclusion_table(results).markdown(),
    "own-claims": lambda results: conclusion_table(results, OWN_CLAIMS, "own-claims").markdown(),
    "reranker-claims": _reranker_claims_block,
    "composition": lambda results: composition_table(results).markdown(),
    "labelling": _labelling_block,
    **{page.name: _settings_block(number) for number, page in enumerate(PAGES)},
    **{f"table-{name}": _grid_block(name) for name in TABLES},
    **{f"table-{name}": _grid_block(name, SWEEPS) for name in SWEPT},
    **{f"table-{name}": _grid_block(grid, STAGES) for name, grid in STAGED.items()},
    "table-scaling": _grid_block("scaling", SCALING),
}
"""What may stand between marks, by name."""


def _listed(items: Sequence[object]) -> str:
    return ", ".join(map(str, items))
