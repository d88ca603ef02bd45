"""Names of the release before this one: they work with a warning that says the new place, and go in the next.

`MOVED` says where the modules went that plug-ins and scripts were told to import. A finder, asked only for what
Python does not find by itself, makes such a module when it is imported; its names are looked up in the new places.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pathlib import Path

    from readbench.common.progress import Progress
    from readbench.engine.method import FittedMethod
    from readbench.engine.preparation import Normalisation
    from readbench.engine.protocols import Scores
    from readbench.engine.spec import MethodSpec
    from readbench.engine.windows import WindowSet

MOVED = {
    "cases.reading": ("readbench.cases",),
    "data": ("readbench.benchmark.protocol",),
    "data.simulators": ("readbench.benchmark.simulators",),
    "data.simulators.base": ("readbench.benchmark.simulators",),
    "data.sources": ("readbench.benchmark.sources",),
    "encoders": ("readbench.engine.protocols", "readbench.engine.abilities", "readbench.engine.encoders"),
    "experiment": ("readbench.benchmark.runs",),
    "experiment.executors": ("readbench.benchmark.runs",),
    "llm": ("readbench.engine.llm",),
    "parameters": ("readbench.engine.parameters",),
    "paths": ("readbench.common.files",),
    "pipeline": ("readbench.engine.method",),
    "ranking": ("readbench.engine.ranking",),
    "registry": ("readbench.engine.registry",),
    "report": ("readbench.benchmark.report",),
    "report.tables": ("readbench.benchmark.report",),
    "rerank": ("readbench.engine.protocols", "readbench.engine.rerankers"),
    "retrieve": ("readbench.engine.protocols", "readbench.engine.abilities", "readbench.engine.retrievers"),
    "spec": ("readbench.engine.spec",),
    "supervised": ("readbench.engine.references",),
    "tables": ("readbench.engine.window_tables", "readbench.common.tables"),
    "windows": ("readbench.engine.windows", "readbench.engine.preparation", "readbench.engine.window_files"),
}
"""Module of the release before, below `readbench` -> where its names are now."""
RENAMED = {
    "encoders.unit": "unit_vectors",
    "experiment.Summary": "RunSummary",
    "parameters.Interval": "ParameterRange",
    "report.Overview": "RunOverview",
    "report.tables.Study": "TableStudy",
    "retrieve.checked_scores": "check_scores",
}
"""Names that are called otherwise now."""
REPLACED = {
    "Plan": ("readbench.benchmark.runs", "write readbench.run(datasets, methods, out=...)"),
    "System": ("readbench._deprecated", "write readbench.Method(...).fit(...).rank(...)"),
    "parse": ("readbench.engine.spec", "write readbench.Method(text); its `spec` is the text parsed"),
    "windows.normalise": (
        "readbench._deprecated",
        "write readbench.engine.preparation.Scaler.of(norm, corpus, normals)(windows)",
    ),
}
"""Names of the front page, or of a module below it, that something else took the place of, and where they still are."""


class System:
    """What `Method` was called: `Method(text).fit(corpus, normals).rank(queries)` takes its place."""

    def __init__(self, method: MethodSpec | str, cache: Path | None = None, encoding: Progress | None = None) -> None:
        from readbench.common.progress import SILENT  # noqa: PLC0415
        from readbench.engine.method import Method  # noqa: PLC0415 - slow to import, and this module always is
        from readbench.engine.vectors import VectorFolder  # noqa: PLC0415

        self._method = Method(method, vectors=VectorFolder(cache) if cache else None, progress=encoding or SILENT)
        self._fitted: FittedMethod | None = None

    @property
    def spec(self) -> MethodSpec:
        """The method's spec."""
        return self._method.spec

    def fit(self, corpus: WindowSet, normals: WindowSet) -> Self:
        """Fit all legs."""
        self._fitted = self._method.fit(corpus, normals).prepare()
        return self

    def score(self, queries: WindowSet) -> Scores:
        """(Q, N) scores of the whole method."""
        if self._fitted is None:
            raise RuntimeError("Call fit before score.")
        return self._fitted.score(queries)


def normalise(
    windows: WindowSet, mode: Normalisation, *, corpus: WindowSet, normals: WindowSet | None = None
) -> WindowSet:
    """Scale windows; now `Scaler.of(mode, corpus, normals)(windows)`."""
    from readbench.engine.preparation import Scaler  # noqa: PLC0415 - as above

    return Scaler.of(mode, corpus, normals)(windows)


def find_replaced(name: str) -> Any:  # noqa: ANN401 - any exported object
    """A name of `REPLACED`, with a warning for whoever asked the caller for it."""
    module, instead = REPLACED[name]
    _warn(f"readbench.{name} goes in the next release: {instead}.", stacklevel=4)
    return getattr(import_module(module), name.rpartition(".")[2])


class MovedModule(ModuleType):
    """A module of the release before: every name is that of its new place."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any name of a module
        old = self.__name__.removeprefix("readbench.")
        if name.startswith("__") or old not in MOVED:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        for own in (name, f"{old}.{name}"):
            if own in REPLACED:
                return find_replaced(own)
        now = RENAMED.get(f"{old}.{name}", name)
        for place in MOVED[old]:
            module = import_module(place)
            if hasattr(module, now):
                _warn(f"{self.__name__}.{name} is now {_public(place, now)}.", stacklevel=3)
                return getattr(module, now)
        raise AttributeError(f"{self.__name__}.{name} is gone; what is left of it is in {' and '.join(MOVED[old])}.")


class MovedModules(MetaPathFinder, Loader):
    """Finds the modules that moved; Python asks it last."""

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        """The spec of a module that moved, or nothing."""
        old = fullname.removeprefix("readbench.")
        if old == fullname or old not in MOVED:
            return None
        return ModuleSpec(fullname, self, is_package=any(name.startswith(f"{old}.") for name in MOVED))

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """An empty module that looks its names up."""
        return MovedModule(spec.name, f"Moved: {' and '.join(MOVED[spec.name.removeprefix('readbench.')])}.")

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is to be run."""


def install() -> None:
    """Let Python find the modules that moved."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.append(MovedModules())


def _public(place: str, name: str) -> str:
    """How to write a name: as on the front page, where it is there."""
    import readbench  # noqa: PLC0415 - it imports this module

    return f"readbench.{name}" if name in readbench.__all__ else f"{place}.{name}"


def _warn(message: str, stacklevel: int) -> None:
    warnings.warn(message, DeprecationWarning, stacklevel=stacklevel)
