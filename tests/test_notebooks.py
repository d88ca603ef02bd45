"""The notebooks are kept with what they print, and run from an empty folder."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.test_docs import is_like
from tools.notebooks import FOLDER, MOST_S, run_notebook

BOOKS = sorted(FOLDER.glob("*.ipynb"))
PLACES = re.compile(r"/(tmp|root|home|Users|work)/\w")


def code_cells(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]


def printed_by(cell: dict[str, Any]) -> str:
    """The texts that a cell put out, without names that are made up; of other outputs their kinds."""
    said = []
    for output in cell["outputs"]:
        kinds = output.get("data", {})
        text = output.get("text") or kinds.get("text/plain", "")
        said += [*sorted(kinds), text if isinstance(text, str) else "".join(text)]
    return re.sub(r"\bcase-[0-9a-f]{12}\b", "case-NAME", "\n".join(said))


def test_other_outputs_are_found() -> None:
    cell = {"outputs": [{"data": {"text/plain": ["case-0123456789ab is ", "0.67 sure"], "text/html": ["<b>"]}}]}
    assert printed_by(cell) == "text/html\ntext/plain\ncase-NAME is 0.67 sure"
    assert not is_like(printed_by(cell), printed_by({"outputs": [{"text": "case-NAME is 0.67 sure"}]}))


def test_there_are_five() -> None:
    assert [path.stem[2:] for path in BOOKS] == [
        "leaderboard",
        "own-method",
        "own-data",
        "case-library",
        "reading-a-report",
    ]


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_as_it_ran_and_names_no_machine(path: Path) -> None:
    cells = code_cells(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert len(outputs) >= len(cells) // 2
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert not PLACES.search(path.read_text())
    assert path.stat().st_size < 400_000


@pytest.mark.long
@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_an_empty_folder(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("nbclient", reason="needs nbclient: pip install 'readbench[notebooks]'")
    pytest.importorskip("ipykernel", reason="needs ipykernel: pip install 'readbench[notebooks]'")
    pytest.importorskip("pandas", reason="needs pandas: pip install 'readbench[notebooks]'")
    pytest.importorskip("lancedb", reason="needs lancedb: pip install 'readbench[cases]'")
    book, seconds = run_notebook(path, tmp_path)
    assert 1 < seconds < MOST_S
    ran = [cell for cell in book.cells if cell.cell_type == "code"]
    for kept, own in zip(code_cells(path), ran, strict=True):
        assert is_like(printed_by(own), printed_by(kept)), f"python -m tools.notebooks {path.stem}"
