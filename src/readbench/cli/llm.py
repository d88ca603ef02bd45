"""`readbench llm`: whether a configured language model answers, and what all of them have spent."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from readbench.cli.options import output
from readbench.errors import RunError

app = typer.Typer(no_args_is_help=True, help="Language models: check one, list all.")


@app.command("check")
def check_command(name: Annotated[str, typer.Argument(help="A profile, or openai:MODEL@URL.")]) -> None:
    """Ask a model one small question, and show what it answers and who it says it is.

    Example: `readbench llm check openai:qwen3@http://localhost:8000/v1`
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
def list_command() -> None:
    """Show the profiles that can be asked: provider, model, whether the key is there, and what they have spent.

    Example: `readbench llm list`
    """
    from readbench.engine.llm import describe_profiles

    table = Table("Profile", "Provider", "Model", "State", "Spending")
    for row in describe_profiles():
        table.add_row(*row)
    output().print(table)
