"""Contract checks for methods; `readbench.testing` exports them."""

from readbench.engine.testing._encoders import ENCODER_CHECKS, EncoderCheck
from readbench.engine.testing._memory import unwritten_memory_shown
from readbench.engine.testing._rerankers import RERANKER_CHECKS, RerankerCheck
from readbench.engine.testing._retrievers import RETRIEVER_CHECKS, RetrieverCheck
from readbench.engine.testing._samples import reachable, sample_pool, sample_windows

__all__ = [
    "ENCODER_CHECKS",
    "RERANKER_CHECKS",
    "RETRIEVER_CHECKS",
    "EncoderCheck",
    "RerankerCheck",
    "RetrieverCheck",
    "reachable",
    "sample_pool",
    "sample_windows",
    "unwritten_memory_shown",
]
