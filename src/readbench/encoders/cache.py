"""Vectors that were computed once are never computed again: where they are kept, and how the missing ones are made.

A vector is filed under the hash of its window (values, shape, channel names) and its encoder's fingerprint, so that
datasets and runs share it. `encode_missing` is the one loop that computes what a store does not hold.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, Protocol

import numpy as np

from readbench.encoders.base import Encoder, Vectors
from readbench.windows import WindowSet

BLOCK = 256
"""Windows encoded, and saved, at a time."""
Role = Literal["corpus", "queries"]
"""Whether windows are what is searched or what is asked about."""
Told = Callable[[int, int], None]
"""Told how many windows have their vectors, and how many there are."""


class VectorStore(Protocol):
    """Where vectors are kept, by encoder and window."""

    def keeps(self, encoder: Encoder, role: Role) -> bool:
        """Whether the vectors of these windows are looked up and kept at all."""
        ...

    def read(self, encoder: str, digests: Sequence[str]) -> dict[str, Vectors]:
        """The vectors that are known of these windows, under an encoder's fingerprint; nothing else is read."""
        ...

    def write(self, encoder: str, digests: Sequence[str], vectors: Vectors) -> None:
        """Keep vectors (N, D)."""
        ...


class VectorFolder:
    """A folder of vectors: one file a block of new ones, written whole or not at all.

    A killed run keeps every finished block. The files' digests are read once and when files are added; of their
    vectors only those that are asked for.

    Args:
        root: cache root.
    """

    def __init__(self, root: Path) -> None:
        self.root = root / "embeddings"
        self._places: dict[Path, dict[str, tuple[Path, int]]] = {}
        self._seen: dict[Path, set[Path]] = {}

    def keeps(self, encoder: Encoder, role: Role) -> bool:  # noqa: ARG002 - it keeps all
        """Always: a fingerprint says what an encoder was fitted on, and a run asks the same queries again."""
        return True

    def read(self, encoder: str, digests: Sequence[str]) -> dict[str, Vectors]:
        """Known vectors of these windows."""
        places = self._index(self.root / encoder)
        wanted: dict[Path, list[tuple[str, int]]] = {}
        for digest in dict.fromkeys(digests):
            if digest in places:
                path, row = places[digest]
                wanted.setdefault(path, []).append((digest, row))
        known: dict[str, Vectors] = {}
        for path, rows in wanted.items():
            with np.load(path) as stored:
                vectors = stored["vectors"]
            known |= {digest: vectors[row] for digest, row in rows}
        return known

    def write(self, encoder: str, digests: Sequence[str], vectors: Vectors) -> None:
        """Keep a block."""
        folder = self.root / encoder
        folder.mkdir(parents=True, exist_ok=True)
        raw = [bytes.fromhex(digest) for digest in digests]
        name = hashlib.blake2b(b"".join(raw), digest_size=12).hexdigest()
        partial = folder / f"{name}.{os.getpid()}.partial"
        table = np.frombuffer(b"".join(raw), np.uint8).reshape(len(raw), -1)
        with partial.open("wb") as file:
            np.savez(file, digests=table, vectors=np.asarray(vectors, np.float32))
        partial.replace(folder / f"{name}.npz")

    def _index(self, folder: Path) -> dict[str, tuple[Path, int]]:
        """Where each vector of a folder is; files that came since the last look are added."""
        places, seen = self._places.setdefault(folder, {}), self._seen.setdefault(folder, set())
        for path in sorted(set(folder.glob("*.npz")) - seen):
            with np.load(path) as stored:
                digests = stored["digests"]
            places |= {digest.tobytes().hex(): (path, row) for row, digest in enumerate(digests)}
            seen.add(path)
        return places


def encode_missing(
    store: VectorStore, encoder: Encoder, windows: WindowSet, told: Told | None = None, *, block: int = BLOCK
) -> Vectors:
    """(N, D) vectors of windows: known ones are read, the others computed and filed block by block.

    Args:
        store: where vectors are kept.
        encoder: fitted.
        windows: N windows.
        told: told before the first block that must be computed, and after each.
        block: windows encoded at a time.
    """
    if not len(windows):
        return encoder.encode(windows)
    key, digests = encoder.fingerprint(), window_digests(windows)
    known = store.read(key, digests)
    missing = missing_places(digests, known)
    for start, some in zip(range(0, len(missing), block), blocks_of(missing, block), strict=True):
        if told:
            told(len(windows) - len(missing) + start, len(windows))
        vectors = encoder.encode(windows[some])
        own = [digests[i] for i in some]
        store.write(key, own, vectors)
        known |= dict(zip(own, vectors, strict=True))
    if missing and told:
        told(len(windows), len(windows))
    return np.stack([known[digest] for digest in digests])


def missing_places(digests: Sequence[str], known: dict[str, Vectors] | set[str]) -> list[int]:
    """Places of the windows that have no vector yet, one for windows that are the same.

    >>> missing_places(["a", "b", "b", "c"], {"a"})
    [2, 3]
    """
    return list({digest: place for place, digest in enumerate(digests) if digest not in known}.values())


def blocks_of(places: list[int], size: int) -> Iterator[list[int]]:
    """Consecutive pieces of at most `size` places."""
    return (places[start : start + size] for start in range(0, len(places), size))


def window_digests(windows: WindowSet) -> list[str]:
    """Hash of values, shape and channel names of each window: what an encoder can see of it."""
    names = [repr(own).encode() for own in windows.channel_sets]
    digests = []
    for i in range(len(windows)):
        digest = hashlib.blake2b(names[windows.channel_set[i]], digest_size=16)
        digest.update(np.ascontiguousarray(windows.values(i)).tobytes())
        digests.append(digest.hexdigest())
    return digests
