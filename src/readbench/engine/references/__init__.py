"""Classifiers trained on the labelled corpus, as a reference ceiling; importing this room registers them."""

from readbench.engine.references._classifiers import MrHydra, Rdst
from readbench.engine.references._language import LanguageClassifier

__all__ = [
    "LanguageClassifier",
    "MrHydra",
    "Rdst",
]
