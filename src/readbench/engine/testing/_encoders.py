"""Checks that every registered encoder must pass."""

# mypy: disable-error-code="type-abstract"
from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from readbench.engine.abilities import Pretrained
from readbench.engine.legs import BuiltLeg
from readbench.engine.preparation import ChannelStats
from readbench.engine.protocols import Encoder
from readbench.engine.registry import ENCODERS
from readbench.engine.spec import parse
from readbench.engine.testing._memory import shows_unwritten_memory
from readbench.engine.testing._samples import not_asked, require_abilities, sample_windows
from readbench.engine.windows import WindowSet

EncoderCheck = Callable[[str], None]
"""Takes the text of an encoder with its parameters; raises AssertionError if it breaks the contract."""


@shows_unwritten_memory
def vectors_have_one_length(encoder: str) -> None:
    """Vectors are (N, D) float32 and finite, with one D for ragged windows of corpus and queries."""
    corpus = sample_windows(12, channels=5, length=40, ragged=True)
    queries = sample_windows(5, channels=7, length=56, ragged=True, seed=1)
    built = _fitted(encoder, corpus)
    vectors, others = built.encode(corpus), built.encode(queries)
    assert vectors.shape == (12, vectors.shape[1])
    assert others.shape == (5, vectors.shape[1])
    assert vectors.dtype == others.dtype == np.float32
    assert np.isfinite(vectors).all()
    assert np.isfinite(others).all()


@shows_unwritten_memory
def one_channel_and_one_window_are_enough(encoder: str) -> None:
    """A single univariate window can be encoded: a library may begin with one."""
    windows = sample_windows(1, channels=1)
    assert np.isfinite(_fitted(encoder, windows).encode(windows)).all()


@shows_unwritten_memory
def constant_channels_do_not_break_it(encoder: str) -> None:
    """A constant channel gives finite vectors."""
    flat = WindowSet.from_arrays(list(np.full((6, 2, 32), 3.0)))
    assert np.isfinite(_fitted(encoder, flat).encode(flat)).all()


@shows_unwritten_memory
def one_window_is_a_batch(encoder: str) -> None:
    """The vector of a window does not depend on other windows, up to rounding."""
    corpus, queries = sample_windows(12), sample_windows(5, seed=1)
    built = _fitted(encoder, corpus)
    alone = np.concatenate([built.encode(queries[i : i + 1]) for i in range(5)])
    np.testing.assert_allclose(built.encode(queries), alone, rtol=1e-3, atol=1e-4)


@shows_unwritten_memory
def results_repeat(encoder: str) -> None:
    """Two fits on the same data give identical bytes and fingerprints."""
    corpus = sample_windows(12)
    one, two = _fitted(encoder, corpus), _fitted(encoder, corpus)
    assert one.fingerprint() == two.fingerprint()
    assert one.encode(corpus).tobytes() == two.encode(corpus).tobytes()


@shows_unwritten_memory
def other_vectors_have_another_fingerprint(encoder: str) -> None:
    """Encoders fitted on other data have other fingerprints if their vectors differ."""
    queries = sample_windows(4, seed=2)
    one, two = (_fitted(encoder, sample_windows(12, seed=seed)) for seed in (0, 1))
    if not np.array_equal(one.encode(queries), two.encode(queries)):
        assert one.fingerprint() != two.fingerprint()


@shows_unwritten_memory
def inputs_stay_as_they_were(encoder: str) -> None:
    """Windows are not modified."""
    corpus, queries = sample_windows(12), sample_windows(5, seed=1)
    before = corpus.fingerprint(), queries.fingerprint()
    _fitted(encoder, corpus).encode(queries)
    assert (corpus.fingerprint(), queries.fingerprint()) == before


@shows_unwritten_memory
def labels_are_not_read(encoder: str) -> None:
    """Corpus labels have no effect."""
    corpus, queries = sample_windows(12), sample_windows(5, seed=1)
    relabelled = replace(corpus, labels=np.roll(corpus.labels, 1), groups=corpus.assets, times=-corpus.times)
    one, two = (_built(encoder).fit(windows, windows[:0]).encode(queries) for windows in (corpus, relabelled))
    np.testing.assert_array_equal(one, two)


@shows_unwritten_memory
def corpus_dependence_is_declared(encoder: str) -> None:
    """An encoder declared as independent of the corpus gives equal vectors after fitting on another corpus.

    Scaling statistics belong to the task and stay the same.
    """
    if _built(encoder).corpus_dependent:
        raise not_asked(encoder, "corpus_dependent")
    corpus, queries = sample_windows(16), sample_windows(5, seed=1)
    corpus = corpus.with_stats(ChannelStats.of(corpus))
    one, two = _fitted(encoder, corpus), _fitted(encoder, corpus[:9])
    np.testing.assert_allclose(one.encode(queries), two.encode(queries), rtol=1e-4, atol=1e-4)


@shows_unwritten_memory
def weights_are_known_before_fitting(encoder: str) -> None:
    """The hash of weight files is known when the encoder is built, and fitting does not change it."""
    leg = BuiltLeg(parse(encoder).legs[0])
    pretrained = leg.part.able(Pretrained)
    if pretrained is None:
        raise not_asked(encoder, "no weights: it does not declare Pretrained")
    before = leg.content_key
    assert before
    corpus = sample_windows(6)
    leg.retriever.fit(corpus, corpus[:0])
    assert pretrained.weights_fingerprint() == leg.content_key == before


@shows_unwritten_memory
def declared_abilities_are_there(encoder: str) -> None:
    """It has the members of its declared abilities."""
    require_abilities(ENCODERS.get(parse(encoder).legs[0].stage.name), _built(encoder))


@shows_unwritten_memory
def it_travels_between_processes(encoder: str) -> None:
    """A fitted encoder is picklable, and its copy gives equal vectors."""
    corpus = sample_windows(12)
    built = _fitted(encoder, corpus)
    copy: Encoder = pickle.loads(pickle.dumps(built))  # noqa: S301 - bytes of this function
    assert copy.fingerprint() == built.fingerprint()
    np.testing.assert_allclose(copy.encode(corpus), built.encode(corpus), rtol=1e-5, atol=1e-6)


ENCODER_CHECKS: tuple[EncoderCheck, ...] = (
    vectors_have_one_length,
    one_channel_and_one_window_are_enough,
    constant_channels_do_not_break_it,
    one_window_is_a_batch,
    results_repeat,
    other_vectors_have_another_fingerprint,
    inputs_stay_as_they_were,
    labels_are_not_read,
    corpus_dependence_is_declared,
    weights_are_known_before_fitting,
    declared_abilities_are_there,
    it_travels_between_processes,
)


def _built(encoder: str) -> Encoder:
    stage = parse(encoder).legs[0].stage
    built: Encoder = ENCODERS.get(stage.name).build(**dict(stage.parameters))
    return built


def _fitted(encoder: str, corpus: WindowSet) -> Encoder:
    return _built(encoder).fit(corpus, corpus[:0])
