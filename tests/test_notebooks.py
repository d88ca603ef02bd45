"""The notebooks are kept with what they print, and run from an empty folder."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tools.notebooks import FOLDER, MOST_S, run_notebook

BOOKS = sorted(FOLDER.glob("*.ipynb"))
PLACES = re.compile(r"/(tmp|root|home|Users|work)/\w")


def code_cells(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]


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
    kept = [bool(cell["outputs"]) for cell in code_cells(path)]
    assert [bool(cell.outputs) for cell in book.cells if cell.cell_type == "code"] == kept
