"""`readbench cache`."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from readbench.cli.options import Json, output
from readbench.common.files import cache_root
from readbench.errors import UsageError

DAY_S = 86_400.0


def cache_command(
    prune: Annotated[bool, typer.Option("--prune", help="Remove entries instead of only showing them.")] = False,
    kind: Annotated[str, typer.Option(help="Only this kind (windows, scores, embeddings ...).")] = "",
    older_than: Annotated[float, typer.Option(help="Only entries not touched for so many days.", min=0)] = 0.0,
    as_json: Json = False,
) -> None:
    """Show what is stored in the cache and how large it is; remove what is no longer wanted.

    Everything in the cache can be computed again. Example: `readbench cache --prune --kind scores --older-than 30`
    """
    root = cache_root()
    kinds = sorted(p.name for p in root.iterdir() if p.is_dir()) if root.is_dir() else []
    if kind and kind not in kinds:
        raise UsageError(f"The cache at {root} has no {kind!r}. It has: {', '.join(kinds) or 'nothing'}.")
    rows = [_row(root / name, older_than, prune=prune) for name in kinds if kind in ("", name)]
    if as_json:
        print(json.dumps({"root": str(root), "kinds": rows}, indent=1))  # noqa: T201 - this is the output
        return
    table = Table(
        "Kind", "Entries", "Size", "Removed" if prune else "Would be removed", box=SIMPLE_HEAD, title=str(root)
    )
    for row in rows:
        table.add_row(row["kind"], str(row["entries"]), _megabytes(row["bytes"]), str(row["selected"]))
    output().print(table)


def _row(folder: Path, older_than: float, *, prune: bool) -> dict[str, Any]:
    entries = sorted(folder.iterdir())
    limit = time.time() - older_than * DAY_S
    chosen = [path for path in entries if _touched(path) <= limit]
    size = sum(_size(path) for path in entries)
    if prune:
        for path in chosen:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return {"kind": folder.name, "entries": len(entries), "bytes": size, "selected": len(chosen)}


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _touched(path: Path) -> float:
    files = [path, *path.rglob("*")] if path.is_dir() else [path]
    return max(max(file.stat().st_mtime, file.stat().st_atime) for file in files)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
