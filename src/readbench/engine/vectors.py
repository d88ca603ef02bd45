"""Stores of encoder vectors: a folder keyed by window content, or one file for a large corpus.

`VectorFolder` stores each vector under the hash of its window (values, shape, channel names, and the context that its
encoder may see) and its encoder's fingerprint, so that datasets and runs share vectors and none is computed twice.
`encode_missing` computes what a store lacks.

`StoredVectors` holds the vectors of a corpus too large for memory: one file, written block by block and memory-mapped.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Literal, Protocol

import numpy as np

from readbench.common.cache import UNREADABLE, mark_used
from readbench.common.files import exclusive, open_atomic, write_json
from readbench.common.processes import end_with_parent
from readbench.common.progress import SILENT, Progress
from readbench.common.provenance import trace_code, versions_of
from readbench.engine.kernels.threads import available_threads
from readbench.engine.protocols import Encoder, Vectors
from readbench.engine.registry import ENCODERS
from readbench.engine.windows import WindowSet

BLOCK = 256
"""Windows encoded and saved at a time."""
Role = Literal["corpus", "queries"]
"""Whether windows are searched or are queries."""


class VectorStore(Protocol):
    """A store of vectors by encoder and window."""

    def keeps(self, encoder: Encoder, role: Role) -> bool:
        """Whether vectors of these windows are stored."""
        ...

    def key_of(self, encoder: Encoder) -> str:
        """Key of a fitted encoder's vectors."""
        ...

    def read(self, encoder: str, digests: Sequence[str]) -> dict[str, Vectors]:
        """Read the known vectors of these windows under an encoder's key."""
        ...

    def write(self, encoder: str, digests: Sequence[str], vectors: Vectors) -> None:
        """Store vectors (N, D)."""
        ...


class VectorFolder:
    """A folder of vectors: one file per block, written atomically, so that a killed run keeps every finished block.

    The digests of files are read once and when files are added; vectors are read on request.
    """

    def __init__(self, root: Path) -> None:
        self.root = root / "embeddings"
        self._places: dict[Path, dict[str, tuple[Path, int]]] = {}
        self._seen: dict[Path, set[Path]] = {}

    def keeps(self, encoder: Encoder, role: Role) -> bool:  # noqa: ARG002 - it stores all
        """Always True: fingerprints cover the fitted state, and runs repeat queries."""
        return True

    def key_of(self, encoder: Encoder) -> str:
        """Fingerprint of the encoder and hash of its code: an edited encoder gets other vectors."""
        return f"{encoder.fingerprint()}-{type(encoder).__name__}-{code_key(type(encoder))}"

    def read(self, encoder: str, digests: Sequence[str]) -> dict[str, Vectors]:
        """Read the known vectors of these windows."""
        places = self._index(self.root / encoder)
        wanted: dict[Path, list[tuple[str, int]]] = {}
        for digest in dict.fromkeys(digests):
            if digest in places:
                path, row = places[digest]
                wanted.setdefault(path, []).append((digest, row))
        known: dict[str, Vectors] = {}
        for path, rows in wanted.items():
            try:
                with path.open("rb") as file, np.load(file) as stored:
                    vectors = stored["vectors"]
            except UNREADABLE:  # damaged, or removed meanwhile: computed again
                self._forget(self.root / encoder, path)
                continue
            mark_used(path)
            known |= {digest: vectors[row] for digest, row in rows}
        return known

    def write(self, encoder: str, digests: Sequence[str], vectors: Vectors) -> None:
        """Store a block."""
        raw = [bytes.fromhex(digest) for digest in digests]
        name = hashlib.blake2b(b"".join(raw), digest_size=12).hexdigest()
        table = np.frombuffer(b"".join(raw), np.uint8).reshape(len(raw), -1)
        with open_atomic(self.root / encoder / f"{name}.npz") as file:
            np.savez(file, digests=table, vectors=np.asarray(vectors, np.float32))

    def _index(self, folder: Path) -> dict[str, tuple[Path, int]]:
        """File and row of each vector in a folder; adds new files."""
        places, seen = self._places.setdefault(folder, {}), self._seen.setdefault(folder, set())
        for path in sorted(set(folder.glob("*.npz")) - seen):
            try:
                with path.open("rb") as file, np.load(file) as stored:
                    digests = stored["digests"]
            except UNREADABLE:  # computed and written again
                path.unlink(missing_ok=True)
                continue
            places |= {digest.tobytes().hex(): (path, row) for row, digest in enumerate(digests)}
            seen.add(path)
        return places

    def _forget(self, folder: Path, path: Path) -> None:
        """Remove an unreadable file and its entries."""
        path.unlink(missing_ok=True)
        self._seen[folder].discard(path)
        self._places[folder] = {key: place for key, place in self._places[folder].items() if place[0] != path}


def encode_missing(
    store: VectorStore,
    encoder: Encoder,
    windows: WindowSet,
    progress: Progress = SILENT,
    *,
    what: str = "encoding",
    block: int = BLOCK,
) -> Vectors:
    """(N, D) vectors of windows: known ones are read, the others are computed and stored block by block.

    Args:
        store: the store.
        encoder: fitted.
        windows: N windows.
        progress: called before the first block to compute and after each.
        what: name of the work in progress reports.
        block: windows encoded at a time.
    """
    if not len(windows):
        return encoder.encode(windows)
    key, digests = store.key_of(encoder), window_digests(windows)
    known = store.read(key, digests)
    missing = missing_places(digests, known)
    for start, some in zip(range(0, len(missing), block), blocks_of(missing, block), strict=True):
        progress(what, len(windows) - len(missing) + start, len(windows))
        vectors = encoder.encode(windows[some])
        found = [digests[i] for i in some]
        store.write(key, found, vectors)
        known |= dict(zip(found, vectors, strict=True))
    if missing:
        progress(what, len(windows), len(windows))
    return np.stack([known[digest] for digest in digests])


@cache
def code_key(encoder: type) -> str:
    """Hash of an encoder's code and of the packages it computes with, for keys of stored vectors.

    GPU code does not count: its vectors are equal up to rounding.
    """
    code = trace_code((encoder,), ("*_cuda", "readbench.engine.encoders.sonde_network", "readbench.engine.registry"))
    entry = ENCODERS.entry_of(encoder)
    packages = code.packages.union(entry.requires if entry else ())
    identity = (code.digest, sorted(versions_of(packages).items()))
    return hashlib.sha256(repr(identity).encode()).hexdigest()[:12]


def missing_places(digests: Sequence[str], known: dict[str, Vectors] | set[str]) -> list[int]:
    """Positions of windows without a vector, one per distinct window.

    >>> missing_places(["a", "b", "b", "c"], {"a"})
    [2, 3]
    """
    return list({digest: place for place, digest in enumerate(digests) if digest not in known}.values())


def blocks_of(places: list[int], size: int) -> Iterator[list[int]]:
    """Consecutive blocks of at most `size` positions."""
    return (places[start : start + size] for start in range(0, len(places), size))


def window_digests(windows: WindowSet) -> list[str]:
    """Hash of values, shape, channel names and context of each window: all that an encoder can see."""
    names = [repr(channels).encode() for channels in windows.channel_sets]
    digests = []
    for i in range(len(windows)):
        digest = hashlib.blake2b(names[windows.channel_set[i]], digest_size=16)
        digest.update(np.ascontiguousarray(windows.values(i)).tobytes())
        digest.update(b"" if windows.context is None else windows.context.digest_of(i))
        digests.append(digest.hexdigest())
    return digests


STORED_BLOCK = 2048
"""Windows encoded and saved at a time."""
QUEUED_BLOCKS = 2
"""Blocks queued per process."""
Represent = Callable[[WindowSet], Vectors]
"""(B, D) vectors of B windows."""


@dataclass(eq=False)
class StoredVectors:
    """Vectors of one corpus in a folder; an interrupted writer continues.

    Args:
        folder: folder of the vectors, removed by `clear`.
        key: hash of all that the vectors depend on; vectors with another key are computed again.
        jobs: encoding processes; with more than one, the encoder must be picklable.
        progress: called after each block.

    Attributes:
        seconds: time spent on the vectors, including interrupted runs.
        earlier: the part of it from interrupted runs.

    >>> import tempfile
    >>> windows = WindowSet.from_arrays(np.arange(6.0).reshape(3, 1, 2))
    >>> stored = StoredVectors(Path(tempfile.mkdtemp()), "means")
    >>> stored.fill(windows, lambda some: np.stack([w.values.mean(axis=1) for w in some])).tolist()
    [[0.5], [2.5], [4.5]]
    """

    folder: Path
    key: str
    jobs: int = 1
    progress: Progress = SILENT
    seconds: float = 0.0
    earlier: float = 0.0

    def fill(self, windows: WindowSet, represent: Represent) -> Vectors:
        """(N, D) vectors of all windows, memory-mapped; computes those that are missing."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with exclusive(self.folder / "vectors.lock"):
            known, self.earlier = self._journal(len(windows))
            self.seconds = self.earlier
            for done in self._rest(windows, represent, known or self._begin(windows, represent)):
                self.progress("encoding", done, len(windows))
        vectors: Vectors = np.load(self._file, mmap_mode="r")
        return vectors

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self._file.stat().st_size if self._file.exists() else 0

    def clear(self) -> None:
        """Remove the vectors and their folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def _file(self) -> Path:
        return self.folder / "vectors.npy"

    def _journal(self, count: int) -> tuple[int, float]:
        """Number of stored vectors and the seconds spent on them; zeros if they have another key or count."""
        try:
            state = json.loads((self.folder / "journal.json").read_text())
            shape = np.load(self._file, mmap_mode="r").shape
        except (OSError, ValueError):
            return 0, 0.0
        fits = state["key"] == self.key and shape[0] == count
        return (state["done"], state["seconds"]) if fits else (0, 0.0)

    def _note(self, done: int) -> int:
        write_json(self.folder / "journal.json", {"key": self.key, "done": done, "seconds": self.seconds})
        return done

    def _begin(self, windows: WindowSet, represent: Represent) -> int:
        """Create the file, with the width of the first block's vectors."""
        (self.folder / "journal.json").unlink(missing_ok=True)
        began = time.perf_counter()
        first = represent(windows[:STORED_BLOCK])
        shape = (len(windows), first.shape[1])
        file = np.lib.format.open_memmap(self._file, "w+", np.float32, shape)  # type: ignore[no-untyped-call]
        file[: len(first)] = first
        file.flush()
        self.seconds += time.perf_counter() - began
        return self._note(len(first))

    def _rest(self, windows: WindowSet, represent: Represent, first: int) -> Iterator[int]:
        """Store the missing vectors; yield the number stored so far."""
        starts = range(first, len(windows), STORED_BLOCK)
        began = time.perf_counter()
        for done in self._stored(windows, represent, starts):
            ended = time.perf_counter()
            self.seconds += ended - began
            began = ended
            yield self._note(done)

    def _stored(self, windows: WindowSet, represent: Represent, starts: range) -> Iterator[int]:
        if self.jobs == 1 or len(starts) == 1:
            for start in starts:
                yield _store(self._file, start, represent, windows[start : start + STORED_BLOCK])
            return
        threads = max(1, available_threads() // self.jobs)
        with ProcessPoolExecutor(self.jobs, get_context("spawn"), _prepare, (threads,)) as pool:
            running: deque[Future[int]] = deque()
            for start in starts:
                block = windows[start : start + STORED_BLOCK].compact()
                running.append(pool.submit(_store, self._file, start, represent, block))
                if len(running) >= QUEUED_BLOCKS * self.jobs:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()


def _prepare(threads: int) -> None:
    """Set up a new process: its share of the threads, and one thread for matrix products."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - slow to import

    end_with_parent()
    threadpool_limits(1)
    os.environ["READBENCH_THREADS"] = str(threads)


def _store(file: Path, start: int, represent: Represent, windows: WindowSet) -> int:
    """Encode a block into the file; return where it ends."""
    vectors = np.load(file, mmap_mode="r+")
    vectors[start : start + len(windows)] = represent(windows)
    vectors.flush()
    return start + len(windows)
