"""Many cases at once: files are read and windows encoded by many workers, and one writes, in order.

Where the work runs is the caller's: anything that does the same work on many items and gives the results in the order
of the items, such as `map`. Workers open the library themselves, so its folder or address must be seen by all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Protocol, Self, TypeVar

import numpy as np

from readbench.cases._intake import Interval, windows_from
from readbench.cases._journal import Snapshot
from readbench.cases._search import EXACT_CASES, coarse_encoder
from readbench.cases._store import Store, StoredArray, open_store
from readbench.common.progress import SILENT, Progress
from readbench.engine.method import Method
from readbench.engine.protocols import Encoder
from readbench.engine.spec import MethodSpec
from readbench.engine.vectors import BLOCK, blocks_of, missing_places
from readbench.engine.window_tables import Roles
from readbench.engine.windows import UNLABELLED, WindowSet, concatenate
from readbench.errors import DataError

LOOKED_UP = 4096
"""Vectors that are looked for at a time."""
Item = TypeVar("Item")
Result = TypeVar("Result")


class MapFunction(Protocol):
    """Does the same work on many items, here or elsewhere."""

    def __call__(self, work: Callable[[Item], Result], items: Sequence[Item], /) -> Iterator[Result]:
        """The results, in the order of the items."""
        ...


@dataclass(frozen=True)
class FittedEncoder:
    """An encoder, known by its fingerprint."""

    fingerprint: str
    encoder: Encoder = field(compare=False)

    @classmethod
    def of(cls, encoder: Encoder) -> Self:
        """An encoder that was fitted."""
        return cls(encoder.fingerprint(), encoder)


@dataclass(frozen=True)
class EncodingPart:
    """Windows of a library that are encoded together: where it is, the encoder, and their digests."""

    where: str
    fitted: FittedEncoder
    digests: tuple[str, ...]


def read_files(files: Sequence[Path], roles: Roles, interval: Interval, each: MapFunction = map) -> list[WindowSet]:
    """The windows of each file; `roles` and `interval` are those of `windows_from`."""
    read = partial(_read, roles=roles, interval=interval)
    return list(each(read, [file.resolve() for file in files]))


def join_windows(parts: Sequence[WindowSet]) -> WindowSet:
    """Windows of several files as one set, without labels: each file numbers its own."""
    return concatenate([replace(part, labels=np.full(len(part), UNLABELLED, np.int32), classes=()) for part in parts])


def encode_cases(
    snapshot: Snapshot,
    spec: MethodSpec,
    each: MapFunction = map,
    *,
    exact_cases: int = EXACT_CASES,
    progress: Progress = SILENT,
) -> int:
    """File the vectors of all cases that a method will look for; returns how many vectors had to be computed.

    Blocks are filed as they come, in order: what a killed writer has filed is not computed again. Vectors of encoders
    that every new case changes are left out, since the library does not keep them.

    Args:
        snapshot: of the library.
        spec: the method.
        each: where windows are encoded.
        exact_cases: largest library whose cases are all compared; of a larger one, a shortlist.
        progress: told how many vectors were computed.
    """
    if not len(snapshot):
        return 0
    whole = len(snapshot) <= exact_cases
    parts = [part for fitted in _fit_encoders(snapshot, spec, whole=whole) for part in _cut_parts(snapshot, fitted)]
    done, total = 0, sum(len(part.digests) for part in parts)
    for part, vectors in zip(parts, each(encode_part, parts), strict=True):
        progress("encoding", done, total)
        snapshot.store.file_vectors(part.fitted.fingerprint, part.digests, vectors)
        done += len(part.digests)
    progress("encoding", total, total)
    return total


def encode_part(part: EncodingPart) -> StoredArray:
    """In a worker: (M, D) vectors of a part; a worker that has several parts of an encoder loads its network once."""
    return _keep(part.fitted).encode(_open(part.where).windows(part.digests))


def _read(file: Path, roles: Roles, interval: Interval) -> WindowSet:
    if not file.is_file():
        raise DataError(f"There is no file {file} where it is to be read. All workers must see it at the same place.")
    return windows_from(file, roles, interval)


def _fit_encoders(snapshot: Snapshot, spec: MethodSpec, *, whole: bool) -> Iterator[FittedEncoder]:
    """Encoders as a search fits them."""
    corpus = snapshot.corpus() if whole else snapshot.windows(snapshot.first).with_stats(snapshot.reference)
    if not whole:
        yield FittedEncoder.of(coarse_encoder(snapshot))
    for _, encoder in Method(spec).encoders(corpus, snapshot.normals):
        yield FittedEncoder.of(encoder)


def _cut_parts(snapshot: Snapshot, fitted: FittedEncoder) -> Iterator[EncodingPart]:
    """The windows whose vectors are not known, in blocks as a search cuts them."""
    store = snapshot.store
    digests = list(dict.fromkeys(entry.digest for entry in snapshot.entries))
    missing: list[str] = []
    for start in range(0, len(digests), LOOKED_UP):
        some = digests[start : start + LOOKED_UP]
        places = missing_places(some, store.vectors(fitted.fingerprint, some))
        missing += [some[place] for place in places]
    for places in blocks_of(list(range(len(missing))), BLOCK):
        yield EncodingPart(_address(store), fitted, tuple(missing[place] for place in places))


def _address(store: Store) -> str:
    """Where a store is, whatever folder a worker runs in."""
    return store.where if "://" in store.where else str(Path(store.where).resolve())


@lru_cache(maxsize=2)
def _keep(fitted: FittedEncoder) -> Encoder:
    """The first encoder of a fingerprint that came here, with what it has loaded since."""
    return fitted.encoder


@lru_cache(maxsize=2)
def _open(where: str) -> Store:
    return open_store(where)
