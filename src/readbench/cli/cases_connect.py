"""`readbench cases connect` and `watch`: where signals live, and who looks at them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from readbench.cases import Sheet
from readbench.cli.cases_questions import print_shown
from readbench.cli.options import Where, say
from readbench.errors import UsageError

if TYPE_CHECKING:
    from readbench.cases import Library, ReadRecording
    from readbench.cases.connect import SignalSource

MOST_SHOWN = 200
"""Channels that are listed."""
SourcesOption = Annotated[
    Path | None,
    typer.Option("--sources", help="File of the sources.", show_default="sources.toml in the library's folder"),
]
SecretOption = Annotated[
    str, typer.Option(help="Where the password or token is: env:NAME or file:PATH. It is kept nowhere else.")
]
SourceOptions = Annotated[
    list[str] | None,
    typer.Option("--option", help="How it is read, `asset=rig`; may be repeated.", show_default=False),
]


def connect_command(
    where: Where,
    name: Annotated[str, typer.Argument(help="Name of the source.")] = "",
    address: Annotated[str, typer.Argument(help="prometheus://HOST:9090, folder:///data ...")] = "",
    *,
    option: SourceOptions = None,
    secret: SecretOption = "",
    listed: Annotated[bool, typer.Option("--list", help="List the sources.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Ask whether sources answer.")] = False,
    channels: Annotated[bool, typer.Option("--channels", help="List the channels of the source.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Forget the source.")] = False,
    sources: SourcesOption = None,
) -> None:
    """Keep where signals live under a name: Prometheus, InfluxDB, PostgreSQL, MQTT, OPC UA, a folder of files.

    Example: `readbench cases connect plant line "prometheus://127.0.0.1:9090/?asset=rig" --secret env:PLANT_TOKEN`
    """
    from readbench.cases.connect import NamedSource, SourceAddress, open_source, sources_beside

    file = sources_beside(where, sources)
    if listed or not name:
        rows = [(own.name, own.address.shown, own.address.secret or "none") for own in file.all()]
        print_shown([Sheet(("Name", "Address", "Secret"), rows)])
        if check:
            _check([own.name for own in file.all()], where, sources)
        return
    if remove:
        file.remove(name)
        say(f"forgot {name}")
        return
    if address:
        own = NamedSource(name, SourceAddress.parse(address, secret, _options(option)))
        open_source(own.address).close()
        file.put(own)
        say(f"{name} is {own.address.shown}")
    if channels:
        source = file.get(name).open()
        found = source.channels()
        rows = [(own.asset, own.name, own.unit) for own in found[:MOST_SHOWN]]
        more = [f"And {len(found) - MOST_SHOWN} more."] if len(found) > MOST_SHOWN else []
        print_shown([Sheet(("Asset", "Channel", "Unit"), rows), *more])
        source.close()
    elif check or not address:
        _check([name], where, sources)


def _options(texts: list[str] | None) -> dict[str, str]:
    found = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"An option is NAME=VALUE, such as asset=rig. Got {text.split('=')[0][:40]!r}.")
        found[key.strip()] = value
    return found


def _check(names: list[str], where: str, sources: Path | None) -> None:
    """Say of each source whether it answers; fail where one does not."""
    from readbench.cases.connect import sources_beside
    from readbench.errors import ReadbenchError

    failed = 0
    for name in names:
        source = sources_beside(where, sources).get(name).open()
        try:
            found = source.channels()
            assets = {own.asset for own in found}
            say(f"{name} answers: {len(found)} channels of {len(assets)} assets")
        except ReadbenchError as error:
            failed += 1
            say(f"{name}: {error}")
        finally:
            source.close()
    if failed:
        raise typer.Exit(1)


def find_source(where: str, given: str, secret: str, sources: Path | None) -> SignalSource:
    """The source at an address, or of a name that was connected."""
    from readbench.cases.connect import open_source, sources_beside

    return open_source(given, secret) if "://" in given else sources_beside(where, sources).get(given).open()


def read_asked_range(
    library: Library,
    where: str,
    given: str,
    span: tuple[str, str],
    known: tuple[str, Path | None],
    *,
    asset: str,
    onset: str,
    rate: float | None,
    zone: str,
) -> ReadRecording:
    """The window of a range of a source; `known` are its secret and the file of the sources."""
    from readbench.cases.connect import parse_range, read_range

    if not given:
        raise UsageError("Give a file, the name of a case, or --from SOURCE with --start and --end.")
    source = find_source(where, given, *known)
    try:
        first, last = parse_range(*span, zone=zone)
        return read_range(library, source, first, last, asset=asset, onset=onset, rate=rate, zone=zone)
    finally:
        source.close()
