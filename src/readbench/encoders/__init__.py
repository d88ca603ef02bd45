"""From a window to a vector; importing this room registers all encoders."""

from readbench.encoders import charm, chronos2, mantis, raw, rocket, sonde, tirex, ts2vec
from readbench.encoders.base import Encoder, Metric, Pretrained, Vectors, unit
from readbench.encoders.cache import EmbeddingCache

__all__ = [
    "EmbeddingCache",
    "Encoder",
    "Metric",
    "Pretrained",
    "Vectors",
    "charm",
    "chronos2",
    "mantis",
    "raw",
    "rocket",
    "sonde",
    "tirex",
    "ts2vec",
    "unit",
]
