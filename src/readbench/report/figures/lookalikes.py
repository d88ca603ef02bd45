"""Where shape misleads: a hit with the query's fault that looks different, and one without it that looks alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from readbench.experiment.gallery import DEPTH, Exhibit
from readbench.report.tables import Study

SMOOTH = 0.02
"""Roughness below which curves are equally easy to read."""


@dataclass(frozen=True, eq=False)
class LookAlike:
    """A query and two of its hits.

    Args:
        dataset: where they come from.
        channel: the one that tells most of the query's fault.
        query: the query.
        relevant: a hit with its fault, far from it in shape.
        wrong: a hit with another fault, near to it in shape.
        clarity: how well the eye sees it: the relevant one far, the wrong one near, all curves moving and smooth.
    """

    dataset: str
    channel: str
    query: Exhibit
    relevant: Exhibit
    wrong: Exhibit
    clarity: float


def look_alike(study: Study, dataset: str, exhibits: list[Exhibit], telling: Mapping[str, str]) -> LookAlike | None:
    """The clearest case among the first hits of all methods at the first level; None where shape never misleads.

    Args:
        study: the run.
        dataset: one of its datasets.
        exhibits: windows of it that may be drawn, under the first split seed.
        telling: fault type -> channel to look at.
    """
    windows = {one.window: one for one in exhibits}
    best: LookAlike | None = None
    for query, hits in _hits(study, dataset):
        asked = windows.get(query)
        if asked is None or asked.label not in telling:
            continue
        found = _pair(dataset, telling[asked.label], asked, [windows[hit] for hit in hits if hit in windows])
        if found and (best is None or found.clarity > best.clarity):
            best = found
    return best


def _hits(study: Study, dataset: str) -> Iterator[tuple[str, list[str]]]:
    """Each query with its first hits under any method, sorted by name."""
    results = study.results
    wanted = [("seed", "=", results.seeds[0]), ("rho", "=", results.levels[0]), ("place", "<=", DEPTH)]
    path = results.folder / "rankings" / f"{dataset}.parquet"
    table = pq.read_table(path, columns=["query", "item"], filters=wanted)
    found: dict[str, set[str]] = {}
    for query, item in zip(table["query"].to_pylist(), table["item"].to_pylist(), strict=True):
        found.setdefault(query, set()).add(item)
    for query in sorted(found):
        yield query, sorted(found[query])


def _pair(dataset: str, channel: str, query: Exhibit, hits: list[Exhibit]) -> LookAlike | None:
    comparable = [one for one in hits if channel in one.channels and points(one) == points(query)]
    relevant = [one for one in comparable if one.label == query.label]
    wrong = [one for one in comparable if one.label not in {query.label, "normal"}]
    if channel not in query.channels or not relevant or not wrong:
        return None
    own = trace(query, channel)
    distances = {one.window: _distance(own, one, channel) for one in (*relevant, *wrong)}
    far = max(relevant, key=lambda one: distances[one.window])
    near = min(wrong, key=lambda one: distances[one.window])
    lead = distances[far.window] - distances[near.window]
    if lead <= 0:
        return None
    share = lead / (distances[far.window] + distances[near.window])
    curves = [trace(one, channel) for one in (query, far, near)]
    roughness = max(_roughness(curve) for curve in curves)
    return LookAlike(dataset, channel, query, far, near, share * _movement(curves) / (SMOOTH + roughness))


def _movement(curves: list[NDArray[np.float32]]) -> float:
    """Range of the flattest curve, as a share of what an axis for all of them shows."""
    return min(float(np.ptp(curve)) for curve in curves) / max(float(np.ptp(np.concatenate(curves))), 1e-30)


def _roughness(values: NDArray[np.float32]) -> float:
    """Mean step from point to point, as a share of the range; 1 for a constant, which shows nothing."""
    reach = float(np.ptp(values))
    return float(np.abs(np.diff(values)).mean()) / reach if reach > 0 else 1.0


def points(one: Exhibit) -> int:
    """Points of each channel of a sketch; 0 where there is none."""
    return 0 if one.drawn is None else one.drawn.codes.shape[1]


def trace(one: Exhibit, channel: str) -> NDArray[np.float32]:
    """(P,) one channel of a window as it is kept; empty where there is no sketch."""
    if one.drawn is None:
        return np.zeros(0, np.float32)
    values: NDArray[np.float32] = one.drawn.values()[one.channels.index(channel)].astype(np.float32)
    return values


def _distance(own: NDArray[np.float32], one: Exhibit, channel: str) -> float:
    """Root mean square difference of the drawn channel."""
    return float(np.sqrt(np.mean((own - trace(one, channel)) ** 2)))
