"""Contract checks for methods; `readbench.testing` exports them."""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.engine.testing._encoders import ENCODER_CHECKS as ENCODER_CHECKS, EncoderCheck as EncoderCheck
    from readbench.engine.testing._memory import unwritten_memory_shown as unwritten_memory_shown
    from readbench.engine.testing._rerankers import RERANKER_CHECKS as RERANKER_CHECKS, RerankerCheck as RerankerCheck
    from readbench.engine.testing._retrievers import (
        RETRIEVER_CHECKS as RETRIEVER_CHECKS,
        RetrieverCheck as RetrieverCheck,
    )
    from readbench.engine.testing._samples import (
        reachable as reachable,
        sample_pool as sample_pool,
        sample_windows as sample_windows,
    )

open_room(__name__)
