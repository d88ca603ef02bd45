"""`python -m tools.docs fill results README.md docs/*.md`: write the tables that documents mark.

`check` in the place of `fill` writes nothing, and ends with 1 where a block is not what the rows give.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from readbench.benchmark.report import Results, read_results
from tools.docs.blocks import fill_blocks, find_stale


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.docs", description=__doc__)
    parser.add_argument("verb", choices=("fill", "check"))
    parser.add_argument("results", type=Path, help="a folder of published rows")
    parser.add_argument("documents", type=Path, nargs="+", help="Markdown files with marked blocks")
    asked = parser.parse_args(arguments)
    rows = read_results(asked.results)
    if asked.verb == "fill":
        for document in asked.documents:
            print(f"{document}: {'written' if fill_document(document, rows) else 'up to date'}")  # noqa: T201
        return 0
    stale = find_stale(asked.documents, rows)
    for block in stale:
        print(f"{block.document}: the block {block.name} is not what the rows of {asked.results} give")  # noqa: T201
    return 1 if stale else 0


def fill_document(document: Path, rows: Results) -> bool:
    """Write the blocks of one; whether any changed."""
    before = document.read_text(encoding="utf-8")
    after = fill_blocks(before, rows, str(document))
    if after != before:
        document.write_text(after, encoding="utf-8")
    return after != before


if __name__ == "__main__":
    sys.exit(main())
