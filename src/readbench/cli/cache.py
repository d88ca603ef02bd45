"""`readbench cache`."""

from __future__ import annotations

import json
import time
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from readbench.cli.options import Json, output
from readbench.common.cache import DEPTHS, LIMIT, choose_surplus, list_cache, parse_size
from readbench.common.files import cache_root
from readbench.errors import UsageError

DAY_S = 86_400.0


def cache_command(
    prune: Annotated[bool, typer.Option("--prune", help="Delete the selected entries.")] = False,
    kind: Annotated[str, typer.Option(help=f"Select only this kind: {', '.join(DEPTHS)}.")] = "",
    older_than: Annotated[float, typer.Option(help="Select entries not used for this many days.", min=0)] = 0.0,
    most: Annotated[
        str,
        typer.Option(help="Select the least recently used entries above this total size, such as 2GB."),
    ] = "",
    as_json: Json = False,
) -> None:
    """Show the size of the cache by kind, or delete entries.

    Deleted entries are computed again when needed. With READBENCH_CACHE_GB=5 in the environment, runs and studies keep
    the cache below 5 GB. Example: `readbench cache --prune --most 2GB`
    """
    root, entries = cache_root(), list_cache()
    kinds = sorted({entry.kind for entry in entries})
    if kind and kind not in kinds:
        raise UsageError(f"The cache at {root} has no {kind!r}. It has: {', '.join(kinds) or 'nothing'}.")
    entries = [entry for entry in entries if kind in ("", entry.kind)]
    limit = time.time() - older_than * DAY_S
    chosen = choose_surplus(entries, parse_size(most)) if most else entries
    chosen = [entry for entry in chosen if entry.used <= limit]
    for entry in chosen if prune else ():
        entry.remove()
    rows = [
        {
            "kind": name,
            "entries": sum(entry.kind == name for entry in entries),
            "bytes": sum(entry.size for entry in entries if entry.kind == name),
            "selected": sum(entry.kind == name for entry in chosen),
            "selected_bytes": sum(entry.size for entry in chosen if entry.kind == name),
        }
        for name in sorted({entry.kind for entry in entries})
    ]
    if as_json:
        print(json.dumps({"root": str(root), "kinds": rows}, indent=1))  # noqa: T201 - this is the output
        return
    table = Table("Kind", box=SIMPLE_HEAD, title=str(root), title_justify="left")
    for column in ("Entries", "Size", "Removed" if prune else "Would be removed", "Size of these"):
        table.add_column(column, justify="right")
    for row in rows:
        sizes = show_size(int(str(row["bytes"]))), show_size(int(str(row["selected_bytes"])))
        table.add_row(str(row["kind"]), str(row["entries"]), sizes[0], str(row["selected"]), sizes[1])
    output().print(table)
    if not prune:
        output().print(f"--prune removes; {LIMIT}=5 keeps it below 5 GB from now on.", highlight=False)


def show_size(size: int) -> str:
    """Format a number of bytes as megabytes or gigabytes.

    >>> show_size(1_500_000), show_size(4_100_000_000)
    ('1.5 MB', '4.1 GB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"
