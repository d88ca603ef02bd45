"""From a window to a vector; importing this room registers all encoders."""

from readbench.encoders import raw, rocket
from readbench.encoders.base import Encoder, Metric, Vectors
from readbench.encoders.cache import EmbeddingCache

__all__ = ["EmbeddingCache", "Encoder", "Metric", "Vectors", "raw", "rocket"]
