"""Scorers over the whole corpus; importing this room registers all of them."""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.engine.retrievers._baselines import ChannelPresence, Majority, Random, Stats
    from readbench.engine.retrievers._dtw import DtwDependent, DtwIndependent, kernel_in_use
    from readbench.engine.retrievers._embedding import EmbeddingRetriever, NormalResidual
    from readbench.engine.retrievers._euclidean import Euclidean
    from readbench.engine.retrievers._fusion import Cascade, Fusion, ReciprocalRank, WeightedSum, standardise_rows
    from readbench.engine.retrievers._sbd import DependentShapeBased, IndependentShapeBased
    from readbench.engine.retrievers._search import top
    from readbench.engine.retrievers._vector_search import top_k
    from readbench.engine.retrievers._words import Bags, Bm25, SaxBm25, SfaBm25

__all__ = [
    "Bags",
    "Bm25",
    "Cascade",
    "ChannelPresence",
    "DependentShapeBased",
    "DtwDependent",
    "DtwIndependent",
    "EmbeddingRetriever",
    "Euclidean",
    "Fusion",
    "IndependentShapeBased",
    "Majority",
    "NormalResidual",
    "Random",
    "ReciprocalRank",
    "SaxBm25",
    "SfaBm25",
    "Stats",
    "WeightedSum",
    "kernel_in_use",
    "standardise_rows",
    "top",
    "top_k",
]

__getattr__ = open_room(__name__)
