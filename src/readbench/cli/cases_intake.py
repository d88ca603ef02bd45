"""`readbench cases init`, `add`, `normals`, `import`, `export` and `optimise`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from readbench.cli.former import refuse_others
from readbench.cli.options import (
    LIBRARY_METHOD,
    Address,
    Asset,
    Before,
    CaseColumn,
    Channels,
    File,
    First,
    Gpus,
    Jobs,
    KnownFacts,
    Last,
    Method,
    Onset,
    OnsetColumn,
    Rate,
    Root,
    Tags,
    Time,
    Where,
    Workers,
    Zone,
    open_library,
    output,
    parse_context,
    roles,
    say,
    workers,
)
from readbench.cli.progress import Terminal
from readbench.common.files import require_folder, write_json
from readbench.errors import DataError, UsageError

if TYPE_CHECKING:
    from readbench.benchmark.protocol import Task
    from readbench.cases import Case, ReadRecording, Remark
    from readbench.engine.window_tables import Roles
    from readbench.engine.windows import WindowSet

DEMO_QUERIES = 5
"""Windows that a demo writes as CSV, to search for."""
MAX_LISTED_ODDITIES = 5
"""Added cases whose oddities are printed."""


def add_command(
    where: Where,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="CSV, Excel, Parquet or NPZ files.", show_default=False)
    ],
    *,
    label: Annotated[str, typer.Option(help="Fault type; leave out where it is unknown.")] = "",
    notes: Annotated[str, typer.Option(help="Notes on cause and repair.")] = "",
    tag: Tags = None,
    link: Annotated[list[str] | None, typer.Option("--link", help="URL of an attachment; repeatable.")] = None,
    asset: Asset = "",
    group: Annotated[str, typer.Option(help="Recording that the window was cut from.")] = "",
    name: Annotated[str, typer.Option(help="Name of the case.", show_default="generated")] = "",
    time: Time = "",
    zone: Zone = "",
    case: CaseColumn = "",
    label_column: Annotated[str, typer.Option(help="Column with the fault type of each case.")] = "",
    asset_column: Annotated[str, typer.Option(help="Column with the asset of each case.")] = "",
    channels: Channels = "",
    first: First = "",
    last: Last = "",
    onset: Onset = "",
    onset_column: OnsetColumn = "",
    before: Before = None,
    rate: Rate = None,
    fact: KnownFacts = None,
    incidents: Annotated[
        Path | None,
        typer.Option(
            help="Table with columns start,end,label,asset,note: each row cuts one case out of the files, which are"
            " recordings."
        ),
    ] = None,
    executor: Workers = None,
    jobs: Jobs = 1,
    address: Address = None,
    gpus: Gpus = 0,
    method: Annotated[
        str, typer.Option("--method", "--methods", help="Method to encode for, with --executor.")
    ] = LIBRARY_METHOD,
) -> None:
    """Add one case per file; with `--case` one per name in that column, with `--incidents` one per row of the table.

    Without `--incidents`, either all cases are added or none. With `--executor`, files are read there, too.
    Example: `readbench cases add plant pump.csv --time t --onset 14:02 --fact speed=29.5 --label leak --notes "Seal."`
    """
    from readbench.cases import describe_still, encode_cases, join_windows, read_files
    from readbench.engine.spec import parse

    if incidents is not None:
        columns = roles(time, "", channels, asset=asset_column, zone=zone)
        case_options = (
            label,
            notes,
            asset,
            group,
            name,
            case,
            label_column,
            first,
            last,
            onset,
            onset_column,
            before,
            rate,
            fact,
        )
        if any(case_options):
            raise UsageError("With --incidents, the table describes each case. Leave out the options that do.")
        _add_incidents(where, incidents, files, columns)
        return
    columns = roles(time, case, channels, label=label_column, asset=asset_column, onset=onset_column, zone=zone)
    told = parse_context(onset, before, rate, fact)
    if before is not None and len(files) > 1:
        raise UsageError(f"--before applies to one file. Got {len(files)}.")
    given = {"label": label, "notes": notes, "asset": asset, "group": group, "id": name}
    lists = {"tags": tuple(tag or ()), "links": tuple(link or ())}
    update = {key: value for key, value in given.items() if value} | lists
    with workers(executor, jobs, address, gpus) as each:
        parts = read_files(files, columns, (first, last), each or map, told)
        facts = [fact.model_copy(update=update) for part in parts for fact in _facts(part, named=bool(columns.case))]
        if name and len(facts) > 1:
            raise UsageError(f"{', '.join(map(str, files[:3]))}: {len(facts)} cases. --name applies to one.")
        library = open_library(where)
        windows = join_windows([part.windows for part in parts])
        odd = library.check_many(windows, exact=False)
        with Terminal() as progress:
            names = library.add(windows, facts, progress=progress)
        say(f"added {names[0]}" if len(names) == 1 else f"added {len(names)} cases")
        _print_oddities(names, odd)
        for remark in dict.fromkeys([*(remark for part in parts for remark in part.remarks), *describe_still(windows)]):
            say(remark)
        if each:
            with Terminal() as progress:
                count = encode_cases(library.snapshot(), parse(method), each, progress=progress)
            say(f"computed {count} vectors")


def _add_incidents(where: str, incidents: Path, recordings: list[Path], columns: Roles) -> None:
    """Add one case per row of the table; print the rows that failed, with the reason."""
    from readbench.cases import add_incidents

    with Terminal() as progress:
        report = add_incidents(open_library(where), incidents, recordings, columns, progress=progress)
    for row, reason in report.failed:
        say(f"{incidents}, row {row}: {reason}")
    say(f"added {len(report.added)} cases; {len(report.known)} were here already; {len(report.failed)} rows failed")
    _print_oddities(list(report.added), list(report.odd))
    for remark in report.remarks:
        say(remark)
    if report.failed and not report.added and not report.known:
        raise DataError(f"{incidents}: every row failed, for the reasons above.")


def _print_oddities(names: list[str], odd: list[tuple[Remark, ...]]) -> None:
    """Print what is odd about the first few added windows, and how many more are odd."""
    strange = [(name, remarks) for name, remarks in zip(names, odd, strict=True) if remarks]
    for name, remarks in strange[:MAX_LISTED_ODDITIES]:
        say(f"{name}: {' '.join(remark.words for remark in remarks)}")
    if len(strange) > MAX_LISTED_ODDITIES:
        say(f"{len(strange) - MAX_LISTED_ODDITIES} more are odd; see readbench cases check LIBRARY CASE")


def normals_command(
    where: Where,
    file: File,
    *,
    asset: Asset = "",
    time: Time = "",
    case: CaseColumn = "",
    channels: Channels = "",
    first: First = "",
    last: Last = "",
    rate: Rate = None,
    fact: KnownFacts = None,
    length: Annotated[
        int, typer.Option(min=0, help="Cut the recording into windows of this many rows; 0 keeps it whole.")
    ] = 0,
) -> None:
    """Add windows of normal operation, against which departures are measured.

    Example: `readbench cases normals plant quiet-week.csv --time t --length 256 --asset "pump 2"`
    """
    from readbench.cases import read_recording

    told = parse_context("", None, rate, fact)
    read = read_recording(file, roles(time, case, channels), (first, last), told=told)
    with Terminal() as progress:
        names = open_library(where, progress=progress).add_normals(_cut(read.windows, length), asset or None)
    say(f"added {len(names)} normal windows")
    for remark in read.remarks:
        say(remark)


def _facts(read: ReadRecording, *, named: bool) -> list[Case]:
    """Facts of the cases in a file; without a case column, the file name is not taken as the case name."""
    facts = read.facts()
    return facts if named or len(facts) > 1 else [fact.model_copy(update={"id": "", "group": ""}) for fact in facts]


def _cut(windows: WindowSet, length: int) -> WindowSet:
    """Cut recordings into windows of `length` steps; a shorter rest at the end is dropped."""
    from readbench.engine.windows import WindowSet

    if not length:
        return windows
    pieces = [
        (windows.values(i)[:, start : start + length], i)
        for i in range(len(windows))
        for start in range(0, int(windows.lengths[i]) - length + 1, length)
    ]
    if not pieces:
        raise UsageError(f"Every recording is shorter than --length {length} rows. Give a smaller length.")
    return WindowSet.from_arrays(
        [values for values, _ in pieces],
        channels=[windows.channels(i) for _, i in pieces],
        assets=[str(windows.assets[i]) for _, i in pieces],
        context=windows[[i for _, i in pieces]].context,
    )


def export_command(
    where: Where,
    file: Annotated[Path, typer.Argument(help="Parquet file to write.")],
    *,
    history: Annotated[bool, typer.Option("--history", help="Include the history of changes.")] = False,
) -> None:
    """Write all cases and normal windows of a library into one Parquet file.

    Example: `readbench cases export plant backup.parquet --history`
    """
    from readbench.cases import export_library

    say(f"wrote {export_library(open_library(where), file, history=history)} windows into {file}")


def import_command(
    where: Where, file: Annotated[Path, typer.Argument(help="Parquet or NPZ file that `export` wrote.")]
) -> None:
    """Add the cases and normal windows of an exported file; one with a history needs an empty library."""
    from readbench.cases import import_library

    say(f"added {import_library(open_library(where), file)} windows")


def optimise_command(
    ctx: typer.Context,
    where: Where,
    *,
    warm: Annotated[
        bool, typer.Option("--warm", help="Also encode the cases that a search needs, so that the first one is fast.")
    ] = False,
    method: Method = LIBRARY_METHOD,
    executor: Workers = None,
    jobs: Jobs = 1,
    address: Address = None,
    gpus: Gpus = 0,
) -> None:
    """Merge small files and index the windows; the contents stay the same.

    Example: `readbench cases optimise plant --warm --executor processes --jobs 8`
    """
    from readbench.cases import encode_cases
    from readbench.engine.spec import parse

    if not warm:
        refuse_others(ctx, "optimise without --warm", "where", "warm")
    library = open_library(where)
    if warm:
        with workers(executor, jobs, address, gpus) as each, Terminal() as progress:
            if each:
                say(f"computed {encode_cases(library.snapshot(), parse(method), each, progress=progress)} vectors")
            else:
                say(f"encoded {library.warm(method, progress)} cases")
    store = library.store
    before = store.size()
    with store.writing():
        store.optimise()
    say(f"{before / 1e6:.0f} MB before, {store.size() / 1e6:.0f} MB now; merged files stay for half an hour")


def init_command(
    ctx: typer.Context,
    where: Where,
    *,
    demo: Annotated[
        bool, typer.Option("--demo", help="Fill it with cases of a dataset, and write windows to search for.")
    ] = False,
    datasets: Annotated[
        str,
        typer.Option("--datasets", "--dataset", help="With --demo: dataset whose training side becomes the library."),
    ] = "sim_tanks",
    cases: Annotated[int, typer.Option(min=1, help="With --demo: largest number of cases.")] = 60,
    normals: Annotated[int, typer.Option(min=0, help="With --demo: largest number of normal windows.")] = 60,
    new: Annotated[Path, typer.Option(help="With --demo: folder for windows of the test side, as CSV.")] = Path("new"),
    root: Root = None,
) -> None:
    """Create an empty library, or with `--demo` one filled from a dataset.

    Example: `readbench cases init plant`, or `readbench cases init plant --demo --datasets sim_tanks --cases 60`
    """
    from readbench.cases import Library

    if demo:
        fill_demo(where, datasets, cases, normals, new, root)
        return
    refuse_others(ctx, "init without --demo", "where", "demo")
    with whole_library(where):
        made = Library.create(where).store.where
    say(f"made an empty library at {made}")


def fill_demo(where: str, dataset: str, cases: int, normals: int, new: Path, root: Path | None) -> None:
    """Create a library from the training side of a dataset, and write windows of its test side as CSV."""
    from readbench.benchmark.protocol import Composition, load_task
    from readbench.cases import Library, facts_of

    require_folder(new)
    if any(new.iterdir()):
        raise UsageError(f"{new} is not empty. Give another folder: --new FOLDER")
    settings = Composition(corpus_cap=cases, query_cap=100, normals_cap=max(1, normals))
    task = load_task(dataset, root=root, settings=settings)
    corpus = task.corpus_at(0)
    with whole_library(where):
        library = Library.create(where)
        library.add_normals(task.normals[:normals])
        library.add(corpus, [fact.model_copy(update={"notes": f"From {fact.group}."}) for fact in facts_of(corpus)])
        truths = write_new(task, new)
    output().print(
        f"{library.store.where}: {len(corpus)} cases, {min(normals, len(task.normals))} normal windows;"
        f" {len(truths)} new windows in {new}; what they are is in {new / 'truth.json'}",
        highlight=False,
        soft_wrap=True,
    )


@contextmanager
def whole_library(where: str) -> Iterator[None]:
    """Delete the folder of a new library if the block fails; a folder that held files before is kept."""
    folder = Path(where)
    fresh = "://" not in where and not (folder.exists() and (not folder.is_dir() or any(folder.iterdir())))
    try:
        yield
    except BaseException:
        if fresh:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def write_new(task: Task, folder: Path) -> dict[str, dict[str, str]]:
    """Write one test window per fault type as CSV, for the first few types, and their fault types as JSON."""
    import numpy as np

    folder.mkdir(parents=True, exist_ok=True)
    _, first = np.unique(task.queries.labels, return_index=True)
    truths = {}
    for number, i in enumerate(np.sort(first)[:DEMO_QUERIES].tolist(), start=1):
        name = f"{number}.csv"
        write_csv(task.queries[i : i + 1], folder / name)
        fault, asset = task.queries.classes[task.queries.labels[i]], str(task.queries.assets[i])
        truths[name] = {"fault": fault, "asset": asset}
    write_json(folder / "truth.json", truths)
    return truths


def write_csv(window: WindowSet, path: Path) -> None:
    """Write one window as CSV: a row per step, a column per channel; steps in seconds where the rate is known."""
    import numpy as np

    header = ",".join(["step", *(f'"{name}"' for name in window.channels(0))])
    rate = window[0].rate
    steps = np.arange(window.lengths[0]) / (rate if np.isfinite(rate) else 1.0)
    rows = np.column_stack([steps, window.values(0).T])
    np.savetxt(path, rows, fmt="%.7g", delimiter=",", header=header, comments="", encoding="utf-8")
