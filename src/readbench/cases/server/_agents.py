"""Model Context Protocol over HTTP at `/mcp`, with the keys and limits of the service.

Agents send values, not file names. Requests are stateless.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import HTTPException, Request
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import Receive, Scope, Send

from readbench.cases.mcp import agent_server
from readbench.cases.roles import Deed
from readbench.cases.server._bodies import check_effort, check_size
from readbench.cases.server._gate import caller_of, check_caller
from readbench.cases.server._service import BusyError, CaseService
from readbench.errors import UsageError

MAX_BYTES = 4 * 2**20
"""Largest message in bytes; it is parsed on the event loop."""


class AgentDoor:
    """ASGI endpoint with the tools of a service; has `path` and `deed` for the gate.

    Args:
        service: the service.
    """

    path = "/mcp"
    deed = Deed.READ

    def __init__(self, service: CaseService) -> None:
        self.service = service
        self._manager: Any = None

    def _make_manager(self) -> Any:  # noqa: ANN401 - of an optional package
        """Session manager of the tools; can be opened once."""
        service = self.service
        server = agent_server(
            service.library,
            method=service.settings.choose_method(""),
            writable=True,
            run=self._run,
            check=lambda windows: check_effort(check_size(windows, service.settings), service),
        )
        server.streamable_http_app(
            stateless_http=True,
            json_response=True,
            max_request_body_size=min(MAX_BYTES, service.settings.max_bytes),
            # The gate checks Host and Origin.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        return server.session_manager

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Accept requests inside the block."""
        self._manager = self._make_manager()
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one message."""
        scope["route"] = self
        check_caller(caller_of(Request(scope), self.service), self.deed)
        if self._manager is None:
            raise HTTPException(503, "The service is starting. Try again in a moment.")
        await self._manager.handle_request(scope, receive, send)

    async def _run(self, call: Callable[[], Any], request: Any, writes: bool) -> Any:  # noqa: ANN401, FBT001
        """Run a call in the role of the key, whose name is the author of changes."""
        try:
            if not writes:
                return await self.service.work.do(call)
            return await self.service.act(caller_of(request, self.service), call)
        except BusyError as error:
            raise UsageError(str(error)) from error
