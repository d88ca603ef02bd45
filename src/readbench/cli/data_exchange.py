"""`readbench data status`, `fetch`, `import` and `export`."""

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
    MAX_STEPS,
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
    """List data sources: whether their files are present, licence, and how to get them.

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
        "readbench data fetch NAME downloads them, or prints how to get them by hand.",
        "Verified: the reader was tested on the official files.",
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
    accept_licence: Annotated[
        bool, typer.Option("--accept-licence", help="Confirm that you have read the licence.")
    ] = False,
    root: Root = None,
) -> None:
    """Download the official files of a data source; an interrupted download continues.

    Example: `readbench data fetch skab --accept-licence`
    """
    from readbench.benchmark.exchange import OFFICIAL, fetch, status_of
    from readbench.benchmark.protocol import find_source

    info, folder = find_source(name).info, data_root(root)
    official = OFFICIAL.get(info.name)
    if official is None:
        raise UsageError(f"{info.name}: nothing to fetch. {info.url or 'It is simulated or imported.'}")
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
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Tables, folders with tables, or one ready-made task.")
    ] = None,
    time: Annotated[str, _column("time, in seconds or as dates; - for none; default detected")] = "",
    label: Annotated[str, _column("fault type at each row")] = "",
    group: Annotated[str, _column("split group; a group lies wholly in queries or in corpus")] = "",
    asset: Annotated[str, _column("asset: machine, well, patient")] = "",
    case: Annotated[str, _column("case; the rows of one case are one recording; default the group")] = "",
    channels: Annotated[str, _column("channels, separated by commas; default all other numeric columns")] = "",
    channel: Annotated[str, _column("channel name, in a table with one reading per row")] = "",
    value: Annotated[str, _column("reading, in a table with one reading per row")] = "",
    time_unit: Annotated[TimeUnit, typer.Option(help="Unit of numeric times.", rich_help_panel="Columns")] = "auto",
    onset: Annotated[
        str, _column("flag of the rows after the onset, or time of the onset; earlier rows are context")
    ] = "",
    fact: Annotated[list[str] | None, _column("known quantity, such as speed; repeatable")] = None,
    unit: Annotated[
        list[str] | None,
        typer.Option(
            help="Unit of a channel, CHANNEL=UNIT; repeatable.", rich_help_panel="Columns", show_default=False
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(help="Samples per second.", rich_help_panel="Columns", show_default="by the median time step"),
    ] = None,
    cases: Annotated[
        Path | None,
        typer.Option(
            help="Table with one file per row; columns file, label, group, asset, onset, before, rate, fact.NAME.",
            show_default=False,
        ),
    ] = None,
    normal: Annotated[str, typer.Option(help="Label of normal operation.")] = "normal",
    blank_is_normal: Annotated[
        bool, typer.Option("--blank-is-normal", help="Treat rows without a label as normal operation.")
    ] = False,
    window: Annotated[
        int | None,
        typer.Option(min=2, max=MAX_STEPS, help="Window length in steps.", show_default="one window per case"),
    ] = None,
    stride: Annotated[
        int | None, typer.Option(min=1, max=MAX_STEPS, help="Steps between window starts.", show_default="no overlap")
    ] = None,
    rule: Annotated[LabelRule, typer.Option(help="Rule that labels a window from its rows.")] = "majority-or-coverage",
    missing: Annotated[Missing, typer.Option(help="Fill missing readings, or drop their rows.")] = "fill",
    before: Annotated[
        BeforeRule,
        typer.Option(help="Context before a window: readings before the onset, all preceding readings, or none."),
    ] = "onset",
    before_steps: Annotated[
        int, typer.Option(min=1, max=MAX_STEPS, help="Longest context before a window, in steps.")
    ] = 2048,
    test_share: Annotated[float, typer.Option(min=0.01, max=0.99, help="Share of groups held out for queries.")] = 0.2,
    title: Annotated[str, _fact("Title in tables.")] = "",
    description: Annotated[str, _fact("Description of sensors and labels.")] = "",
    domain: Annotated[Domain, _fact("Diagnostic domain.")] = "other",
    licence: Annotated[str, _fact("Licence.")] = "not stated",
    citation: Annotated[str, _fact("Reference of the data.")] = "not stated",
    redistributable: Annotated[
        bool,
        typer.Option(
            "--redistributable",
            help="The licence allows redistribution.",
            rich_help_panel="Facts for tables and cards",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print how the data are read, and import nothing.")
    ] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace an imported dataset of this name.")] = False,
) -> None:
    """Import a dataset from tables of recordings, or from a ready-made task with queries and corpus.

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
            output().print("Nothing was imported. Leave out --dry-run to import it.")
            return
        kept = made.keep(replace=replace)
    output().print(
        f"{name} is in {kept.folder}. Next: readbench data verify {name}, then readbench run --datasets {name}",
        highlight=False,
        soft_wrap=True,
    )


def _require_task(built: Built) -> None:
    """Refuse windows from which no task can be composed with any default seed."""
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
        f"Nothing was imported, because no task can be made of these windows: {reason} Each fault type needs at least"
        " two groups (--group, --case), one of which is held out."
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
            raise UsageError("A ready-made task has fixed column names. Leave out the options for columns.")
        return read_ready_task(paths[0], info, normal=normal)
    if bool(paths) == bool(cases):
        raise UsageError("Give either tables and folders, or a table of files with --cases.")
    known = read_cases(cases, time_unit=roles.time_unit) if cases else {}
    files = tuple(known) or table_files(paths)
    return ImportedRecordings(info, files, roles, known, normal, blank_is_normal).surveyed()


def export_command(
    name: Annotated[str, typer.Argument(help="Dataset name.")],
    form: Annotated[Form, typer.Option("--format", help="Layout: hf (Hugging Face datasets, MTEB) or beir.")] = "hf",
    out: Annotated[Path | None, typer.Option(help="New folder to write.", show_default="NAME-FORMAT")] = None,
    seed: Seed = 0,
    rho: Annotated[str, typer.Option(help="Pollution levels in percent.")] = "0,10,20",
    private: Annotated[
        bool, typer.Option("--private", help="Export for private use although the licence forbids redistribution.")
    ] = False,
    root: Root = None,
) -> None:
    """Export one task as corpus, queries and relevance judgements, with a dataset card.

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
