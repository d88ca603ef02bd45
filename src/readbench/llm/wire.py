"""One JSON question over HTTP, and what each way of failing means.

Nothing here logs. Messages of errors hold the address and what the server said, never a header: keys travel in headers
only. Redirects are not followed, so that a key never reaches a host that nobody configured.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any, Literal

from readbench.errors import MethodError

Failure = Literal["throttled", "overloaded", "unreachable", "garbled", "refused"]
"""Ways in which a call fails. All but `refused` may pass when it is tried again."""
EXCERPT = 300
THROTTLED, OVERLOADED = 429, 500


class CallError(MethodError):
    """A call without an answer.

    Args:
        failure: which way it failed.
        message: what happened, and what to do.
        wait: seconds that the server asks to wait.
    """

    def __init__(self, failure: Failure, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.failure = failure
        self.wait = wait


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Leaves a redirect as the failure that it is."""

    def redirect_request(self, *_: object) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)


def post(url: str, headers: Mapping[str, str], body: bytes, timeout: float) -> Any:  # noqa: ANN401 - any JSON
    """The JSON that a server answers to a JSON body; `CallError` where it does not."""
    request = urllib.request.Request(url, body, dict(headers) | {"content-type": "application/json"}, method="POST")  # noqa: S310 - checked by `Profile`
    try:
        with _OPENER.open(request, timeout=timeout) as response:
            content = response.read()
    except urllib.error.HTTPError as error:
        raise _refusal(url, error) from None
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise CallError("unreachable", f"{url} did not answer: {reason}. Is the server running?") from None
    try:
        return json.loads(content)
    except ValueError:
        raise CallError("garbled", f"{url} answered with something that is no JSON: {_excerpt(content)}") from None


def _refusal(url: str, error: urllib.error.HTTPError) -> CallError:
    with error:
        try:
            said = _excerpt(error.read())
        except (OSError, HTTPException):
            said = ""
    message = f"{url} answered with status {error.code}: {said or error.reason}"
    if error.code == THROTTLED:
        return CallError("throttled", message, _seconds(error.headers.get("retry-after", "")))
    if error.code >= OVERLOADED:
        return CallError("overloaded", message, _seconds(error.headers.get("retry-after", "")))
    return CallError("refused", f"{message}. Check the model's name, its address and its key.")


def _excerpt(content: bytes) -> str:
    return " ".join(content.decode(errors="replace").split())[:EXCERPT]


def _seconds(text: str) -> float:
    """A `retry-after` in seconds; dates are not worth parsing, backing off does as well."""
    return float(text) if text.strip().isdecimal() else 0.0
