"""`readbench methods`, `datasets` and `metrics`: what is there, and whether it can run here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from readbench.cli.options import Json, output

if TYPE_CHECKING:
    from readbench.engine.registry import Entry


def methods_command(as_json: Json = False) -> None:
    """List every retriever, encoder, fusion mode and reranker, with its parameters and what it needs.

    Example: `readbench methods`
    """
    facts = [_method_facts(kind, entry) for kind, entry in components()]
    if as_json:
        print(json.dumps(facts, indent=1))  # noqa: T201 - this is the output
        return
    table = Table("Name", "Kind", "Family", "Parameters", "Summary", "From", title="Methods", title_justify="left")
    for fact in facts:
        parameters = ", ".join(f"{key}={value}" for key, value in fact["parameters"].items())
        summary = Text(str(fact["summary"]))  # as text: the brackets of an extra are no markup
        if fact["unavailable"]:
            summary.append(f" {fact['unavailable']}", "red")
        table.add_row(fact["name"], fact["kind"], fact["family"], Text(parameters), summary, fact["origin"])
    output().print(table)


def datasets_command(as_json: Json = False) -> None:
    """List every data source.

    Example: `readbench datasets --json`
    """
    from readbench.engine.registry import SOURCES

    facts = [_dataset_facts(entry) for entry in SOURCES]
    if as_json:
        print(json.dumps(facts, indent=1))  # noqa: T201 - this is the output
        return
    table = Table("Name", "Title", "Domain", "C", "T", "Faults", title="Datasets", title_justify="left")
    for column in ("Split unit", "Data", "Verified"):
        table.add_column(column)
    for fact in facts:
        shown = ("name", "title", "domain", "channels", "length", "faults", "split_unit", "data_origin")
        table.add_row(*(str(fact[key]) for key in shown), _verified(fact))
    output().print(table)
    output().print("Verified: files of the official data were read by the code of the source.")


def metrics_command(as_json: Json = False) -> None:
    """List every metric, in the order of its column.

    Example: `readbench metrics`
    """
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


def _verified(fact: dict[str, object]) -> str:
    generated = fact["data_origin"] == "simulated by us" and not fact["url"]
    if generated or fact["origin"] == "imported":
        return "simulated" if generated else "imported"
    return "yes" if fact["verified"] else "no"


def components() -> Iterator[tuple[str, Entry]]:
    """All parts of methods, each with its kind."""
    from readbench.engine.registry import ENCODERS, FUSIONS, RERANKERS, RETRIEVERS, TRANSFORMS

    for registry in (RETRIEVERS, ENCODERS, TRANSFORMS, FUSIONS, RERANKERS):
        kind = "retriever" if registry is RETRIEVERS else registry.kind
        for entry in registry:
            yield kind, entry


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
