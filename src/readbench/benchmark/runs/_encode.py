"""Vectors first: all windows of a run are encoded block by block on all workers before any cell needs them.

Otherwise methods with the same encoder would encode the same windows side by side. The blocks are those of a run
without this step, so the vectors are equal to the bit; cells read them from the cache, and their `encode_s` is 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Literal, get_args

from readbench.benchmark.runs._execute import Setting, load_cell_task
from readbench.benchmark.runs._executors import Executor
from readbench.benchmark.runs._plan import Job
from readbench.common.progress import Progress, within
from readbench.common.sharing import one_thread_for_products
from readbench.engine.legs import BuiltLeg, conceal
from readbench.engine.method import Method
from readbench.engine.protocols import Encoder
from readbench.engine.spec import Leg, MethodSpec, Stage
from readbench.engine.vectors import BLOCK, VectorFolder, blocks_of, encode_missing, missing_places, window_digests
from readbench.engine.windows import WindowSet
from readbench.errors import ReadbenchError

Share = Literal["corpus", "normals", "queries"]
"""Parts of a task, in the order in which a retriever encodes them."""


@dataclass(frozen=True)
class EncodingBlock:
    """Windows of one task that are encoded together: their places in one share of it."""

    dataset: str
    seed: int
    encoder: Stage
    share: Share
    places: tuple[int, ...]


def encode_first(jobs: Sequence[Job], setting: Setting, executor: Executor, progress: Progress) -> int:
    """File the vectors of all windows that the jobs will compare; returns how many windows went through encoders.

    Args:
        jobs: of a run.
        setting: what they share. The cache must be seen by all workers, or cells encode again.
        executor: where blocks are encoded; each worker loads a network once.
        progress: told how far blocks have come.
    """
    blocks = [block for task, encoders in _wanted(jobs).items() for block in _blocks(*task, encoders, setting)]
    results = executor.map(partial(encode_block, setting=setting), blocks, within(progress, "encoding"))
    return sum(count for _, count in results if isinstance(count, int))


def encode_block(block: EncodingBlock, progress: Progress, setting: Setting) -> int:
    """In a worker: encode one block, unless its vectors are filed; what fails here fails again in its cells."""
    with one_thread_for_products():
        try:
            task, _ = load_cell_task(block.dataset, block.seed, setting)
            encoder = _fitted(block.dataset, block.seed, block.encoder, setting)
            windows = _share(task.corpus, task.normals, task.queries)[block.share][list(block.places)]
            leg = BuiltLeg(Leg(block.encoder))
            shown, what = leg.see(conceal(windows)), str(block.encoder)
            encode_missing(VectorFolder(setting.cache), encoder, shown, progress, what=what)
        except Exception:  # noqa: BLE001 - the same error comes back in each cell, with its reason
            return 0
    return len(block.places)


def _wanted(jobs: Sequence[Job]) -> dict[tuple[str, int], list[Stage]]:
    """Encoders whose vectors do not depend on the corpus, by task."""
    wanted: dict[tuple[str, int], dict[Stage, None]] = {}
    for job in jobs:
        wanted.setdefault((job.dataset, job.seed), {}).update(dict.fromkeys(_encoders(job.method)))
    return {task: list(encoders) for task, encoders in wanted.items() if encoders}


def _encoders(method: str) -> list[Stage]:
    try:
        return [leg.leg.stage for leg in Method(method).legs if leg.embeds and not leg.corpus_dependent]
    except ReadbenchError:  # its cells say so
        return []


def _blocks(dataset: str, seed: int, encoders: Sequence[Stage], setting: Setting) -> Iterator[EncodingBlock]:
    """Blocks of the windows that are new in each share, as `encode_missing` would cut them."""
    try:
        task, _ = load_cell_task(dataset, seed, setting)
    except Exception:  # noqa: BLE001 - the same error comes back in each cell, with its reason
        return
    known: set[str] = set()
    for share, windows in _share(task.corpus, task.normals, task.queries).items():
        digests = window_digests(windows)
        new = missing_places(digests, known)
        known.update(digests)
        for places in blocks_of(new, BLOCK):
            yield from (EncodingBlock(dataset, seed, encoder, share, tuple(places)) for encoder in encoders)


def _share(corpus: WindowSet, normals: WindowSet, queries: WindowSet) -> dict[Share, WindowSet]:
    return dict(zip(get_args(Share), (corpus, normals, queries), strict=True))


@lru_cache(maxsize=2)
def _fitted(dataset: str, seed: int, stage: Stage, setting: Setting) -> Encoder:
    """An encoder as a retriever fits it; a worker that has several blocks of it loads its network once."""
    task, _ = load_cell_task(dataset, seed, setting)
    return next(encoder for _, encoder in Method(MethodSpec((Leg(stage),))).encoders(task.corpus, task.normals))
