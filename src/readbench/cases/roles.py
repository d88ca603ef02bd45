"""Roles and the actions they allow, for programs, pages and agents.

`Library` calls `check_deed` before each change. A service sets the role of a request with `act_as`; code that uses a
library directly acts as administrator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from enum import IntEnum, StrEnum
from types import MappingProxyType

from readbench.errors import RoleError, UnknownNameError


class Role(IntEnum):
    """Role of a key; each role includes those before it.

    `READ` searches and reads. `WRITE` adds, labels, edits and reverts edits. `ADMIN` deletes, reverts other changes,
    names channels and exports the library.
    """

    NONE = 0
    READ = 1
    WRITE = 2
    ADMIN = 3

    @classmethod
    def parse(cls, text: str) -> Role:
        """Parse `read`, `write` or `admin`."""
        names = [role.name.lower() for role in cls if role]
        if text.lower() not in names:
            raise UnknownNameError("role", text, names)
        return cls[text.upper()]


class Deed(StrEnum):
    """An action on a library."""

    READ = "read"
    ADD = "add cases"
    EDIT = "edit a case"
    REVERT_EDIT = "revert an edit"
    DELETE = "delete a case"
    REVERT = "revert a change other than an edit"
    NAME_CHANNELS = "name channels"
    EXPORT = "export the library"


ROLES: Mapping[Deed, Role] = MappingProxyType(
    {
        Deed.READ: Role.READ,
        Deed.ADD: Role.WRITE,
        Deed.EDIT: Role.WRITE,
        Deed.REVERT_EDIT: Role.WRITE,
        Deed.DELETE: Role.ADMIN,
        Deed.REVERT: Role.ADMIN,
        Deed.NAME_CHANNELS: Role.ADMIN,
        Deed.EXPORT: Role.ADMIN,
    }
)
"""Lowest role that allows an action."""
_ACTING: ContextVar[Role] = ContextVar("role", default=Role.ADMIN)


@contextmanager
def act_as(role: Role) -> Iterator[None]:
    """Run the block in a role, in this thread.

    >>> with act_as(Role.WRITE):
    ...     check_deed(Deed.EDIT)
    """
    token = _ACTING.set(role)
    try:
        yield
    finally:
        _ACTING.reset(token)


def check_deed(deed: Deed, role: Role | None = None) -> None:
    """Raise if a role does not allow an action; by default the role of this thread."""
    acting = _ACTING.get() if role is None else role
    if acting < ROLES[deed]:
        raise RoleError(
            f"To {deed} needs a key with the role {ROLES[deed].name.lower()}; yours has the role {acting.name.lower()}."
        )
