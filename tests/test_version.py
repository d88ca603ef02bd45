"""The version is written in `readbench/version.py`; what else names it must agree."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from readbench import __version__

ROOT = Path(__file__).parents[1]


def test_the_package_is_built_with_the_version_in_its_code() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in settings["project"]
    assert settings["project"]["dynamic"] == ["version"]
    assert "__version__ = " in (ROOT / settings["tool"]["hatch"]["version"]["path"]).read_text()


def test_a_citation_names_this_version() -> None:
    assert re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE) == [__version__]


def test_the_changelog_begins_with_this_version() -> None:
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == __version__
