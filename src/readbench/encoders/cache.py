"""Vectors that were computed once are never computed again.

A vector is filed under the hash of its window (values, shape, channel names) in the folder of its encoder's
fingerprint, so that datasets and runs share it. Each block of new vectors is one file, written whole or not at all: a
killed run keeps every finished block.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from readbench.encoders.base import Encoder, Vectors
from readbench.windows import WindowSet

BLOCK = 256
"""Windows encoded, and saved, at a time."""


class EmbeddingCache:
    """Encodes windows through a folder of vectors that are already known.

    Args:
        root: cache root.
        progress: told how many windows have their vectors, and how many there are, before the first block that must be
            computed and after each.
    """

    def __init__(self, root: Path, progress: Callable[[int, int], None] | None = None) -> None:
        self.root = root / "embeddings"
        self.progress = progress

    def encode(self, encoder: Encoder, windows: WindowSet) -> Vectors:
        """(N, D) vectors of the windows: known ones are read, the others computed and filed block by block."""
        folder = self.root / encoder.fingerprint()
        digests = window_digests(windows)
        known = dict(_read_all(folder))
        missing = list({d: i for i, d in enumerate(digests) if d not in known}.values())
        for start in range(0, len(missing), BLOCK):
            self._tell(len(windows) - len(missing) + start, len(windows))
            block = missing[start : start + BLOCK]
            vectors = encoder.encode(windows[block])
            _write(folder, [digests[i] for i in block], vectors)
            known |= {digests[i]: vector for i, vector in zip(block, vectors, strict=True)}
        if missing:
            self._tell(len(windows), len(windows))
        return np.stack([known[d] for d in digests]) if digests else np.empty((0, 0), np.float32)

    def _tell(self, done: int, total: int) -> None:
        if self.progress:
            self.progress(done, total)


def window_digests(windows: WindowSet) -> list[bytes]:
    """Hash of values, shape and channel names of each window: what an encoder can see of it."""
    names = [repr(own).encode() for own in windows.channel_sets]
    digests = []
    for i in range(len(windows)):
        digest = hashlib.blake2b(names[windows.channel_set[i]], digest_size=16)
        digest.update(np.ascontiguousarray(windows.values(i)).tobytes())
        digests.append(digest.digest())
    return digests


def _read_all(folder: Path) -> Iterator[tuple[bytes, Vectors]]:
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as stored:
            digests, vectors = stored["digests"], stored["vectors"]
        for digest, vector in zip(digests, vectors, strict=True):
            yield digest.tobytes(), vector


def _write(folder: Path, digests: list[bytes], vectors: Vectors) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    name = hashlib.blake2b(b"".join(digests), digest_size=12).hexdigest()
    partial = folder / f"{name}.{os.getpid()}.partial"
    table = np.frombuffer(b"".join(digests), np.uint8).reshape(len(digests), -1)
    with partial.open("wb") as file:
        np.savez(file, digests=table, vectors=np.asarray(vectors, np.float32))
    partial.replace(folder / f"{name}.npz")
