"""Keys of a service: random tokens with a role; only their hashes are stored."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from readbench.cases.roles import Role
from readbench.common.files import SHORT_WAIT_S, exclusive, write_text
from readbench.common.times import LATEST
from readbench.errors import DataError, UnknownNameError, UsageError

PREFIX = "rb_"
TOKEN_BYTES = 32
MAX_NAME = 80


class Key(BaseModel):
    """Stored form of a key.

    Args:
        name: name of the owner.
        role: `read`, `write` or `admin`.
        digest: SHA-256 of the token, hexadecimal.
        made: time of creation, in seconds since 1970.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    role: Literal["read", "write", "admin"]
    digest: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    made: Annotated[float, Field(ge=0, lt=LATEST)]


class KeyHolder(NamedTuple):
    """Caller of a request: name of the key, and role."""

    name: str
    role: Role


NOBODY = KeyHolder("", Role.NONE)
LOCAL = KeyHolder("local", Role.ADMIN)
"""Caller of a service without keys."""


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

    def require(self) -> None:
        """Raise `UsageError` where there is no key: a service that was given a file of keys never goes without."""
        if not self.all():
            found = "holds no key" if self.path.exists() else "is not there"
            raise UsageError(
                f"The file of keys {self.path} {found}. Make a key first: readbench cases key LIBRARY NAME --role"
                " admin. Or serve this machine alone, without keys: --open"
            )

    def add(self, name: str, role: Role) -> str:
        """Make a key; the token that is returned is shown this once and kept nowhere."""
        if not name.strip() or len(name) > MAX_NAME or not name.isprintable():
            raise UsageError(f"{name[:MAX_NAME]!r} is no name of a key. Give up to {MAX_NAME} characters.")
        token = PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
        with exclusive(self._lock, SHORT_WAIT_S):
            known = self.all()
            if any(key.name == name for key in known):
                raise UsageError(f"There is a key {name!r} already. Revoke it first, or give another name.")
            made = {"name": name, "role": role.name.lower(), "digest": digest(token), "made": time.time()}
            self._write((*known, Key.model_validate(made)))
        return token

    def revoke(self, name: str) -> None:
        """End a key."""
        with exclusive(self._lock, SHORT_WAIT_S):
            known = self.all()
            if all(key.name != name for key in known):
                raise UnknownNameError("key", name, [key.name for key in known])
            self._write(tuple(key for key in known if key.name != name))

    def caller(self, token: str) -> KeyHolder:
        """Owner of a token; compares all keys in constant time."""
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
        except (OSError, ValueError, TypeError, RecursionError, ValidationError) as error:
            raise DataError(
                f"{self.path} is not a key file ({type(error).__name__}). Restore it from a copy."
            ) from error

    def _write(self, keys: tuple[Key, ...]) -> None:
        """Replace the file atomically, readable by its owner only."""
        content = json.dumps([key.model_dump() for key in keys], indent=1)
        write_text(self.path, content, durable=True, mode=0o600)


def digest(token: str) -> str:
    """SHA-256 of a token, hexadecimal."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
