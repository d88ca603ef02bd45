"""Facts that ship with the package as files, each beside the module that reads it."""

from __future__ import annotations

import csv
from importlib.resources import files


def read_shipped(module: str, name: str) -> str:
    """Text of a file in the folder of a module.

    Args:
        module: the `__name__` of who asks.
        name: of the file, with `/` where it lies deeper.
    """
    package = module.rpartition(".")[0]
    return files(package).joinpath(*name.split("/")).read_text(encoding="utf-8")


def read_shipped_rows(module: str, name: str) -> list[dict[str, str]]:
    """Rows of a CSV file in the folder of a module, by the names in its first line.

    >>> read_shipped_rows(__name__, "paper.csv")[0]["dataset"]
    'ctsr'
    """
    return list(csv.DictReader(read_shipped(module, name).splitlines(), strict=True))
