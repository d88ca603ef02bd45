"""Bulk reading and encoding: many workers read files and encode windows; one process writes, in order.

The caller passes the executor as a function like `map`, which returns results in the order of the items. Workers open
the library themselves, so its folder or address must be reachable from all of them.
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

LOOKUP_BATCH = 4096
"""Vectors looked up at a time."""
Item = TypeVar("Item")
Result = TypeVar("Result")


class MapFunction(Protocol):
    """A function like `map`, which may run on other machines."""

    def __call__(self, work: Callable[[Item], Result], items: Sequence[Item], /) -> Iterator[Result]:
        """Results of `work`, in the order of `items`."""
        ...


@dataclass(frozen=True)
class FittedEncoder:
    """A fitted encoder, compared by its fingerprint."""

    fingerprint: str
    encoder: Encoder = field(compare=False)

    @classmethod
    def of(cls, encoder: Encoder) -> Self:
        """Wrap a fitted encoder."""
        return cls(encoder.fingerprint(), encoder)


@dataclass(frozen=True)
class EncodingPart:
    """M windows of a library that are encoded together.

    Args:
        where: address of the library.
        fitted: the encoder.
        digests: (M,) digests of the windows.
        keys: (M,) keys of their vectors: the digests, unless the encoder sees context.
        contexts: (M,) digests of their contexts.
        context: the contexts, if the encoder sees them.
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
    """Read the windows of each file; `roles`, `interval` and `told` as in `read_recording`."""
    read = partial(_read, roles=roles, interval=interval, told=told)
    return list(each(read, [file.resolve() for file in files]))


def join_windows(parts: Sequence[WindowSet]) -> WindowSet:
    """Join windows of several files; labels are dropped, since label numbers differ by file."""
    return concatenate([replace(part, labels=np.full(len(part), UNLABELLED, np.int32), classes=()) for part in parts])


def encode_cases(
    snapshot: Snapshot,
    spec: MethodSpec,
    each: MapFunction = map,
    *,
    exact_cases: int = EXACT_CASES,
    progress: Progress = SILENT,
) -> int:
    """Compute and store the case vectors that a method needs; returns how many were computed.

    Blocks are stored as they are finished, so that an interrupted run continues. Encoders that change with every new
    case are skipped, since the library does not store their vectors.

    Args:
        snapshot: state of the library.
        spec: the method.
        each: executor of the encoding.
        exact_cases: largest library that is compared whole; a larger one is compared by a shortlist.
        progress: called with the number of computed vectors.
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
    """Encode a part in a worker, (M, D); the network of an encoder is loaded once per worker."""
    store = _open(part.where)
    windows = store.windows(part.digests)
    naming = ChannelNames.of(store.naming())
    if naming.aliases:
        windows = naming.rename_stored(windows.with_context(store.contexts(part.contexts)))
    return _keep(part.fitted).encode(windows.with_context(part.context))


def _read(file: Path, roles: Roles, interval: Interval, told: ToldContext) -> ReadRecording:
    if not file.is_file():
        raise DataError(f"A worker found no file {file}. Put it on a path that all workers share.")
    return read_recording(file, roles, interval, told=told)


def _fit_encoders(snapshot: Snapshot, spec: MethodSpec, *, whole: bool) -> Iterator[tuple[FittedEncoder, bool]]:
    """Encoders fitted as in a search, and whether each sees the context of windows."""
    corpus = snapshot.corpus() if whole else snapshot.searched(snapshot.first).with_stats(snapshot.reference)
    if not whole:
        yield FittedEncoder.of(coarse_encoder(snapshot)), False
    method = Method(spec)
    seeing = {leg.leg.stage for leg in method.legs if leg.uses_context}
    for stage, encoder in method.encoders(corpus, snapshot.normals):
        yield FittedEncoder.of(encoder), stage in seeing


def _cut_parts(snapshot: Snapshot, fitted: FittedEncoder, *, uses_context: bool) -> Iterator[EncodingPart]:
    """Windows without stored vectors, in the blocks that a search uses."""
    store = snapshot.store
    missing: dict[str, int] = {}
    for start in range(0, len(snapshot), LOOKUP_BATCH):
        some = range(start, min(start + LOOKUP_BATCH, len(snapshot)))
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
    """Keys of the vectors of cases: digests of the windows as the encoder sees them."""
    if uses_context:
        return window_digests(snapshot.searched(positions))
    if snapshot.naming.aliases:
        return window_digests(snapshot.windows(positions).with_context(None))
    return [snapshot.entries[position].digest for position in positions]


@lru_cache(maxsize=2)
def _keep(fitted: FittedEncoder) -> Encoder:
    """The first encoder received with this fingerprint, whose network is already loaded."""
    return fitted.encoder


@lru_cache(maxsize=2)
def _open(where: str) -> Store:
    return open_store(where)
