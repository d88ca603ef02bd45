"""`readbench data verify`: leakage, duplicates and doubtful labels in datasets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from readbench.cli.options import Json, Root, Seed, SplitBy, SplitUnit, output
from readbench.cli.progress import Terminal
from readbench.common.files import data_root, require_folder
from readbench.common.progress import within
from readbench.errors import DataError, UsageError

if TYPE_CHECKING:
    from readbench.benchmark.audit import DatasetAudit
    from readbench.benchmark.protocol import Built
    from readbench.common.progress import Progress


def audit_command(
    names: Annotated[
        list[str] | None, typer.Argument(help="Dataset names, or paths of ready-made tasks (folder or archive).")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Also verify every source whose files are present.")] = False,
    seed: Seed = 0,
    split_by: SplitBy = "group",
    out: Annotated[
        list[Path] | None,
        typer.Option(help="Also write the report to this .md or .html file; repeatable.", show_default=False),
    ] = None,
    as_json: Json = False,
    root: Root = None,
) -> None:
    """Check datasets for leakage, shortcuts, duplicates and doubtful labels, and estimate the detectable difference.

    Exits with 1 when a query leaks into its corpus.
    Example: `readbench data verify sim_ecg --out audit.html`
    """
    from readbench.benchmark.report import audit_blocks, show_blocks, summary_blocks, tell_verdicts, write_blocks
    from readbench.engine.spec import split_specs

    for path in out or ():
        if path.suffix not in {".md", ".html"}:
            raise UsageError(f"--out takes a file that ends with .md or .html. Got {path.name!r}.")
        require_folder(path.parent)
    asked = [name for text in names or () for name in ([text] if Path(text).exists() else split_specs([text]))]
    wanted = list(dict.fromkeys([*(_present_sources(root) if every else ()), *asked]))
    if not wanted:
        raise UsageError(
            "Name a dataset or a ready-made task, or give --all to verify every source whose files are present."
        )
    audits, absent = _audit_all(wanted, seed, split_by, root, forgiving=every)
    command = " ".join(["readbench data verify", *(["--all"] if every else []), *(f'"{name}"' for name in asked)])
    pages = [audit_blocks(audit) for audit in audits]
    if as_json:
        print(json.dumps([audit.facts() for audit in audits], indent=1))  # noqa: T201 - this is the output
    else:
        for audit, page in zip(audits, pages, strict=True):
            show_blocks([f"{audit.name}. {tell_verdicts(audit)}"] if every else page, output())
    for path in out or ():
        single = len(pages) == 1 and not every
        write_blocks(pages[0] if single else summary_blocks(audits, absent, f"{command} --out {path}"), path)
    if not every and not all(audit.sound for audit in audits):
        raise typer.Exit(1)


def _present_sources(root: Path | None) -> list[str]:
    """Names of the sources whose files are present; simulated sources have none."""
    from readbench.benchmark.exchange import status_of
    from readbench.engine.registry import SOURCES

    infos = [entry.build().info for entry in SOURCES if entry.origin != "imported"]
    return [info.name for info in infos if status_of(info, data_root(root)).state not in {"simulated", "absent"}]


def _audit_all(
    names: list[str], seed: int, split_by: SplitUnit, root: Path | None, *, forgiving: bool
) -> tuple[list[DatasetAudit], dict[str, str]]:
    """The audits, and the reason for each dataset that could not be read; only with `forgiving`."""
    audits, absent = [], {}
    for name in names:
        try:
            with Terminal() as progress:
                audits.append(_audit(name, seed, split_by, root, progress))
        except DataError as error:
            if not forgiving:
                raise
            absent[name] = str(error).replace(f"{data_root(root)}/", "")
            Console(stderr=True).print(f"{name}: {error}", markup=False, highlight=False)
    return audits, absent


def _audit(name: str, seed: int, split_by: SplitUnit, root: Path | None, progress: Progress) -> DatasetAudit:
    from readbench.benchmark.audit import audit_task
    from readbench.benchmark.protocol import Composition, compose_task, find_origin

    with _opened(name, root, progress) as built:
        levels = built.parts.levels if built.parts else ()
        settings = Composition(split_by=split_by, rho=levels or Composition().rho)
        task = compose_task(built, seed=seed, settings=settings)
        return audit_task(
            built,
            task,
            name=Path(name).name,
            origin=None if Path(name).exists() else find_origin(name, root),
            split_by=split_by,
            progress=within(progress, name),
        )


@contextmanager
def _opened(name: str, root: Path | None, progress: Progress) -> Iterator[Built]:
    """Windows of a dataset, or of a ready-made task, which is built in a temporary folder."""
    from readbench.benchmark.exchange import draft_dataset, is_ready_task, read_ready_task
    from readbench.benchmark.protocol import Protocol, SourceInfo, build

    path = Path(name)
    if not path.exists() or name in _names():
        yield build(name, root, progress=progress)
        return
    if not is_ready_task(path):
        raise UsageError(f"{path} holds no ready-made task (queries.parquet, or an archive of arrays).")
    info = SourceInfo(
        name=path.stem,
        title=path.stem,
        domain="other",
        description=f"A ready-made task: {path.name}.",
        channels=(),
        faults=(),
        protocol=Protocol(None),
        split_unit="as published",
        asset_unit="asset",
        licence="not stated",
        citation="not stated",
    )
    found = read_ready_task(path, info)
    with draft_dataset(found.info, found.write) as made:
        yield made.source.built()


def _names() -> set[str]:
    from readbench.engine.registry import SOURCES

    return {entry.name for entry in SOURCES}
