"""The key of a request, and the role that a route asks for."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, HTTPException, Request
from fastapi.security import HTTPBearer

from readbench.cases.server.keys import LOCAL, NOBODY, Caller, Role
from readbench.cases.server.service import Service, service_of

COOKIE = "readbench_key"
BEARER = HTTPBearer(auto_error=False, description="A key of `readbench cases key add`.")


def caller_of(request: Request, service: Service) -> Caller:
    """Whose request it is: by its `Authorization` header, else by the cookie of the page."""
    if service.keys is None:
        return LOCAL
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        token = request.cookies.get(COOKIE, "")
    return service.keys.caller(token.strip()) if token.strip() else NOBODY


class Needs:
    """A dependency that lets pass who has a role.

    Args:
        role: the lowest that is enough.
    """

    def __init__(self, role: Role) -> None:
        self.role = role

    def __call__(
        self,
        request: Request,
        service: Annotated[Service, Depends(service_of)],
        _documented: Annotated[object, Depends(BEARER)],
    ) -> Caller:
        """The caller, or 401 without a key that is known, or 403 where it may not do this."""
        caller = caller_of(request, service)
        request.state.caller = caller
        if caller.role is Role.NONE:
            raise HTTPException(
                401,
                "This needs a key. Send it as `Authorization: Bearer KEY`; an administrator makes one with"
                " `readbench cases key add`.",
                {"WWW-Authenticate": "Bearer"},
            )
        if caller.role < self.role:
            needed, own = self.role.name.lower(), caller.role.name.lower()
            raise HTTPException(403, f"This needs a key with the role {needed}; yours has the role {own}.")
        return caller


Reader = Annotated[Caller, Depends(Needs(Role.READ))]
Writer = Annotated[Caller, Depends(Needs(Role.WRITE))]
Admin = Annotated[Caller, Depends(Needs(Role.ADMIN))]
