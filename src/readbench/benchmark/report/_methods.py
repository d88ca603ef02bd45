"""The methods of a run by their parts, their names in tables, and the datasets of the run.

`Methods` finds the rows and columns of tables and figures. `coverage` compares the data with the paper's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TypeVar

from readbench.benchmark.protocol import PAPER_COMPOSITION, SHORT_OF_NORMALS
from readbench.benchmark.report._origins import FEW_NORMALS, MARKS, PARTIAL, count_origins
from readbench.benchmark.report._paper_values import DATASETS
from readbench.benchmark.report._results import Results
from readbench.benchmark.runs import ALL, parse_budget
from readbench.common.plots import colour_of
from readbench.engine.registry import ENCODERS, RERANKERS, TRANSFORMS
from readbench.engine.spec import COMPOSED, Leg, MethodSpec, Stage, parse
from readbench.errors import ReadbenchError

T = TypeVar("T")
LANGUAGE_MODEL, CLASSIFIER = "llm", "classify"
"""A language model that reranks, and one that classifies without retrieval."""


@lru_cache(maxsize=4096)
def canonical(text: str) -> str:
    """Canonical text of a method; empty if a part is not installed.

    >>> canonical("ED"), canonical("no-such-method")
    ('euclidean', '')
    """
    try:
        return str(parse(text))
    except ReadbenchError:
        return ""


@dataclass(frozen=True, eq=False)
class Methods:
    """The methods of a run by their parts, without those that are not installed."""

    results: Results

    @cached_property
    def specs(self) -> dict[str, MethodSpec]:
        """Canonical text -> spec, in plan order."""
        return {text: parse(text) for text in self.results.methods if canonical(text)}

    def colour(self, text: str) -> str:
        """Colour of a method: by its name, its only part, or its family."""
        return colour_of(self.family(text), base_name(text))

    def family(self, text: str) -> str:
        """Family in tables and figures; a composed method is a reranker or fusion."""
        spec = self.specs.get(text)
        if spec is None:
            return self.results.family(text)
        if spec.rerankers:
            return "reranker"
        return "fusion" if len(spec.legs) > 1 else self.results.family(text)

    @cached_property
    def bases(self) -> list[str]:
        """Single retrievers with default parameters and without further stages; not supervised."""
        return [text for text in self._alone() if self.family(text) != "supervised"]

    @cached_property
    def references(self) -> list[str]:
        """Supervised references without language models."""
        return [text for text in self._alone() if self.family(text) == "supervised" and text != CLASSIFIER]

    @cached_property
    def composed(self) -> list[str]:
        """Methods of several legs, or with rerankers."""
        return [text for text, spec in self.specs.items() if len(spec.legs) > 1 or spec.rerankers]

    @cached_property
    def embedders(self) -> list[str]:
        """Encoders of single legs, as registered."""
        legs = (spec.legs[0] for spec in self.specs.values() if _single(spec))
        return _once(leg.stage.name for leg in legs if leg.stage.name in ENCODERS)

    @cached_property
    def residuals(self) -> list[str]:
        """Embedders whose default normal-residual variant is in the run."""
        return [text for text in self.embedders if f"{text}+nr" in self.specs]

    @cached_property
    def neighbours(self) -> list[int]:
        """Numbers of neighbours of normal residuals, ascending."""
        stages = (t for s in self.specs.values() if _single(s) for t in s.legs[0].transforms if t.name == "nr")
        default = TRANSFORMS.get("nr").parameters["k"].default
        return sorted({int(str(dict(stage.parameters).get("k", default))) for stage in stages})

    @cached_property
    def fused(self) -> list[tuple[str, str]]:
        """(first, second) leg of methods of two legs without rerankers, in any mode."""
        pairs = (spec.legs for spec in self.specs.values() if len(spec.legs) == 2 and not spec.rerankers)
        return _once((str(first), str(second)) for first, second in pairs)

    @cached_property
    def reranked(self) -> dict[str, list[Stage]]:
        """Pool -> rerankers of methods with one reranker, without language models."""
        found: dict[str, list[Stage]] = {}
        for spec in self.specs.values():
            if len(spec.rerankers) == 1 and spec.rerankers[0].name != LANGUAGE_MODEL:
                found.setdefault(str(replace(spec, rerankers=())), []).append(spec.rerankers[0])
        return {pool: stages for pool, stages in found.items() if pool in self.specs}

    @cached_property
    def language(self) -> dict[str, list[str]]:
        """Pool -> methods in which a language model reranks it; "" -> classifying language models."""
        found: dict[str, list[str]] = {}
        for text, spec in self.specs.items():
            if [stage.name for stage in spec.rerankers] == [LANGUAGE_MODEL]:
                found.setdefault(str(replace(spec, rerankers=())), []).append(text)
            elif spec.legs[0].stage.name == CLASSIFIER:
                found.setdefault("", []).append(text)
        return found

    def _alone(self) -> list[str]:
        return [text for text, spec in self.specs.items() if _single(spec) and spec.legs[0] == Leg(Stage(text))]


def base_name(text: str) -> str:
    """Name that gives a method its colour: of the composed method, or of its only leg.

    >>> base_name("rocket+nr"), base_name("ours"), base_name("sonde|dtw-i")
    ('rocket', 'ours', '')
    """
    try:
        spec = parse(text)
    except ReadbenchError:
        return ""
    named = {canonical: name for name, canonical in COMPOSED.items()}
    if own := named.get(str(spec)):
        return own
    return spec.legs[0].stage.name if _single(spec) else ""


def title(text: str) -> str:
    """Name of a method, or of a leg, in tables."""
    return parse(text).title


def reranker_title(stage: Stage) -> str:
    """Name of a reranker in tables, with its parameters."""
    return f"+{replace(stage, name=RERANKERS.get(stage.name).title)}"


def _single(spec: MethodSpec) -> bool:
    return len(spec.legs) == 1 and not spec.rerankers


def _once(items: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(items))


def describe(results: Results) -> str:
    """Number of datasets by kind, in words."""
    return count_origins(results.origins.values())


def under(results: Results) -> str:
    """Label budget of a table in words; empty for all labels."""
    last = parse_budget(results.labels[-1])
    return "" if last == ALL else f"; with {last.words}"


def marks_of(results: Results, dataset: str) -> str:
    """Marks of a dataset: origin, partial data, too few normals."""
    marks = MARKS[results.origins[dataset]] + PARTIAL * is_partial(results, dataset)
    return marks + FEW_NORMALS * is_short_of_normals(results, dataset)


def mark_dataset(results: Results, dataset: str) -> str:
    """Name of a dataset with its marks."""
    return dataset + marks_of(results, dataset)


def is_partial(results: Results, dataset: str) -> bool:
    """True when official files were missing or the size differs from the paper's."""
    return results.files(dataset) == "partial" or _resized(results, dataset)


def is_short_of_normals(results: Results, dataset: str) -> bool:
    """True when a corpus holds fewer normals than its level says, in any split."""
    notes = (results.manifest["notes"].get(f"{dataset}/seed-{seed}", ()) for seed in results.seeds)
    return any(SHORT_OF_NORMALS in note for split in notes for note in split)


def _resized(results: Results, dataset: str) -> bool:
    """True when the numbers of classes, clean corpus items or queries differ from the paper's in any split."""
    paper = PAPER_COMPOSITION.get(dataset)
    if paper is None:
        return False
    wanted = (paper.classes, paper.corpus[0], paper.queries)
    return any((s["classes"], s["corpus"][0], s["queries"]) != wanted for s in results.sizes(dataset).values())


def coverage(results: Results) -> str:
    """How the datasets of a run differ from the paper's, as a sentence."""
    shared = [dataset for dataset in results.datasets if dataset in PAPER_COMPOSITION]
    resized = [dataset for dataset in shared if _resized(results, dataset)]
    fragments = [dataset for dataset in results.datasets if results.files(dataset) == "partial"]
    others = len(results.datasets) - len(shared)
    if len(shared) == DATASETS and not resized and not fragments and not others:
        return "The datasets are the paper's"
    parts = [f"{len(shared)} of the paper's {DATASETS} datasets"]
    parts += [f"{', '.join(resized)} not of the paper's size"] if resized else []
    parts += [f"official files of {', '.join(fragments)} missing"] if fragments else []
    parts += [f"{others} dataset{'s' if others > 1 else ''} that the paper does not have"] if others else []
    return f"Partial data ({'; '.join(parts)}): compare orderings and differences, not levels"
