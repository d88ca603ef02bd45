"""`make demo-live`: Prometheus scrapes a simulated plant, a fault begins, and the notice arrives.

```
python -m research.live_demo --fault "leak in tank 1" --port 8000
```

1. A library of simulated cases of all rigs (`sim_tanks`), as in `make demo`; a step of the plant lasts 0.2 s instead of
   2 s, so that a window of 256 steps takes 51 s.
2. A Prometheus server of its own, on loopback, with the rig's history and an exporter that it scrapes.
3. The service, with pages for notices and ranges, and the watch, as processes of their own: the commands that a site
   would start.
4. After a while the fault begins. The notice must arrive within `DELAY` windows, with a case of this fault first.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import requests
import typer

from readbench.benchmark.protocol import Composition, load_task
from readbench.cases import Library, attach_context, facts_of
from readbench.cases.connect import NamedSource, SourceAddress, sources_beside
from readbench.cases.watch import Notice, NoticeLog
from readbench.cli.cases_service import DEMO_NOTES
from readbench.cli.failures import complain
from readbench.errors import ReadbenchError, UsageError
from research.live_plant import SimulatedPlant, simulate_plant

STEP_S = 0.2
WINDOW = 256
LEARNED = 40
"""Windows of history."""
LENGTH = 80
"""Windows that the plant runs: after the history, half an hour."""
BEFORE_S = 15.0
"""From the start of the watch to the onset."""
DELAY = 1.25
"""Windows after the onset within which the notice must be there."""
CASES, NORMALS = 160, 400
PATIENCE_S = 60.0


@dataclass(frozen=True)
class DemoResult:
    """What became of it.

    Args:
        notice: that arrived; None where none did in time.
        onset: when the fault began, in seconds since 1970.
        fault: that began.
        address: of the service.
    """

    notice: Notice | None
    onset: float
    fault: str
    address: str

    @property
    def right(self) -> bool:
        """Whether a case of the fault stands first in the notice."""
        return self.notice is not None and self.notice.cases[0].label == self.fault

    @property
    def named(self) -> bool:
        """Whether the fault was told firmly."""
        return self.notice is not None and (self.notice.kind, self.notice.faults[0].label) == ("fault", self.fault)


def make_library(where: Path) -> Library:
    """Cases of all rigs, at the pace of the live plant."""
    task = load_task("sim_tanks(difficulty=0.5)", settings=Composition(corpus_cap=CASES, query_cap=7))
    library = Library.create(where)
    library.add_normals(attach_context(task.normals[:NORMALS], rate=1 / STEP_S))
    corpus = task.corpus_at(0)
    facts = [
        own.model_copy(update={"id": f"T-{100 + number}", "notes": DEMO_NOTES.get(own.label or "", "")})
        for number, own in enumerate(facts_of(corpus))
    ]
    library.add(attach_context(corpus, rate=1 / STEP_S), facts)
    return library


@contextmanager
def running_demo(folder: Path, fault: str, port: int, say: Callable[[str], None]) -> Iterator[DemoResult]:
    """Run all of it until the notice is there, or its time is over; everything goes on until the block ends."""
    if shutil.which("prometheus") is None or shutil.which("promtool") is None:
        raise UsageError("There is no Prometheus server. Install it: apt install prometheus")
    address = f"127.0.0.1:{_free_port(port)}"
    with ExitStack() as stack:
        say("simulating a plant, and a library of its cases")
        library = folder / "library"
        if not library.exists():
            make_library(library)
        history, length = LEARNED * WINDOW, LENGTH * WINDOW
        plant = simulate_plant(length - 1, fault, after=1)  # healthy until it is told otherwise
        stack.enter_context(_process(_serve(library, address), f"http://{address}/readyz"))
        say(f"the service is at http://{address}; the library is being learned")
        exporter = stack.enter_context(_exporting(plant, history))
        begins = exporter.begin()
        server = stack.enter_context(prometheus_server(folder, plant, history, begins, exporter.port))
        source = SourceAddress.parse(f"prometheus://{server}/?asset=rig&unit=unit&drop=job")
        sources_beside(library).put(NamedSource("line", source))
        say(f"Prometheus is at http://{server}, with {history * STEP_S / 60:.0f} minutes of history")
        stack.enter_context(_watching(library, address))
        onset = exporter.fail_in(BEFORE_S)
        say(f"{plant.asset}: {fault!r} begins in {BEFORE_S:.0f} s; the notice must come within {_limit():.0f} s after")
        yield DemoResult(_await_notice(library, onset), onset, fault, f"http://{address}")


def _limit() -> float:
    return DELAY * WINDOW * STEP_S


def _await_notice(library: Path, onset: float) -> Notice | None:
    log = NoticeLog(library / "notices.jsonl")
    while time.time() < onset + _limit():
        if found := [own for own in log.latest(10) if own.told > onset]:
            return found[-1]
        time.sleep(0.2)
    return None


class _Exporter:
    """The plant, as Prometheus scrapes it: what it reads now, by the clock."""

    def __init__(self, plant: SimulatedPlant, first: int) -> None:
        self.plant = plant
        self.first = first
        self.began = time.time()
        self.scraped = False
        exporter = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = exporter.text().encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with suppress(OSError):  # a scrape that did not wait
                    self.wfile.write(body)

            def log_message(self, *_: Any) -> None: ...  # noqa: ANN401

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = int(self.server.server_address[1])

    def begin(self) -> float:
        """The history ends now; the next scrape comes in the middle of a step, and so does each further one."""
        self.began, self.scraped = time.time(), False
        return self.began

    def fail_in(self, seconds: float) -> float:
        """Let the fault begin after so long: what comes before stays as it was; returns when that is."""
        length, step = self.plant.values.shape[1], self._place(time.time() + seconds)
        self.plant = simulate_plant(step, self.plant.fault, after=length - step)
        return self.began + (step - self.first) * STEP_S

    def text(self) -> str:
        """All channels now."""
        now = time.time()
        if not self.scraped:
            # A reading is taken when it is asked for: no scrape repeats one, and none is a mean of two.
            self.scraped, self.began = True, self.began + (now - self.began) % STEP_S - STEP_S / 2
        return _lines(self.plant, self.plant.values[:, self._place(now)])

    def _place(self, now: float) -> int:
        """The plant stands still at the end of what was simulated."""
        return min(self.first + int((now - self.began) / STEP_S), self.plant.values.shape[1] - 1)


def _lines(plant: SimulatedPlant, values: np.ndarray) -> str:
    rows = zip(plant.channels, plant.units, values, strict=True)
    return "".join(f'{name}{{rig="{plant.asset}",unit="{unit}"}} {value:.6g}\n' for name, unit, value in rows)


@contextmanager
def _exporting(plant: SimulatedPlant, first: int) -> Iterator[_Exporter]:
    exporter = _Exporter(plant, first)
    threading.Thread(target=exporter.server.serve_forever, daemon=True).start()
    try:
        yield exporter
    finally:
        exporter.server.shutdown()
        exporter.server.server_close()


@contextmanager
def prometheus_server(folder: Path, plant: SimulatedPlant, last: int, now: float, target: int) -> Iterator[str]:
    """A server with history up to now, that scrapes the plant."""
    own = Path(tempfile.mkdtemp(prefix="prometheus-", dir=folder))
    with (own / "history.txt").open("w") as file:
        for row, (name, unit) in enumerate(zip(plant.channels, plant.units, strict=True)):
            file.write(f"# TYPE {name} gauge\n")
            for i in range(last):
                when = now - (last - i) * STEP_S
                file.write(f'{name}{{rig="{plant.asset}",unit="{unit}"}} {plant.values[row, i]:.6g} {when:.3f}\n')
        file.write("# EOF\n")
    backfill = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "history.txt", "data"]
    subprocess.run(backfill, cwd=own, check=True, capture_output=True)  # noqa: S603 - our own words
    scrape = f"- job_name: plant\n  honor_labels: true\n  static_configs:\n  - targets: ['127.0.0.1:{target}']\n"
    every = f"{round(1000 * STEP_S)}ms"
    config = f"global:\n  scrape_interval: {every}\n  scrape_timeout: {every}\nscrape_configs:\n{scrape}"
    (own / "prometheus.yml").write_text(config)
    address = f"127.0.0.1:{_free_port()}"
    words = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address={address}"]
    with _process(["prometheus", *words], f"http://{address}/-/ready", own):
        yield address


def _serve(library: Path, address: str) -> list[str]:
    host, _, port = address.partition(":")
    return [sys.executable, "-m", "readbench", "cases", "serve", str(library), "--host", host, "--port", port, "--open"]


@contextmanager
def _watching(library: Path, address: str) -> Iterator[None]:
    """The watch, once it watches."""
    words = ["--source", "line", "--link", f"http://{address}", "--every", "1", "--lag", "1"]
    learn = f"{LEARNED * WINDOW * STEP_S:.0f}s"
    command = [sys.executable, "-m", "readbench", "cases", "watch", str(library), *words, "--learn", learn]
    said: list[str] = []
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)  # noqa: S603 - our own words
    ready = threading.Event()

    def listen() -> None:
        for line in process.stderr or ():
            said.append(line)
            print(line, end="", file=sys.stderr, flush=True)  # noqa: T201 - what the watch says
            if "watching" in line:
                ready.set()

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    try:
        if not ready.wait(5 * PATIENCE_S):
            raise UsageError(f"The watch does not begin: {''.join(said[-3:])}")
        yield
    finally:
        _end(process)
        listener.join(20)
        if process.stderr is not None:
            process.stderr.close()


@contextmanager
def _process(command: list[str], ready: str, folder: Path | None = None) -> Iterator[None]:
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=quiet, stderr=quiet, cwd=folder, env=os.environ.copy())  # noqa: S603
    try:
        end = time.monotonic() + 5 * PATIENCE_S
        while not _answers(ready):
            if process.poll() is not None or time.monotonic() > end:
                raise UsageError(f"{command[0]} does not start.")
            time.sleep(0.2)
        yield
    finally:
        _end(process)


def _answers(address: str) -> bool:
    try:
        return requests.get(address, timeout=5).ok
    except requests.RequestException:
        return False


def _end(process: subprocess.Popen[Any]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(20)


def _free_port(wanted: int = 0) -> int:
    """A port that nobody listens on: the one that is wanted, or any."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            raise UsageError(f"Port {wanted} is taken. Name another one: make demo-live PORT={wanted + 1}") from None
        return int(probe.getsockname()[1])


def main(
    fault: Annotated[str, typer.Option(help="One of the faults of the plant.")] = "leak in tank 1",
    port: Annotated[int, typer.Option(help="Of the service; 0 takes one that is free.")] = 8000,
    stay: Annotated[bool, typer.Option(help="Go on serving after the notice, until Ctrl-C.")] = True,  # noqa: FBT002
) -> None:
    """Show the watch live, from the first scrape to the notice."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        right = _show(fault, port, stay=stay)
    except ReadbenchError as error:
        raise typer.Exit(complain(error)) from None
    if not right:
        raise typer.Exit(1)


def _show(fault: str, port: int, *, stay: bool) -> bool:
    """Run the demonstration and print what became of it; whether a case of the fault stood first."""
    with (
        tempfile.TemporaryDirectory(prefix="demo-live-", ignore_cleanup_errors=True) as folder,
        running_demo(Path(folder), fault, port, typer.echo) as result,
    ):
        own = result.notice
        late = None if own is None else own.told - result.onset
        shown = {"right_case_first": result.right, "fault_named": result.named, "seconds_after_onset": late}
        shown |= (
            {} if own is None else own.model_dump(mode="json", include={"kind", "text", "faults", "remarks", "link"})
        )
        typer.echo(json.dumps(shown, indent=1))
        if stay and own is not None:
            typer.echo(f"Open {result.address}/notices; stop with Ctrl-C.")
            threading.Event().wait()
    return result.right


if __name__ == "__main__":
    typer.run(main)
