"""Sample windows and pools for the checks, a search of reachable objects, and skipping by declaration.

`reachable` follows references, to test that a method cannot see hidden data. A check that a component is exempt from by
declaration is skipped (`require_untagged`, `not_asked`), and the report names the declaration.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any
from unittest import SkipTest

import numpy as np
from numpy.typing import NDArray

from readbench.engine.context import Context
from readbench.engine.protocols import Pool, Vectors, View
from readbench.engine.ranking import rank
from readbench.engine.registry import TAGS, Entry, members_lacking
from readbench.engine.windows import UNLABELLED, WindowSet

CLASSES = ("normal", "leak", "clog", "drift")


def sample_windows(
    count: int = 12,
    *,
    channels: int = 3,
    length: int = 32,
    ragged: bool = False,
    befores: float = 0.0,
    seed: int = 0,
) -> WindowSet:
    """Labelled random walks with a level and slope that depend on the class.

    Args:
        count: number of windows.
        channels: channels of each window, or the maximum if ragged.
        length: timesteps, or the maximum if ragged.
        ragged: vary length and channels between windows.
        befores: share of the windows with a time before them.
        seed: of the values.

    >>> sample_windows(4, ragged=True).lengths.max() <= 32
    np.True_
    """
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % len(CLASSES)
    values, names = [], []
    for label in labels:
        c = int(rng.integers(1, channels + 1)) if ragged else channels
        t = int(rng.integers(max(2, length // 2), length + 1)) if ragged else length
        walk = rng.standard_normal((c, t)).cumsum(axis=1)
        values.append(walk + label + 0.1 * label * np.arange(t))
        names.append(tuple(f"sensor {k}" for k in rng.permutation(channels)[:c]))
    return WindowSet.from_arrays(
        values,
        channels=names,
        labels=labels,
        classes=CLASSES,
        ids=[f"case {i}" for i in range(count)],
        groups=[f"run {i // 2}" for i in range(count)],
        assets=[f"plant {i % 3}" for i in range(count)],
        times=np.arange(count) * 60.0,
        context=Context.of(count, befores=_sample_befores(values, befores)) if befores else None,
    )


def _sample_befores(values: Sequence[NDArray[np.float64]], share: float) -> list[NDArray[np.float64] | None]:
    """Normal operation of twice a window's length before a share of the windows, evenly spread; None for the others."""
    rng = np.random.default_rng(len(values))
    walks = [rng.standard_normal((len(series), 2 * series.shape[1])).cumsum(axis=1) for series in values]
    return [walk if (i * share) % 1 < share else None for i, walk in enumerate(walks)]


def sample_pool(
    seed: int = 0,
    *,
    queries: int = 6,
    items: int = 30,
    depth: int = 20,
    classes: int = 4,
    labelled: float = 1.0,
) -> Pool:
    """A pool over a corpus of noisy clusters; scores are negative distances.

    Args:
        seed: of all random numbers.
        queries: Q.
        items: N, the size of the corpus.
        depth: K, number of candidates per query, at most N.
        classes: number of clusters; class 0 is normal.
        labelled: share of the corpus with a label, the same for all queries.

    >>> sample_pool(queries=2, depth=5).labels.shape
    (2, 5)
    """
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((classes, 6))
    labels = rng.integers(0, classes, items).astype(np.int32)
    vectors = (centres[labels] + 0.7 * rng.standard_normal((items, 6))).astype(np.float32)
    asked = (centres[rng.integers(0, classes, queries)] + 0.7 * rng.standard_normal((queries, 6))).astype(np.float32)
    labels[rng.random(items) >= labelled] = UNLABELLED
    scores = -np.linalg.norm(asked[:, None] - vectors[None], axis=2)
    candidates = rank(scores, depth)
    similarity = -np.linalg.norm(vectors[:, None] - vectors[None], axis=2).astype(np.float32)
    return Pool(
        candidates=candidates,
        scores=np.take_along_axis(scores, candidates, axis=1),
        views=(View(asked, vectors),),
        corpus_labels=np.broadcast_to(labels, (queries, items)),
        groups=np.arange(items),
        similarity=lambda: similarity,
    )


@dataclass(frozen=True, eq=False)
class LabelledCases:
    """Resolved cases as vectors, and queries of other recordings with their true labels.

    Args:
        items: (N, D) the cases.
        labels: (N,) their fault types.
        groups: (N,) their recordings.
        queries: (Q, D).
        truth: (Q,) their fault types.
    """

    items: Vectors
    labels: NDArray[np.int32]
    groups: NDArray[np.int64]
    queries: Vectors
    truth: NDArray[np.int32]


def sample_cases(seed: int = 0, *, cases: int = 200, queries: int = 400) -> LabelledCases:
    """Four overlapping fault types in recordings of two similar windows; about 80 % can be classified.

    >>> sample_cases(cases=6, queries=2).labels.shape
    (6,)
    """
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((4, 8))

    def draw(count: int) -> tuple[Vectors, NDArray[np.int32], NDArray[np.int64]]:
        groups = np.arange(count) // 2
        labels = rng.integers(0, len(centres), groups[-1] + 1)[groups]
        recording = 0.4 * rng.standard_normal((groups[-1] + 1, 8))[groups]
        values = centres[labels] + recording + 0.9 * rng.standard_normal((count, 8))
        return values.astype(np.float32), (labels + 1).astype(np.int32), groups

    (items, labels, groups), (asked, truth, _) = draw(cases), draw(queries)
    return LabelledCases(items, labels, groups, asked, truth)


_STOP = (type, ModuleType, BuiltinFunctionType)


def reachable(*roots: object) -> Iterator[object]:
    """Yield every object reachable from the roots through attributes, containers, buffers and array bases.

    Of functions only closures and defaults are followed; classes, modules and code are the same for every query.
    Deliberate inspection of the interpreter (callers' frames, the garbage collector's objects) is not covered.

    >>> secret = object()
    >>> any(found is secret for found in reachable({"a": [1, (secret,)]}))
    True
    """
    seen: dict[int, Any] = {}  # keeps references, so that no address is reused during the walk
    pending: list[Any] = list(roots)
    while pending:
        item = pending.pop()
        if id(item) in seen or isinstance(item, _STOP):
            continue
        seen[id(item)] = item
        yield item
        if isinstance(item, FunctionType):
            pending.extend([item.__closure__, item.__defaults__, item.__kwdefaults__])
            continue
        pending.extend(gc.get_referents(item))
        if isinstance(item, np.ndarray):
            pending.append(item.base)
            if item.dtype == object or isinstance(item.dtype, np.dtypes.StringDType):
                pending.extend(item.ravel().tolist())


def not_asked(component: str, declaration: str) -> SkipTest:
    """The exception to raise where a check does not apply; pytest and unittest report a skip with this reason."""
    return SkipTest(f"{component} declares {declaration}")


def require_untagged(entry: Entry, tag: str) -> None:
    """Skip the check if the component declares the tag.

    >>> from readbench.engine.registry import RETRIEVERS
    >>> require_untagged(RETRIEVERS.get("euclidean"), "by-position")
    """
    if tag in entry.tags:
        raise not_asked(entry.name, f"{tag}: {TAGS[tag]}")


def require_abilities(entry: Entry, component: object) -> None:
    """Fail if a component lacks a member of an ability that it declares.

    >>> from readbench.engine.registry import RETRIEVERS
    >>> require_abilities(RETRIEVERS.get("euclidean"), RETRIEVERS.get("euclidean").build())
    """
    for ability in entry.abilities:
        lacking = members_lacking(component, ability)
        assert not lacking, f"{entry.name} declares {ability.__name__}, but has no {', '.join(lacking)}"
