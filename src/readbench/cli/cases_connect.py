"""`readbench cases connect` and `watch`: where signals live, and who looks at them."""

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
MOST_LOGGED = 200
"""Lines of a traceback."""
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
        rows = [(entry.name, entry.address.shown, entry.address.secret or "none") for entry in file.all()]
        print_shown([Sheet(("Name", "Address", "Secret"), rows)])
        if check:
            _check([entry.name for entry in file.all()], where, sources)
        return
    if remove:
        file.remove(name)
        say(f"forgot {name}")
        return
    if address:
        named = NamedSource(name, SourceAddress.parse(address, secret, _options(option)))
        open_source(named.address).close()
        file.put(named)
        say(f"{name} is {named.address.shown}")
    if channels:
        source = file.get(name).open()
        found = source.channels()
        rows = [(clean(channel.asset), clean(channel.name), clean(channel.unit)) for channel in found[:MOST_SHOWN]]
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


def watch_command(
    where: Where,
    *,
    source: Annotated[str, typer.Option(help="Address, or the name of a source that was connected.")] = "",
    secret: SecretOption = "",
    sources: SourcesOption = None,
    notify: Annotated[
        list[str] | None,
        typer.Option(
            help="json=URL, slack=env:NAME, pagerduty=env:NAME; where a secret is kept. May be repeated.",
            show_default=False,
        ),
    ] = None,
    log: Annotated[
        Path | None, typer.Option(help="File of the notices.", show_default="notices.jsonl in the library's folder")
    ] = None,
    state: Annotated[
        Path | None, typer.Option(help="Folder of what must survive a restart.", show_default="watch-SOURCE beside it")
    ] = None,
    link: Annotated[str, typer.Option(help="Address of the service, for links in notices.")] = "",
    listen: Annotated[str, typer.Option(help="HOST:PORT where Alertmanager's webhook is heard, under /alerts.")] = "",
    listen_secret: Annotated[str, typer.Option(help="Token that alerts must bear: env:NAME or file:PATH.")] = "",
    asset_label: Annotated[str, typer.Option(help="Label of an alert that names the asset.")] = "",
    false_alarms: Annotated[
        float, typer.Option(min=0.001, help="Departures a day of all assets together that normal operation may show.")
    ] = 1.0,
    firm: Annotated[float, typer.Option(min=0.0, max=1.0, help="Probability from which a fault is told.")] = 0.7,
    learn: Annotated[str, typer.Option(help="History to learn from: 6h, 2d.", show_default="60 windows")] = "",
    normals: Annotated[str, typer.Option(help="Where normal operation is learned: auto, history, library.")] = "auto",
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between rounds.")] = 5.0,
    lag: Annotated[float, typer.Option(min=0.0, help="Seconds that readings may be late.")] = 2.0,
    rate: Annotated[float | None, typer.Option(help="Steps a second.", show_default="as the cases have")] = None,
    method: Method = LIBRARY_METHOD,
    most_assets: Annotated[
        int, typer.Option(min=1, help="Assets that are followed; those that came first are.")
    ] = 2000,
    once: Annotated[bool, typer.Option("--once", help="One round, then end.")] = False,
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure channels per core, memory, delay and false alarms instead.")
    ] = False,
) -> None:
    """Follow a source: see departures from normal, ask the library as an event grows, and say what it is.

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
        raise UsageError("Name the source to be followed: --source NAME or an address.")
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
    """Until SIGINT or SIGTERM."""
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
        raise UsageError("The library is in no folder: say where the watch keeps its state, with --state and --log.")
    name = source if "://" not in source else f"at-{digest(source)}"
    return state or Path(where) / f"watch-{name}", log or Path(where) / NOTICES


@contextmanager
def exclusive_watch(folder: Path) -> Iterator[None]:
    """Hold the state of a watch; a second one is refused."""
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / "watch.lock", timeout=0):
            yield
    except Timeout as error:
        raise UsageError(f"Another watch holds {folder}. End it first, or name another folder: --state") from error


def _listening(watcher: Watcher, listen: str, label: str, secret: str) -> AbstractContextManager[object]:
    """The ear for alerts, where one is asked for; other than on loopback only with a token."""
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
    """Lines of the log, tracebacks among them, in which nobody can forge another one."""

    def format(self, record: logging.LogRecord) -> str:
        first, *more = super().format(record).splitlines()
        return "\n".join([clean(first), *(f"    {clean(line)}" for line in more[:MOST_LOGGED])])


def _log_with_time() -> None:
    """What loops say when they fail goes where the watch speaks."""
    handler = logging.StreamHandler()
    handler.setFormatter(_CleanLines("%(asctime)s %(levelname)s %(name)s: %(message)s", "%H:%M:%S"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
