"""Everything the page says, as plain JSON; the cases themselves are packed apart."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readbench.errors import ReadbenchError
from readbench.experiment.budget import parse_budget
from readbench.experiment.gallery import Gallery
from readbench.experiment.store import TIMES
from readbench.pipeline import STAGES
from readbench.plots import FAMILY_COLOURS, REFERENCE_GREY
from readbench.report.results import Results
from readbench.report.site.judged import Judged
from readbench.report.tables.coverage import partial
from readbench.spec import Stage, parse


def content(results: Results, gallery: Gallery | None, measured: Judged) -> dict[str, Any]:
    """The page's data, without the cases."""
    return {
        "name": results.folder.resolve().name,
        "code": results.manifest.get("code", ""),
        "headline": results.headline,
        "metrics": list(results.metrics),
        "smaller_is_better": [name for name, metric in results.metrics.items() if not metric.larger_is_better],
        "stages": list(STAGES),
        "levels": list(results.levels),
        "seeds": list(results.seeds),
        "budgets": [{"text": text, "words": parse_budget(text).words} for text in results.labels],
        "datasets": [_dataset(results, gallery, name, measured) for name in results.datasets],
        "methods": [_method(results, method) for method in results.methods],
        "values": {metric: _rounded(results.values[metric].mean(axis=1)) for metric in results.metrics},
        "errors": {metric: _rounded(errors) for metric, errors in measured.errors.items()},
        "seconds": _rounded(_seconds(results)),
        "failures": [list(failure) for failure in results.failures],
    }


def _dataset(results: Results, gallery: Gallery | None, name: str, measured: Judged) -> dict[str, Any]:
    sizes = [own for task, own in results.manifest.get("sizes", {}).items() if task.rpartition("/")[0] == name]
    notes = [note for task, own in results.manifest["notes"].items() if task.rpartition("/")[0] == name for note in own]
    facts = gallery.facts.get(name, {}) if gallery else {}
    return {
        **results.manifest.get("datasets", {}).get(name, {"title": name}),
        "name": name,
        "simulated": results.simulated(name),
        "partial": partial(results, name),
        "files": results.files(name),
        "sizes": sizes[0] if sizes else {},
        "notes": list(dict.fromkeys(notes)),
        "units": facts.get("units", {}),
        "classes": _classes(facts.get("tasks", {})),
        "by_class": {label: _rounded(means) for label, means in measured.classes[name].items()},
    }


def _classes(tasks: dict[str, dict[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Windows of each class over all seeds: queries added up, the corpus as a range."""
    names = dict.fromkeys(name for task in tasks.values() for name in task)
    found = []
    for name in names:
        own = [task[name] for task in tasks.values() if name in task]
        corpus = [facts["corpus"] for facts in own]
        telling = next((facts["telling"] for facts in own if facts["telling"]), "")
        asked = sum(facts["queries"] for facts in own)
        found.append({"name": name, "queries": asked, "corpus": [min(corpus), max(corpus)], "telling": telling})
    return found


def _method(results: Results, method: str) -> dict[str, Any]:
    family = results.family(method)
    return {
        "text": method,
        "title": results.title(method),
        "family": family,
        "colour": FAMILY_COLOURS.get(family, REFERENCE_GREY),
        "budgets": list(results.budgets(method)),
        "stages": _stages(method),
    }


def _stages(method: str) -> list[dict[str, Any]]:
    """The parts of a method with a sentence on each; nothing where a part is not installed here."""
    try:
        spec = parse(method)
        entries = spec.entries()
    except ReadbenchError:
        return []
    parts: list[tuple[str, Stage]] = []
    for leg in spec.legs:
        parts += [("leg", leg.stage), *(("transform", stage) for stage in leg.transforms)]
    parts += [("fusion", stage) for stage in spec.fusions] + [("reranker", stage) for stage in spec.rerankers]
    return [
        {
            "role": role,
            "name": stage.name,
            "title": entry.title,
            "summary": entry.summary,
            "parameters": [[key, str(value)] for key, value in stage.parameters],
        }
        for (role, stage), entry in zip(parts, entries, strict=True)
    ]


def _seconds(results: Results) -> NDArray[np.float64]:
    """(stages, datasets, methods) wall time of a cell, mean over seeds, levels and budgets; NaN where one failed."""
    return np.stack([results.values[name].mean(axis=(1, 2, 3)) for name in TIMES])


def _rounded(values: NDArray[np.float64]) -> Any:  # noqa: ANN401 - lists as deep as the array
    """Nested lists with four digits; None for NaN, which JSON does not know."""

    def walk(item: Any) -> Any:  # noqa: ANN401
        if isinstance(item, Iterable):
            return [walk(one) for one in item]
        return None if math.isnan(item) else round(item, 4)

    return walk(values.tolist())
