"""A real server: where it binds, with which certificate, and how it ends."""

from __future__ import annotations

import ipaddress
import logging
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from readbench.cases.library import CaseLibrary
from readbench.cases.server.app import create_app
from readbench.cases.server.audit import Audit
from readbench.cases.server.keys import KeyFile
from readbench.cases.server.settings import Settings
from readbench.errors import UsageError

GRACE_S = 20
"""Longest that a request in flight may hold up the end."""
KEEP_ALIVE_S = 30


@dataclass(frozen=True)
class Place:
    """Where a service listens.

    Args:
        host: address; anything but this machine's own loopback needs keys.
        port: 0 takes any that is free.
        certificate: PEM file, for TLS without a proxy.
        private_key: PEM file of the certificate's key.
        proxies: addresses whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed, separated by commas.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    certificate: Path | None = None
    private_key: Path | None = None
    proxies: str = "127.0.0.1"


def serve(library: CaseLibrary, place: Place, settings: Settings, keys: KeyFile, audit: Audit) -> None:
    """Answer until SIGTERM or SIGINT; requests in flight are finished first."""
    guarded = bool(keys.all())
    check_place(place, guarded=guarded)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    config = uvicorn.Config(
        create_app(library, settings, keys if guarded else None, audit),
        host=place.host,
        port=place.port,
        ssl_certfile=place.certificate,
        ssl_keyfile=place.private_key,
        proxy_headers=True,
        forwarded_allow_ips=place.proxies,
        server_header=False,
        access_log=False,
        log_config=None,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
    )
    uvicorn.Server(config).run()


def check_place(place: Place, *, guarded: bool) -> None:
    """Refuse to be reachable from other machines without keys.

    >>> check_place(Place("0.0.0.0"), guarded=True)
    """
    if not guarded and not is_loopback(place.host):
        raise UsageError(
            f"Without keys the service listens on this machine only, not on {place.host}. Make a key first:"
            " readbench cases key add LIBRARY NAME --role write"
        )
    if (place.certificate is None) != (place.private_key is None):
        raise UsageError("TLS needs both the certificate and its private key.")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
