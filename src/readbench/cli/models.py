"""`readbench models`: weights of published encoders, and language models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from readbench.cli.options import Json, output
from readbench.errors import RunError

if TYPE_CHECKING:
    from readbench.engine.registry import Entry

app = typer.Typer(no_args_is_help=True, help="Weights of published encoders, and language models.")


@app.command("fetch")
def fetch_command(
    encoder: Annotated[str, typer.Argument(help="Name of an encoder.")],
    revision: Annotated[str, typer.Option(help="Commit or tag on the hub.", show_default="newest")] = "",
) -> None:
    """Download the weights of an encoder from the Hugging Face hub into its cache.

    Example: `readbench models fetch mantis`
    """
    from readbench.engine.encoders import locate_weights
    from readbench.engine.registry import ENCODERS
    from readbench.errors import UsageError

    entry = ENCODERS.get(encoder)
    if entry not in published():
        names = ", ".join(encoder_entry.name for encoder_entry in published())
        raise UsageError(f"{encoder} has no published weights. Encoders with weights: {names}.")
    weights = str(entry.parameters["weights"].default)
    weights = f"{weights}@{revision}" if revision else weights
    place = locate_weights(weights, entry.factory.files, entry.name)[0].parent  # type: ignore[attr-defined]
    method = f"{entry.name}(weights={weights})" if revision else entry.name
    output().print(f"{weights} is at {place}. Methods: {method}")


@app.command("check")
def check_command(name: Annotated[str, typer.Argument(help="Profile name, or openai:MODEL@URL.")]) -> None:
    """Send a language model one test prompt; print its answer and the model it reports.

    Example: `readbench models check openai:qwen3@http://localhost:8000/v1`
    """
    from readbench.engine.llm import check_model

    found = check_model(name)
    table = Table(show_header=False)
    for row in found.facts.items():
        table.add_row(*row)
    output().print(table)
    if found.complaint:
        raise RunError(found.complaint)


@app.command("list")
def list_models_command(as_json: Json = False) -> None:
    """List the weights of encoders on this machine, and the language-model profiles.

    Of weights it says where they are, how large, and their digest; of a language model its provider, whether the key
    is there, and what it has spent.

    Example: `readbench models list`
    """
    from readbench.engine.llm import describe_profiles

    weights = [describe_weights(entry) for entry in published()]
    names = ("profile", "provider", "model", "state", "spending")
    profiles = [dict(zip(names, row, strict=True)) for row in describe_profiles()]
    if as_json:
        print(json.dumps({"encoders": weights, "language_models": profiles}, indent=1))  # noqa: T201 - this is the output
        return
    table = Table("Encoder", "Weights", "Revision", "Size", "SHA-256", "Licence of the weights", "Where")
    for fact in weights:
        size = f"{fact['bytes'] / 1e6:.1f} MB" if fact["bytes"] else ""
        where = fact["where"] or f"not here: readbench models fetch {fact['encoder']}"
        shown = fact["encoder"], fact["weights"], fact["revision"][:12], size, fact["sha256"][:16], fact["licence"]
        table.add_row(*shown, where)
    output().print(table)
    table = Table(*(name.capitalize() for name in names))
    for profile in profiles:
        table.add_row(*profile.values())
    output().print(table)


def published() -> Iterator[Entry]:
    """Encoders whose default weights are published on the hub."""
    from readbench.engine.encoders import FrozenEncoder
    from readbench.engine.registry import ENCODERS

    return iter(
        [
            entry
            for entry in ENCODERS
            if isinstance(entry.factory, type) and issubclass(entry.factory, FrozenEncoder) and entry.factory.weights
        ]
    )


def describe_weights(entry: Entry) -> dict[str, Any]:
    """Default weights of an encoder: name and licence, and revision, size, digest and folder if downloaded."""
    from readbench.engine.encoders import find_weights

    weights = str(entry.parameters["weights"].default)
    found = find_weights(weights, entry.factory.files)  # type: ignore[attr-defined]
    return {
        "encoder": entry.name,
        "weights": weights,
        "licence": entry.factory.licence,  # type: ignore[attr-defined]
        "revision": found.revision if found else "",
        "bytes": found.size if found else 0,
        "sha256": found.digest if found else "",
        "where": str(found.paths[0].parent) if found else "",
    }
