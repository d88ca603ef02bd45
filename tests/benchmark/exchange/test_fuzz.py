"""Damaged input of users is refused in words or read, and never anything else; nothing of it is kept."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from readbench.benchmark.exchange import (
    ImportedRecordings,
    check_unchanged,
    draft_dataset,
    export_task,
    read_ready_task,
)
from readbench.common.files import imported_root
from readbench.engine.window_tables import Roles
from readbench.errors import ReadbenchError
from tests.benchmark.exchange.tables import onset_rows, write_wide
from tests.benchmark.exchange.test_divided import task_of
from tests.benchmark.exchange.test_export import told_arrays
from tests.benchmark.exchange.test_measured import INFO

CHANGES = st.tuples(st.floats(0, 1), st.binary(max_size=6), st.integers(0, 20))


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("exported")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("READBENCH_IMPORTED", str(root / "imported"))
        np.savez(root / "t.npz", **told_arrays())  # type: ignore[arg-type]
        export_task(task_of(root / "t.npz"), root / "task", "hf", private=True)
    return root / "task"


def damaged(content: bytes, change: tuple[float, bytes, int]) -> bytes:
    place, new, removed = change
    at = int(place * len(content))
    return content[:at] + new + content[at + removed :]


def import_task(path: Path) -> None:
    """As the command does, without keeping it; only an error in words may come out."""
    try:
        found = read_ready_task(path, INFO)
        with draft_dataset(found.info, found.write) as made:
            check_unchanged(made.source.built(), found)
    except ReadbenchError as error:
        assert len(str(error)) > 20  # noqa: PT017 - either outcome is right
    assert not list(imported_root().glob("*/dataset.json"))


@given(change=CHANGES)
def test_damaged_archives(scratch: Path, change: tuple[float, bytes, int]) -> None:
    file = io.BytesIO()
    np.savez(file, **told_arrays())  # type: ignore[arg-type]
    (scratch / "t.npz").write_bytes(damaged(file.getvalue(), change))
    import_task(scratch / "t.npz")


@given(change=CHANGES, name=st.sampled_from(["queries.parquet", "corpus-20.parquet", "task.json"]))
def test_damaged_exports(exported: Path, change: tuple[float, bytes, int], name: str) -> None:
    before = (exported / name).read_bytes()
    (exported / name).write_bytes(damaged(before, change))
    try:
        import_task(exported)
    finally:
        (exported / name).write_bytes(before)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 200) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(key=st.sampled_from(["info", "classes", "levels", "origin", "fingerprint"]), value=JSON)
def test_facts_of_another_kind(exported: Path, key: str, value: Any) -> None:  # noqa: ANN401
    before = (exported / "task.json").read_bytes()
    (exported / "task.json").write_text(json.dumps(json.loads(before) | {key: value}))
    try:
        import_task(exported)
    finally:
        (exported / "task.json").write_bytes(before)


@given(change=CHANGES)
def test_damaged_tables(scratch: Path, change: tuple[float, bytes, int]) -> None:
    content = write_wide(scratch / "whole.csv", onset_rows(4)).read_bytes()
    (scratch / "runs.csv").write_bytes(damaged(content, change))
    roles = Roles(
        time="t", label="fault", group="run", asset="plant", channels=("flow", "heat"), onset="began", facts=("speed",)
    )
    try:
        source = ImportedRecordings(INFO, (scratch / "runs.csv",), roles).surveyed()
        with draft_dataset(source.info, source.write) as made:
            made.source.built().windows.require_finite()
    except ReadbenchError as error:
        assert len(str(error)) > 20  # noqa: PT017 - either outcome is right
