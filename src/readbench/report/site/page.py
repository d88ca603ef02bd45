"""One HTML file from the parts: style, modules, data. It loads nothing and may load nothing."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from readbench import look

ASSETS = files("readbench.report.site") / "assets"
STYLES = ("base.css", "tables.css", "pages.css", "cases.css")
ENTRY = "app"
"""The module that starts the page."""


def page(title: str, data: Mapping[str, Any], packs: Mapping[str, bytes]) -> str:
    """The whole page.

    Args:
        title: of the window.
        data: what `content` gives.
        packs: bytes by element id.
    """
    importmap = json.dumps({"imports": _modules()})
    start = f'import "site/{ENTRY}";'
    return Template(_asset("page.html")).substitute(
        title=escape(title),
        policy=_policy(importmap, start),
        style="\n".join([look.style(), *map(_asset, STYLES)]),
        importmap=importmap,
        start=start,
        data=_embedded(data),
        packs="\n".join(
            f'<script type="text/plain" id="{name}">{base64.b64encode(content).decode()}</script>'
            for name, content in packs.items()
        ),
    )


def _modules() -> dict[str, str]:
    """Every module under its name, `site/NAME`, as an address that holds its own source."""
    names = sorted(asset.name for asset in ASSETS.iterdir() if asset.name.endswith(".js"))
    return {f"site/{name.removesuffix('.js')}": _address(_asset(name)) for name in names}


def _address(source: str) -> str:
    return f"data:text/javascript;base64,{base64.b64encode(source.encode()).decode()}"


def _policy(*scripts: str) -> str:
    """Content security policy: the scripts of this page, nothing else, and no connection to anywhere."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return f"default-src 'none'; script-src data: {allowed}; style-src 'unsafe-inline'; img-src data:"


def _embedded(data: Mapping[str, Any]) -> str:
    """JSON that no text in it can end early: every `<` is written as an escape."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")
