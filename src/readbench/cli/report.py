"""`readbench report`, `compare`, `submit` and `leaderboard`: what comes of a run."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from readbench.cli.former import refuse_others
from readbench.cli.options import SUFFIX, Json, Root, many_methods, output
from readbench.cli.progress import Terminal
from readbench.common.files import require_folder, write_text
from readbench.errors import RunError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from readbench.benchmark.report import Results

PICTURE_WIDTH = 108
_LEFT_OUT = re.compile(r"(?P<method>.+?) on (?P<dataset>\S+): (?P<why>.+)")
"""What `readbench submit --rows FOLDER --leave-out` takes."""


def report_command(  # noqa: PLR0917 - typer reads options from the signature
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(help="A run folder.")],
    out: Annotated[Path | None, typer.Option(help="Where to write.", show_default="FOLDER/report")] = None,
    full: Annotated[
        Path | None, typer.Option(help="A run of the same methods on full corpora (--cap none).", show_default=False)
    ] = None,
    beside: Annotated[
        list[Path] | None,
        typer.Option("--with", help="A run over label budgets, noise or pollution to show too; may be repeated."),
    ] = None,
    metric: Annotated[str, typer.Option(help="What methods are ordered by.", show_default="NDCG@10")] = "",
    picture: Annotated[Path | None, typer.Option(help="Also save what is printed as SVG.", show_default=False)] = None,
    column: Annotated[
        float | None,
        typer.Option(min=2, help="Width of figures in inches, for a paper; writes PDF too.", show_default="their own"),
    ] = None,
    documents: Annotated[
        str,
        typer.Option(
            help="Address of the docs folder that the site links to.",
            show_default="that of the clone which the report lies in; else documents are named",
        ),
    ] = "",
    trec: Annotated[
        Path | None,
        typer.Option(
            help="Write lists and judgements there as TREC files, for trec_eval, instead.", show_default=False
        ),
    ] = None,
    root: Root = None,
) -> None:
    """Print the leaderboard of a run; write its site, every table (markdown, CSV, LaTeX) and figure (SVG, PNG) it has.

    Example: `readbench report runs/quick --picture leaderboard.svg`
    """
    from readbench.benchmark.metrics import DEFAULT_METRIC
    from readbench.benchmark.report import TableStudy, keep_gallery, read_results, show_report, tasks_of, write_report
    from readbench.benchmark.report.site import write_site
    from readbench.common.plots import column_width

    if trec:
        refuse_others(ctx, "--trec", "folder", "trec")
        _write_lists(folder, trec)
        return
    metric = metric or DEFAULT_METRIC
    results = _require_scores(read_results(folder, metric))
    console = output()
    target = out or folder / "report"
    require_folder(target)  # before the figures, which take their time
    show_report(results, console)
    if picture:
        _save_picture(results, folder, picture)
    others = tuple(read_results(other, metric) for other in beside or ())
    study = TableStudy(results, read_results(full, metric) if full else None, others)
    with Terminal() as progress:
        no_cases = keep_gallery(results, tasks_of(results, root, progress=progress))
    with column_width(column):
        files = write_report(study, target, suffixes=("svg", "png", "pdf") if column else ("svg", "png"))
    site = write_site(folder, target, files, metric, no_cases, documents or _find_documents(target))
    console.print(f"wrote {site}, and {len(files)} tables and figures beside it", highlight=False)
    if no_cases:
        Console(stderr=True).print(f"The site has no cases. {no_cases}", style="yellow", markup=False, highlight=False)


def _write_lists(folder: Path, target: Path) -> None:
    from readbench.benchmark.report import read_results, write_trec

    written = write_trec(_require_scores(read_results(folder)), target)
    typer.echo(f"wrote {len(written)} files into {target}")


def _find_documents(target: Path) -> str:
    """The way from a report to the documents of the clone that it lies in; empty where it lies in none."""
    found = (folder / "docs" for folder in target.resolve().parents if (folder / "docs" / "protocol.md").is_file())
    return next((Path(os.path.relpath(docs, target.resolve())).as_posix() for docs in found), "")


def _require_scores(results: Results) -> Results:
    """The results of a run of which anything was computed."""
    import numpy as np

    if np.isfinite(results.values[results.headline]).any():
        return results
    cell, reason = results.failures[0] if results.failures else ("", "none was begun")
    first = f"the first, {cell}: {reason}" if cell else reason
    raise RunError(
        f"No cell of {results.folder} has a result; {first.rstrip('.')}. Mend that, then start the run again with the"
        " same command. Real data need READBENCH_DATA, or --root."
    )


def _save_picture(results: Results, folder: Path, picture: Path) -> None:
    from readbench.benchmark.report import show_report

    canvas = Console(record=True, width=PICTURE_WIDTH, file=io.StringIO())
    show_report(results, canvas)
    write_text(picture, canvas.export_svg(title=f"readbench report {folder}"))


def compare_command(  # noqa: PLR0917 - typer reads options from the signature
    first: Annotated[Path, typer.Argument(help="A run folder.")],
    second: Annotated[Path | None, typer.Argument(help="Another; without it, two methods of the first.")] = None,
    methods: Annotated[list[str] | None, many_methods("all they share", "A method, twice for one of each side")] = None,
    metric: Annotated[str, typer.Option(help="What to compare.", show_default="NDCG@10")] = "",
    rho: Annotated[int | None, typer.Option(help="Pollution level.", show_default="the first")] = None,
    other_data: Annotated[
        bool, typer.Option("--other-data", help="Compare what runs on different data share.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Where to write compare.md and compare.json.", show_default=False)
    ] = None,
    json_output: Json = False,
) -> None:
    """Compare two runs, or two methods of one, on the same queries: second minus first.

    With published rows as the second and no methods named, every method of the first stands beside all published ones
    that read the same labels.

    Example: `readbench compare runs/quick --methods euclidean --methods dtw-i --out runs/quick/compare`
    """
    from readbench.benchmark.metrics import DEFAULT_METRIC
    from readbench.benchmark.report import (
        as_json,
        check_data,
        compare,
        difference_table,
        markdown,
        pairs_of,
        read_results,
        show_table,
    )
    from readbench.benchmark.runs import PublishedFolder, open_folder
    from readbench.engine.spec import parse, split_specs

    if second and not methods and isinstance(open_folder(second), PublishedFolder):
        _compare_with_published(first, second, metric or DEFAULT_METRIC, rho)
        return
    one, two = _require_scores(read_results(first)), _require_scores(read_results(second)) if second else None
    if two is not None and not other_data:
        check_data(one, two)
    named = [str(parse(text)) for text in split_specs(methods or [])]
    compared = [compare(a, b, metric=metric or DEFAULT_METRIC, rho=rho) for a, b in pairs_of(one, two, named)]
    folder = out or Path()
    if json_output:
        typer.echo(as_json(compared, folder), nl=False)
    else:
        show_table(difference_table(compared), output())
    if out:
        write_text(out / "compare.md", markdown(compared, out))
        write_text(out / "compare.json", as_json(compared, out))
        Console(stderr=True).print(f"wrote compare.md and compare.json into {out}", highlight=False)


def _compare_with_published(mine: Path, published: Path, metric: str, rho: int | None) -> None:
    """Print each method of a run beside the published ones that read the same labels."""
    from readbench.benchmark.report import (
        against_table,
        compare_with_published,
        read_results,
        read_scored_cells,
        show_table,
        state_method,
    )

    results = read_results(mine, metric)
    for method in results.methods:
        cells = [cell for cell in read_scored_cells(results, method) if rho is None or cell.rho == rho]
        labels = state_method(method).labels
        if labels == "unknown":
            unknown = f"Which labels {method} reads is not known here: all published methods stand beside it."
            hint = "Name its file: readbench --plugin FILE compare ..."
            Console(stderr=True).print(f"{unknown} {hint}", style="yellow", markup=False, highlight=False)
        rows = compare_with_published(cells, published, metric=metric, labels="" if labels == "unknown" else labels)
        show_table(against_table(results.title(method), rows, metric), output())


def submit_command(  # noqa: PLR0917 - typer reads options from the signature
    ctx: typer.Context,
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN", help="A run folder; for --rows, any number.")
    ] = None,
    name: Annotated[str, typer.Option(help="Name on the leaderboard.", show_default="of the folder")] = "",
    authors: Annotated[str, typer.Option(help="Who made the system.", show_default=False)] = "",
    url: Annotated[str, typer.Option(help="Where to read about it.", show_default=False)] = "",
    trained_on: Annotated[
        str,
        typer.Option(help="Datasets that any part was trained on, or none.", show_default="not declared"),
    ] = "",
    chosen_on: Annotated[
        str,
        typer.Option(help="Datasets in sight when settings were chosen, or none.", show_default="not declared"),
    ] = "",
    labels: Annotated[
        str, typer.Option(help="Labels that it reads: none, pool or all.", show_default="not declared")
    ] = "",
    out: Annotated[Path | None, typer.Option(help="File to write.", show_default=f"NAME{SUFFIX}")] = None,
    rows: Annotated[
        Path | None,
        typer.Option(
            help="Put the finished cells of the runs into this folder of published rows instead; what it has stays."
        ),
    ] = None,
    methods: Annotated[
        list[str] | None, many_methods("of the runs", "For --rows, a method that is planned too")
    ] = None,
    partly: Annotated[
        bool,
        typer.Option("--partly", help="For --rows, plan new methods of these runs only on what these runs are on."),
    ] = False,
    leave_out: Annotated[
        list[str] | None,
        typer.Option(help='For --rows, "METHOD on DATASET: WHY", which is not planned any more; may be repeated.'),
    ] = None,
) -> None:
    """Pack a run into one small file for a leaderboard, and check it as a leaderboard will; or publish rows of runs.

    Example: `readbench submit runs/quick --name our-encoder --authors "A. Author" --trained-on none`
    """
    from readbench.benchmark.report import Declared, read_bundle, read_results, write_bundle
    from readbench.common.files import write_atomically

    if rows:
        refuse_others(ctx, "--rows", "folders", "rows", "methods", "partly", "leave_out")
        publish_rows(folders or (), rows, methods or (), partly=partly, leave_out=leave_out or ())
        return
    refuse_others(
        ctx,
        "a submission without --rows",
        "folders",
        "name",
        "authors",
        "url",
        "trained_on",
        "chosen_on",
        "labels",
        "out",
    )
    if not folders or len(folders) > 1:
        raise UsageError("A submission is of one run. Name its folder, or give --rows for published rows of many.")
    folder = folders[0]
    if labels not in {"", "none", "pool", "all"}:
        raise UsageError(f"--labels takes none, pool or all. Got {labels!r}.")
    said: dict[str, Any] = {"trained_on": _datasets(trained_on), "chosen_on": _datasets(chosen_on)}
    try:
        declared = Declared.model_validate(
            said | {"name": name or folder.resolve().name, "authors": authors, "url": url, "labels": labels or None}
        )
    except ValueError as error:
        raise UsageError("--name takes up to 60 letters, digits, dots, hyphens and underscores.") from error
    path = out or Path(f"{declared.name}{SUFFIX}")
    with write_atomically(path) as partial:
        write_bundle(_require_scores(read_results(folder)), declared, partial)
        unchecked = read_bundle(partial).unchecked
    odd = f" (not checked, because not installed here: {', '.join(unchecked)})" if unchecked else ""
    typer.echo(f"wrote {path} ({path.stat().st_size / 1024:.0f} kB); its numbers follow from its lists{odd}")


def publish_rows(
    folders: Sequence[Path], out: Path, methods: Sequence[str], *, partly: bool, leave_out: Sequence[str]
) -> None:
    """Put the finished cells of runs into one small folder of published rows."""
    from readbench.benchmark.runs import publish
    from readbench.engine.spec import parse, split_specs

    named = [str(parse(text)) for text in split_specs(methods)]
    left: dict[str, dict[str, str]] = {}
    for text in leave_out:
        if not (match := _LEFT_OUT.fullmatch(text.strip())):
            raise UsageError(f'--leave-out takes "METHOD on DATASET: WHY". Got {text!r}.')
        left.setdefault(str(parse(match["method"])), {})[match["dataset"]] = match["why"]
    done = publish(folders, out, named, partly=partly, left_out=left)
    console = Console(stderr=True)
    for method in done.replaced:
        _line(console, f"{method}: its earlier rows came from other code, packages or weights and were left out")
    missing = done.planned - done.computed
    said = f"; {missing} are planned and not computed (see README.md there)" if missing else ""
    _line(console, f"{done.computed} of {done.planned} cells in {out}, {done.size / 1e6:.1f} MB{said}")


def _line(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def leaderboard_command(  # noqa: PLR0917 - typer reads options from the signature
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(help=f"Folder with submissions (*{SUFFIX}).")],
    out: Annotated[Path | None, typer.Option(help="Where to write.", show_default="FOLDER/leaderboard")] = None,
    reference: Annotated[
        Path | None,
        typer.Option(help="The submission whose tasks are the right ones.", show_default="those most share"),
    ] = None,
    metric: Annotated[str, typer.Option(help="What methods are ordered by.", show_default="NDCG@10")] = "",
    published: Annotated[
        Path | None,
        typer.Option(help="Published rows, as the first submission; with --check, what submissions are held against."),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Check submissions as a pull request must pass; exit code 1 where one does not."),
    ] = False,
    reviewed: Annotated[
        list[str] | None,
        typer.Option(help="With --check, name of a submission that a person has looked at, so that it is not held."),
    ] = None,
    rerun: Annotated[
        int, typer.Option(min=0, help="With --check, tasks on which each method is run again, where it can be.")
    ] = 1,
) -> None:
    """Make a leaderboard from many submissions; those that cannot be believed are named with the reason.

    Example: `readbench leaderboard submissions`
    """
    if check:
        refuse_others(ctx, "--check", "folder", "check", "published", "reviewed", "rerun")
        check_all(folder, published, reviewed or (), rerun)
        return
    refuse_others(ctx, "a leaderboard without --check", "folder", "out", "reference", "metric", "published")
    from readbench.benchmark.metrics import DEFAULT_METRIC
    from readbench.benchmark.report import (
        rank_submissions,
        read_results,
        rejected_table,
        show_table,
        standings_table,
        write_standings,
    )

    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder}. Name one with submissions (*{SUFFIX}).")
    require_folder(out or folder / "leaderboard")
    rows = read_results(published) if published else None
    board = rank_submissions(sorted(folder.glob(f"*{SUFFIX}")), reference, metric or DEFAULT_METRIC, rows)
    console = output()
    show_table(standings_table(board), console)
    if board.rejected:
        show_table(rejected_table(board), console)
    written = write_standings(board, out or folder / "leaderboard")
    Console(stderr=True).print(f"wrote {', '.join(map(str, written))}", highlight=False)


def check_all(folder: Path, published: Path | None, reviewed: Sequence[str], rerun: int) -> None:
    """Check submissions against published rows; exit code 1 where one is refused or held, with the reason."""
    from readbench.benchmark.report import check_submissions, find_published, read_results

    held_against = read_results(find_published(published) if published else find_published())
    checked = check_submissions(folder, held_against, reviewed, rerun)
    for one in checked:
        said = [f"refused: {reason}" for reason in one.reasons] or [f"held for review: {doubt}" for doubt in one.doubts]
        said = said or [f"taken: {', '.join(one.methods)}"]
        typer.echo(f"{one.file}: {'; '.join([*said, *(f'not reproduced: {reason}' for reason in one.missing)])}")
    refused = sum(bool(one.reasons) for one in checked)
    held = sum(bool(one.doubts) and not one.reasons for one in checked)
    typer.echo(f"{len(checked)} submissions, {refused} refused, {held} held for review")
    if refused or held:
        raise typer.Exit(1)


def _datasets(text: str) -> tuple[str, ...] | None:
    """Names of datasets; nothing said is not the same as none."""
    from readbench.engine.registry import SOURCES

    names = tuple(part.strip() for part in text.split(",") if part.strip())
    if not names or names == ("none",):
        return () if names else None
    for name in names:
        if name not in SOURCES:
            raise UnknownNameError("dataset", name, [entry.name for entry in SOURCES])
    return names
