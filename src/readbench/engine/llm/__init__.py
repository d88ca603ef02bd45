"""Language models: clients, prompts, presentation of windows, costs."""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.engine.llm._answers import (
        ANSWERED_BY as ANSWERED_BY,
        MARKED_ABOVE as MARKED_ABOVE,
        average_samples as average_samples,
        explain_silence as explain_silence,
        mark_unanswered as mark_unanswered,
        unanswered_share as unanswered_share,
    )
    from readbench.engine.llm._check import ModelCheck as ModelCheck, check_model as check_model
    from readbench.engine.llm._examiner import (
        NO_BRIEFING as NO_BRIEFING,
        Briefing as Briefing,
        Examiner as Examiner,
        content_key as content_key,
        describe_model as describe_model,
    )
    from readbench.engine.llm._exhibits import (
        Reduction as Reduction,
        WindowExcerpt as WindowExcerpt,
        compare as compare,
        spread_positions as spread_positions,
    )
    from readbench.engine.llm._messages import (
        ChatClient as ChatClient,
        Image as Image,
        ModelRanking as ModelRanking,
        ModelRequest as ModelRequest,
        Reply as Reply,
        SeriesPart as SeriesPart,
        Text as Text,
        Usage as Usage,
        read_match as read_match,
        read_ranking as read_ranking,
        read_scores as read_scores,
        read_similarity as read_similarity,
    )
    from readbench.engine.llm._prompts import Item as Item, item_id as item_id
    from readbench.engine.llm._settings import (
        ModelOptions as ModelOptions,
        Spending as Spending,
        describe_profiles as describe_profiles,
        describe_spending as describe_spending,
        explain_no_models as explain_no_models,
        list_profiles as list_profiles,
        split_model as split_model,
    )

open_room(__name__)
