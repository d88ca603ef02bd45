"""The library on a Qdrant server, for writers on several machines.

The same promises as in LanceDB, kept by other means. The rows of one append travel as one point of the journal, which
Qdrant writes whole or not at all, under a number that follows from their first step: of two writers who begin at the
same step, one is refused and has written nothing. Windows and vectors are points whose number follows from what they
are, so that the same window is kept once.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit
from uuid import NAMESPACE_OID, uuid4, uuid5

import numpy as np
import pyarrow as pa

from readbench.cases import journal
from readbench.cases.store import Vectors
from readbench.encoders.cache import window_digests
from readbench.errors import DataError, UsageError
from readbench.windows import WindowSet

SCHEME = "qdrant"
PAGE = 256
"""Points sent or fetched at a time."""
MOST_NOTES = 1000
"""Notes that one word may find."""
TABLES = ("windows", "vectors", "naming", "notes", "journal")
Payload = dict[str, Any]


class QdrantStore:
    """Collections `NAME-journal`, `NAME-notes`, `NAME-windows`, `NAME-vectors` and `NAME-naming`.

    Args:
        where: `qdrant://host:6333/NAME`, or `qdrant:///folder/NAME` for one process without a server. The key of a
            server that asks for one stands in `QDRANT_API_KEY`.
        create: make a new library; refused where there is one.
    """

    def __init__(self, where: str, *, create: bool = False) -> None:
        self.where = where
        folder, _, self.name = urlsplit(where).path.rpartition("/")
        if not self.name:
            raise UsageError(f"{where} names no library. Write qdrant://host:6333/NAME")
        self._client = _connected(urlsplit(where).netloc, folder)
        exists = self._client.collection_exists(self._collection("journal"))
        if create == exists:
            what = "already holds a case library" if exists else "is no case library"
            raise UsageError(f"{where} {what}.")
        for table in TABLES if create else ():  # the journal last: with it the library exists
            self._client.create_collection(self._collection(table), vectors_config={})

    def close(self) -> None:
        """Let go of the server or the folder."""
        self._client.close()

    def writing(self) -> AbstractContextManager[None]:
        """Nothing to hold: `append` refuses the slower of two writers."""
        return nullcontext()

    def revision(self) -> int:
        """Number of appends."""
        return int(self._client.count(self._collection("journal")).count)

    def journal(self, first: int = 0) -> pa.Table:
        """All rows, or those from a step on."""
        parts = [_unpacked(payload["rows"]) for payload in self._all("journal")]
        table = pa.concat_tables([journal.SCHEMA.empty_table(), *parts])
        return table.filter(pa.compute.greater_equal(table["step"], first))

    def append(self, rows: pa.Table) -> None:
        """One point; refused where another writer was faster."""
        first, token = rows["step"][0].as_py(), uuid4().hex
        notes = [row for row in rows.select(["step", "id", "notes"]).to_pylist() if row["notes"]]
        self._put("notes", {f"{token} {row['step']}": row | {"token": token} for row in notes})
        name = f"step {first}"
        self._put("journal", {name: {"rows": _packed(rows), "token": token}}, update_mode="insert_only")
        if next(iter(self._get("journal", [name])))["token"] != token:
            raise UsageError("Another writer was faster, and nothing of this step was written. Do it again.")

    def file_windows(self, windows: WindowSet) -> list[str]:
        """Keep those that are not kept yet."""
        digests = window_digests(windows)
        new = {
            digest: {
                "digest": digest,
                "values": _text(windows.values(i)),
                "length": int(windows.lengths[i]),
                "channels": list(windows.channels(i)),
            }
            for i, digest in enumerate(digests)
        }
        self._put("windows", new, update_mode="insert_only")
        return digests

    def windows(self, digests: Sequence[str]) -> WindowSet:
        """In the order of the digests."""
        found = {payload["digest"]: payload for payload in self._get("windows", digests)}
        if missing := next((digest for digest in digests if digest not in found), None):
            raise DataError(
                f"The window {missing} is missing from {self.where}. Restore the collection from a snapshot."
            )
        rows = [found[digest] for digest in digests]
        values = [_numbers(row["values"]).reshape(len(row["channels"]), row["length"]) for row in rows]
        return WindowSet.from_arrays(values, channels=[tuple(row["channels"]) for row in rows])

    def vectors(self, encoder: str, digests: Sequence[str]) -> dict[str, Vectors]:
        """Those that are there."""
        found = self._get("vectors", [f"{encoder} {digest}" for digest in digests])
        return {payload["digest"]: _numbers(payload["vector"]) for payload in found}

    def file_vectors(self, encoder: str, digests: Sequence[str], vectors: Vectors) -> None:
        """Equal points may be written by several processes."""
        points = zip(digests, vectors, strict=True)
        self._put("vectors", {f"{encoder} {d}": {"digest": d, "vector": _text(own)} for d, own in points})

    def matching(self, text: str, limit: int) -> list[tuple[str, str]]:
        """Those whose notes hold most of the words; of equals the latest first."""
        found: Counter[tuple[int, str, str]] = Counter()
        models = import_module("qdrant_client.models")
        for word in dict.fromkeys(text.split()):
            match = models.FieldCondition(key="notes", match=models.MatchText(text=word))
            points, _ = self._client.scroll(
                self._collection("notes"), scroll_filter=models.Filter(must=[match]), limit=MOST_NOTES
            )
            rows = (point.payload for point in points)
            found.update((row["step"], row["id"], row["notes"]) for row in rows)
        best = sorted(found.items(), key=lambda item: (-item[1], -item[0][0]))[:limit]
        return [(case, notes) for (_, case, notes), _ in best]

    def naming(self) -> dict[str, dict[str, str]]:
        """By alias."""
        return {row["alias"]: {"name": row["name"], "unit": row["unit"]} for row in self._all("naming")}

    def file_naming(self, entries: Iterable[tuple[str, str, str]]) -> None:
        """One point an alias."""
        self._put("naming", {alias: {"alias": alias, "name": n, "unit": u} for alias, n, u in entries})

    def optimise(self) -> None:
        """The server does so by itself."""

    def size(self) -> int:
        """The server does not tell."""
        return 0

    def _collection(self, table: str) -> str:
        return f"{self.name}-{table}"

    def _put(self, table: str, payloads: dict[str, Payload], **options: str) -> None:
        """Write points under numbers made from their names, page by page."""
        point = import_module("qdrant_client.models").PointStruct
        points = [point(id=_number(name), vector={}, payload=payload) for name, payload in payloads.items()]
        for start in range(0, len(points), PAGE):
            self._client.upsert(self._collection(table), points[start : start + PAGE], wait=True, **options)

    def _get(self, table: str, names: Sequence[str]) -> Iterator[Payload]:
        """Payloads of the points of these names, those that exist."""
        numbers = [_number(name) for name in dict.fromkeys(names)]
        for start in range(0, len(numbers), PAGE):
            found = self._client.retrieve(self._collection(table), numbers[start : start + PAGE], with_payload=True)
            yield from (record.payload for record in found)

    def _all(self, table: str) -> Iterator[Payload]:
        """Payloads of all points."""
        after = None
        while True:
            found, after = self._client.scroll(self._collection(table), limit=PAGE, offset=after, with_payload=True)
            yield from (record.payload for record in found)
            if after is None:
                return


def _connected(host: str, folder: str) -> Any:  # noqa: ANN401 - a Qdrant client
    try:
        client = import_module("qdrant_client").QdrantClient
    except ImportError as error:
        raise UsageError("A library on Qdrant needs its client: pip install 'readbench[qdrant]'") from error
    if host:
        return client(url=f"http://{host}", api_key=os.environ.get("QDRANT_API_KEY"))
    return client(path=folder or "/")


def _number(name: str) -> str:
    return str(uuid5(NAMESPACE_OID, name))


def _text(values: Vectors) -> str:
    return b64encode(np.ascontiguousarray(values, "<f4").tobytes()).decode()


def _numbers(text: str) -> Vectors:
    return np.frombuffer(b64decode(text), "<f4").astype(np.float32)


def _packed(rows: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, journal.SCHEMA) as stream:
        stream.write_table(rows)
    return b64encode(sink.getvalue()).decode()


def _unpacked(text: str) -> pa.Table:
    return pa.ipc.open_stream(b64decode(text)).read_all()
