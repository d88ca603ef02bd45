"""Rerankers reorder a pool of candidates; importing this package registers them."""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.engine.rerankers._active_learning import (
        next_cases as next_cases,
        select_most_informative as select_most_informative,
        suspects as suspects,
    )
    from readbench.engine.rerankers._classic import (
        MajorityVote as MajorityVote,
        PseudoRelevanceFeedback as PseudoRelevanceFeedback,
        Purity as Purity,
        QueryPurity as QueryPurity,
    )
    from readbench.engine.rerankers._gpc import GaussianProcess as GaussianProcess
    from readbench.engine.rerankers._llm import LanguageModel as LanguageModel
    from readbench.engine.rerankers._opinion import (
        FittedLabels as FittedLabels,
        HeldOutValues as HeldOutValues,
        LabelModel as LabelModel,
        Opinion as Opinion,
        sharpen as sharpen,
    )
    from readbench.engine.rerankers._ridge import (
        Array as Array,
        Ridge as Ridge,
        RidgePool as RidgePool,
        case_weights as case_weights,
        estimate_unseen_share as estimate_unseen_share,
        fit_ridge as fit_ridge,
    )
    from readbench.engine.rerankers._verdict import Verdict as Verdict

open_room(__name__)
