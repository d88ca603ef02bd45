"""Classifiers trained on the labelled corpus, as reference ceilings; importing this package registers them."""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.engine.references._classifiers import MrHydra, Rdst
    from readbench.engine.references._language import LanguageClassifier

__all__ = [
    "LanguageClassifier",
    "MrHydra",
    "Rdst",
]

__getattr__ = open_room(__name__)
