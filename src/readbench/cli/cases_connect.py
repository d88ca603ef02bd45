"""`readbench cases connect` and `watch`: signal sources, and monitoring them."""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from readbench.cases import Sheet
from readbench.cli.cases_questions import print_shown
from readbench.cli.options import LIBRARY_METHOD, Method, Where, open_library, say
from readbench.cli.research import require_research
from readbench.common.files import digest
from readbench.common.letters import clean
from readbench.errors import UsageError

if TYPE_CHECKING:
    from readbench.cases import Library, ReadRecording
    from readbench.cases.connect import SignalSource
    from readbench.cases.watch import Watcher

NOTICES = "notices.jsonl"
MAX_TRACEBACK_LINES = 200
"""Traceback lines in the log."""
MAX_LISTED_CHANNELS = 200
SourcesOption = Annotated[
    Path | None,
    typer.Option(
        "--sources", help="File with the connected sources.", show_default="sources.toml in the library's folder"
    ),
]
SecretOption = Annotated[
    str, typer.Option(help="Where to read the password or token: env:NAME or file:PATH. It is never stored.")
]
SourceOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option", help="Option of the source, NAME=VALUE, such as asset=rig; repeatable.", show_default=False
    ),
]


def connect_command(
    where: Where,
    name: Annotated[str, typer.Argument(help="Name of the source.")] = "",
    address: Annotated[str, typer.Argument(help="Address, such as prometheus://HOST:9090 or folder:///data.")] = "",
    *,
    option: SourceOptions = None,
    secret: SecretOption = "",
    listed: Annotated[bool, typer.Option("--list", help="List the connected sources.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Check whether the source answers; with --list, every source.")
    ] = False,
    channels: Annotated[bool, typer.Option("--channels", help="List the channels that the source offers.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the source.")] = False,
    sources: SourcesOption = None,
) -> None:
    """Name a signal source: Prometheus, InfluxDB, PostgreSQL, MQTT, OPC UA or a folder of files.

    Example: `readbench cases connect plant line "prometheus://127.0.0.1:9090/?asset=rig" --secret env:PLANT_TOKEN`
    """
    from readbench.cases.connect import NamedSource, SourceAddress, open_source, sources_beside

    file = sources_beside(where, sources)
    if listed or not name:
        rows = [(entry.name, entry.address.shown, entry.address.secret or "none") for entry in file.all()]
        print_shown([Sheet(("Name", "Address", "Secret"), rows)])
        if check:
            _check([entry.name for entry in file.all()], where, sources)
        return
    if remove:
        file.remove(name)
        say(f"removed {name}")
        return
    if address:
        named = NamedSource(name, SourceAddress.parse(address, secret, _options(option)))
        open_source(named.address).close()
        file.put(named)
        say(f"{name} is {named.address.shown}")
    if channels:
        source = file.get(name).open()
        found = source.channels()
        rows = [
            (clean(channel.asset), clean(channel.name), clean(channel.unit)) for channel in found[:MAX_LISTED_CHANNELS]
        ]
        more = [f"And {len(found) - MAX_LISTED_CHANNELS} more."] if len(found) > MAX_LISTED_CHANNELS else []
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
    """Print whether each source answers; exit with 1 if one does not."""
    from readbench.cases.connect import sources_beside
    from readbench.errors import ReadbenchError

    failed = 0
    for name in names:
        source = sources_beside(where, sources).get(name).open()
        try:
            found = source.channels()
            assets = {channel.asset for channel in found}
            say(f"{name} answers: {len(found)} channels of {len(assets)} assets")
        except ReadbenchError as error:
            failed += 1
            say(f"{name}: {clean(str(error))}")
        finally:
            source.close()
    if failed:
        raise typer.Exit(1)


def find_source(where: str, given: str, secret: str, sources: Path | None) -> SignalSource:
    """Open the source at an address, or a connected source by its name."""
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
    """Read the window of a time range from a source; `known`: secret and file with the sources."""
    from readbench.cases.connect import parse_range, read_range

    if not given:
        raise UsageError("Give a file, the name of a case, or --from SOURCE with --start and --end.")
    source = find_source(where, given, *known)
    try:
        first, last = parse_range(*span, zone=zone)
        return read_range(library, source, first, last, asset=asset, onset=onset, rate=rate, zone=zone)
    finally:
        source.close()


def watch_command(
    where: Where,
    *,
    source: Annotated[str, typer.Option(help="Name or address of the source.")] = "",
    secret: SecretOption = "",
    sources: SourcesOption = None,
    notify: Annotated[
        list[str] | None,
        typer.Option(
            help="Receiver of notices: json=URL, slack=SECRET or pagerduty=SECRET, with SECRET as env:NAME or"
            " file:PATH; repeatable.",
            show_default=False,
        ),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(help="File that notices are appended to.", show_default="notices.jsonl in the library's folder"),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the state kept across restarts.", show_default="watch-SOURCE in the library's folder"
        ),
    ] = None,
    link: Annotated[str, typer.Option(help="URL of the service, for links in notices.")] = "",
    listen: Annotated[str, typer.Option(help="HOST:PORT on which to receive Alertmanager's webhook, at /alerts.")] = "",
    listen_secret: Annotated[
        str, typer.Option(help="Where to read the token that alerts must carry: env:NAME or file:PATH.")
    ] = "",
    asset_label: Annotated[str, typer.Option(help="Alert label that holds the asset.")] = "",
    false_alarms: Annotated[
        float, typer.Option(min=0.001, help="Accepted false alarms per day, over all assets.")
    ] = 1.0,
    firm: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Smallest probability at which a fault type is named.")
    ] = 0.7,
    learn: Annotated[
        str, typer.Option(help="Length of history to learn normal operation from: 6h, 2d.", show_default="60 windows")
    ] = "",
    normals: Annotated[
        str, typer.Option(help="Data that normal operation is learned from: auto, history or library.")
    ] = "auto",
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between polls.")] = 5.0,
    lag: Annotated[float, typer.Option(min=0.0, help="Seconds to wait for late readings.")] = 2.0,
    rate: Annotated[float | None, typer.Option(help="Samples per second.", show_default="that of the cases")] = None,
    method: Method = LIBRARY_METHOD,
    most_assets: Annotated[
        int, typer.Option(min=1, help="Largest number of assets to watch; later ones are ignored.")
    ] = 2000,
    once: Annotated[bool, typer.Option("--once", help="Poll once, then exit.")] = False,
    measure: Annotated[
        bool,
        typer.Option("--measure", help="Benchmark the watch instead: channels per core, memory, delay, false alarms."),
    ] = False,
) -> None:
    """Watch a source: detect departures from normal operation, search the library and send notices.

    Example: `readbench cases watch plant --source line --notify slack=env:SLACK_URL --link http://desk:8000`
    """
    if measure:
        require_research()
        from research.watching import measure_watch

        print(json.dumps(measure_watch(), indent=1))  # noqa: T201 - this is the output
        return
    from readbench.cases.connect import parse_moment
    from readbench.cases.watch import NoticeLog, Watcher, WatchSettings, Webhook

    if not source:
        raise UsageError("No source to watch. Give its name or address: --source NAME.")
    if normals not in {"auto", "history", "library"}:
        raise UsageError(f"--normals is auto, history or library. Got {normals[:40]!r}.")
    settings = WatchSettings(
        false_alarms_a_day=false_alarms,
        firm=firm,
        learn_s=-parse_moment(f"-{learn}", now=0.0) if learn else 0.0,
        normals=normals,
        poll_s=every,
        lag_s=lag,
        rate=rate,
        method=method,
        link=link,
        name=source,
        most_assets=most_assets,
    )
    hooks = [Webhook.parse(text) for text in notify or ()]
    for hook in hooks:
        hook.check()
    _log_with_time()
    folder, file = _watch_places(where, source, state, log)
    opened = find_source(where, source, secret, sources)
    watcher = Watcher(
        open_library(where, background=True), opened, folder, settings, hooks, NoticeLog(file), say=_say_with_time
    )
    try:
        with exclusive_watch(folder), _listening(watcher, listen, asset_label, listen_secret):
            _watch(watcher, once=once)
    finally:
        opened.close()


def _watch(watcher: Watcher, *, once: bool) -> None:
    """Run the watch until SIGINT or SIGTERM; `once`: for one poll."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    watcher.library.warm(watcher.settings.method)
    watcher.start()
    if once:
        watcher.tick()
        watcher.close()
    else:
        watcher.run(stop)


def _watch_places(where: str, source: str, state: Path | None, log: Path | None) -> tuple[Path, Path]:
    """Folder of the state and file of the notices."""
    if "://" in where and (state is None or log is None):
        raise UsageError(
            "The library is in a database, not a folder. Say where to keep the watch's files: --state and --log."
        )
    name = source if "://" not in source else f"at-{digest(source)}"
    return state or Path(where) / f"watch-{name}", log or Path(where) / NOTICES


@contextmanager
def exclusive_watch(folder: Path) -> Iterator[None]:
    """Lock the state folder of a watch; a second watch on it is refused."""
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / "watch.lock", timeout=0):
            yield
    except Timeout as error:
        raise UsageError(f"Another watch holds {folder}. End it first, or name another folder: --state") from error


def _listening(watcher: Watcher, listen: str, label: str, secret: str) -> AbstractContextManager[object]:
    """Listener for alerts, if `listen` is given; addresses other than loopback require a token."""
    from readbench.cases.connect import read_secret
    from readbench.cases.watch import AlertListener

    if not listen:
        return nullcontext()
    host, _, port = listen.rpartition(":")
    if not port.isdecimal():
        raise UsageError(f"--listen is HOST:PORT, such as 127.0.0.1:9095. Got {listen[:80]!r}.")
    host = host.strip("[]") or "127.0.0.1"
    if not secret and host not in {"127.0.0.1", "::1", "localhost"}:
        raise UsageError("Alerts from other machines need a token: --listen-secret env:NAME")
    token = read_secret(secret, "--listen") if secret else ""
    return AlertListener(host, int(port), watcher.alert, label, token, lambda: watcher.health)


def _say_with_time(words: str) -> None:
    from datetime import datetime

    print(f"{datetime.now().astimezone():%H:%M:%S} {clean(words)}", file=sys.stderr, flush=True)  # noqa: T201 - the log


class _CleanLines(logging.Formatter):
    """Log lines without control characters, so that data cannot forge a line; tracebacks are indented."""

    def format(self, record: logging.LogRecord) -> str:
        first, *more = super().format(record).splitlines()
        return "\n".join([clean(first), *(f"    {clean(line)}" for line in more[:MAX_TRACEBACK_LINES])])


def _log_with_time() -> None:
    """Log warnings to standard error, with the time of day."""
    handler = logging.StreamHandler()
    handler.setFormatter(_CleanLines("%(asctime)s %(levelname)s %(name)s: %(message)s", "%H:%M:%S"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
