"""Marked blocks in documents: tables that come from published rows, written by a command and checked by a test.

A document marks where a block stands:

    <!-- results: label-free -->
    ...
    <!-- end -->

`fill_blocks` writes what is between the marks anew. A block shows only what the rows give; what is planned and not
computed is left out of it, and counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from readbench.benchmark.report._conclusions import conclusion_table
from readbench.benchmark.report._methods import canonical, describe, mark_dataset, marks_of
from readbench.benchmark.report._origins import explain_marks, find_real
from readbench.benchmark.report._places import place_methods, places_table, tell_place
from readbench.benchmark.report._results import Results, dataset_scores, figure_of, leaderboard
from readbench.benchmark.report._significance import friedman_sentences
from readbench.benchmark.report._statements import LABEL_WORDS, LabelUse, state_method
from readbench.benchmark.runs import SUITES
from readbench.errors import DataError, UnknownNameError

Block = Callable[[Results], str]
MARKED = re.compile(r"(?P<open><!-- results: (?P<name>[a-z0-9-]+) -->\n).*?(?P<close><!-- end -->)", re.DOTALL)
HEAD = 12
"""Methods of each kind in the short table."""


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
    opened = text.count("<!-- results: ")
    if opened != len(MARKED.findall(text)):
        raise DataError(f"{document or 'The document'} opens a block of results that `<!-- end -->` does not close.")
    return MARKED.sub(lambda found: found["open"] + write_block(found["name"], results) + found["close"], text)


def find_stale(documents: Sequence[Path], results: Results) -> list[StaleBlock]:
    """The blocks that show something else than the rows give."""
    return [
        StaleBlock(document, found["name"])
        for document in documents
        for found in MARKED.finditer(document.read_text(encoding="utf-8"))
        if found[0] != found["open"] + write_block(found["name"], results) + found["close"]
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
    missing = results.missing()
    values = results.values[results.headline]
    planned = int(np.prod(values.shape))
    computed = planned - sum(missing.values()) - len(results.failures)
    versions = results.manifest["versions"]
    packages = ", ".join(
        f"{name} {versions[name]}" for name in ("python", "numpy", "numba", "scipy") if name in versions
    )
    lines = [
        f"{computed} of {planned} planned cells: {describe(results)}, split seeds {_listed(results.seeds)}, levels",
        f"{_listed(results.levels)} %, {len(results.methods)} methods. Code {results.manifest['code']}; {packages}.",
    ]
    if missing:
        names = "; ".join(f"`{results.short_title(method)}` {count}" for method, count in missing.items())
        lines.append(f"\nPlanned, not computed (cells): {names}.")
    return "\n".join(lines)


def _short_block(results: Results) -> str:
    """What a front page shows: the best of each kind with its place."""
    last = results.levels[-1]
    found = place_methods(results)
    rows, seen = [], dict[LabelUse, int]()
    for row in found.rows:
        seen[row.stated.labels] = seen.get(row.stated.labels, 0) + 1
        if seen[row.stated.labels] > HEAD:
            continue
        m = results.methods.index(row.method)
        polluted = float(results.at(results.headline, last)[:, :, m].mean())
        hits = next((value for name, value in row.others.items() if name.startswith("HR")), float("nan"))
        normals = "; normals known" if row.stated.normals else ""
        names = [f"{row.stated.label_text}{normals}", results.short_title(row.method)]
        rows.append([*names, _short(row.mean), _short(polluted), _short(hits), tell_place(row), row.group])
    header = [
        "Labels",
        "Method",
        f"{results.headline}, ρ = {results.levels[0]} %",
        f"{last} %",
        "HR@10",
        "Place",
        "Tie",
    ]
    unit = "datasets and split groups" if found.over_datasets else "split groups"
    note = (
        f"Over {describe(results)} and {len(results.seeds)} split seeds. Place: 95 % interval of the rank among those"
        f" that read the same labels (paired bootstrap over {unit}); whoever shares a letter is not"
        " surely behind its first."
    )
    return _markdown(header, rows, labels=2) + f"\n{note}"


def _table_of(suite: str, uses: Sequence[LabelUse]) -> Block:
    """A table of methods of a suite on each dataset, best first; (n of N) where one lacks datasets."""

    def write(results: Results) -> str:
        named = dict.fromkeys(canonical(text) for text in SUITES[suite]())
        planned = [m for m in named if m in results.methods and state_method(m).labels in uses]
        held = [m for m in planned if results.held(results.methods.index(m))]
        if not held:
            return f"No row of the suite `{suite}` is computed yet."
        return _by_dataset(results, held)

    return write


def _by_dataset(results: Results, methods: Sequence[str]) -> str:
    first, real = results.levels[0], [results.datasets.index(d) for d in find_real(results.origins)]
    scores = dataset_scores(results, first)
    rows = []
    for method in methods:
        m = results.methods.index(method)
        held = results.held(m)
        figures = [figure_of(results.at(results.headline, rho)[held, :, m]) for rho in results.levels]
        there = [d for d in held if d in real]
        means = [figure_of(results.at(results.headline, rho)[there, :, m]) for rho in results.levels if real]
        spread = "" if np.isnan(figures[0].spread) else f" ±{_short(figures[0].spread)}"
        part = "" if len(held) == len(results.datasets) else f" ({len(held)} of {len(results.datasets)})"
        own = [_short(scores[d, m]) if d in held else "–" for d in range(len(results.datasets))]
        numbers = [f"{_short(figures[0].mean)}{spread}{part}", *(_short(f.mean) for f in figures[1:])]
        rows.append([results.short_title(method), *numbers, *(_short(f.mean) for f in means), *own])
    order = sorted(range(len(rows)), key=lambda i: -figure_of(_at(results, methods[i], first)).mean)
    header = ["", *(f"ρ = {rho} %" for rho in results.levels), *(f"real: {rho} %" for rho in results.levels if real)]
    header += [mark_dataset(results, dataset) for dataset in results.datasets]
    notes = " ".join(explain_marks(marks_of(results, dataset) for dataset in results.datasets))
    return _markdown(header, [rows[i] for i in order], labels=1) + (f"\n{notes}" if notes else "")


def _at(results: Results, method: str, rho: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    m = results.methods.index(method)
    values: np.ndarray[tuple[int, int], np.dtype[np.float64]] = results.at(results.headline, rho)[results.held(m), :, m]
    return values


def _places_block(use: LabelUse) -> Block:
    def write(results: Results) -> str:
        table = places_table(results, (use,))
        if table is None:
            return f"Fewer than two methods that read {LABEL_WORDS[use]} have every cell."
        return table.markdown()

    return write


def _friedman_block(results: Results) -> str:
    return "\n".join(f"* {line}" for line in friedman_sentences(leaderboard(results)))


def _conclusions_block(results: Results) -> str:
    return conclusion_table(results).markdown()


BLOCKS: dict[str, Block] = {
    "rows": _rows_block,
    "leaderboard": _short_block,
    "classical": _table_of("classical", ("none", "all")),
    "label-free": _table_of("label-free", ("none",)),
    "with-labels": _table_of("flagship", ("pool", "all")),
    "places-none": _places_block("none"),
    "places-pool": _places_block("pool"),
    "places-all": _places_block("all"),
    "friedman": _friedman_block,
    "conclusions": _conclusions_block,
}
"""What may stand between marks, by name."""


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]], labels: int) -> str:
    rule = ["---"] * labels + ["---:"] * (len(header) - labels)
    lines = [header, rule, *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _short(value: float) -> str:
    """A number without its leading zero."""
    text = "–" if np.isnan(value) else f"{value:.3f}"
    return text.removeprefix("0") if text.startswith("0.") else text


def _listed(items: Sequence[object]) -> str:
    return ", ".join(map(str, items))
