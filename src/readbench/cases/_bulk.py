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

from readbench.cases._channels import ChannelNames
from readbench.cases._intake import NOTHING_TOLD, Interval, ReadRecording, ToldContext, read_recording
from readbench.cases._journal import Snapshot
from readbench.cases._search import EXACT_CASES, coarse_encoder
from readbench.cases._store import Store, StoredArray, open_store
from readbench.common.progress import SILENT, Progress
from readbench.engine.context import Context
from readbench.engine.method import Method
from readbench.engine.protocols import Encoder
from readbench.engine.spec import MethodSpec
from readbench.engine.vectors import BLOCK, blocks_of, missing_places, window_digests
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
    """Windows of a library that are encoded together.

    Args:
        where: address of the library.
        fitted: the encoder.
        digests: of the windows.
        keys: what their vectors are filed under: the digests, unless the encoder sees context.
        contexts: digests of what the windows bring along.
        context: what the encoder sees of it; None where it sees none.
    """

    where: str = field(repr=False)
    fitted: FittedEncoder
    digests: tuple[str, ...]
    keys: tuple[str, ...]
    contexts: tuple[str, ...] = ()
    context: Context | None = field(default=None, compare=False)


def read_files(
    files: Sequence[Path],
    roles: Roles,
    interval: Interval,
    each: MapFunction = map,
    told: ToldContext = NOTHING_TOLD,
) -> list[ReadRecording]:
    """The windows of each file; `roles`, `interval` and `told` are those of `read_recording`."""
    read = partial(_read, roles=roles, interval=interval, told=told)
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
    parts = [
        part
        for fitted, uses_context in _fit_encoders(snapshot, spec, whole=whole)
        for part in _cut_parts(snapshot, fitted, uses_context=uses_context)
    ]
    done, total = 0, sum(len(part.digests) for part in parts)
    for part, vectors in zip(parts, each(encode_part, parts), strict=True):
        progress("encoding", done, total)
        snapshot.store.file_vectors(part.fitted.fingerprint, part.keys, vectors)
        done += len(part.digests)
    progress("encoding", total, total)
    return total


def encode_part(part: EncodingPart) -> StoredArray:
    """In a worker: (M, D) vectors of a part; a worker that has several parts of an encoder loads its network once."""
    store = _open(part.where)
    windows = store.windows(part.digests)
    naming = ChannelNames.of(store.naming())
    if naming.aliases:
        windows = naming.rename_stored(windows.with_context(store.contexts(part.contexts)))
    return _keep(part.fitted).encode(windows.with_context(part.context))


def _read(file: Path, roles: Roles, interval: Interval, told: ToldContext) -> ReadRecording:
    if not file.is_file():
        raise DataError(f"There is no file {file} where it is to be read. All workers must see it at the same place.")
    return read_recording(file, roles, interval, told=told)


def _fit_encoders(snapshot: Snapshot, spec: MethodSpec, *, whole: bool) -> Iterator[tuple[FittedEncoder, bool]]:
    """Encoders as a search fits them, and whether each sees the context of windows."""
    corpus = snapshot.corpus() if whole else snapshot.searched(snapshot.first).with_stats(snapshot.reference)
    if not whole:
        yield FittedEncoder.of(coarse_encoder(snapshot)), False
    method = Method(spec)
    seeing = {leg.leg.stage for leg in method.legs if leg.uses_context}
    for stage, encoder in method.encoders(corpus, snapshot.normals):
        yield FittedEncoder.of(encoder), stage in seeing


def _cut_parts(snapshot: Snapshot, fitted: FittedEncoder, *, uses_context: bool) -> Iterator[EncodingPart]:
    """The windows whose vectors are not known, in blocks as a search cuts them."""
    store = snapshot.store
    missing: dict[str, int] = {}
    for start in range(0, len(snapshot), LOOKED_UP):
        some = range(start, min(start + LOOKED_UP, len(snapshot)))
        keys = _vector_keys(snapshot, some, uses_context=uses_context)
        places = missing_places(keys, store.vectors(fitted.fingerprint, keys))
        missing |= {keys[place]: some[place] for place in places if keys[place] not in missing}
    for block in blocks_of(list(missing.values()), BLOCK):
        keys = _vector_keys(snapshot, block, uses_context=uses_context)
        context = snapshot.searched(block).context if uses_context else None
        entries = [snapshot.entries[position] for position in block]
        digests, contexts = tuple(entry.digest for entry in entries), tuple(entry.context for entry in entries)
        seen = context.compact() if context else None
        yield EncodingPart(store.address, fitted, digests, tuple(keys), contexts, seen)


def _vector_keys(snapshot: Snapshot, positions: Sequence[int], *, uses_context: bool) -> list[str]:
    """What the vectors of cases are filed under by an encoder: the digests of what it sees of their windows."""
    if uses_context:
        return window_digests(snapshot.searched(positions))
    if snapshot.naming.aliases:
        return window_digests(snapshot.windows(positions).with_context(None))
    return [snapshot.entries[position].digest for position in positions]


@lru_cache(maxsize=2)
def _keep(fitted: FittedEncoder) -> Encoder:
    """The first encoder of a fingerprint that came here, with what it has loaded since."""
    return fitted.encoder


@lru_cache(maxsize=2)
def _open(where: str) -> Store:
    return open_store(where)
