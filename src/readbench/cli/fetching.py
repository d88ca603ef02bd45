"""`readbench data status` and `readbench data fetch`: what of the official data is there, and getting it."""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Self

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.table import Table

from readbench.cli.options import Json, Root, output
from readbench.data import Source
from readbench.data.official import OFFICIAL, Official, RemoteFile, Status, fetch, status_of
from readbench.errors import UsageError
from readbench.paths import data_root
from readbench.registry import SOURCES
from readbench.spec import build_source


def status_command(as_json: Json = False, root: Root = None) -> None:
    """Show of each data source whether its files are there, what is missing, its licence, and how to get it.

    Example: `readbench data status`
    """
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
    source: Source = build_source(name)
    info, folder = source.info, data_root(root)
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
    with _Bars(Console(stderr=True)) as bars:
        count = fetch(official, folder / info.name, bars.update)
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


class _Bars:
    """A bar for the file that is being fetched."""

    def __init__(self, console: Console) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        self._progress = Progress(*columns, console=console, disable=not console.is_terminal)
        self._tasks: dict[Path | str, Any] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def update(self, file: RemoteFile, done: int, total: int | None) -> None:
        """Show how far a file has come."""
        if file.path not in self._tasks:
            self._tasks[file.path] = self._progress.add_task(file.path)
        self._progress.update(self._tasks[file.path], completed=done, total=total)
