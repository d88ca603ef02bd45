"""A PostgreSQL server of the tests' own, on this machine, in a folder that is removed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

PASSWORD = "s3cret-Pä55"  # noqa: S105 - of a server that lives for a test


class PostgresServer:
    """Started and stopped by its own tools; connections by socket need no password, by TCP they do.

    Args:
        programs: folder of `initdb` and `pg_ctl`.
        folder: of its data and its socket.
    """

    def __init__(self, programs: Path, folder: Path) -> None:
        self.programs = programs
        self.folder = folder
        self.port = _free_port()
        self._numbers = count()
        # The server refuses to run as root.
        self._user = "nobody" if os.name == "posix" and os.geteuid() == 0 else None

    def make(self) -> None:
        """Its files."""
        word = self.folder / "word"
        word.write_text(PASSWORD)
        if self._user:
            for path in (self.folder, word):
                shutil.chown(path, self._user)
        self._run(
            *("initdb", "--no-sync", "-U", "tester", "-E", "UTF8", "--locale=C", "--auth-local=trust"),
            *("--auth-host=scram-sha-256", f"--pwfile={word}"),
        )

    def start(self) -> None:
        """Until it answers."""
        options = f"-k {self.folder} -p {self.port} -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=40"
        self._run("pg_ctl", "start", "-w", "-l", str(self.folder / "log"), "-o", options)

    def stop(self, how: str = "fast") -> None:
        """`immediate` is how a killed one ends."""
        self._run("pg_ctl", "stop", "-w", "-m", how)

    def new(self) -> str:
        """An address where no library is."""
        return f"postgresql:///postgres?host={self.folder}&port={self.port}&user=tester&schema=s{next(self._numbers)}"

    def ask(self, query: str, database: str = "postgres") -> str:
        """What the server's own client prints."""
        words = ["psql", "-h", str(self.folder), "-p", str(self.port), "-U", "tester", "-Atc", query, database]
        return subprocess.run([self.programs / words[0], *words[1:]], check=True, capture_output=True, text=True).stdout

    def _run(self, program: str, *words: str) -> None:
        command = [str(self.programs / program), *words, "-D", str(self.folder / "data")]
        quiet = subprocess.DEVNULL
        subprocess.run(command, check=True, user=self._user, cwd=self.folder, stdin=quiet, stdout=quiet, stderr=quiet)


@contextmanager
def running_server() -> Iterator[PostgresServer | None]:
    """A server; None where its programs are not installed."""
    programs = _find_programs()
    if programs is None:
        yield None
        return
    # A short path: that of a socket has at most 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    server = PostgresServer(programs, folder)
    try:
        server.make()
        server.start()
        yield server
        server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _find_programs() -> Path | None:
    """The newest of Debian's, or those on the path."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), key=lambda path: int(path.parts[-3]))
    found = installed[-1] if installed else shutil.which("pg_ctl")
    return None if found is None else Path(found).resolve().parent


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
