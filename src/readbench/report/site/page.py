"""One HTML file from the parts: style, modules, data. It loads nothing and may load nothing."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from readbench.common import web

ASSETS = files("readbench.report.site") / "assets"
STYLES = ("site.css", "cases.css")
NAME = "#site/"
"""How modules call the folder of the site."""
ENTRY = "app.js"
"""The module that starts the page."""


def page(title: str, data: Mapping[str, Any], packs: Mapping[str, bytes]) -> str:
    """The whole page.

    Args:
        title: of the window.
        data: what `content` gives.
        packs: bytes by element id.
    """
    importmap = web.import_map(web.modules() | web.modules(NAME, ASSETS))
    theme, start = web.asset(web.THEME), f'import "{NAME}{ENTRY}";'
    return Template(web.asset("page.html", ASSETS)).substitute(
        title=escape(title),
        policy=web.closed_policy(theme, importmap, start),
        style="\n".join([web.asset("style.css"), *(web.asset(name, ASSETS) for name in STYLES)]),
        theme=theme,
        importmap=importmap,
        start=start,
        data=_embedded(data),
        packs="\n".join(
            f'<script type="text/plain" id="{name}">{base64.b64encode(content).decode()}</script>'
            for name, content in packs.items()
        ),
    )


def _embedded(data: Mapping[str, Any]) -> str:
    """JSON that no text in it can end early: every `<` is written as an escape."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
