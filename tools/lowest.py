"""Whether an environment has the lowest versions that `pyproject.toml` allows: `python -m tools.lowest`.

The bound of a package may be below what the others allow beside it; then it was never tested, and is named here. A
bound is met by its bugfix releases: 3.15 by 3.15.1, 4 by 4.0.1.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement
from packaging.version import Version

OWN = "readbench"
EXTRAS = ("service", "postgres", "llm", "sources", "dev", "docs")
"""What `make test-lowest` installs; `docs` comes with `dev`."""


def find_untested(required: Iterable[str], installed: Callable[[str], str]) -> Iterator[str]:
    """The requirements whose lowest version is not the one that is here, and which one is.

    Args:
        required: as the metadata of a package name them.
        installed: gives the version of a package.
    """
    for text in required:
        needed = Requirement(text)
        bounds = [Version(own.version).release for own in needed.specifier if own.operator in {">=", "=="}]
        wanted = needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in ("", *EXTRAS))
        if wanted and bounds:
            lowest, here = max(bounds), (*Version(installed(needed.name)).release, 0)
            lowest = lowest if len(lowest) > 1 else (*lowest, 0)
            if here[: len(lowest)] != lowest:
                yield f"{needed.name}{needed.specifier}: tested with {installed(needed.name)}"


def main() -> None:
    """Print what is untested; exit with 1 where something is."""
    try:
        found = sorted(set(find_untested(requires(OWN) or (), version)))
    except PackageNotFoundError as error:
        sys.exit(f"{error.name} is not installed: make test-lowest")
    sys.exit("\n".join(["Raise these bounds in pyproject.toml:", *found]) if found else 0)


if __name__ == "__main__":
    main()
