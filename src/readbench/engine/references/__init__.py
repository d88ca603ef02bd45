"""Classifiers trained on the labelled corpus, as reference ceilings; importing this package registers them."""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.engine.references._classifiers import MrHydra as MrHydra, Rdst as Rdst
    from readbench.engine.references._language import LanguageClassifier as LanguageClassifier

open_room(__name__)
