"""Run the notebooks and keep what they print: `python -m tools.notebooks [NAME ...]`.

Each runs in an empty folder with a cache of its own, as on a new user's machine, and is written back with its outputs.
What would differ from machine to machine (folders, times of execution) is left out.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "notebooks"
MOST_S = 120
"""Seconds of processor that a notebook may take, which are the same on quiet and busy machines."""


def run_notebook(path: Path, folder: Path, timeout_s: float = 10 * MOST_S) -> tuple[Any, float]:
    """The notebook with fresh outputs, and the seconds of processor that it took; an error in a cell is raised.

    Args:
        path: of the notebook.
        folder: where it runs.
        timeout_s: of one cell.
    """
    import nbformat  # noqa: PLC0415 - optional
    from nbclient import NotebookClient  # noqa: PLC0415 - optional

    book = nbformat.read(path, as_version=4)
    variables = {
        "READBENCH_CACHE": str(folder / "cache"),
        "READBENCH_IMPORTED": str(folder / "imported"),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "COLUMNS": "110",
    }
    before = {name: os.environ.get(name) for name in (*variables, "READBENCH_DATA")}
    os.environ.update(variables)
    os.environ.pop("READBENCH_DATA", None)
    began = _processor_seconds()
    try:
        NotebookClient(
            book,
            timeout=timeout_s,
            kernel_name="python3",
            resources={"metadata": {"path": str(folder)}},
            record_timing=False,
        ).execute()
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
    _tidy(book, folder)
    return book, _processor_seconds() - began


def _processor_seconds() -> float:
    """What processes that this one started and that have ended took, the kernel and its own among them."""
    used = os.times()
    return used.children_user + used.children_system


def _tidy(book: Any, folder: Path) -> None:  # noqa: ANN401 - a notebook has no type
    """Take out what names this machine."""
    book.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in book.cells:
        for output in cell.get("outputs", ()):
            if "text" in output:
                output["text"] = _without_places(output["text"], folder)
            for kind, content in output.get("data", {}).items():
                if kind.startswith("text/"):
                    output["data"][kind] = _without_places(content, folder)


def _without_places(text: str, folder: Path) -> str:
    text = text.replace(f"{folder}/", "").replace(str(folder), ".")
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def main() -> None:
    """Run all notebooks, or those that are named."""
    import nbformat  # noqa: PLC0415 - optional

    for path in sorted(FOLDER.glob("*.ipynb")):
        if sys.argv[1:] and path.stem not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            book, seconds = run_notebook(path, Path(folder))
        nbformat.write(book, path)
        print(f"{path.name}: {seconds:.0f} s of processor", flush=True)  # noqa: T201 - this is the output


if __name__ == "__main__":
    main()
