"""`readbench data import`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from readbench.cli.options import output
from readbench.data import Protocol, SourceInfo
from readbench.data.imported import (
    Divided,
    Measured,
    check_name,
    check_unchanged,
    draft,
    explain,
    is_divided,
    read_cases,
    read_divided,
    table_files,
)
from readbench.data.source import Domain, LabelRule, Missing
from readbench.errors import UsageError
from readbench.tables import Roles, TimeUnit


def _column(what: str) -> Callable[..., str]:
    option: Callable[..., str] = typer.Option(help=f"Column: {what}.", rich_help_panel="Columns", show_default=False)
    return option


def _fact(what: str) -> Callable[..., str]:
    option: Callable[..., str] = typer.Option(help=what, rich_help_panel="Facts for tables and cards")
    return option


def import_command(  # noqa: PLR0917 - typer reads options from the signature
    name: Annotated[str, typer.Argument(help="Name of the new dataset.")],
    paths: Annotated[list[Path] | None, typer.Argument(help="Tables, folders of tables, or a ready-made task.")] = None,
    time: Annotated[str, _column("time, in seconds or as dates")] = "",
    label: Annotated[str, _column("fault at each row")] = "",
    group: Annotated[str, _column("what must not straddle the split")] = "",
    asset: Annotated[str, _column("machine, well, patient")] = "",
    case: Annotated[str, _column("whose rows make one recording; default the group")] = "",
    channels: Annotated[str, _column("channels, separated by commas; default all other numbers")] = "",
    channel: Annotated[str, _column("of a long table, the name of the channel")] = "",
    value: Annotated[str, _column("of a long table, the reading")] = "",
    time_unit: Annotated[TimeUnit, typer.Option(help="Of times that are numbers.", rich_help_panel="Columns")] = "s",
    cases: Annotated[
        Path | None,
        typer.Option(help="A table with a file per case: file, label, group, asset.", show_default=False),
    ] = None,
    normal: Annotated[str, typer.Option(help="The label of normal operation.")] = "normal",
    blank_is_normal: Annotated[
        bool, typer.Option("--blank-is-normal", help="Rows without a label are normal.")
    ] = False,
    window: Annotated[
        int | None, typer.Option(min=2, help="Steps of a window.", show_default="a window per case")
    ] = None,
    stride: Annotated[int | None, typer.Option(min=1, help="Steps between windows.", show_default="no overlap")] = None,
    rule: Annotated[LabelRule, typer.Option(help="How windows are labelled.")] = "majority-or-coverage",
    missing: Annotated[Missing, typer.Option(help="Missing readings: fill or drop.")] = "fill",
    test_share: Annotated[float, typer.Option(min=0.01, max=0.99, help="Share of groups held out.")] = 0.2,
    title: Annotated[str, _fact("Name in tables.")] = "",
    description: Annotated[str, _fact("A few sentences on sensors and labels.")] = "",
    domain: Annotated[Domain, _fact("Diagnostic domain.")] = "other",
    licence: Annotated[str, _fact("Licence.")] = "not stated",
    citation: Annotated[str, _fact("Where the data come from.")] = "not stated",
    redistributable: Annotated[
        bool,
        typer.Option(
            "--redistributable",
            help="Its licence lets the data be passed on.",
            rich_help_panel="Facts for tables and cards",
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Explain what was understood and keep nothing.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a dataset of this name.")] = False,
) -> None:
    """Make a named dataset of your own data: tables of recordings, or a task that is divided already.

    Example: `readbench data import pumps runs.csv --time t --label fault --group run --window 256 --dry-run`
    """
    check_name(name, replace=replace or dry_run)
    info = SourceInfo(
        name=name,
        title=title or name,
        domain=domain,
        description=description or f"Data that a user imported under the name {name}.",
        channels=(),
        faults=(),
        protocol=Protocol(
            window,
            stride,
            label_rule=rule,
            missing=missing,
            test_share=test_share,
        ),
        split_unit=group or case or "file",
        asset_unit=asset,
        licence=licence,
        citation=citation,
        redistributable=redistributable,
    )
    roles = Roles(
        time,
        label,
        group,
        asset,
        case,
        tuple(filter(None, map(str.strip, channels.split(",")))),
        channel,
        value,
        time_unit,
    )
    source = _source(info, paths or [], cases, roles, normal, blank_is_normal)
    with draft(source.info, source.write) as made:
        built = made.source.built()
        if isinstance(source, Divided):
            check_unchanged(built, source)
        for sentence in explain(built, source):
            output().print(sentence, highlight=False, markup=False, soft_wrap=True)
        if dry_run:
            output().print("Nothing was kept: leave out --dry-run to import it.")
            return
        kept = made.keep(replace=replace)
    output().print(
        f"{name} is in {kept.folder}. Next: readbench run --datasets {name}", highlight=False, soft_wrap=True
    )


def _source(
    info: SourceInfo, paths: list[Path], cases: Path | None, roles: Roles, normal: str, blank_is_normal: bool
) -> Measured | Divided:
    if len(paths) == 1 and cases is None and is_divided(paths[0]):
        if roles != Roles():
            raise UsageError("A ready-made task has fixed names: leave out the options for columns.")
        return read_divided(paths[0], info, normal=normal)
    if bool(paths) == bool(cases):
        raise UsageError("Name tables or folders, or a table of files with --cases; not both.")
    known = read_cases(cases) if cases else {}
    files = tuple(known) or table_files(paths)
    return Measured(info, files, roles, known, normal, blank_is_normal).surveyed()
