"""AWS Signature Version 4, as far as one POST or GET needs it."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote, urlsplit

ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, repr=False)
class Credentials:
    """Keys of an AWS account; `token` belongs to temporary ones. Not shown when printed."""

    access_key: str
    secret_key: str
    token: str = ""


@dataclass(frozen=True)
class Scope:
    """What a signature is good for: one service in one region, on one day."""

    when: datetime
    region: str
    service: str

    def __str__(self) -> str:
        return f"{self.when:%Y%m%d}/{self.region}/{self.service}/aws4_request"


def signed(
    method: str, url: str, headers: Mapping[str, str], body: bytes, credentials: Credentials, scope: Scope
) -> dict[str, str]:
    """The headers with host, date and signature; `headers` have lower-case names, and the query is in order."""
    parts = urlsplit(url)
    own = {**headers, "host": parts.netloc, "x-amz-date": f"{scope.when:%Y%m%dT%H%M%SZ}"}
    if credentials.token:
        own["x-amz-security-token"] = credentials.token
    names = ";".join(sorted(own))
    canonical = "\n".join(
        [
            method,
            quote(parts.path or "/", safe="/-_.~"),  # a path that is quoted already is quoted once more
            parts.query,
            *(f"{name}:{own[name].strip()}" for name in sorted(own)),
            "",
            names,
            hashlib.sha256(body).hexdigest(),
        ]
    )
    message = "\n".join([ALGORITHM, own["x-amz-date"], str(scope), hashlib.sha256(canonical.encode()).hexdigest()])
    signature = hmac.new(_key(credentials.secret_key, scope), message.encode(), hashlib.sha256).hexdigest()
    proof = f"{ALGORITHM} Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    return own | {"authorization": proof}


def _key(secret: str, scope: Scope) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in str(scope).split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key
