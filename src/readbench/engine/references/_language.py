"""A language model as a classifier without retrieval: one labelled example per class, a confidence for each.

Every corpus item scores the confidence in its class, so that the method is evaluated like the other classifiers. A
class that the model does not name scores 0, as do all classes if no answer is readable; items without label score -1.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from readbench.common.progress import SILENT, Progress
from readbench.engine.abilities import AsksModel
from readbench.engine.llm import (
    NO_BRIEFING,
    Briefing,
    Examiner,
    Item,
    ModelOptions,
    Reduction,
    Spending,
    average_samples,
    content_key,
    describe_model,
    explain_no_models,
    read_scores,
    split_model,
    spread_positions,
)
from readbench.engine.parameters import ParameterRange
from readbench.engine.preparation import Scaler, channel_axis, dense
from readbench.engine.protocols import Scores
from readbench.engine.registry import RETRIEVERS
from readbench.engine.windows import UNLABELLED, WindowSet

FORECAST_QUERIES = 4
"""Queries from which a cost forecast is made."""


@RETRIEVERS.register(
    "classify",
    title="Classify",
    family="supervised",
    positional="model",
    unavailable=explain_no_models,
    abilities=(AsksModel,),
)
class LanguageClassifier:
    """A language model states how likely a query has the class of each of several examples.

    Args:
        model: name of a configured model; with `-tsad` it sees channels without their season.
        channels: number of channels shown per window, those with the highest variance.
        points: maximum points per channel; none: all of them.
        samples: number of answers per question; confidences are means over the answers.
        draw: number of the first answer; other numbers give other samples of the model.
    """

    uses_labels = True
    corpus_dependent = True

    def __init__(
        self,
        model: str = "",
        channels: Annotated[int, ParameterRange(1)] = 20,
        points: Annotated[int, ParameterRange(2)] | None = 128,
        samples: Annotated[int, ParameterRange(1)] = 1,
        draw: Annotated[int, ParameterRange(0)] = 0,
    ) -> None:
        split_model(model)
        self.model = model
        self.channels = channels
        self.points = points
        self.samples = samples
        self.draw = draw
        self.briefing = NO_BRIEFING
        self.usage: dict[str, float] = {}

    @property
    def content_key(self) -> str:
        """Hash of the model and its prompts."""
        return content_key(self.model, self.briefing.options, classify=True)

    @property
    def model_facts(self) -> dict[str, Any]:
        """Provider, model, settings and prompts."""
        return describe_model(self.model, self.briefing.options, classify=True)

    def brief(self, description: str, options: ModelOptions, progress: Progress = SILENT) -> None:
        """Set the source's description for every question, and options that override the model's profile."""
        self.briefing = Briefing(description, options, progress)

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:  # noqa: ARG002
        """Choose an example of each class in the corpus."""
        self.labels_ = corpus.labels
        self.classes_ = np.unique(corpus.labels[corpus.labels != UNLABELLED])
        self.names_ = [corpus.classes[label] for label in self.classes_]
        self.examples_ = corpus[pick_typical_cases(corpus, self.classes_)].anonymous()
        return self

    def score(self, queries: WindowSet) -> Scores:
        """(Q, N) confidence of 0 to 100 in the class of each item; -1 for items without label."""
        confidences = self.confidences(queries)
        scores = np.full((len(queries), len(self.labels_)), -1.0, np.float32)
        for column, label in enumerate(self.classes_):
            scores[:, self.labels_ == label] = confidences[:, column : column + 1]
        return scores

    def confidences(self, queries: WindowSet) -> NDArray[np.float32]:
        """(Q, K) confidences of 0 to 100 in the classes of the corpus."""
        count = len(self.classes_)
        if not count or not len(queries):
            return np.zeros((len(queries), count), np.float32)
        examiner, items = self._prepared()
        questions = [(examiner.exhibit(queries, q), items) for q in range(len(queries))]
        read, silent = [partial(read_scores, count=count)] * len(questions), np.full(count, np.nan)
        drawn = [examiner.ask(questions, read, draw) for draw in range(self.draw, self.draw + self.samples)]
        told = np.array([[silent if answer is None else answer for answer in answers] for answers in drawn], np.float64)
        confidences, spread = average_samples(told, 0.0)
        if self.samples > 1:
            examiner.caller.count(sampled=len(queries), spread=spread)
        self.usage = dict(examiner.caller.usage)
        return confidences

    def forecast(self, queries: WindowSet, corpus: WindowSet) -> Spending:
        """Maximum cost of classifying, estimated from a few queries and one example per class."""
        self.fit(corpus, corpus[:0])
        if not len(self.classes_):
            return Spending()
        examiner, items = self._prepared()
        sample = [(examiner.exhibit(queries, q), items) for q in spread_positions(len(queries), FORECAST_QUERIES)]
        return examiner.forecast(sample, len(queries) * self.samples)

    def _prepared(self) -> tuple[Examiner, list[Item]]:
        examiner = Examiner(self.model, Reduction(self.channels, self.points), self.briefing, classify=True)
        return examiner, [Item(examiner.exhibit(self.examples_, k), name) for k, name in enumerate(self.names_)]


def pick_typical_cases(corpus: WindowSet, classes: NDArray[np.int32]) -> list[int]:
    """Position of the window nearest to its class mean, for each class; on scaled windows of one grid."""
    scaled = Scaler.of("channel", corpus)(corpus)
    axis, length = channel_axis(corpus), int(corpus.lengths.max(initial=1))
    found = []
    for label in classes:
        members = np.flatnonzero(corpus.labels == label)
        grid = dense(scaled[members], channels=axis, length=length).reshape(len(members), -1)
        found.append(int(members[((grid - grid.mean(axis=0)) ** 2).sum(axis=1).argmin()]))
    return found
