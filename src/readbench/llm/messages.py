"""What is said to a language model and what it answers, whoever serves it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

CHARACTERS_PER_TOKEN = 3
"""Numbers fall into more tokens than prose; estimates lean to the dear side."""
PIXELS_PER_TOKEN = 750


@dataclass(frozen=True)
class Text:
    """A piece of the question in words."""

    text: str


@dataclass(frozen=True)
class Image:
    """A picture: `png` bytes and its size in pixels."""

    png: bytes
    width: int
    height: int


@dataclass(frozen=True, eq=False)
class Series:
    """One channel as numbers.

    Args:
        entity: number of the window it belongs to, counted from 0 in the order of the request.
        channel: its name, as it may stand in a prompt.
        values: (P,) float32.
        text: the same values in words, for models that read text only.
    """

    entity: int
    channel: str
    values: NDArray[np.float32]
    text: str


Part = Text | Image | Series


@dataclass(frozen=True, eq=False)
class Request:
    """One question.

    Args:
        system: who the model is to be.
        parts: what it is shown and asked, in order.
        schema: JSON schema of the answer, sent where the provider is told to enforce it.
    """

    system: str
    parts: tuple[Part, ...]
    schema: dict[str, Any]

    def digest(self) -> str:
        """Hash of everything in the request."""
        digest = hashlib.sha256(json.dumps([self.system, self.schema]).encode())
        for part in self.parts:
            digest.update(hashlib.sha256(_content(part)).digest())
        return digest.hexdigest()

    @property
    def tokens(self) -> int:
        """About how many tokens it is, on the dear side."""
        return len(self.system) // CHARACTERS_PER_TOKEN + sum(map(_tokens, self.parts))


@dataclass(frozen=True)
class Usage:
    """Tokens that a call took, as the provider counts them."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens)


@dataclass(frozen=True)
class Reply:
    """What came back: the text, empty where the model said nothing, and what it took."""

    text: str
    usage: Usage


class ChatClient(Protocol):
    """Anything that answers requests (no base class to inherit from)."""

    def complete(self, request: Request) -> Reply:
        """Answer one request; `CallError` where no answer came. Called from several threads at once."""
        ...


def _content(part: Part) -> bytes:
    if isinstance(part, Text):
        return b"text " + part.text.encode()
    if isinstance(part, Image):
        return b"image " + part.png
    head = f"series {part.entity} {part.channel} {part.text} ".encode()
    return head + part.values.astype("<f4").tobytes()


def _tokens(part: Part) -> int:
    if isinstance(part, Image):
        return part.width * part.height // PIXELS_PER_TOKEN + 1
    return len(part.text) // CHARACTERS_PER_TOKEN + 1
