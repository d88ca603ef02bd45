"""Who may do what: one table of deeds and roles, for programs, pages and agents alike.

A role is checked where the deed is done: `Library` asks `check_deed` before it changes anything. A service says in
whose role it works (`act_as`); a program that uses a library directly acts as its administrator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from enum import IntEnum, StrEnum
from types import MappingProxyType

from readbench.errors import RoleError, UnknownNameError


class Role(IntEnum):
    """What a key may do; each role includes those before it.

    `READ` searches and reads. `WRITE` adds, labels, edits and takes edits back. `ADMIN` deletes, takes other changes
    back and copies the library.
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


class Deed(StrEnum):
    """What can be done to a library."""

    READ = "read"
    ADD = "add cases"
    EDIT = "edit a case"
    REVERT_EDIT = "take an edit back"
    DELETE = "delete a case"
    REVERT = "take back a change that is no edit"
    NAME_CHANNELS = "name channels"
    EXPORT = "copy the library"


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
"""The lowest role that may do a deed."""
_ACTING: ContextVar[Role] = ContextVar("role", default=Role.ADMIN)


@contextmanager
def act_as(role: Role) -> Iterator[None]:
    """Do what follows in this thread in a role.

    >>> with act_as(Role.WRITE):
    ...     check_deed(Deed.EDIT)
    """
    token = _ACTING.set(role)
    try:
        yield
    finally:
        _ACTING.reset(token)


def check_deed(deed: Deed, role: Role | None = None) -> None:
    """Refuse a deed that a role does not include; by default the one that this thread acts in."""
    acting = _ACTING.get() if role is None else role
    if acting < ROLES[deed]:
        raise RoleError(
            f"To {deed} needs a key with the role {ROLES[deed].name.lower()}; yours has the role {acting.name.lower()}."
        )
