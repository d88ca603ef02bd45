"""Language models as rerankers and classifiers: clients, prompts, what windows look like to them, and what it costs."""

from readbench.llm.comparing import compare
from readbench.llm.examiner import NO_BRIEFING, Briefing, Examiner, content_key, split_model
from readbench.llm.exhibits import Exhibit, Reduction, spread
from readbench.llm.ledger import Spending, standing
from readbench.llm.messages import ChatClient, Image, Reply, Request, Series, Text, Usage
from readbench.llm.replies import Ranking, read_match, read_ranking, read_scores, read_similarity
from readbench.llm.requests import Item, item_id
from readbench.llm.settings import ModelOptions, unconfigured

__all__ = [
    "NO_BRIEFING",
    "Briefing",
    "ChatClient",
    "Examiner",
    "Exhibit",
    "Image",
    "Item",
    "ModelOptions",
    "Ranking",
    "Reduction",
    "Reply",
    "Request",
    "Series",
    "Spending",
    "Text",
    "Usage",
    "compare",
    "content_key",
    "item_id",
    "read_match",
    "read_ranking",
    "read_scores",
    "read_similarity",
    "split_model",
    "spread",
    "standing",
    "unconfigured",
]
