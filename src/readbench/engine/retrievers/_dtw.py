"""Dynamic time warping of raw windows, channel by channel (DTW-I) or jointly (DTW-D)."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from readbench.engine.abilities import Grows, Hits, ScalesWindows, Searcher
from readbench.engine.kernels.threads import Team
from readbench.engine.parameters import ParameterRange
from readbench.engine.preparation import Alignment, Normalisation, Scaler, common_axis
from readbench.engine.protocols import Scores
from readbench.engine.registry import RETRIEVERS
from readbench.engine.retrievers._search import require_places, top
from readbench.engine.windows import WindowSet, concatenate
from readbench.errors import ParameterError

if TYPE_CHECKING:  # compiled code: imported where it is used
    from readbench.engine.kernels.dtw import Tiles
    from readbench.engine.kernels.dtw_corpus import TiledCorpus
    from readbench.engine.kernels.dtw_cuda import CudaCorpus

Processor = Literal["cpu", "cuda"]


class _Warping:
    """What both forms share: scaling, channels, the corpus in tiles."""

    uses_labels = False
    corpus_dependent = False
    _joint: ClassVar[bool]

    def __init__(
        self,
        norm: Normalisation = "channel",
        align: Alignment = "name",
        band: Annotated[float, ParameterRange(0, 1)] = 0.1,
        device: Processor = "cpu",
    ) -> None:
        self.norm = norm
        self.align = align
        self.band = band
        self.device: Processor = device

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Keep the corpus where it is; it is scaled and laid out block by block when queries come."""
        self.corpus_ = corpus
        self.scale_ = Scaler.of(self.norm, corpus, normals)
        self.axis_ = common_axis(self.align, corpus)
        self._tiled: TiledCorpus | CudaCorpus | None = None
        return self

    def score(self, queries: WindowSet) -> Scores:
        """(Q, N) negative distances."""
        if not len(queries) or not len(self.corpus_):
            return np.zeros((len(queries), len(self.corpus_)), np.float32)
        with Team() as team:
            return np.negative(self._corpus().distances(self._queries(queries), team))

    def search(self, queries: WindowSet, k: int, *, seeds: ArrayLike | None = None) -> Hits:
        """The k best of the corpus for each query, exactly those at the top of `score`, in less time and memory.

        Args:
            queries: Q windows.
            k: places to fill; the whole corpus where it has fewer windows.
            seeds: (Q, m) corpus positions that another method found near, best with m of at least k; negative places
                are empty. They save work and change nothing else.
        """
        require_places(k)
        k = min(k, len(self.corpus_))
        if not len(queries) or not k:
            return Hits(np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.float32))
        places = None if seeds is None else self._seeds(np.asarray(seeds), len(queries))
        with Team() as team:
            items, distances = self._corpus().nearest(self._queries(queries), k, team, places)
        return Hits(items, np.negative(distances))

    def among(self, queries: WindowSet, candidates: ArrayLike, k: int) -> Hits:
        """The k best of some candidates for each query, with the scores that a search of the whole corpus gives them.

        Args:
            queries: Q windows.
            candidates: (Q, m) corpus positions, different ones in each row.
            k: places to fill; m where there are fewer.
        """
        require_places(k)
        places = np.sort(self._seeds(np.asarray(candidates), len(queries)), axis=1)
        if not places.size:
            return Hits(places[:, :0], np.empty((len(queries), 0), np.float32))
        with Team() as team:
            distances = self._corpus().among(self._queries(queries), places, team)
        best = top(np.negative(distances), k)
        return Hits(np.take_along_axis(places, best.indices, axis=1), best.scores)

    def grow(self, more: WindowSet) -> Self:
        """The same scale and axis with more windows; tiles are laid out again when queries come."""
        grown = copy(self)
        vars(grown).update(corpus_=concatenate([self.corpus_, more]), _tiled=None)
        return grown

    def __getstate__(self) -> dict[str, Any]:
        """Without the tiles, which are made again where they are needed."""
        return {**self.__dict__, "_tiled": None}

    def _seeds(self, seeds: NDArray[Any], queries: int) -> NDArray[np.int64]:
        fits = seeds.ndim == 2 and len(seeds) == queries and np.issubdtype(seeds.dtype, np.integer)
        if not fits or seeds.max(initial=-1) >= len(self.corpus_):
            raise ParameterError(
                f"seeds must be positions below {len(self.corpus_)}, one row for each of {queries} queries."
                f" Got {seeds.dtype} of shape {seeds.shape}."
            )
        return seeds.astype(np.int64)

    def _corpus(self) -> TiledCorpus | CudaCorpus:
        from readbench.engine.kernels.dtw import TileRows  # noqa: PLC0415

        tiled = self._tiled
        if tiled is None:
            rows = TileRows.of(self.corpus_, self.axis_, self.align, self.scale_)
            self._tiled = tiled = _tiled_where(self.device)(rows, joint=self._joint, band=self.band)
        return tiled

    def _queries(self, queries: WindowSet) -> Tiles:
        """Queries on the corpus's axis, their other channels behind it; one without statistics would be all zero."""
        from readbench.engine.kernels.dtw import TileRows, pack  # noqa: PLC0415

        queries.require_finite()
        stats = self.scale_.stats
        scaled = None if self.align == "position" or stats is None else stats.mean
        known = set(self.axis_)
        more = [c for c in common_axis(self.align, queries) if c not in known and (scaled is None or c in scaled)]
        rows = TileRows.of(queries, (*self.axis_, *more), self.align, self.scale_)
        return pack(rows, np.arange(len(queries)), Team(1), lanes=1)  # more threads take longer to start


def _tiled_where(device: Processor) -> type[TiledCorpus | CudaCorpus]:
    """What holds a corpus in tiles; imported where it is needed, since both compile."""
    if device == "cuda":
        from readbench.engine.kernels.dtw_cuda import CudaCorpus  # noqa: PLC0415

        return CudaCorpus
    from readbench.engine.kernels.dtw_corpus import TiledCorpus  # noqa: PLC0415

    return TiledCorpus


@RETRIEVERS.register("dtw-i", title="DTW-I", family="distance", abilities=(Searcher, Grows, ScalesWindows))
class DtwIndependent(_Warping):
    """Dynamic time warping of each channel on its own, summed over channels.

    Squared cost within a Sakoe-Chiba band; lengths may differ, and a channel that a window lacks is zero.

    Args:
        norm: scaling of the raw windows before comparing.
        align: match channels by `name`, or by `position` with zeros on the right, as the paper words it.
        band: radius as a share of the longer window, at least 1 step; widened to one more than the difference of the
            lengths, so that a path exists.
        device: `cuda` compares on a GPU, with the results of `cpu` up to rounding; needs torch in a build for CUDA.
    """

    _joint = False


@RETRIEVERS.register("dtw-d", title="DTW-D", family="distance", abilities=(Searcher, Grows, ScalesWindows))
class DtwDependent(_Warping):
    """Dynamic time warping of all channels on one common path.

    Squared cost within a Sakoe-Chiba band; lengths may differ, and a channel that a window lacks is zero.

    Args:
        norm: scaling of the raw windows before comparing.
        align: match channels by `name`, or by `position` with zeros on the right, as the paper words it.
        band: radius as a share of the longer window, at least 1 step; widened to one more than the difference of the
            lengths, so that a path exists.
        device: `cuda` compares on a GPU, with the results of `cpu` up to rounding; needs torch in a build for CUDA.
    """

    _joint = True


def kernel_in_use() -> str:
    """Which code compares series here, in words.

    >>> kernel_in_use()  # doctest: +ELLIPSIS
    'numba ...'
    """
    import numba  # noqa: PLC0415
    from llvmlite.binding import get_host_cpu_name  # noqa: PLC0415

    from readbench.engine.kernels.dtw import LANES  # noqa: PLC0415

    return f"numba {numba.__version__}, {LANES} series at once, for {numba.config.CPU_NAME or get_host_cpu_name()}"
