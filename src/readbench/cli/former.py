"""Former command names, answered with the present command, and checks of options that do not apply."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

from readbench.errors import UsageError

FORMER = {
    "merge": "run --merge PART --merge PART --out RUN",
    "publish": "submit RUN --rows FOLDER",
    "export": "report RUN --trec FOLDER",
    "check-submissions": "leaderboard FOLDER --check",
    "methods": "list methods",
    "datasets": "list datasets",
    "metrics": "list metrics",
    **{name: f"study {name}" for name in ("opinions", "active", "assets", "compound", "ucr")},
    "cost": "study cost --set run=RUN",
    "audit": "data verify DATASET",
    "llm": "models check NAME, or models list",
    "cases confirm": "cases label LIBRARY CASE --like OTHER",
    "cases reject": "cases label LIBRARY CASE --unlike OTHER",
    "cases note": "cases label LIBRARY CASE --note TEXT",
    "cases redo": "cases undo LIBRARY --redo",
    "cases find": "cases list LIBRARY --text WORDS",
    "cases stats": "cases list LIBRARY --counts",
    **{
        f"cases {name}": f"cases review LIBRARY --what {name}"
        for name in ("next", "doubtful", "overview", "separation")
    },
    "cases warm": "cases optimise LIBRARY --warm",
    "cases demo": "cases init LIBRARY --demo",
    "cases key add": "cases key LIBRARY NAME --role ROLE",
    "cases key list": "cases key LIBRARY",
    "cases key revoke": "cases key LIBRARY NAME --remove",
    "models status": "models list",
}
"""Former command -> present command."""
IN_A_CHECKOUT = {
    "documents": "tools.docs fill RESULTS PAGES",
    "coverage": "research.coverage",
    "scale": "research.scale",
    "cases bench": "research.speed.library",
}
"""Former command -> module to run in a checkout of the repository."""


class Group(TyperGroup):
    """Command group that answers a former command with the present one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - of the library under typer
        """Find the command; raises for a former one, of up to three words, naming the present one."""
        for name in (" ".join(args[:count]) for count in (3, 2, 1)):
            if name in FORMER:
                raise UsageError(f"readbench {name} is now: readbench {FORMER[name]}.")
            if name in IN_A_CHECKOUT:
                raise UsageError(f"readbench {name} is now, in a checkout: python -m {IN_A_CHECKOUT[name]}.")
        return super().resolve_command(ctx, args)


def refuse_others(ctx: Any, mode: str, *known: str) -> None:  # noqa: ANN401 - of the library under typer
    """Raise if an option was given that does not apply to the chosen mode of a command.

    Args:
        ctx: context of the command.
        mode: the mode, as the error names it: an option or a phrase.
        known: names of the parameters that apply.
    """
    for parameter in ctx.command.params:
        if parameter.name not in known and was_given(ctx, parameter.name):
            raise UsageError(f"{parameter.opts[0]} does not apply to {mode}. Leave it out.")


def was_given(ctx: Any, name: str) -> bool:  # noqa: ANN401 - of the library under typer
    """True if a parameter was given on the command line, not by default or environment."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
