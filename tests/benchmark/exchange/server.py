"""A web server on loopback that serves bytes, with ranges, and can misbehave."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

from tests.serving import answering


@dataclass
class Site:
    """What a server gives, and what it was asked.

    Args:
        content: by path.
        ranges: whether it can go on in the middle.
        etag: version of its files; "" sends none.
        breaks: close the connection after so many bytes, for the first answers.
        asked: the Range header of each request, "" for none.
    """

    content: dict[str, bytes]
    ranges: bool = True
    etag: str = '"v1"'
    breaks: list[int] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    address: str = ""

    def url(self, path: str) -> str:
        return f"{self.address}/{path}"


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    class Handler(_Handler):
        served: ClassVar[Site] = site

    with answering(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as site.address:
        yield site


class _Handler(BaseHTTPRequestHandler):
    served: ClassVar[Site]

    def do_GET(self) -> None:
        site, path = self.served, self.path.lstrip("/")
        wanted = self.headers.get("Range", "")
        site.asked.append(wanted)
        if path not in site.content:
            self.send_error(404)
            return
        whole = site.content[path]
        start = 0
        if wanted and site.ranges and self.headers.get("If-Range") == site.etag:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            if start >= len(whole):
                self.send_error(416)
                return
        self._send(whole, start, resumed=start > 0)

    def _send(self, whole: bytes, start: int, *, resumed: bool) -> None:
        site = self.served
        self.send_response(206 if resumed else 200)
        if resumed:
            self.send_header("Content-Range", f"bytes {start}-{len(whole) - 1}/{len(whole)}")
        if site.etag:
            self.send_header("ETag", site.etag)
        self.send_header("Content-Length", str(len(whole) - start))
        self.end_headers()
        body = whole[start:]
        if site.breaks:
            body = body[: site.breaks.pop(0)]
            self.close_connection = True
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""
