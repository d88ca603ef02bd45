"""From a window to a vector; importing this room registers all encoders."""

from readbench.encoders import charm, chronos2, mantis, raw, rocket, sonde, tirex, ts2vec
from readbench.encoders.base import Encoder, Metric, Vectors, unit
from readbench.encoders.cache import VectorFolder, VectorStore, encode_missing

__all__ = [
    "Encoder",
    "Metric",
    "VectorFolder",
    "VectorStore",
    "Vectors",
    "charm",
    "chronos2",
    "encode_missing",
    "mantis",
    "raw",
    "rocket",
    "sonde",
    "tirex",
    "ts2vec",
    "unit",
]
