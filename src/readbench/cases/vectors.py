"""Vectors of cases are computed once and kept in the library itself."""

from __future__ import annotations

from collections.abc import Sequence

from readbench.cases.store import Store, Vectors
from readbench.encoders import Encoder
from readbench.encoders.cache import Role


class LibraryVectors:
    """The vectors of a library's cases, in its own store.

    Windows that are asked about are encoded and forgotten. Vectors of encoders that are fitted anew with every case are
    never kept: they would be of no use again.

    Args:
        store: of the library.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.encoded = 0

    def keeps(self, encoder: Encoder, role: Role) -> bool:
        """Whether vectors are looked up and kept."""
        return role == "corpus" and not encoder.corpus_dependent

    def read(self, encoder: str, digests: Sequence[str]) -> dict[str, Vectors]:
        """Known vectors."""
        return self.store.vectors(encoder, digests)

    def write(self, encoder: str, digests: Sequence[str], vectors: Vectors) -> None:
        """Keep vectors; `encoded` counts those that had to be computed so far."""
        self.store.file_vectors(encoder, digests, vectors)
        self.encoded += len(digests)
