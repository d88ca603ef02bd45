"""`readbench cases serve`, `mcp` and `key`: the HTTP service, the server for agents, API keys, and the demo library."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from readbench.cases import Sheet
from readbench.cli.cases_connect import SourcesOption
from readbench.cli.cases_intake import write_csv
from readbench.cli.cases_questions import print_shown
from readbench.cli.former import refuse_others
from readbench.cli.options import LIBRARY_METHOD, Method, Where, open_library, say
from readbench.cli.progress import Terminal
from readbench.common.files import cache_root
from readbench.common.progress import SILENT, Progress, during
from readbench.errors import UsageError

if TYPE_CHECKING:
    from readbench.benchmark.protocol import Task
    from readbench.cases import Case, Library
    from readbench.cases.server import KeyFile
    from readbench.engine.windows import WindowSet

DEMO_DATASET = "sim_tanks(difficulty=0.5)"
DEMO_CASES = 160
DEMO_OPEN_CASES = 6
DEMO_NORMALS = 400
FIRST_CASE_S = 1_735_689_600.0
"""Time of the first resolved case, in seconds since 1970; the others follow every day or two."""
FIRST_OPEN_CASE_S = FIRST_CASE_S + 86400 * 300
SAMPLE = "sample.csv"
DEMO_NOTES = {
    "leak in tank 1": "Water under tank 1. Drain fitting re-seated, new gasket.",
    "leak in tank 3": "Hairline crack at the weld of tank 3; patched, replacement ordered.",
    "pump 1 efficiency loss": "Impeller of pump 1 worn. Replaced; flow back to its curve.",
    "clogged pipe between tanks": "Scale in the connecting pipe. Flushed with citric acid, then clear.",
    "stuck outlet valve": "Outlet valve did not follow its command. Actuator freed and greased.",
    "level sensor bias": "Level transmitter read high after the service; zero set again.",
    "level sensor drift": "Transmitter drifted over weeks. Exchanged, old one sent in.",
    "level sensor stuck": "Reading frozen while the pressure moved. Cable corroded, replaced.",
    "level sensor excess noise": "Noisy level: shield was not grounded. Grounded at the cabinet.",
}
KEYS = "keys.json"
AUDIT = "audit.jsonl"
KeyFileOption = Annotated[
    Path | None, typer.Option("--keys", help="File with the keys.", show_default="keys.json in the library's folder")
]


def serve_command(
    where: Annotated[
        str, typer.Argument(metavar="[LIBRARY]", help="Folder or address of the library.", show_default=False)
    ] = "",
    *,
    demo: Annotated[
        bool, typer.Option("--demo", help="Serve a demo library of simulated cases, created on first use.")
    ] = False,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any other than loopback requires keys.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 picks a free one.")] = 8000,
    keys: KeyFileOption = None,
    open_: Annotated[
        bool,
        typer.Option("--open", help="Serve without keys: every user of this machine has all rights."),
    ] = False,
    audit: Annotated[
        Path | None,
        typer.Option(
            help="File that the audit log is appended to.", show_default="audit.jsonl in the library's folder"
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "--methods",
            help="Method that clients may choose, the default first; repeatable.",
            show_default=LIBRARY_METHOD,
        ),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="PEM file with the TLS certificate, to serve HTTPS without a proxy.")
    ] = None,
    private_key: Annotated[Path | None, typer.Option(help="PEM file with the certificate's private key.")] = None,
    proxies: Annotated[
        str, typer.Option(help="Addresses of trusted proxies, whose X-Forwarded headers are used.")
    ] = "127.0.0.1",
    max_mb: Annotated[int, typer.Option(min=1, help="Largest request in MiB.")] = 32,
    processes: Annotated[
        int | None,
        typer.Option(
            min=0, help="Search processes; 0 searches in the service's process.", show_default="one per core, at most 4"
        ),
    ] = None,
    sources: SourcesOption = None,
    notices: Annotated[
        Path | None,
        typer.Option(help="File with the notices of the watch.", show_default="notices.jsonl in the library's folder"),
    ] = None,
) -> None:
    """Serve a library over HTTP, as web pages and a JSON API; the demo needs no keys.

    Example: `readbench cases serve --demo`, then open http://127.0.0.1:8000
    """
    _require("fastapi")
    from readbench.cases.server import (
        AuditLog,
        Place,
        Settings,
        check_place,
        count_search_processes,
        serve,
        share_processors,
    )

    if bool(where) == demo:
        raise UsageError("Give either a library or --demo.")
    folder = str(cache_root() / "demo-library") if demo else where
    place = Place(host, port, certificate, private_key, proxies)
    key_file = _choose_keys(folder, keys, open_=open_, demo=demo)
    record = AuditLog(_beside(folder, audit, AUDIT))
    console = Console(stderr=True)
    with Terminal(console) as progress:
        library = None if demo else open_library(folder, background=True)
        check_place(place, key_file)
        if library is None:
            library = demo_library(Path(folder), progress)
        record.begin()
        methods = tuple(method or (LIBRARY_METHOD,))
        with during(progress, f"learning from {len(library)} cases, so that the first search is fast"):
            library.warm(methods[0], progress)
    share_processors()
    sample = Path(folder) / SAMPLE if demo else None
    searching = count_search_processes() if processes is None else processes
    settings = Settings(
        methods=methods,
        max_bytes=max_mb * 2**20,
        sample=sample,
        processes=searching,
        sources=sources,
        notices=notices,
    )

    def announce(address: str) -> None:
        console.print(f"{len(library)} cases at {address} (stop with Ctrl-C)", highlight=False, markup=False)

    serve(library, place, settings, key_file, record, announce)


def _choose_keys(folder: str, keys: Path | None, *, open_: bool, demo: bool) -> KeyFile | None:
    """Keys of the service; None for `--open` or the demo, where no key file exists."""
    from readbench.cases.server import KeyFile

    if not open_ and not (demo and keys is None):
        return KeyFile(_beside(folder, keys, KEYS))
    beside = None if "://" in folder else Path(folder) / KEYS
    found = keys or (beside if beside is not None and beside.exists() else None)
    if found is not None and open_:
        raise UsageError(f"The service has keys, {found}: leave --open out, or move them away to serve without keys.")
    return None if found is None else KeyFile(found)


def mcp_command(
    where: Where,
    *,
    write: Annotated[bool, typer.Option("--write", help="Allow the agent to add and label cases.")] = False,
    root: Annotated[
        list[Path] | None,
        typer.Option(
            "--root",
            help="Folder whose recordings the agent may read; repeatable.",
            show_default="none: the agent sends values",
        ),
    ] = None,
    method: Method = LIBRARY_METHOD,
) -> None:
    """Serve a library to an agent over the Model Context Protocol on standard input and output; read-only by default.

    Example: `readbench cases mcp plant --root recordings`
    """
    _require("mcp")
    from readbench.cases.mcp import agent_server, check_folder

    roots = [check_folder(folder) for folder in root or ()]
    agent_server(open_library(where, background=True), method=method, writable=write, roots=roots).run("stdio")


def key_command(
    ctx: typer.Context,
    where: Where,
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Name of the key's owner.", show_default="all")] = "",
    role: Annotated[str, typer.Option(help="Role: read, write or admin.")] = "read",
    remove: Annotated[
        bool, typer.Option("--remove", help="Revoke the key; a running service refuses its next request.")
    ] = False,
    keys: KeyFileOption = None,
) -> None:
    """Create a key and print it; it cannot be shown again. Without a name, list the names and roles of keys.

    Example: `readbench cases key plant "shift desk" --role write`
    """
    from readbench.cases.server import KeyFile, Role

    file = KeyFile(_beside(where, keys, KEYS))
    if not name:
        refuse_others(ctx, "the list of keys", "where", "keys")
        rows = [(own.name, own.role, f"{datetime.fromtimestamp(own.made, UTC):%Y-%m-%d %H:%M}") for own in file.all()]
        print_shown([Sheet(("Name", "Role", "Made"), rows)])
    elif remove:
        refuse_others(ctx, "--remove", "where", "name", "remove", "keys")
        file.revoke(name)
        say(f"revoked {name}")
    else:
        print(file.add(name, Role.parse(role)))  # noqa: T201 - this is the output


def _beside(where: str, given: Path | None, name: str) -> Path:
    """The given file, or the one in the library's folder."""
    if given is not None:
        return given
    if "://" in where:
        raise UsageError(f"The library is in a database, not a folder. Say where to keep {name}: --keys and --audit.")
    return Path(where) / name


def _require(package: str) -> None:
    if find_spec(package) is None:
        raise UsageError("The service is not installed. Install it: pip install 'readbench[service]'")


def demo_library(where: Path, progress: Progress = SILENT) -> Library:
    """Open the demo library in a folder; create it from simulated data if it does not exist."""
    from readbench.benchmark.protocol import Composition, load_task
    from readbench.cases import Library

    if (where / SAMPLE).is_file():
        return open_library(str(where), background=True)
    settings = Composition(corpus_cap=DEMO_CASES, query_cap=DEMO_OPEN_CASES + 1)
    with during(progress, "simulating a plant"):
        task = load_task(DEMO_DATASET, settings=settings)
    library = Library.create(where, background=True)
    library.add_normals(task.normals[:DEMO_NORMALS])
    library.add(task.corpus_at(0), _resolve(task), progress=progress)
    library.add(task.queries[1:], _leave_open(task.queries[1:]))
    _add_twin(library)
    write_csv(task.queries[:1], where / SAMPLE)
    return library


def _resolve(task: Task) -> list[Case]:
    """Facts of the resolved cases; every third has notes."""
    import numpy as np

    from readbench.cases import facts_of

    days = np.random.default_rng(0).uniform(0.5, 2.5, DEMO_CASES).cumsum()
    return [
        case.model_copy(
            update={
                "id": f"T-{100 + number}",
                "time": FIRST_CASE_S + 86400 * float(days[number % DEMO_CASES]),
                "notes": DEMO_NOTES.get(case.label or "", "") if number % 3 == 0 else "",
            }
        )
        for number, case in enumerate(facts_of(task.corpus_at(0)))
    ]


def _add_twin(library: Library) -> None:
    """Add a near-duplicate: one incident as kept by a second recorder."""
    import numpy as np

    first = library.cases()[DEMO_CASES // 2]
    values = library.window(first.id).values(0)
    noise = np.random.default_rng(1).normal(size=values.shape) * values.std(axis=1, keepdims=True)
    facts = first.model_dump(exclude={"changed"}) | {"id": f"{first.id}-b", "notes": "Kept by the second recorder."}
    library.add_one(values + 0.02 * noise, library.window(first.id).channels(0), **facts)


def _leave_open(windows: WindowSet) -> list[Case]:
    from readbench.cases import facts_of

    return [
        case.model_copy(update={"id": f"T-{901 + number}", "label": None, "time": FIRST_OPEN_CASE_S + 3600.0 * number})
        for number, case in enumerate(facts_of(windows))
    ]
