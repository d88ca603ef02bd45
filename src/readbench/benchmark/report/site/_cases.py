"""Cases of one task, packed for the page: what each list shows first, and the windows to draw.

A pack is a compressed stream of bytes: the length of its header (uint32), the header as JSON, padding to a multiple of
four bytes, then three arrays, all little-endian: float32 headline values (columns, Q), uint16 lists (columns, Q, 10) of
window numbers, and uint8 sketches. A column is one method at one pollution level under one label budget.
"""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.report import DEPTH, GalleryWindow, Methods, Results, points_within
from readbench.benchmark.report.site._content import CellScores, Place, by_cell
from readbench.benchmark.runs import open_folder
from readbench.engine.preparation import thin_series
from readbench.engine.spec import COMPOSED

MAX_VALUES = 12_000_000
"""Most points of all sketches on a page."""
MAX_METHODS = 40
"""Most methods that the case browser offers."""
NOTHING = 0xFFFF
"""Padding of lists shorter than ten."""


def shown_methods(results: Results) -> list[str]:
    """Methods of the case browser in plan order: base retrievers, references, composed ones by name, then the best."""
    methods = Methods(results)
    named = [text for text in COMPOSED.values() if text in results.methods]
    means = results.orient(results.at(results.headline, results.levels[0]).mean(axis=(0, 1)))
    best = np.argsort(-np.nan_to_num(means, nan=-np.inf), kind="stable")
    order = dict.fromkeys([*methods.bases, *methods.references, *named, *(results.methods[m] for m in best)])
    return sorted(list(order)[:MAX_METHODS], key=results.methods.index)


def list_found(lists: Iterable[NDArray[Any]], exhibits: Iterable[GalleryWindow]) -> list[GalleryWindow]:
    """Queries and the windows in any list."""
    found = {item for items in lists for item in np.unique(items).tolist()}
    return [exhibit for exhibit in exhibits if exhibit.query or exhibit.window in found]


def read_lists(folder: Path, dataset: str, seed: int, methods: Sequence[str]) -> dict[Place, NDArray[Any]]:
    """(Q, up to 10) first items of each list of one task by cell, queries in the order of the answers."""
    filters = [("seed", "=", seed), ("place", "<=", DEPTH), ("method", "in", list(methods))]
    table = open_folder(folder).read_rankings(dataset, filters)
    return {
        place: np.array(cell["item"].to_pylist()).reshape(-1, int(cell["place"].to_numpy().max()))
        for place, cell in by_cell(table)
    }


def find_points(exhibits: Iterable[GalleryWindow]) -> int:
    """Points per channel at which all windows of a page have at most `MAX_VALUES` values."""
    return points_within(MAX_VALUES, [exhibit.drawn.codes.shape for exhibit in exhibits if exhibit.drawn])


def pack_windows(
    results: Results,
    answers: CellScores,
    lists: dict[Place, NDArray[Any]],
    exhibits: Sequence[GalleryWindow],
    points: int,
) -> bytes:
    """Pack the cases of one task: lists by cell and windows with at most `points` per channel."""
    seed = next(iter(lists))[0]
    number = {exhibit.window: i for i, exhibit in enumerate(exhibits)}
    values = np.stack([answers.metric(results.headline, place) for place in lists]).astype("<f4")
    top = np.stack([_numbers(items, number) for items in lists.values()]).astype("<u2")
    drawn, codes = _sketches(exhibits, points)
    header = {
        "queries": [number[query] for query in answers.queries[seed]],
        "columns": [[results.levels.index(rho), labels, results.methods.index(m)] for _, rho, labels, m in lists],
        "windows": _windows(exhibits) | drawn,
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    payload = struct.pack("<I", len(text)) + text + values.tobytes() + top.tobytes() + codes
    return gzip.compress(payload, mtime=0)


def _numbers(items: NDArray[Any], number: dict[str, int]) -> NDArray[np.int64]:
    """(Q, 10) window numbers of a list of ids (Q, up to 10)."""
    out = np.full((len(items), DEPTH), NOTHING, np.int64)
    out[:, : items.shape[1]] = np.vectorize(number.__getitem__, otypes=[np.int64])(items)
    return out


def _windows(exhibits: Sequence[GalleryWindow]) -> dict[str, Any]:
    """Columns of facts about the windows; class and channel names are indices into their lists."""
    labels = list(dict.fromkeys(exhibit.label for exhibit in exhibits))
    channels = list(dict.fromkeys(name for exhibit in exhibits for name in exhibit.channels))
    place = {name: i for i, name in enumerate(channels)}
    return {
        "labels": labels,
        "channel_names": channels,
        "id": [exhibit.window for exhibit in exhibits],
        "label": [labels.index(exhibit.label) for exhibit in exhibits],
        **{name: [getattr(exhibit, name) for exhibit in exhibits] for name in ("group", "asset", "length")},
        "span": [list(exhibit.span) for exhibit in exhibits],
        "channels": [[place[name] for name in exhibit.channels] for exhibit in exhibits],
    }


def _sketches(exhibits: Sequence[GalleryWindow], most: int) -> tuple[dict[str, Any], bytes]:
    """Offset, points per channel and scale of each window, and all points as one byte each."""
    facts: dict[str, list[Any]] = {"at": [], "points": [], "low": [], "high": []}
    parts: list[bytes] = []
    at = 0
    for exhibit in exhibits:
        codes = np.empty((0, 0), np.uint8)
        if exhibit.drawn:
            codes = (thin_series(exhibit.drawn.codes, most) >> 8).astype(np.uint8)
        facts["at"].append(at)
        facts["points"].append(codes.shape[1])
        for end in ("low", "high"):
            facts[end].append([float(f"{v:.6g}") for v in getattr(exhibit.drawn, end)] if exhibit.drawn else [])
        parts.append(codes.tobytes())
        at += codes.size
    return facts, b"".join(parts)
