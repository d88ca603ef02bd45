"""Real servers of the tests' own, on loopback, in folders that are removed; None where one is not installed."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import requests

PATIENCE_S = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(
    command: Sequence[str | Path], ready: Callable[[], bool], folder: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A process, once it is ready; its words are in `log` of the folder."""
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen([str(word) for word in command], stdout=log, stderr=log, cwd=folder)
    try:
        end = time.monotonic() + PATIENCE_S
        while not _asks(ready):
            if process.poll() is not None or time.monotonic() > end:
                raise AssertionError((folder / "log").read_text()[-2000:])
            time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def _asks(ready: Callable[[], bool]) -> bool:
    try:
        return ready()
    except (OSError, requests.RequestException):
        return False


@contextmanager
def temporary_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="rb-", dir="/tmp"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


Rows = Mapping[str, Sequence[tuple[float, float]]]
"""Readings, (time, value), by series as the text format of Prometheus writes it: `level{rig="a"}`."""


def openmetrics(rows: Rows) -> str:
    """The text format with times; metrics must stand together."""
    lines = []
    for series in sorted(rows):
        lines += [f"{series} {value!r} {when:.3f}" for when, value in rows[series]]
    metrics = sorted({series.split("{")[0] for series in rows})
    grouped = [
        line
        for metric in metrics
        for line in (f"# TYPE {metric} gauge", *(own for own in lines if own.split("{")[0].split(" ")[0] == metric))
    ]
    return "\n".join([*grouped, "# EOF", ""])


@contextmanager
def prometheus(
    rows: Rows | None = None, target: str = "", every_ms: int = 200, web: str = "", user: tuple[str, str] | None = None
) -> Iterator[str | None]:
    """The address of a Prometheus server with some history, that scrapes a target; `web` is its web configuration."""
    if shutil.which("prometheus") is None:
        yield None
        return
    with temporary_folder() as folder:
        port = free_port()
        jobs = "scrape_configs:\n- job_name: plant\n  honor_labels: true\n"
        scrape = f"\n{jobs}  static_configs:\n  - targets: ['{target}']\n"
        config = f"global:\n  scrape_interval: {every_ms}ms\n  scrape_timeout: {every_ms}ms\n{scrape if target else ''}"
        (folder / "prometheus.yml").write_text(config)
        (folder / "web.yml").write_text(web)
        if rows:
            (folder / "history.txt").write_text(openmetrics(rows))
            promtool = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "history.txt", "data"]
            subprocess.run(promtool, check=True, cwd=folder, capture_output=True)
        command = [
            "prometheus",
            "--config.file=prometheus.yml",
            "--storage.tsdb.path=data",
            "--web.config.file=web.yml",
            f"--web.listen-address=127.0.0.1:{port}",
            "--storage.tsdb.retention.time=10y",
        ]
        address = f"127.0.0.1:{port}"

        def ready() -> bool:
            return requests.get(f"http://{address}/-/ready", timeout=1, auth=user).ok

        with running(command, ready, folder):
            yield address


@contextmanager
def victoria_metrics(rows: Rows | None = None) -> Iterator[str | None]:
    """The address of a VictoriaMetrics server."""
    if shutil.which("victoria-metrics") is None:
        yield None
        return
    with temporary_folder() as folder:
        address = f"127.0.0.1:{free_port()}"
        command = ["victoria-metrics", f"-storageDataPath={folder}/data", f"-httpListenAddr={address}"]
        command += ["-retentionPeriod=100y", "-search.latencyOffset=0s", "-dedup.minScrapeInterval=0s"]
        with running(command, lambda: requests.get(f"http://{address}/health", timeout=1).ok, folder):
            if rows:
                lines = [
                    f"{series} {value!r} {round(1000 * when)}" for series, own in rows.items() for when, value in own
                ]
                sent = requests.post(
                    f"http://{address}/api/v1/import/prometheus", data="\n".join(lines).encode(), timeout=10
                )
                assert sent.status_code == 204
                requests.get(f"http://{address}/internal/force_flush", timeout=10)
            yield address


@contextmanager
def influxdb(auth: tuple[str, str] | None = None) -> Iterator[str | None]:
    """The address of an InfluxDB 1.x server; `auth` makes an administrator."""
    if shutil.which("influxd") is None:
        yield None
        return
    with temporary_folder() as folder:
        address, rpc = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
        (folder / "influx.conf").write_text(
            f'reporting-disabled = true\nbind-address = "{rpc}"\n[meta]\ndir = "{folder}/meta"\n'
            f'[data]\ndir = "{folder}/data"\nwal-dir = "{folder}/wal"\n'
            f'[http]\nbind-address = "{address}"\nauth-enabled = {str(auth is not None).lower()}\nlog-enabled = false\n'
        )
        command = ["influxd", "run", "-config", "influx.conf"]
        with running(command, lambda: requests.get(f"http://{address}/ping", timeout=1).status_code == 204, folder):
            if auth:
                make = f"CREATE USER {auth[0]} WITH PASSWORD '{auth[1]}' WITH ALL PRIVILEGES"
                assert requests.post(f"http://{address}/query", data={"q": make}, timeout=10).ok
            yield address


@contextmanager
def mosquitto(password: tuple[str, str] | None = None, port: int = 0) -> Iterator[str | None]:
    """The address of a Mosquitto broker; with a user and a password, nobody else may come in."""
    program = shutil.which("mosquitto", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    if program is None:
        yield None
        return
    with temporary_folder() as folder:
        port = port or free_port()
        lines = [f"listener {port} 127.0.0.1", f"allow_anonymous {str(password is None).lower()}"]
        if password:
            tool = ["mosquitto_passwd", "-b", "-c", "words", *password]
            subprocess.run(tool, check=True, cwd=folder, capture_output=True)
            (folder / "words").chmod(0o644)
            folder.chmod(0o755)
            lines.append(f"password_file {folder}/words")
        (folder / "mosquitto.conf").write_text("\n".join([*lines, ""]))

        def ready() -> bool:
            with socket.create_connection(("127.0.0.1", port), 1):
                return True

        with running([program, "-c", "mosquitto.conf"], ready, folder):
            yield f"127.0.0.1:{port}"


def repeat(call: Callable[[], object], seconds: float) -> None:
    """Call again and again for a while."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        call()
        time.sleep(0.02)


class SlowServer:
    """Accepts connections and never answers."""

    def __enter__(self) -> str:
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen()
        return f"127.0.0.1:{self._socket.getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self._socket.close()
