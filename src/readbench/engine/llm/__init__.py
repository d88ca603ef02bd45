"""Language models: clients, prompts, presentation of windows, costs."""

from readbench.engine.llm._answers import (
    ANSWERED_BY,
    MARKED_ABOVE,
    average_samples,
    explain_silence,
    mark_unanswered,
    unanswered_share,
)
from readbench.engine.llm._check import ModelCheck, check_model
from readbench.engine.llm._examiner import NO_BRIEFING, Briefing, Examiner, content_key, describe_model, split_model
from readbench.engine.llm._exhibits import Reduction, WindowExcerpt, compare, spread_positions
from readbench.engine.llm._messages import (
    ChatClient,
    Image,
    ModelRanking,
    ModelRequest,
    Reply,
    SeriesPart,
    Text,
    Usage,
    read_match,
    read_ranking,
    read_scores,
    read_similarity,
)
from readbench.engine.llm._prompts import Item, item_id
from readbench.engine.llm._settings import (
    ModelOptions,
    Spending,
    describe_profiles,
    describe_spending,
    explain_no_models,
    list_profiles,
)

__all__ = [
    "ANSWERED_BY",
    "MARKED_ABOVE",
    "NO_BRIEFING",
    "Briefing",
    "ChatClient",
    "Examiner",
    "Image",
    "Item",
    "ModelCheck",
    "ModelOptions",
    "ModelRanking",
    "ModelRequest",
    "Reduction",
    "Reply",
    "SeriesPart",
    "Spending",
    "Text",
    "Usage",
    "WindowExcerpt",
    "average_samples",
    "check_model",
    "compare",
    "content_key",
    "describe_model",
    "describe_profiles",
    "describe_spending",
    "explain_no_models",
    "explain_silence",
    "item_id",
    "list_profiles",
    "mark_unanswered",
    "read_match",
    "read_ranking",
    "read_scores",
    "read_similarity",
    "split_model",
    "spread_positions",
    "unanswered_share",
]
