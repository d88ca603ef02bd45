"""Checks that every registered source and every registered metric passes, whatever a metric counts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.metrics import Judgement, compute
from readbench.benchmark.protocol import Composition, Recording, Source, build, compose_task
from readbench.engine.registry import MAX_METRIC_DEPTH, METRICS, MetricEntry
from readbench.engine.windows import NORMAL, UNLABELLED

SourceCheck = Callable[[Source, Path | None], None]
"""Takes a source and the data root and raises AssertionError where the source breaks the contract."""
FEW = 8


def facts_are_complete(source: Source, root: Path | None) -> None:  # noqa: ARG001
    """Everything a table or a prompt says about a source is there."""
    info = source.info
    for name in ("name", "title", "description", "split_unit", "licence", "citation"):
        assert getattr(info, name).strip(), f"{info.name}: {name} is empty"
    assert info.simulated or info.url, f"{info.name}: where to get the data?"
    assert 3 <= info.description.count(".") - info.description.count("..") <= 12, (
        "describe it in three to five sentences"
    )
    assert len(set(info.classes)) == len(info.classes)
    assert len({c.name for c in info.channels}) == len(info.channels)


def recordings_are_valid(source: Source, root: Path | None) -> None:
    """Labels are in the vocabulary, groups are named, ids are unique."""
    onset = {code for code, _ in source.info.protocol.onset_codes}
    allowed = {UNLABELLED, *range(len(source.info.classes)), *onset}
    seen: set[str] = set()
    for recording in _few(source, root):
        assert set(np.unique(recording.labels).tolist()) <= allowed, f"{recording.id}: labels outside the vocabulary"
        assert recording.group, f"{recording.id}: no group"
        assert recording.id not in seen, f"{recording.id}: used twice"
        assert recording.step > 0
        seen.add(recording.id)
    assert seen, "no recordings"


def recordings_repeat(source: Source, root: Path | None) -> None:
    """Read twice, it gives the same bytes in the same order under the same fingerprint."""
    assert source.fingerprint(root) == source.fingerprint(root)
    for one, two in zip(_few(source, root), _few(source, root), strict=True):
        assert one.id == two.id
        assert one.values.tobytes() == two.values.tobytes()
        assert one.labels.tobytes() == two.labels.tobytes()


def a_task_can_be_composed(source: Source, root: Path | None) -> None:
    """Windows, split and composition keep the protocol's promises; the windows are kept in the user's cache."""
    task = compose_task(build(source, root), seed=0, settings=Composition())
    assert not set(task.queries.groups) & set(task.corpus.groups), "a group is on both sides"
    assert set(task.queries.labels) <= set(task.corpus.labels), "a query without relevant item"
    assert NORMAL not in task.queries.labels
    assert (task.normals.labels == NORMAL).all()
    assert (task.corpus_at(0).labels != NORMAL).all()
    task.corpus.require_finite()


SOURCE_CHECKS: tuple[SourceCheck, ...] = (
    facts_are_complete,
    recordings_are_valid,
    recordings_repeat,
    a_task_can_be_composed,
)


def _few(source: Source, root: Path | None) -> list[Recording]:
    return list(islice(source.recordings(root), FEW))


MetricCheck = Callable[[str], None]
"""Takes the name of a metric, as `NDCG@10`, and raises AssertionError where it breaks the contract."""
FAULTS = 4
RANDOM_LISTS = 4000


def values_stay_within_the_bounds(metric: str) -> None:
    """For lists of any order, in corpora of any size."""
    entry = METRICS.get(metric)
    low, high = entry.bounds
    for seed, items in enumerate((1, 7, 60, 300)):
        values = compute(entry, sample_judgement(seed, items=items))
        assert ((values >= low) & (values <= high)).all(), f"{values.min()} to {values.max()}"


def perfect_lists_are_the_best(metric: str) -> None:
    """All relevant items first: no other order of the same corpus is better, and one at least is worse."""
    entry, worse = METRICS.get(metric), False
    for seed in range(5):
        judged = sample_judgement(seed)
        best, found = (_oriented(entry, one) for one in (_sorted(judged, best_first=True), judged))
        assert (best >= found - 1e-12).all()
        worse |= bool((_oriented(entry, _sorted(judged, best_first=False)) < best).any())
    assert worse, "the worst order is as good as the best"


def queries_without_anything_relevant_have_a_value(metric: str) -> None:
    """Normal and unlabelled queries, and faults that the corpus does not hold."""
    entry = METRICS.get(metric)
    for label in (-1, 0, FAULTS + 5):
        judged = sample_judgement(0)
        nothing = np.full_like(judged.query_labels, label)
        alone = Judgement(nothing, judged.labels, np.zeros_like(judged.relevant), judged.corpus_size)
        low, high = entry.bounds
        values = compute(entry, alone)
        assert ((values >= low) & (values <= high)).all()


def order_of_queries_does_not_matter(metric: str) -> None:
    """Queries in another order have the same values in that order."""
    entry, judged = METRICS.get(metric), sample_judgement(1)
    order = np.random.default_rng(0).permutation(len(judged))
    moved = Judgement(judged.query_labels[order], judged.labels[order], judged.relevant[order], judged.corpus_size)
    expected = compute(entry, judged)[order] if entry.per_query else compute(entry, judged)
    np.testing.assert_allclose(compute(entry, moved), expected, rtol=1e-12)


def names_of_faults_do_not_matter(metric: str) -> None:
    """Labels are names, only normal and unlabelled keep theirs."""
    entry, judged = METRICS.get(metric), sample_judgement(2)
    names = np.array([0, *(90 - 7 * np.arange(FAULTS)), -1])
    renamed = Judgement(names[judged.query_labels], names[judged.labels], judged.relevant, judged.corpus_size)
    np.testing.assert_allclose(compute(entry, renamed), compute(entry, judged), rtol=1e-12)


def lists_stay_as_they_were(metric: str) -> None:
    """Nothing of what it is given is changed."""
    entry, judged = METRICS.get(metric), sample_judgement(3)
    before = [array.copy() for array in _arrays(judged)]
    entry.factory(judged, *entry.arguments)
    for old, now in zip(before, _arrays(judged), strict=True):
        np.testing.assert_array_equal(old, now)


def chance_is_what_random_lists_reach(metric: str) -> None:
    """Where it is declared: the mean over many random lists of one query comes near it."""
    entry = METRICS.get(metric)
    if entry.chance is None:
        return
    for items, relevant in ((12, 3), (80, 30)):
        rng = np.random.default_rng(items)
        labels = rng.permuted(np.tile(np.arange(items) < relevant, (RANDOM_LISTS, 1)), axis=1).astype(np.int64)
        asked = np.ones(RANDOM_LISTS, np.int64)
        judged = Judgement(asked, labels[:, :MAX_METRIC_DEPTH], relevant * asked, items)
        values = compute(entry, judged)
        expected = np.asarray(entry.chance(judged.cut(entry.depth), *entry.arguments))
        # What did not happen in n draws may still have a probability of 3 / n: the rule of three.
        error = 5 * values.std() / np.sqrt(RANDOM_LISTS) + 3 / RANDOM_LISTS * (entry.bounds[1] - entry.bounds[0])
        assert abs(values.mean() - expected.mean()) <= error, f"{values.mean()} is not near {expected.mean()}"


def it_says_what_it_is(metric: str) -> None:
    """A title, a sentence, bounds that leave room."""
    entry = METRICS.get(metric)
    assert entry.title
    assert entry.summary.endswith("."), "the first line of its docstring is a sentence"
    assert entry.bounds[0] < entry.bounds[1]


METRIC_CHECKS: tuple[MetricCheck, ...] = (
    values_stay_within_the_bounds,
    perfect_lists_are_the_best,
    queries_without_anything_relevant_have_a_value,
    order_of_queries_does_not_matter,
    names_of_faults_do_not_matter,
    lists_stay_as_they_were,
    chance_is_what_random_lists_reach,
    it_says_what_it_is,
)


def sample_judgement(seed: int = 0, *, queries: int = 40, items: int = 150) -> Judgement:
    """Random lists, of all that a run keeps, over a corpus with normal and unlabelled items."""
    rng = np.random.default_rng(seed)
    corpus = rng.integers(-1, FAULTS + 1, items)
    asked = rng.integers(1, FAULTS + 1, queries)
    ranking = np.argsort(rng.random((queries, items)), axis=1)
    return Judgement.of(ranking[:, :MAX_METRIC_DEPTH], asked, corpus)


def _sorted(judged: Judgement, *, best_first: bool) -> Judgement:
    """The same corpus with all relevant items before the others, or behind them."""
    rows = []
    for label, relevant in zip(judged.query_labels, judged.relevant, strict=True):
        row = np.concatenate([np.full(relevant, label), np.full(judged.corpus_size - relevant, -1)])
        rows.append((row if best_first else row[::-1])[:MAX_METRIC_DEPTH])
    return Judgement(judged.query_labels, np.stack(rows), judged.relevant, judged.corpus_size)


def _oriented(entry: MetricEntry, judged: Judgement) -> NDArray[np.float64]:
    values = np.atleast_1d(compute(entry, judged))
    return values if entry.larger_is_better else -values


def _arrays(judged: Judgement) -> list[NDArray[np.generic]]:
    return [judged.query_labels, judged.labels, judged.relevant, judged.hits]
