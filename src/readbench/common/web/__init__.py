"""Shared assets of all HTML pages: style, theme, plots, DOM elements, number formats.

Self-contained pages inline these files; the server serves them. Modules import each other by names such as
`#web/plot.js`, which the page's import map resolves, or `package.json` in tests.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from string import Template

PACKAGE, FOLDER = __name__, "static"
"""Package and folder of the assets, for servers of static files."""
ASSETS: Traversable = files(PACKAGE) / FOLDER
NAME = "#web/"
"""Prefix by which modules import this folder."""
THEME = "theme.js"
"""The only script that is not a module: it runs before the page is drawn."""


def asset(name: str, folder: Traversable = ASSETS) -> str:
    """Read an asset as text.

    >>> asset("style.css").splitlines()[0]
    '/* What all our pages have in common: colours, type, header, fields, tables, plots. */'
    """
    return (folder / name).read_text(encoding="utf-8")


def modules(prefix: str = NAME, folder: Traversable = ASSETS) -> dict[str, str]:
    """Map import names to data URLs, for every module of a folder.

    >>> sorted(modules())[0], modules()["#web/plot.js"][:28]
    ('#web/dom.js', 'data:text/javascript;base64,')
    """
    names = sorted(item.name for item in folder.iterdir() if item.name.endswith(".js") and item.name != THEME)
    return {f"{prefix}{name}": _address(asset(name, folder)) for name in names}


def import_map(addresses: Mapping[str, str]) -> str:
    """Write the import map that resolves names to addresses.

    >>> import_map({"#web/": "/static/"})
    '{"imports": {"#web/": "/static/"}}'
    """
    return json.dumps({"imports": dict(addresses)})


def closed_page(title: str, style: str, body: str, start: str, more: Mapping[str, str] | None = None) -> str:
    """Build a self-contained page, which its security policy keeps from loading anything.

    Args:
        title: title of the window.
        style: CSS added to the common style.
        body: HTML; must contain a button with id `theme`.
        start: JavaScript module that starts the page.
        more: addresses of further modules, by import name.
    """
    theme, importmap = asset(THEME), import_map(modules() | dict(more or {}))
    return Template(asset("page.html", files(PACKAGE))).substitute(
        title=escape(title),
        policy=closed_policy(theme, importmap, start),
        style="\n".join([asset("style.css"), style]),
        theme=theme,
        importmap=importmap,
        body=body,
        start=start,
    )


def closed_policy(*scripts: str) -> str:
    """Content security policy of a self-contained page: the given scripts, no network."""
    allowed = " ".join(map(digest, scripts))
    return f"default-src 'none'; script-src data: {allowed}; style-src 'unsafe-inline'; img-src data:"


def digest(script: str) -> str:
    """Hash of an inline script, as a content security policy names it.

    >>> digest("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _address(source: str) -> str:
    return f"data:text/javascript;base64,{base64.b64encode(source.encode()).decode()}"
