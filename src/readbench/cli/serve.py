"""`readbench cases serve`, `mcp` and `key`: the library for a team, a browser and agents."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from readbench.cases import DEFAULT_METHOD, CaseLibrary
from readbench.cli.case_options import Method, Where
from readbench.cli.demo import SAMPLE, demo_library
from readbench.cli.options import output
from readbench.errors import UsageError
from readbench.paths import cache_root

KEYS = "keys.json"
AUDIT = "audit.jsonl"
keys_app = typer.Typer(help="Who may use a service: keys with a role.", no_args_is_help=True)
KeyFileOption = Annotated[
    Path | None, typer.Option("--keys", help="File of the keys.", show_default="keys.json in the library's folder")
]
KeyName = Annotated[str, typer.Argument(metavar="NAME", help="Whose key it is.", show_default=False)]


def serve_command(
    where: Annotated[
        str, typer.Argument(metavar="[LIBRARY]", help="Folder or address of the library.", show_default=False)
    ] = "",
    *,
    demo: Annotated[bool, typer.Option("--demo", help="Serve a library of simulated cases; makes it first.")] = False,
    host: Annotated[str, typer.Option(help="Address to listen on; other than loopback only with keys.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8000,
    keys: KeyFileOption = None,
    audit: Annotated[
        Path | None, typer.Option(help="File of the audit log.", show_default="audit.jsonl in the library's folder")
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(help="Methods that may be asked for, the default first.", show_default="flagship"),
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="PEM file, for TLS without a proxy.")] = None,
    private_key: Annotated[Path | None, typer.Option(help="PEM file of the certificate's key.")] = None,
    proxies: Annotated[str, typer.Option(help="Addresses of proxies whose headers are believed.")] = "127.0.0.1",
    max_mb: Annotated[int, typer.Option(min=1, help="Largest request in MiB.")] = 32,
) -> None:
    """Serve a library over HTTP: a page for people, JSON for programs.

    Example: `readbench cases serve --demo`, then open http://127.0.0.1:8000
    """
    _require("fastapi")
    from readbench.cases.server.audit import Audit  # noqa: PLC0415 - optional packages
    from readbench.cases.server.keys import KeyFile  # noqa: PLC0415
    from readbench.cases.server.serve import Place, check_place, serve  # noqa: PLC0415
    from readbench.cases.server.settings import Settings  # noqa: PLC0415

    if bool(where) == demo:
        raise UsageError("Give a library, or --demo for one that is made up.")
    folder = str(cache_root() / "demo-library") if demo else where
    place = Place(host, port, certificate, private_key, proxies)
    key_file = KeyFile(_beside(folder, keys, KEYS))
    check_place(place, guarded=bool(key_file.all()))
    console = Console(stderr=True)
    with console.status("getting ready: encoding cases and fitting the method"):
        library = demo_library(Path(folder)) if demo else CaseLibrary.open(folder)
        methods = tuple(method or (DEFAULT_METHOD,))
        library.warm(methods[0])
    sample = Path(folder) / SAMPLE if demo else None
    settings = Settings(methods=methods, max_bytes=max_mb * 2**20, sample=sample)
    scheme = "https" if certificate else "http"
    console.print(f"{len(library)} cases at {scheme}://{host}:{port} (stop with Ctrl-C)", highlight=False, markup=False)
    serve(library, place, settings, key_file, Audit(_beside(folder, audit, AUDIT)))


def mcp_command(
    where: Where,
    *,
    write: Annotated[bool, typer.Option("--write", help="Also let the agent add and label cases.")] = False,
    method: Method = DEFAULT_METHOD,
) -> None:
    """Serve a library to an agent: the Model Context Protocol on standard input and output; read-only by default.

    Example: `readbench cases mcp plant`
    """
    _require("mcp")
    from readbench.cases.agents import agent_server  # noqa: PLC0415 - optional package

    agent_server(CaseLibrary.open(where), method=method, writable=write).run("stdio")


@keys_app.command("add")
def add_key_command(
    where: Where,
    name: KeyName,
    role: Annotated[str, typer.Option(help="read, write or admin.")] = "read",
    keys: KeyFileOption = None,
) -> None:
    """Make a key and print it, this once.

    Example: `readbench cases key add plant "shift desk" --role write`
    """
    from readbench.cases.server.keys import KeyFile, Role  # noqa: PLC0415

    print(KeyFile(_beside(where, keys, KEYS)).add(name, Role.named(role)))  # noqa: T201 - this is the output


@keys_app.command("list")
def list_keys_command(where: Where, keys: KeyFileOption = None) -> None:
    """List keys: names and roles; the keys themselves are kept nowhere."""
    from readbench.cases.server.keys import KeyFile  # noqa: PLC0415

    table = Table("Name", "Role", "Made", box=SIMPLE_HEAD)
    for key in KeyFile(_beside(where, keys, KEYS)).all():
        made = datetime.fromtimestamp(key.made, UTC).strftime("%Y-%m-%d %H:%M")
        table.add_row(escape(key.name), key.role, made)
    output().print(table)


@keys_app.command("revoke")
def revoke_key_command(where: Where, name: KeyName, keys: KeyFileOption = None) -> None:
    """End a key; a running service refuses it from the next request on."""
    from readbench.cases.server.keys import KeyFile  # noqa: PLC0415

    KeyFile(_beside(where, keys, KEYS)).revoke(name)
    output().print(f"revoked {name}", highlight=False, markup=False)


def attach(app: typer.Typer) -> None:
    """Add these commands to those of `readbench cases`."""
    app.command("serve")(serve_command)
    app.command("mcp")(mcp_command)
    app.add_typer(keys_app, name="key")


def _beside(where: str, given: Path | None, name: str) -> Path:
    """The file that was named, or the one in the library's folder."""
    if given is not None:
        return given
    if "://" in where:
        raise UsageError(f"The library is in an object store: say where its {name} is kept, with --keys and --audit.")
    return Path(where) / name


def _require(package: str) -> None:
    if find_spec(package) is None:
        raise UsageError("The service is an optional part. Install it: pip install 'readbench[service]'")
