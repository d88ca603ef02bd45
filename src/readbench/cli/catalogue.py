"""`readbench list`: tables of methods, datasets, metrics, studies and suites."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape
from rich.table import Table

from readbench.cli.options import Json, Plugins, output

if TYPE_CHECKING:
    from readbench.engine.registry import Entry


COMPOSED_SUMMARIES = {
    "ours": "Best method without labels: small Sonde encoder fused with MiniRocket.",
    "ours-dtw": "Earlier version of ours: Sonde fused with dynamic time warping.",
    "ours-before": "ours-dtw with the readings before each window.",
    "flagship": "Best method with labels: results ordered by the probability of each fault type.",
    "flagship-spread": "flagship that keeps places in the first ten for less likely faults; default of a case library.",
    "flagship-fast": "flagship-spread with the small encoder at a fifth of the encoding cost, for large libraries.",
    "flagship-window": "flagship without the readings before each window.",
    "flagship-pool": "flagship with only the labels of the first 20 candidates of a query.",
}


def list_command(
    kind: Annotated[
        Literal["methods", "datasets", "metrics", "studies", "suites"], typer.Argument(help="What to list.")
    ],
    as_json: Json = False,
    plugin: Plugins = None,  # noqa: ARG001 - loaded as it is read
) -> None:
    """List methods and their parts, datasets, metrics, studies or suites.

    Example: `readbench list methods`
    """
    {
        "methods": list_methods,
        "datasets": list_datasets,
        "metrics": list_metrics,
        "studies": list_studies,
        "suites": list_suites,
    }[kind](as_json=as_json)


def list_methods(*, as_json: bool) -> None:
    """Print the composed methods, and every retriever, encoder, transform, fusion mode and reranker."""
    composed = [_composed_facts(name) for name in COMPOSED_SUMMARIES]
    facts = [_method_facts(kind, entry) for kind, entry in components()]
    if as_json:
        print(json.dumps([*composed, *facts], indent=1))  # noqa: T201 - this is the output
        return
    console = output()
    whole = Table("Name", title="Composed methods", title_justify="left")
    whole.add_column("Stands for", overflow="fold")
    whole.add_column("Summary")
    for fact in composed:
        whole.add_row(fact["name"], escape(fact["stands_for"]), fact["summary"] + _lacking(fact["unavailable"]))
    console.print(whole)
    table = Table("Name", "Kind", "Family", "Parameters", "Summary", "From", title="Parts", title_justify="left")
    for fact in facts:
        parameters = ", ".join(f"{key}={value}" for key, value in fact["parameters"].items())
        summary = escape(str(fact["summary"])) + _lacking(fact["unavailable"])
        table.add_row(fact["name"], fact["kind"], fact["family"], escape(parameters), summary, fact["origin"])
    console.print(table)
    console.print(
        "Compose methods from parts: + adds a transform or reranker, | fuses, as in sonde+nr|dtw-i+gpc.",
        "Next: readbench run --datasets sim_tanks --methods ours --methods dtw-i",
        sep="\n",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def _lacking(reason: str) -> str:
    """Suffix of a summary: the reason why the part cannot run here."""
    return f" [red]{escape(reason)}[/red]" if reason else ""


def list_datasets(*, as_json: bool) -> None:
    """Print every data source."""
    from readbench.engine.registry import SOURCES

    facts = [_dataset_facts(entry) for entry in SOURCES]
    if as_json:
        print(json.dumps(facts, indent=1))  # noqa: T201 - this is the output
        return
    table = Table("Name", "Title", "Domain", title="Datasets", title_justify="left")
    table.columns[0].no_wrap = True
    for column in ("C", "T", "Faults"):
        table.add_column(column, justify="right")
    for column in ("Split unit", "Data", "Verified"):
        table.add_column(column)
    for fact in facts:
        sizes = (str(fact[key] or "varies") for key in ("channels", "length", "faults"))
        shown = (escape(str(fact[key])) for key in ("split_unit", "data_origin"))
        table.add_row(
            str(fact["name"]), escape(str(fact["title"])), str(fact["domain"]), *sizes, *shown, _verified(fact)
        )
    output().print(table)
    output().print(
        "C: channels, T: steps per window; varies: depends on the files.",
        "Verified: the reader was tested on the official files.",
        "Simulated datasets need no files; readbench data status shows how to get the others.",
        sep="\n",
        highlight=False,
    )


def list_metrics(*, as_json: bool) -> None:
    """Print every metric, in the order of table columns."""
    import readbench.benchmark.metrics
    from readbench.engine.registry import METRICS

    facts = [
        {
            "name": entry.name,
            "title": entry.title,
            "larger_is_better": entry.larger_is_better,
            "bounds": list(entry.bounds),
            "summary": entry.summary,
            "origin": entry.origin,
        }
        for entry in METRICS
    ]
    if as_json:
        print(json.dumps(facts, indent=1))  # noqa: T201 - this is the output
        return
    default = readbench.benchmark.metrics.DEFAULT_METRIC
    table = Table("Name", "Better", "Range", "Summary", "From", title="Metrics", title_justify="left")
    for fact in facts:
        name = f"{fact['name']} (default)" if fact["name"] == default else str(fact["name"])
        better = "larger" if fact["larger_is_better"] else "smaller"
        table.add_row(name, better, str(fact["bounds"]), str(fact["summary"]), str(fact["origin"]))
    output().print(table)


def list_studies(*, as_json: bool) -> None:
    """Print every study, with its settings and their defaults."""
    from readbench.studies import AXES, STUDIES

    facts: list[dict[str, Any]] = [
        {
            "name": study.name,
            "summary": study.summary,
            "options": [AXES[axis] for axis in study.axes],
            "settings": {setting.name: setting.default for setting in study.settings},
            "origin": study.origin,
        }
        for study in STUDIES
    ]
    if as_json:
        print(json.dumps(facts, indent=1))  # noqa: T201 - this is the output
        return
    table = Table("Name", "Summary", "Options", "--set", "From", title="Studies", title_justify="left")
    for fact in facts:
        settings = ", ".join(f"{name}={value}" for name, value in fact["settings"].items())
        table.add_row(fact["name"], escape(fact["summary"]), " ".join(fact["options"]), settings, fact["origin"])
    output().print(table)


def list_suites(*, as_json: bool) -> None:
    """Print every suite and sweep, with its methods."""
    from readbench.benchmark.runs import SUITES, SWEEPS

    facts = [
        {"name": name, "option": option, "summary": (methods.__doc__ or "").split("\n")[0]}
        for option, known in (("--suite", SUITES), ("--sweep", SWEEPS))
        for name, methods in known.items()
    ]
    if as_json:
        print(json.dumps(facts, indent=1))  # noqa: T201 - this is the output
        return
    table = Table("Option", "Name", "Methods", title="Suites and sweeps", title_justify="left")
    for fact in facts:
        table.add_row(fact["option"], fact["name"], escape(fact["summary"]))
    output().print(table)


def _verified(fact: dict[str, object]) -> str:
    generated = fact["data_origin"] == "simulated by us" and not fact["url"]
    if generated or fact["origin"] == "imported":
        return "simulated" if generated else "imported"
    return "yes" if fact["verified"] else "no"


def components() -> Iterator[tuple[str, Entry]]:
    """Every registered part of methods, with its kind."""
    from readbench.engine.registry import ENCODERS, FUSIONS, RERANKERS, RETRIEVERS, TRANSFORMS

    for registry in (RETRIEVERS, ENCODERS, TRANSFORMS, FUSIONS, RERANKERS):
        kind = "retriever" if registry is RETRIEVERS else registry.kind
        for entry in registry:
            yield kind, entry


def _composed_facts(name: str) -> dict[str, Any]:
    from readbench.engine.spec import COMPOSED, parse

    spec = parse(name)
    lacking = next((f"{entry.name} {reason}" for entry in spec.entries() if (reason := entry.unavailable())), "")
    return {
        "name": name,
        "kind": "whole method",
        "title": spec.title,
        "family": spec.entries()[0].family,
        "aliases": [],
        "parameters": {},
        "summary": COMPOSED_SUMMARIES[name],
        "origin": "readbench",
        "unavailable": lacking,
        "stands_for": COMPOSED[name],
    }


def _method_facts(kind: str, entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "kind": kind,
        "title": entry.title,
        "family": entry.family,
        "aliases": list(entry.aliases),
        "parameters": {name: p.default for name, p in entry.parameters.items()},
        "summary": entry.summary,
        "origin": entry.origin,
        "unavailable": entry.unavailable(),
    }


def _dataset_facts(entry: Entry) -> dict[str, object]:
    from readbench.benchmark.protocol import find_origin

    info = entry.build().info
    return {
        "name": info.name,
        "title": info.title,
        "domain": info.domain,
        "channels": len(info.channels),
        "length": info.protocol.length,
        "faults": len(info.faults),
        "split_unit": info.split_unit,
        "data_origin": find_origin(info.name),
        "verified": info.verified,
        "origin": entry.origin,
        "licence": info.licence,
        "url": info.url,
    }
