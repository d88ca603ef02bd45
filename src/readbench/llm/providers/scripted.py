"""A model that says what it was told to say, for tests and rehearsals."""

from __future__ import annotations

from collections.abc import Callable

from readbench.llm.messages import Reply, Request, Usage


class Scripted:
    """Answers by a function of the request; no call leaves the process.

    Args:
        script: the text of the answer; may raise `CallError`.

    >>> Scripted(lambda request: request.system).complete(Request("hello", (), {})).text
    'hello'
    """

    def __init__(self, script: Callable[[Request], str]) -> None:
        self.script = script

    def complete(self, request: Request) -> Reply:
        """Answer one request."""
        text = self.script(request)
        return Reply(text, Usage(request.tokens, len(text)))
