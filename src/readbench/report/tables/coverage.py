"""Which data a run is on, and how they compare with the paper's."""

from __future__ import annotations

from readbench.data.paper import PAPER_COMPOSITION
from readbench.experiment.budget import ALL, parse_budget
from readbench.report.paper_values import DATASETS
from readbench.report.results import Results

SIMULATED, PARTIAL = "†", "‡"
"""Mark simulated datasets, and those of which files are missing or that differ from the paper's in size or classes."""


def describe(results: Results) -> str:
    """How many datasets of which kind."""
    simulated = sum(map(results.simulated, results.datasets))
    total = len(results.datasets)
    kind = "simulated " if simulated == total else ""
    mixed = f", {simulated} of them simulated" if 0 < simulated < total else ""
    return f"{total} {kind}dataset{'s' if total > 1 else ''}{mixed}"


def under(results: Results) -> str:
    """Which label budget a table shows, where it is not all labels."""
    last = parse_budget(results.labels[-1])
    return "" if last == ALL else f"; with {last.words}"


def marked(results: Results, dataset: str) -> str:
    """Name of a dataset with its marks."""
    return dataset + SIMULATED * results.simulated(dataset) + PARTIAL * partial(results, dataset)


def partial(results: Results, dataset: str) -> bool:
    """Whether official files of a dataset were missing, or it is not of the paper's size."""
    return _fragment(results, dataset) or _resized(results, dataset)


def _fragment(results: Results, dataset: str) -> bool:
    return results.files(dataset) == "partial"


def _resized(results: Results, dataset: str) -> bool:
    """Whether a dataset of the paper has other classes, clean corpus items or queries here in number, in any split."""
    paper = PAPER_COMPOSITION.get(dataset)
    if paper is None:
        return False
    wanted = (paper.classes, paper.corpus[0], paper.queries)
    return any((s["classes"], s["corpus"][0], s["queries"]) != wanted for s in results.sizes(dataset).values())


def coverage(results: Results) -> str:
    """How much of the paper's data a run is on; what must be said beside the paper's numbers."""
    own = [dataset for dataset in results.datasets if dataset in PAPER_COMPOSITION]
    resized = [dataset for dataset in own if _resized(results, dataset)]
    fragments = [dataset for dataset in results.datasets if _fragment(results, dataset)]
    others = len(results.datasets) - len(own)
    if len(own) == DATASETS and not resized and not fragments and not others:
        return "The datasets are the paper's"
    parts = [f"{len(own)} of the paper's {DATASETS} datasets"]
    parts += [f"{', '.join(resized)} not of the paper's size"] if resized else []
    parts += [f"official files of {', '.join(fragments)} missing"] if fragments else []
    parts += [f"{others} dataset{'s' if others > 1 else ''} that the paper does not have"] if others else []
    return f"Partial data ({'; '.join(parts)}): compare orderings and differences, not levels"
