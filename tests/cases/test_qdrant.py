"""The second back end keeps the same promises: in a folder, where Qdrant's own client needs no server, and on a server.

The server is the one that `READBENCH_TEST_QDRANT` names (`host:6333`); without it, those tests are skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import numpy as np
import pytest

pytest.importorskip("qdrant_client", reason="a library on Qdrant needs its client: pip install 'readbench[qdrant]'")

from readbench.cases import CaseLibrary, journal
from readbench.cases.answers import Case
from readbench.cases.journal import Entry
from readbench.cases.qdrant import TABLES, QdrantStore
from readbench.errors import DataError, UsageError
from tests.cases.samples import FAST, filled, normals, windows


@pytest.fixture(params=["folder", "server"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[QdrantStore]:
    server = os.environ.get("READBENCH_TEST_QDRANT", "")
    if request.param == "server" and not server:
        pytest.skip("READBENCH_TEST_QDRANT names no Qdrant server (host:6333)")
    where = f"qdrant://{server}/test-{uuid4().hex}" if request.param == "server" else f"qdrant://{tmp_path}/plant"
    own = QdrantStore(where, create=True)
    yield own
    if request.param == "server":
        for table in TABLES:
            own._client.delete_collection(own._collection(table))
    own.close()


def test_it_answers_like_the_other_back_end(store: QdrantStore, tmp_path: Path) -> None:
    ours, theirs = CaseLibrary(store), filled(tmp_path / "lance")
    ours.add_normals(normals(10))
    ours.add(windows(12))
    for library in (ours, theirs):
        library.label("w3", "other")
        library.delete(["w4"])
        library.undo()
        library.edit("w5", notes="Replaced the bearing.")
    for i in range(2):
        asked = windows(2, seed=4)[i : i + 1]
        left, right = (library.search(asked, method=FAST) for library in (ours, theirs))
        assert [(hit.case.id, hit.score) for hit in left.hits] == [(hit.case.id, hit.score) for hit in right.hits]
        assert left.faults == right.faults
    assert [case.id for case in ours.find("bearing")] == [case.id for case in theirs.find("bearing")] == ["w5"]
    assert [change.what for change in ours.history()] == [change.what for change in theirs.history()]


def test_windows_and_vectors_come_back(store: QdrantStore) -> None:
    ragged = windows(3)
    digests = store.file_windows(ragged)
    assert [w.values.tolist() for w in store.windows(digests[::-1])] == [w.values.tolist() for w in ragged][::-1]
    store.file_vectors("one", digests, np.arange(6, dtype=np.float32).reshape(3, 2))
    assert {d: v.tolist() for d, v in store.vectors("one", digests[1:]).items()} == {
        digests[1]: [2, 3],
        digests[2]: [4, 5],
    }
    assert store.vectors("other", digests) == {}
    with pytest.raises(DataError, match="missing"):
        store.windows(["00" * 16])


def test_of_two_writers_at_the_same_step_one_is_refused(store: QdrantStore) -> None:
    first, second = (journal.rows([Entry(Case(id=name), 0, "d")], "add", 1, 0, 0.0) for name in "ab")
    store.append(first)
    with pytest.raises(UsageError, match="Another writer was faster"):
        store.append(second)
    assert list(journal.fold(store.journal()).cases) == ["a"]


def test_names_of_channels_are_kept(store: QdrantStore) -> None:
    store.file_naming([("p", "pressure", "bar"), ("p", "pressure", "kPa")])
    assert store.naming() == {"p": {"name": "pressure", "unit": "kPa"}}


def test_it_lives_where_the_address_says(store: QdrantStore) -> None:
    store.append(journal.rows([Entry(Case(id="a"), 0, "d")], "add", 1, 0, 0.0))
    if not urlsplit(store.where).netloc:
        store.close()  # a folder has one user at a time
    again = CaseLibrary.open(store.where)
    assert len(again) == 1
    with pytest.raises(UsageError, match="names no library"):
        QdrantStore("qdrant://host:6333/")
