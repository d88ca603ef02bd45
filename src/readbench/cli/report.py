"""`readbench report`, `compare`, `submit` and `leaderboard`: results of runs."""

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
from readbench.cli.options import SUBMISSION_SUFFIX, Json, Root, many_methods, output
from readbench.cli.progress import Terminal
from readbench.common.files import require_folder, write_text
from readbench.errors import RunError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from readbench.benchmark.report import Results

PICTURE_WIDTH = 108
"""Columns of the leaderboard in `--picture`."""
_LEAVE_OUT = re.compile(r"(?P<method>.+?) on (?P<dataset>\S+): (?P<why>.+)")
"""A value of `--leave-out`."""


def report_command(  # noqa: PLR0917 - typer reads options from the signature
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Run folder.")],
    out: Annotated[Path | None, typer.Option(help="Folder to write to.", show_default="FOLDER/report")] = None,
    full: Annotated[
        Path | None,
        typer.Option(
            help="Run of the same methods on full corpora (--cap none), to compare with.",
            show_default=False,
        ),
    ] = None,
    beside: Annotated[
        list[Path] | None,
        typer.Option("--with", help="Another run to show, over label budgets, label noise or pollution; repeatable."),
    ] = None,
    metric: Annotated[str, typer.Option(help="Metric that orders the methods.", show_default="NDCG@10")] = "",
    picture: Annotated[
        Path | None, typer.Option(help="Also save the printed leaderboard as SVG.", show_default=False)
    ] = None,
    column: Annotated[
        float | None,
        typer.Option(
            min=2,
            help="Width of figures in inches, as for a paper; also writes PDF.",
            show_default="that of each figure",
        ),
    ] = None,
    documents: Annotated[
        str,
        typer.Option(
            help="URL of the documentation that the site links to.",
            show_default="docs of the clone around the report, else no links",
        ),
    ] = "",
    trec: Annotated[
        Path | None,
        typer.Option(
            help="Write ranked lists and relevance judgements to this folder as TREC files instead.", show_default=False
        ),
    ] = None,
    root: Root = None,
) -> None:
    """Print the leaderboard of a run, and write a site with all tables (Markdown, CSV, LaTeX) and figures (SVG, PNG).

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
    """Relative path from a report to the docs of the clone around it; "" outside a clone."""
    found = (folder / "docs" for folder in target.resolve().parents if (folder / "docs" / "protocol.md").is_file())
    return next((Path(os.path.relpath(docs, target.resolve())).as_posix() for docs in found), "")


def _require_scores(results: Results) -> Results:
    """Return the results; raise if no cell has one."""
    import numpy as np

    if np.isfinite(results.values[results.headline]).any():
        return results
    cell, reason = results.failures[0] if results.failures else ("", "none was started")
    first = f"the first, {cell}: {reason}" if cell else reason
    raise RunError(
        f"No cell of {results.folder} has a result; {first.rstrip('.')}. Fix that, then start the run again with the"
        " same command. Real data need READBENCH_DATA, or --root."
    )


def _save_picture(results: Results, folder: Path, picture: Path) -> None:
    from readbench.benchmark.report import show_report

    canvas = Console(record=True, width=PICTURE_WIDTH, file=io.StringIO())
    show_report(results, canvas)
    write_text(picture, canvas.export_svg(title=f"readbench report {folder}"))


def compare_command(  # noqa: PLR0917 - typer reads options from the signature
    first: Annotated[Path, typer.Argument(help="Run folder.")],
    second: Annotated[
        Path | None, typer.Argument(help="Another run folder; without it, methods of the first are compared.")
    ] = None,
    methods: Annotated[
        list[str] | None,
        many_methods("all shared methods", "Method to compare; give two to compare one with the other"),
    ] = None,
    metric: Annotated[str, typer.Option(help="Metric to compare.", show_default="NDCG@10")] = "",
    rho: Annotated[int | None, typer.Option(help="Pollution level in percent.", show_default="the first")] = None,
    other_data: Annotated[
        bool, typer.Option("--other-data", help="Compare runs on different data, on the queries they share.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for compare.md and compare.json.", show_default=False)
    ] = None,
    json_output: Json = False,
) -> None:
    """Compare two runs, or two methods of one run, query by query: second minus first.

    If the second folder holds published rows and no method is named, each method of the first is compared with the
    published methods that use the same labels.

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
    """Print each method of a run against the published methods that use the same labels."""
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
            unknown = f"Which labels {method} uses is unknown, so it is compared with all published methods."
            hint = "Load its plug-in: readbench --plugin FILE compare ..."
            Console(stderr=True).print(f"{unknown} {hint}", style="yellow", markup=False, highlight=False)
        rows = compare_with_published(cells, published, metric=metric, labels="" if labels == "unknown" else labels)
        show_table(against_table(results.title(method), rows, metric), output())


def submit_command(  # noqa: PLR0917 - typer reads options from the signature
    ctx: typer.Context,
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN", help="Run folder; with --rows, any number.")
    ] = None,
    name: Annotated[str, typer.Option(help="Name on the leaderboard.", show_default="name of the folder")] = "",
    authors: Annotated[str, typer.Option(help="Authors of the system.", show_default=False)] = "",
    url: Annotated[str, typer.Option(help="URL of a description.", show_default=False)] = "",
    trained_on: Annotated[
        str,
        typer.Option(
            help="Datasets that any part was trained on, separated by commas, or none.", show_default="not declared"
        ),
    ] = "",
    chosen_on: Annotated[
        str,
        typer.Option(
            help="Datasets that settings were chosen on, separated by commas, or none.", show_default="not declared"
        ),
    ] = "",
    labels: Annotated[
        str, typer.Option(help="Labels that the system uses: none, pool or all.", show_default="not declared")
    ] = "",
    out: Annotated[Path | None, typer.Option(help="File to write.", show_default=f"NAME{SUBMISSION_SUFFIX}")] = None,
    rows: Annotated[
        Path | None,
        typer.Option(
            help="Instead of a submission: add the finished cells of the runs to this folder of published rows."
        ),
    ] = None,
    methods: Annotated[list[str] | None, many_methods("of the runs", "With --rows: further method to plan")] = None,
    partly: Annotated[
        bool,
        typer.Option("--partly", help="With --rows: plan new methods only on the datasets of these runs."),
    ] = False,
    leave_out: Annotated[
        list[str] | None,
        typer.Option(
            help='With --rows: cells to plan no longer, with the reason: "METHOD on DATASET: WHY"; repeatable.'
        ),
    ] = None,
) -> None:
    """Pack a run into a submission file and check it as the leaderboard does; with `--rows`, publish rows of runs.

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
        raise UsageError("A submission holds one run. Give its folder, or --rows to publish rows of several.")
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
    path = out or Path(f"{declared.name}{SUBMISSION_SUFFIX}")
    with write_atomically(path) as partial:
        write_bundle(_require_scores(read_results(folder)), declared, partial)
        unchecked = read_bundle(partial).unchecked
    odd = f" (not checked, because not installed: {', '.join(unchecked)})" if unchecked else ""
    typer.echo(f"wrote {path} ({path.stat().st_size / 1024:.0f} kB); its metrics match its ranked lists{odd}")


def publish_rows(
    folders: Sequence[Path], out: Path, methods: Sequence[str], *, partly: bool, leave_out: Sequence[str]
) -> None:
    """Add the finished cells of runs to a folder of published rows."""
    from readbench.benchmark.runs import publish
    from readbench.engine.spec import parse, split_specs

    named = [str(parse(text)) for text in split_specs(methods)]
    left: dict[str, dict[str, str]] = {}
    for text in leave_out:
        if not (match := _LEAVE_OUT.fullmatch(text.strip())):
            raise UsageError(f'--leave-out takes "METHOD on DATASET: WHY". Got {text!r}.')
        left.setdefault(str(parse(match["method"])), {})[match["dataset"]] = match["why"]
    done = publish(folders, out, named, partly=partly, left_out=left)
    console = Console(stderr=True)
    for method in done.replaced:
        _line(console, f"{method}: earlier rows were left out, since they come from other code, packages or weights")
    missing = done.planned - done.computed
    said = f"; {missing} planned cells are not computed (see README.md there)" if missing else ""
    _line(console, f"{done.computed} of {done.planned} cells in {out}, {done.size / 1e6:.1f} MB{said}")


def _line(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def leaderboard_command(  # noqa: PLR0917 - typer reads options from the signature
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(help=f"Folder with submissions (*{SUBMISSION_SUFFIX}).")],
    out: Annotated[Path | None, typer.Option(help="Folder to write to.", show_default="FOLDER/leaderboard")] = None,
    reference: Annotated[
        Path | None,
        typer.Option(help="Submission whose tasks the others must have.", show_default="the tasks shared by most"),
    ] = None,
    metric: Annotated[str, typer.Option(help="Metric that orders the methods.", show_default="NDCG@10")] = "",
    published: Annotated[
        Path | None,
        typer.Option(help="Folder of published rows, listed first; with --check, submissions are compared with them."),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Check the submissions as for a pull request; exit code 1 if one fails."),
    ] = False,
    reviewed: Annotated[
        list[str] | None,
        typer.Option(help="With --check: name of a submission that a person has approved; repeatable."),
    ] = None,
    rerun: Annotated[
        int, typer.Option(min=0, help="With --check: number of tasks on which each method is rerun, where it can be.")
    ] = 1,
) -> None:
    """Make a leaderboard from submissions; rejected ones are listed with the reason.

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
        raise UsageError(f"There is no folder {folder}. Give a folder with submissions (*{SUBMISSION_SUFFIX}).")
    require_folder(out or folder / "leaderboard")
    rows = read_results(published) if published else None
    board = rank_submissions(sorted(folder.glob(f"*{SUBMISSION_SUFFIX}")), reference, metric or DEFAULT_METRIC, rows)
    console = output()
    show_table(standings_table(board), console)
    if board.rejected:
        show_table(rejected_table(board), console)
    written = write_standings(board, out or folder / "leaderboard")
    Console(stderr=True).print(f"wrote {', '.join(map(str, written))}", highlight=False)


def check_all(folder: Path, published: Path | None, reviewed: Sequence[str], rerun: int) -> None:
    """Check submissions against published rows and print the results; exit with 1 if one is refused or held."""
    from readbench.benchmark.report import check_submissions, find_published, read_results

    held_against = read_results(find_published(published) if published else find_published())
    checked = check_submissions(folder, held_against, reviewed, rerun)
    for one in checked:
        said = [f"refused: {reason}" for reason in one.reasons] or [f"held for review: {doubt}" for doubt in one.doubts]
        said = said or [f"accepted: {', '.join(one.methods)}"]
        typer.echo(f"{one.file}: {'; '.join([*said, *(f'not reproduced: {reason}' for reason in one.missing)])}")
    refused = sum(bool(one.reasons) for one in checked)
    held = sum(bool(one.doubts) and not one.reasons for one in checked)
    typer.echo(f"{len(checked)} submissions, {refused} refused, {held} held for review")
    if refused or held:
        raise typer.Exit(1)


def _datasets(text: str) -> tuple[str, ...] | None:
    """Dataset names separated by commas; () for "none", None if not declared."""
    from readbench.engine.registry import SOURCES

    names = tuple(part.strip() for part in text.split(",") if part.strip())
    if not names or names == ("none",):
        return () if names else None
    for name in names:
        if name not in SOURCES:
            raise UnknownNameError("dataset", name, [entry.name for entry in SOURCES])
    return names
