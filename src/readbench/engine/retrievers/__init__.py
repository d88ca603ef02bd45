"""Scorers over the whole corpus; importing this room registers all of them."""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.engine.retrievers._baselines import (
        ChannelPresence as ChannelPresence,
        Majority as Majority,
        Random as Random,
        Stats as Stats,
    )
    from readbench.engine.retrievers._dtw import (
        DtwDependent as DtwDependent,
        DtwIndependent as DtwIndependent,
        kernel_in_use as kernel_in_use,
    )
    from readbench.engine.retrievers._embedding import (
        EmbeddingRetriever as EmbeddingRetriever,
        NormalResidual as NormalResidual,
    )
    from readbench.engine.retrievers._euclidean import Euclidean as Euclidean
    from readbench.engine.retrievers._fusion import (
        Cascade as Cascade,
        Fusion as Fusion,
        ReciprocalRank as ReciprocalRank,
        WeightedSum as WeightedSum,
        standardise_rows as standardise_rows,
    )
    from readbench.engine.retrievers._sbd import (
        DependentShapeBased as DependentShapeBased,
        IndependentShapeBased as IndependentShapeBased,
    )
    from readbench.engine.retrievers._search import top as top
    from readbench.engine.retrievers._vector_search import top_k as top_k
    from readbench.engine.retrievers._words import Bags as Bags, Bm25 as Bm25, SaxBm25 as SaxBm25, SfaBm25 as SfaBm25

open_room(__name__)
