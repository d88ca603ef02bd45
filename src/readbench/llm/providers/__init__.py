"""Who serves a model: one module a protocol."""

from collections.abc import Callable

from readbench.llm.messages import ChatClient
from readbench.llm.providers.anthropic import Anthropic
from readbench.llm.providers.bedrock import Bedrock
from readbench.llm.providers.openai import ChatTs, OpenAi
from readbench.llm.providers.scripted import Scripted
from readbench.llm.providers.toto import Toto
from readbench.llm.settings import Profile

CLIENTS: dict[str, Callable[[Profile], ChatClient]] = {
    "anthropic": Anthropic,
    "bedrock": Bedrock,
    "openai": OpenAi,
    "chatts-http": ChatTs,
    "toto-http": Toto,
}

__all__ = ["Anthropic", "Bedrock", "ChatTs", "OpenAi", "Scripted", "Toto", "client_for"]


def client_for(profile: Profile) -> ChatClient:
    """The client that speaks a profile's protocol."""
    return CLIENTS[str(profile.provider)](profile)
