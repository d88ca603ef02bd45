"""Classifiers trained on the labelled corpus, as a reference ceiling; importing this room registers them."""

from readbench.supervised.language import LanguageClassifier
from readbench.supervised.references import MrHydra, Rdst

__all__ = ["LanguageClassifier", "MrHydra", "Rdst"]
