"""What all our pages have in common: one style, one theme, one plotter, one way to build elements and write numbers.

Pages that hold all they need inline these files, the service serves them. Modules import each other by names such as
`#web/plot.js`, which the import map of a page resolves, and `package.json` where they are tested.
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
"""Where the files lie, for servers of static files."""
ASSETS: Traversable = files(PACKAGE) / FOLDER
NAME = "#web/"
"""How modules call this folder."""
THEME = "theme.js"
"""The one script that is no module: it runs before a page is drawn."""


def asset(name: str, folder: Traversable = ASSETS) -> str:
    """The text of a file.

    >>> asset("style.css").splitlines()[0]
    '/* What all our pages have in common: colours, type, header, fields, tables, plots. */'
    """
    return (folder / name).read_text(encoding="utf-8")


def modules(prefix: str = NAME, folder: Traversable = ASSETS) -> dict[str, str]:
    """Every module of a folder under the name that others import it by, as an address that holds its own source.

    >>> sorted(modules())[0], modules()["#web/plot.js"][:28]
    ('#web/dom.js', 'data:text/javascript;base64,')
    """
    names = sorted(item.name for item in folder.iterdir() if item.name.endswith(".js") and item.name != THEME)
    return {f"{prefix}{name}": _address(asset(name, folder)) for name in names}


def import_map(addresses: Mapping[str, str]) -> str:
    """The text of an import map: what modules call each other, and where they are.

    >>> import_map({"#web/": "/static/"})
    '{"imports": {"#web/": "/static/"}}'
    """
    return json.dumps({"imports": dict(addresses)})


def closed_page(title: str, style: str, body: str, start: str, more: Mapping[str, str] | None = None) -> str:
    """A page in one file, which loads nothing and may load nothing.

    Args:
        title: text of the window's title.
        style: what the page adds to the common style.
        body: HTML, with a button `theme` in it.
        start: module that starts the page.
        more: further modules by the names that they are imported by; those of this folder are there.
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
    """Content security policy of a page that holds all it needs: its own scripts, and no connection to anywhere."""
    allowed = " ".join(map(digest, scripts))
    return f"default-src 'none'; script-src data: {allowed}; style-src 'unsafe-inline'; img-src data:"


def digest(script: str) -> str:
    """An inline script as a content security policy names it.

    >>> digest("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _address(source: str) -> str:
    return f"data:text/javascript;base64,{base64.b64encode(source.encode()).decode()}"
