"""`readbench data status`, `fetch`, `import` and `export`: data that come from outside and go there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from readbench.cli.options import (
    DEFAULT_SEEDS,
    MOST_STEPS,
    BeforeRule,
    Domain,
    Form,
    Json,
    LabelRule,
    Missing,
    Root,
    Seed,
    TimeUnit,
    numbers,
    output,
)
from readbench.cli.progress import Terminal
from readbench.common.files import data_root
from readbench.errors import DataError, UsageError

if TYPE_CHECKING:
    from readbench.benchmark.exchange import ImportedRecordings, Official, ReadyTask, Status
    from readbench.benchmark.protocol import Built, SourceInfo
    from readbench.engine.window_tables import Roles


def status_command(as_json: Json = False, root: Root = None) -> None:
    """Show of each data source whether its files are there, what is missing, its licence, and how to get it.

    Example: `readbench data status`
    """
    from readbench.benchmark.exchange import status_of
    from readbench.engine.registry import SOURCES

    found = [status_of(entry.build().info, data_root(root)) for entry in SOURCES if entry.origin != "imported"]
    real = [status for status in found if status.state != "simulated"]
    if as_json:
        print(json.dumps([_facts(status) for status in real], indent=1))  # noqa: T201 - this is the output
        return
    table = Table("Source", "State", "There", "Licence", "Verified", "Get it", box=SIMPLE_HEAD)
    for status in real:
        facts = _facts(status) | {"verified": "yes" if status.info.verified else "no"}
        table.add_row(*(str(facts[key]) for key in ("name", "state", "found", "licence", "verified", "get")))
    output().print(table)
    output().print(
        f"Files belong into {data_root(root) or 'READBENCH_DATA'}/NAME.",
        "readbench data fetch NAME gets them, or says how to get them by hand.",
        "Verified: files of the official data were read by the code of the source.",
        sep="\n",
        soft_wrap=True,
        highlight=False,
    )


def _facts(status: Status) -> dict[str, Any]:
    info = status.info
    return {
        "name": info.name,
        "state": status.state,
        "found": status.found,
        "licence": info.licence,
        "verified": info.verified,
        "folder": None if status.folder is None else str(status.folder),
        "get": "fetch" if status.fetchable else "by hand",
        "url": info.url,
    }


def fetch_command(
    name: Annotated[str, typer.Argument(help="Dataset name.")],
    accept_licence: Annotated[bool, typer.Option("--accept-licence", help="I have read the licence.")] = False,
    root: Root = None,
) -> None:
    """Fetch the official files of a source into the data root; what broke off goes on where it was.

    Example: `readbench data fetch skab --accept-licence`
    """
    from readbench.benchmark.exchange import OFFICIAL, fetch, status_of
    from readbench.benchmark.protocol import find_source

    info, folder = find_source(name).info, data_root(root)
    official = OFFICIAL.get(info.name)
    if official is None:
        raise UsageError(f"{info.name}: nothing to fetch. {info.url or 'It is made or imported here.'}")
    if folder is None:
        raise UsageError("No data root: set READBENCH_DATA, or give --root.")
    status = status_of(info, folder)
    if status.state == "complete":
        output().print(f"{info.name} is complete: {status.found} in {status.folder}.", soft_wrap=True)
        return
    _show_terms(status, official, output())
    if not official.files:
        return
    if not accept_licence:
        raise UsageError(f"Read the licence above, then: readbench data fetch {info.name} --accept-licence")
    with Terminal() as progress:
        count = fetch(official, folder / info.name, progress)
    output().print(f"{info.name}: {count} files fetched into {folder / info.name}.", soft_wrap=True)


def _show_terms(status: Status, official: Official, console: Console) -> None:
    info = status.info
    lines = [f"{info.title}: {info.size}", f"Licence: {info.licence}", f"Cite: {info.citation}", f"Origin: {info.url}"]
    if official.files:
        lines.append(f"From: {official.files[0].url}{_and_more(official)}")
        lines.append(f"Download: {_size(official)}; checksums: {_checksums(official)}")
    else:
        lines.append("It cannot be fetched from here. By hand:")
        lines.append(official.steps.format(folder=status.folder))
    console.print("\n".join(lines), highlight=False, markup=False, soft_wrap=True)


def _and_more(official: Official) -> str:
    return f" and {len(official.files) - 1} more" if len(official.files) > 1 else ""


def _size(official: Official) -> str:
    known = [file.size for file in official.files if file.size is not None]
    text = f"{len(official.files)} files, {sum(known) / 1e6:,.1f} MB"
    return (
        text if len(known) == len(official.files) else f"{text} and {len(official.files) - len(known)} of unknown size"
    )


def _checksums(official: Official) -> str:
    if official.sums:
        return f"published at {official.sums}"
    known = sum(bool(file.checksum) for file in official.files)
    return "known" if known == len(official.files) else f"not known for {len(official.files) - known}"


def _column(what: str) -> Callable[..., str]:
    option: Callable[..., str] = typer.Option(help=f"Column: {what}.", rich_help_panel="Columns", show_default=False)
    return option


def _fact(what: str) -> Callable[..., str]:
    option: Callable[..., str] = typer.Option(help=what, rich_help_panel="Facts for tables and cards")
    return option


def import_command(  # noqa: PLR0917 - typer reads options from the signature
    name: Annotated[str, typer.Argument(help="Name of the new dataset.")],
    paths: Annotated[list[Path] | None, typer.Argument(help="Tables, folders of tables, or a ready-made task.")] = None,
    time: Annotated[str, _column("time, in seconds or as dates; looked for where not given, - for none")] = "",
    label: Annotated[str, _column("fault at each row")] = "",
    group: Annotated[str, _column("what must not straddle the split")] = "",
    asset: Annotated[str, _column("machine, well, patient")] = "",
    case: Annotated[str, _column("whose rows make one recording; default the group")] = "",
    channels: Annotated[str, _column("channels, separated by commas; default all other numbers")] = "",
    channel: Annotated[str, _column("of a long table, the name of the channel")] = "",
    value: Annotated[str, _column("of a long table, the reading")] = "",
    time_unit: Annotated[TimeUnit, typer.Option(help="Of times that are numbers.", rich_help_panel="Columns")] = "auto",
    onset: Annotated[str, _column("marks from where the fault began, or its time; rows before are context")] = "",
    fact: Annotated[list[str] | None, _column("a number known beforehand, such as speed; may be repeated")] = None,
    unit: Annotated[
        list[str] | None,
        typer.Option(help="CHANNEL=UNIT; may be repeated.", rich_help_panel="Columns", show_default=False),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(help="Samples a second.", rich_help_panel="Columns", show_default="by the median time step"),
    ] = None,
    cases: Annotated[
        Path | None,
        typer.Option(
            help="A table with a file per case: file, label, group, asset, onset, before, rate, fact.NAME.",
            show_default=False,
        ),
    ] = None,
    normal: Annotated[str, typer.Option(help="The label of normal operation.")] = "normal",
    blank_is_normal: Annotated[
        bool, typer.Option("--blank-is-normal", help="Rows without a label are normal.")
    ] = False,
    window: Annotated[
        int | None,
        typer.Option(min=2, max=MOST_STEPS, help="Steps of a window.", show_default="a window per case"),
    ] = None,
    stride: Annotated[
        int | None, typer.Option(min=1, max=MOST_STEPS, help="Steps between windows.", show_default="no overlap")
    ] = None,
    rule: Annotated[LabelRule, typer.Option(help="How windows are labelled.")] = "majority-or-coverage",
    missing: Annotated[Missing, typer.Option(help="Missing readings: fill or drop.")] = "fill",
    before: Annotated[BeforeRule, typer.Option(help="What windows bring as the time before them.")] = "onset",
    before_steps: Annotated[int, typer.Option(min=1, max=MOST_STEPS, help="Most steps of it.")] = 2048,
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
    from readbench.benchmark.exchange import ReadyTask, check_name, check_unchanged, draft_dataset, explain_import
    from readbench.benchmark.protocol import Protocol, SourceInfo
    from readbench.engine.window_tables import Roles

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
            before=before,
            before_steps=before_steps,
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
        onset,
        tuple(fact or ()),
        rate,
        tuple(_unit(text) for text in unit or ()),
    )
    source = _source(info, paths or [], cases, roles, normal, blank_is_normal)
    with draft_dataset(source.info, source.write) as made:
        built = made.source.built()
        if isinstance(source, ReadyTask):
            check_unchanged(built, source)
        for sentence in explain_import(built, source):
            output().print(sentence, highlight=False, markup=False, soft_wrap=True)
        _require_task(built)
        if dry_run:
            output().print("Nothing was kept: leave out --dry-run to import it.")
            return
        kept = made.keep(replace=replace)
    output().print(
        f"{name} is in {kept.folder}. Next: readbench data verify {name}, then readbench run --datasets {name}",
        highlight=False,
        soft_wrap=True,
    )


def _require_task(built: Built) -> None:
    """Refuse windows of which no task can be made: nothing could be run on them."""
    from readbench.benchmark.protocol import Composition, compose_task

    levels = built.parts.levels if built.parts else ()
    reason = ""
    for seed in numbers(DEFAULT_SEEDS, "--seeds"):
        try:
            compose_task(built, seed=seed, settings=Composition(rho=levels or Composition().rho))
        except DataError as error:
            reason = reason or str(error)
        else:
            return
    raise DataError(
        f"Nothing was kept, because no task can be made of these windows: {reason} Each fault needs two groups or more"
        " (--group, --case), one of which is held out."
    )


def _unit(text: str) -> tuple[str, str]:
    channel, _, unit = (part.strip() for part in text.rpartition("="))
    if not channel or not unit:
        raise UsageError(f"--unit takes a channel and its unit, as in --unit flow=m3/h. Got {text!r}.")
    return channel, unit


def _source(
    info: SourceInfo, paths: list[Path], cases: Path | None, roles: Roles, normal: str, blank_is_normal: bool
) -> ImportedRecordings | ReadyTask:
    from readbench.benchmark.exchange import ImportedRecordings, is_ready_task, read_cases, read_ready_task, table_files
    from readbench.engine.window_tables import Roles

    if len(paths) == 1 and cases is None and is_ready_task(paths[0]):
        if roles != Roles():
            raise UsageError("A ready-made task has fixed names: leave out the options for columns.")
        return read_ready_task(paths[0], info, normal=normal)
    if bool(paths) == bool(cases):
        raise UsageError("Name tables or folders, or a table of files with --cases; not both.")
    known = read_cases(cases, time_unit=roles.time_unit) if cases else {}
    files = tuple(known) or table_files(paths)
    return ImportedRecordings(info, files, roles, known, normal, blank_is_normal).surveyed()


def export_command(
    name: Annotated[str, typer.Argument(help="Dataset name.")],
    form: Annotated[Form, typer.Option("--format", help="Layout: hf (datasets, MTEB) or beir.")] = "hf",
    out: Annotated[Path | None, typer.Option(help="A new folder.", show_default="NAME-FORMAT")] = None,
    seed: Seed = 0,
    rho: Annotated[str, typer.Option(help="Pollution levels in percent.")] = "0,10,20",
    private: Annotated[
        bool, typer.Option("--private", help="Also where the licence does not let the data be passed on.")
    ] = False,
    root: Root = None,
) -> None:
    """Write one task as corpus, queries and judgments with a dataset card.

    Example: `readbench data export sim_tanks --format hf --out tanks`
    """
    from readbench.benchmark.exchange import export_task
    from readbench.benchmark.protocol import Composition, load_task

    settings = Composition(rho=numbers(rho, "--rho"))
    task = load_task(name, seed, root, settings=settings)
    folder = out or Path(f"{task.info.name}-{form}")
    export_task(task, folder, form, private=private)
    output().print(
        f"{folder}: {len(task.queries)} queries, {len(task.corpus)} corpus items, fingerprint {task.fingerprint()}",
        highlight=False,
        soft_wrap=True,
    )
