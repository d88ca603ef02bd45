"""Licences of everything that an installation with all extras brings: `python -m tools.licences`.

Prints one line a package and fails where a licence is neither permissive nor explained. Packages that are not installed
here are left out, and said so.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

OWN = "readbench"
PERMISSIVE = re.compile(
    r"\b(MIT|BSD|Apache|ISC|PSF|Python Software Foundation|Zlib|Unlicense|CC0|0BSD|HPND|BSL-1.0|MPL|Mozilla|OFL"
    r"|Unicode|Public Domain|CNRI-Python|X11)",
    re.IGNORECASE,
)
"""Beginnings of the names of licences that let everybody use, change and pass on. MPL asks for changed files of its own
alone."""
EXPLAINED = {
    "psycopg": "LGPL-3.0: used as it is, through its interface; extra `postgres` alone",
    "psycopg-binary": "LGPL-3.0: as psycopg",
    "asyncua": "LGPL-3.0: used as it is, through its interface; extra `opcua` alone",
    "python-can": "LGPL-3.0: used as it is by cantools, with which tests compare our reader; extra `sources` alone",
    "tirex-ts": "NXAI Community License: extra `models`, for the encoder `tirex` alone, which asks before it is used",
    "nvidia-": "NVIDIA's terms for CUDA libraries: brought by torch on Linux, extras with torch alone",
    "cuda-": "NVIDIA's terms for CUDA libraries: as nvidia-",
}
"""Packages, or beginnings of their names, whose metadata do not say it in these words, or that need a word."""


@dataclass(frozen=True)
class Licence:
    """What a package says of its licence.

    Args:
        package: its name.
        version: as installed.
        licence: in its own words, shortened.
        explained: why it may be used where the words alone do not say so.
    """

    package: str
    version: str
    licence: str
    explained: str

    @property
    def clean(self) -> bool:
        """Whether it may be used."""
        return bool(self.explained or PERMISSIVE.search(self.licence))


def list_licences(extras: frozenset[str] = frozenset({"all"})) -> tuple[list[Licence], list[str]]:
    """Licences of all packages that are here because of ours, by name; and the names of those that are not here."""
    found: dict[str, Licence] = {}
    absent: set[str] = set()
    queue = [(OWN, extras)]
    seen: set[tuple[str, frozenset[str]]] = set()
    while queue:
        name, asked = queue.pop()
        if (name, asked) in seen:
            continue
        seen.add((name, asked))
        try:
            package = distribution(name)
        except PackageNotFoundError:
            absent.add(name)
            continue
        if name != OWN:
            found[name] = Licence(name, package.version, _licence_of(package), _explain(name))
        queue += _requirements(package, asked)
    return [found[name] for name in sorted(found)], sorted(absent)


def _requirements(package: Distribution, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """What a package needs here, with these extras."""
    for text in package.requires or ():
        needed = Requirement(text)
        wanted = [needed.marker is None or needed.marker.evaluate({"extra": extra}) for extra in (*extras, "")]
        if any(wanted):
            yield canonicalize_name(needed.name), frozenset(needed.extras)


def _licence_of(package: Distribution) -> str:
    """The expression, else the classifiers, else the first words of the field."""
    told = package.metadata
    if "License-Expression" in told:
        return told["License-Expression"]
    classified = [own.rpartition(" :: ")[2] for own in told.get_all("Classifier") or () if own.startswith("License ::")]
    specific = [own for own in classified if own != "OSI Approved"]
    words = " ".join(told["License"].split()) if "License" in told else ""
    return ", ".join(specific) or words[:80] or _licence_file(package)


def _licence_file(package: Distribution) -> str:
    """The first words of the licence that comes with a package."""
    for file in package.files or ():
        if re.fullmatch(r"(LICEN[CS]E|COPYING)(\.\w+)?", file.name, re.IGNORECASE):
            return " ".join(file.read_text(encoding="utf-8").split())[:80]
    return "not stated"


def _explain(name: str) -> str:
    return next((why for own, why in EXPLAINED.items() if name == own or (own[-1] == "-" and name.startswith(own))), "")


def main() -> None:
    """Print the list; exit with 1 where something is neither permissive nor explained."""
    listed, absent = list_licences()
    for own in listed:
        mark = "" if own.clean else "  <- neither permissive nor explained"
        print(f"{own.package} {own.version}: {own.explained or own.licence}{mark}")  # noqa: T201 - this is the output
    print(f"{len(listed)} packages; not installed here: {', '.join(absent) or 'none'}")  # noqa: T201
    sys.exit(not all(own.clean for own in listed))


if __name__ == "__main__":
    main()
