"""Who may do what, and who did what.

Keys: who may read, write or administer. A key is a random token; only its hash is ever kept.

Who did what and when, as JSON lines: never what was in it.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import json
import os
import secrets
import sys
import time
from enum import IntEnum
from pathlib import Path
from typing import BinaryIO, NamedTuple, TextIO

from pydantic import BaseModel, ConfigDict, ValidationError

from readbench.common.files import SHORT_WAIT_S, exclusive, write_text
from readbench.errors import DataError, UnknownNameError, UsageError

PREFIX = "rb_"
TOKEN_BYTES = 32
LEAST_FREE = 2**16
"""Bytes on the disk of the record below which it counts as full."""
MOST_NAME = 80


class Role(IntEnum):
    """What a key may do; each role includes those before it.

    `READ` searches and reads. `WRITE` adds, labels and edits. `ADMIN` deletes, takes back and copies the library.
    """

    NONE = 0
    READ = 1
    WRITE = 2
    ADMIN = 3

    @classmethod
    def parse(cls, text: str) -> Role:
        """The role of a name: `read`, `write` or `admin`."""
        names = [role.name.lower() for role in cls if role]
        if text.lower() not in names:
            raise UnknownNameError("role", text, names)
        return cls[text.upper()]


class Key(BaseModel):
    """What is kept of a key.

    Args:
        name: whose it is.
        role: `read`, `write` or `admin`.
        digest: SHA-256 of the token, in hexadecimal digits.
        made: seconds since the epoch.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    role: str
    digest: str
    made: float


class KeyHolder(NamedTuple):
    """Who asks: the name of the key, and what it may do."""

    name: str
    role: Role


NOBODY = KeyHolder("", Role.NONE)
LOCAL = KeyHolder("local", Role.ADMIN)
"""Everybody on the machine itself, where a service has no keys."""


class KeyFile:
    """The keys of a service in one JSON file, which only its owner can read.

    A token has 256 random bits, so that a plain hash is enough to keep it safe. A service sees changes of the file at
    the next request: a revoked key ends at once.

    Args:
        path: of the file; it need not exist.

    >>> import tempfile
    >>> keys = KeyFile(Path(tempfile.mkdtemp()) / "keys.json")
    >>> token = keys.add("shift desk", Role.READ)
    >>> keys.caller(token), keys.caller("rb_guess").role
    (KeyHolder(name='shift desk', role=<Role.READ: 1>), <Role.NONE: 0>)
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp = (-1, -1)
        self._keys: tuple[Key, ...] = ()

    def all(self) -> tuple[Key, ...]:
        """All keys, oldest first."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return ()
        stamp = (status.st_mtime_ns, status.st_size)
        if stamp != self._stamp:
            self._keys, self._stamp = self._read(), stamp
        return self._keys

    def add(self, name: str, role: Role) -> str:
        """Make a key; the token that is returned is shown this once and kept nowhere."""
        if not name.strip() or len(name) > MOST_NAME or not name.isprintable():
            raise UsageError(f"{name[:MOST_NAME]!r} is no name of a key. Give up to {MOST_NAME} characters.")
        token = PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
        with exclusive(self._lock, SHORT_WAIT_S):
            known = self.all()
            if any(key.name == name for key in known):
                raise UsageError(f"There is a key {name!r} already. Revoke it first, or give another name.")
            self._write((*known, Key(name=name, role=role.name.lower(), digest=digest(token), made=time.time())))
        return token

    def revoke(self, name: str) -> None:
        """End a key."""
        with exclusive(self._lock, SHORT_WAIT_S):
            known = self.all()
            if all(key.name != name for key in known):
                raise UnknownNameError("key", name, [key.name for key in known])
            self._write(tuple(key for key in known if key.name != name))

    def caller(self, token: str) -> KeyHolder:
        """Whose token it is; all keys are compared, each in constant time."""
        found, given = NOBODY, digest(token)
        for key in self.all():
            if hmac.compare_digest(key.digest, given):
                found = KeyHolder(key.name, Role.parse(key.role))
        return found

    @property
    def _lock(self) -> Path:
        return self.path.with_name(f"{self.path.name}.lock")

    def _read(self) -> tuple[Key, ...]:
        try:
            entries = json.loads(self.path.read_text(encoding="utf-8"))
            return tuple(Key.model_validate(entry) for entry in entries)
        except (OSError, ValueError, TypeError, ValidationError) as error:
            raise DataError(
                f"{self.path}: no file of keys ({type(error).__name__}). Restore it from a copy."
            ) from error

    def _write(self, keys: tuple[Key, ...]) -> None:
        """Replace the file in one step, readable by its owner only."""
        content = json.dumps([key.model_dump() for key in keys], indent=1)
        write_text(self.path, content, durable=True, mode=0o600)


def digest(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class Event(BaseModel):
    """One request.

    Args:
        time: seconds since the epoch.
        key: name of the key; "" without one.
        method: of HTTP.
        path: without the query.
        status: of the answer.
        ms: how long it took.
        received: bytes of the request's body.
        changes: what it changed, by number, kind and case, such as `12: edit of w0`; `history` has the rest.
    """

    model_config = ConfigDict(frozen=True)

    time: float
    key: str
    method: str
    path: str
    status: int
    ms: float
    received: int
    changes: tuple[str, ...] = ()


class AuditLog:
    """Appends one line for each request; the file may be moved away at any time, as log rotation does.

    Args:
        path: of the file; None keeps none.
        echo: where the same lines go for the operator; None for nowhere.
    """

    def __init__(self, path: Path | None, echo: TextIO | None = sys.stderr) -> None:
        self.path = path
        self.echo = echo

    def check(self) -> None:
        """Raise `OSError` where no line could be written: asked before a request is worked on, not after."""
        if self.path is None:
            return
        with self.path.open("ab"):
            pass
        if hasattr(os, "statvfs"):
            folder = os.statvfs(self.path.parent)
            if folder.f_bavail * folder.f_frsize < LEAST_FREE:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def record(self, event: Event) -> None:
        """Write one line; one that a killed process left unfinished is ended first."""
        line = json.dumps(event.model_dump(), separators=(",", ":")) + "\n"
        if self.path is not None:
            with self.path.open("ab+") as file:
                whole = _ends_with_a_line(file)
                file.write((line if whole else f"\n{line}").encode())
        if self.echo is not None:
            self.echo.write(line)
            self.echo.flush()


def _ends_with_a_line(file: BinaryIO) -> bool:
    """Whether the last line of a file is finished; so is that of an empty one."""
    if file.seek(0, os.SEEK_END) == 0:
        return True
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"
