"""What a study is: a grid over runs with a metric and a figure, declared once and measured cell by cell.

```
cells/NAME.json     written whole as soon as a cell ends: its name, the fingerprint of what it depends on, its rows
NAME.md             all tables, with what may be said of them
TABLE.csv           each table
FIGURE.svg, .png    each figure
```

Started again with the same folder, a study keeps what is finished and depends on the same data, method and code. A cell
that fails says why and does not stop the others. A plug-in adds a study with `readbench.register_study`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import numpy as np

from readbench.benchmark.protocol import Task, find_source
from readbench.benchmark.report import MARKS, ReportTable, count_origins, find_origins
from readbench.benchmark.runs import (
    DEFAULT_SEEDS,
    Executor,
    Local,
    LostItem,
    Plan,
    Setting,
    build_first,
    fingerprint_of,
    load_cell_task,
    take_once,
)
from readbench.common.files import write_json, write_text
from readbench.common.plots import entitle, save, sheet, with_style
from readbench.common.progress import SILENT, Progress, within
from readbench.common.sharing import one_thread_for_products
from readbench.engine.method import Method
from readbench.engine.parameters import Parameter, Value
from readbench.engine.registry import METRICS, Catalogue, origin_of
from readbench.engine.spec import COMPOSED, parse, parse_dataset
from readbench.engine.vectors import VectorFolder
from readbench.errors import DataError, ReadbenchError, UnknownNameError, UsageError
from readbench.studies._used_code import find_used_code

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
Cell = TypeVar("Cell", bound=Hashable)
Result = TypeVar("Result", bound="Measured")
Row = dict[str, Any]
"""What was found in a cell, as plain JSON."""
Tables = ReportTable | Iterable[ReportTable] | None
AXES = {"datasets": "--datasets", "methods": "--methods", "seeds": "--seeds", "levels": "--rho"}
"""Axes of a grid and the options that choose them."""
SIMULATED_MARK = "†"
"""Stands behind the names of simulated datasets, by whomever."""


@dataclass(frozen=True)
class StudyCell:
    """A method at one place of a grid. The text of a cell names it, and no other.

    Args:
        dataset: its text.
        method: its text.
        seed: of the split.
        rho: pollution level in percent.
        part: what else tells cells of a study apart, such as an asset.
    """

    dataset: str
    method: str
    seed: int = 0
    rho: int = 0
    part: str = ""

    def __str__(self) -> str:
        part = f" {self.part}" if self.part else ""
        return f"{self.dataset} seed {self.seed} rho {self.rho}{part} {self.method}"


@dataclass(frozen=True, eq=False)
class Measured:
    """What was found in a cell. Each study adds fields, which its rows name; lists are arrays here, and null is NaN."""

    cell: StudyCell

    @classmethod
    def of(cls, cell: StudyCell, row: Row) -> Self:
        """From a row."""
        return cls(cell, **{name: _read_value(value) for name, value in row.items()})

    @cached_property
    def marked(self) -> str:
        """The dataset, marked where it is simulated."""
        return f"{self.cell.dataset}{SIMULATED_MARK if self.simulated else ''}"

    @cached_property
    def simulated(self) -> bool:
        """Whether the dataset is."""
        return find_source(self.cell.dataset).info.simulated


def _read_value(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, dict):
        return {name: _read_value(part) for name, part in value.items()}
    if not isinstance(value, list):
        return float("nan") if value is None else value
    found = np.array(value)
    return found.astype(np.float64) if found.dtype == object else found  # null in it


@dataclass(frozen=True)
class Grid:
    """Where a study is measured.

    Args:
        datasets: texts of sources.
        methods: texts of methods.
        seeds: of splits.
        levels: pollution levels in percent.
        settings: values of the study's settings, by name.
        out: folder of the study; all workers must see it.
        root: data root.
        cache: cache root.
        composition: sizes and splits of the tasks where they are not those of a run, by field of `Composition`.
    """

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    seeds: tuple[int, ...] = (0,)
    levels: tuple[int, ...] = (0,)
    settings: tuple[tuple[str, Value], ...] = ()
    out: Path = Path("runs/study")
    root: Path | None = None
    cache: Path | None = None
    composition: tuple[tuple[str, Any], ...] = ()

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - of the type that the setting declares
        return dict(self.settings)[name]

    def composed(self, **composition: object) -> Grid:
        """The grid with other sizes or splits of the tasks."""
        return replace(self, composition=(*self.composition, *composition.items()))

    def setting(self) -> Setting:
        """What all cells share."""
        plan = Plan(self.datasets, self.methods, self.seeds, self.levels)
        shared = Setting.of(plan, self.out, self.root, self.cache)
        return replace(shared, composition=replace(shared.composition, **dict(self.composition)))

    def seeds_of(self, dataset: str) -> tuple[int, ...]:
        """Seeds whose splits of a dataset differ."""
        setting = self.setting()
        plan = Plan((dataset,), self.methods, self.seeds, self.levels, split_by=setting.composition.split_by)
        return take_once(plan, setting).seeds_of(dataset)

    def task(self, cell: StudyCell) -> Task:
        """The task of a cell; the last ones stay in memory."""
        return load_cell_task(cell.dataset, cell.seed, self.setting())[0]

    def method(self, cell: StudyCell, progress: Progress = SILENT) -> Method:
        """The method of a cell, with vectors from the cache."""
        return Method(cell.method, vectors=VectorFolder(self.setting().cache), progress=within(progress, "encoding"))


def cells_of(dataset: str, method: str, grid: Grid) -> Iterable[StudyCell]:
    """A cell a seed and level."""
    return (StudyCell(dataset, method, *at) for at in product(grid.seeds_of(dataset), grid.levels))


def depends_on_task(cell: StudyCell, grid: Grid) -> object:
    """The fingerprint of a cell's task."""
    return load_cell_task(cell.dataset, cell.seed, grid.setting())[1]


@dataclass(frozen=True)
class Study(Generic[Result]):
    """What is measured, where, and how it is shown. All functions are of a module, so that other processes find them.

    Args:
        name: in the command and of the files.
        summary: one sentence.
        measure: the rows of a cell.
        result: what a row is read as.
        tables: each makes one from all results, several, or None where there is nothing to show.
        figures: likewise, by the names of their files.
        shown: the tables that a terminal has room for; all by default.
        notes: sentences below the tables.
        depends: what else than the code, the method and the cell decides its rows: data and settings.
        cells: of a dataset and a method; what has none raises `DataError`, and is named as a failure.
        complete: a grid with what the settings add to it; refuses what cannot be measured.
        finish: does what else is to be done with the results.
        datasets: default datasets below a data root; none: they must be named.
        methods: default methods; none: they must be named.
        seeds: default seeds.
        levels: default levels.
        axes: axes of the grid that can be chosen.
        single: those of them that take one value.
        settings: with their types and defaults.
        metrics: names of those that the rows hold.
        probes: methods that the study answers for itself.
        builds: whether the datasets are built before the first cell.
        alone: whether cells are measured one after the other, in one process.
        aliases: other names.
    """

    name: str
    summary: str
    measure: Callable[[StudyCell, Progress, Grid], list[Row]]
    result: type[Result]
    tables: Sequence[Callable[[Sequence[Result]], Tables]]
    figures: Mapping[str, Callable[[Sequence[Result]], Figure | None]] = field(default_factory=dict)
    shown: Sequence[Callable[[Sequence[Result]], Tables]] = ()
    notes: Callable[[Sequence[Result]], Sequence[str]] | None = None
    depends: Callable[[StudyCell, Grid], object] = depends_on_task
    cells: Callable[[str, str, Grid], Iterable[StudyCell]] = cells_of
    complete: Callable[[Grid], Grid] | None = None
    finish: Callable[[Sequence[Result], Grid], None] | None = None
    datasets: Callable[[Path | None], Sequence[str]] | Sequence[str] = ()
    methods: tuple[str, ...] = ()
    seeds: tuple[int, ...] = DEFAULT_SEEDS
    levels: tuple[int, ...] = (0,)
    axes: tuple[str, ...] = tuple(AXES)
    single: tuple[str, ...] = ()
    settings: tuple[Parameter, ...] = ()
    metrics: tuple[str, ...] = ()
    probes: tuple[str, ...] = ()
    builds: bool = True
    alone: bool = False
    aliases: tuple[str, ...] = ()

    @property
    def factory(self) -> Callable[..., Any]:
        """What computes its numbers, for the registry."""
        return self.measure

    @property
    def origin(self) -> str:
        """Where it comes from."""
        return origin_of(self.measure)

    def show(self, results: Sequence[Result], *, briefly: bool = False) -> list[ReportTable]:
        """All tables of the results, or those that a terminal has room for."""
        made = [make(results) for make in (briefly and self.shown) or self.tables]
        return list(chain.from_iterable([one] if isinstance(one, ReportTable) else one or () for one in made))

    def grid(
        self,
        chosen: Mapping[str, Sequence[Any]] | None = None,
        settings: Iterable[str] = (),
        *,
        out: Path | None = None,
        root: Path | None = None,
        cache: Path | None = None,
    ) -> Grid:
        """Where to measure; what does not apply to this study is refused.

        Args:
            chosen: values of axes; defaults stand where an axis has none.
            settings: as texts, name=value.
            out: folder of the study.
            root: data root.
            cache: cache root.
        """
        given = {axis: tuple(values) for axis, values in (chosen or {}).items() if values}
        for axis in given:
            if axis not in self.axes:
                applies = ", ".join([AXES[own] for own in self.axes] + [f"--set {own.name}=" for own in self.settings])
                raise UsageError(f"{AXES[axis]} does not apply to the study {self.name}. It takes {applies}.")
        datasets = self.datasets(root) if callable(self.datasets) else self.datasets
        made = Grid(
            tuple(str(parse_dataset(text)) for text in given.get("datasets", datasets)),
            tuple(dict.fromkeys(map(self._canonical, given.get("methods", self.methods)))),
            given.get("seeds", self.seeds),
            given.get("levels", self.levels),
            self._read_settings(settings),
            out or Path("runs") / self.name,
            root,
            cache,
        )
        made = self.complete(made) if self.complete else made
        for axis in self.axes:
            count = len(getattr(made, axis))
            if not count:
                raise UsageError(f"The study {self.name} has no {axis} by default. Give {AXES[axis]}.")
            if axis in self.single and count > 1:
                raise UsageError(f"The study {self.name} takes one value of {AXES[axis]}. Got {count}.")
        return made

    def _canonical(self, method: str) -> str:
        return method if method in COMPOSED or method in self.probes else str(parse(method))

    def _read_settings(self, texts: Iterable[str]) -> tuple[tuple[str, Value], ...]:
        known = {one.name: one for one in self.settings}
        values = {name: one.default for name, one in known.items()}
        for text in texts:
            name, is_set, value = (part.strip() for part in text.partition("="))
            if not known:
                raise UsageError(f"The study {self.name} has no settings. Leave out --set {text}.")
            if name not in known:
                raise UnknownNameError(f"setting of the study {self.name}", name, known)
            if not is_set:
                raise UsageError(f"A setting is written name=value. Got {text!r}.")
            values[name] = known[name].read(value)
            known[name].check(f"the study {self.name}", values[name])
        return tuple(values.items())


class StudyRegistry(Catalogue[Study[Any]]):
    """Studies by name."""

    def register(self, study: Study[Result]) -> Study[Result]:
        """Make a study known."""
        self._add(study)
        return study


STUDIES = StudyRegistry("study", ("readbench.studies",))


@dataclass(frozen=True)
class Failure:
    """A cell without a result."""

    cell: str
    reason: str


@dataclass(frozen=True, eq=False)
class StudyResult(Generic[Result]):
    """What a study found.

    Args:
        results: in the order of the grid.
        failures: what has no result.
        reused: how many cells were there already.
    """

    results: list[Result]
    failures: tuple[Failure, ...]
    reused: int


def run_study(
    study: Study[Result], grid: Grid, executor: Executor | None = None, progress: Progress = SILENT
) -> StudyResult[Result]:
    """Measure what is not measured yet; a study that was killed goes on where it was.

    Methods are measured one after the other, each on all datasets: an interrupted study has the first ones whole.

    Args:
        study: what to measure.
        grid: where.
        executor: where cells are measured; in this process by default.
        progress: told of cells that have ended, and of what each is at.
    """
    grid.out.mkdir(parents=True, exist_ok=True)
    if study.builds:
        build_first(grid.datasets, grid.setting(), progress)
    cells: list[StudyCell] = []
    failures: list[Failure] = []
    for method, dataset in product(grid.methods, grid.datasets):
        try:
            cells += study.cells(dataset, method, grid)
        except (DataError, OSError) as error:
            failures.append(Failure(f"{dataset} {method}", str(error)))
    told, work = partial(identify, study=study, grid=grid), partial(measure_cell, study=study, grid=grid)
    ended = measure_cells(cells, told, work, grid.out, executor, progress)
    failures += [Failure(str(cell), one.failure) for cell, one in ended.items() if one.failure]
    results = [study.result.of(cell, row) for cell, one in ended.items() for row in one.rows]
    return StudyResult(results, tuple(failures), sum(one.reused for one in ended.values()))


@dataclass(frozen=True)
class EndedCell:
    """What became of a cell; `failure` is empty where it has rows."""

    rows: list[Row]
    reused: bool = False
    failure: str = ""


def measure_cells(
    cells: Sequence[Cell],
    identify: Callable[[Cell], str],
    measure: Callable[[Cell, Progress], list[Row]],
    out: Path,
    executor: Executor | None = None,
    progress: Progress = SILENT,
) -> dict[Cell, EndedCell]:
    """What became of cells, in their order; finished ones are read from a folder.

    Args:
        cells: the text of one names it, and no other.
        identify: fingerprint of all that the rows of a cell depend on.
        measure: the rows of a cell.
        out: folder of the study.
        executor: where cells are measured; in this process by default.
        progress: told of cells that have ended, and of what each is at.
    """
    finish = partial(finish_cell, folder=out.absolute() / "cells", identify=identify, measure=measure)
    ended: dict[Cell, EndedCell] = {}
    progress("cells", 0, len(cells))
    for cell, found in (executor or Local()).map(finish, cells, progress):
        ended[cell] = EndedCell([], failure=found.reason) if isinstance(found, LostItem) else found
        progress("cells", len(ended), len(cells))
    return {cell: ended[cell] for cell in cells}


def finish_cell(
    cell: Cell,
    progress: Progress,
    folder: Path,
    identify: Callable[[Cell], str],
    measure: Callable[[Cell, Progress], list[Row]],
) -> EndedCell:
    """In a worker: read a cell from its file, or measure it and write that.

    One linear-algebra thread, as in a run: results then do not depend on how many cells are measured beside it.
    """
    path = folder / f"{name_file(str(cell))}.json"
    try:
        fingerprint = identify(cell)
        if (kept := _read(path, fingerprint)) is not None:
            return EndedCell(kept, reused=True)
        with one_thread_for_products():
            rows = measure(cell, within(progress, str(cell)))
        write_json(path, {"cell": str(cell), "fingerprint": fingerprint, "rows": rows})
    except ReadbenchError as error:
        return EndedCell([], failure=str(error))
    except Exception as error:  # noqa: BLE001 - named with its reason, the other cells go on
        return EndedCell([], failure=" ".join(f"{type(error).__name__}: {error}".split()))
    return EndedCell(rows)


def measure_cell(cell: StudyCell, progress: Progress, study: Study[Any], grid: Grid) -> list[Row]:
    """The rows of a cell."""
    return study.measure(cell, progress, grid)


def identify(cell: StudyCell, study: Study[Any], grid: Grid) -> str:
    """Fingerprint of all that the rows of a cell depend on: what shows them does not count."""
    used = find_used_code(study.measure)
    metrics = [METRICS.get(name) for name in study.metrics]
    judges = [part for one in metrics for part in (one.factory, one.chance) if part]
    method = None if cell.method in study.probes else Method(cell.method)
    also = (used.digest, str(cell), study.depends(cell, grid), *(method.content_keys if method else ()))
    behind: list[Callable[..., Any]] = [load_cell_task, Method]  # what a grid does
    roots = once([*behind, *used.roots, *judges])
    return fingerprint_of(*roots, spec=method.spec if method else None, also=also)


def name_file(text: str) -> str:
    """A name that a file may have, of no other text.

    >>> name_file("sonde+nr at 1,000")
    'sonde-nr-at-1-000-967cb734'
    """
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:80]
    return f"{slug}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _read(path: Path, fingerprint: str) -> list[Row] | None:
    """The rows of a finished cell; None where there is none, or one that depends on something else."""
    try:
        kept: dict[str, Any] = json.loads(path.read_text())
        rows: list[Row] = kept["rows"]
        return rows if kept["fingerprint"] == fingerprint else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_study(study: Study[Result], results: Sequence[Result], grid: Grid) -> list[str]:
    """Write tables, the page with all of them, and figures; the names of the files."""
    folder = grid.out
    tables = study.show(results)
    notes = study.notes(results) if study.notes else ()
    texts = {f"{study.name}.md": "\n".join([*(table.markdown() for table in tables), *notes, ""])}
    texts |= {f"{table.name}.csv": table.csv() for table in tables}
    for name, text in texts.items():
        write_text(folder / name, text)
    drawn = {name: draw(results) for name, draw in study.figures.items()}
    files = {f"{name}.{suffix}": figure for name, figure in drawn.items() if figure for suffix in ("svg", "png")}
    for name, figure in files.items():
        save(figure, folder / name)
    if study.finish:
        study.finish(results, grid)
    return [*texts, *files]


def once(names: Iterable[K]) -> list[K]:
    """Names in the order in which they come first."""
    return list(dict.fromkeys(names))


def group_by(key: Callable[[T], K], items: Iterable[T]) -> dict[K, list[T]]:
    """Items by their key, in the order in which keys come first."""
    found: dict[K, list[T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def find_blocks(measured: Sequence[Result]) -> dict[tuple[str, int, str], list[Result]]:
    """Results of all seeds and parts by dataset, level and method; datasets and methods in the order of the study."""
    found = group_by(lambda one: (one.cell.dataset, one.cell.rho, one.cell.method), measured)
    datasets = once(one.cell.dataset for one in measured)
    return {key: found[key] for key in sorted(found, key=lambda key: (datasets.index(key[0]), key[1]))}


def tell(values: Iterable[float | np.floating[Any]], lacking: str = "") -> list[str]:
    """Numbers in a table; `lacking` stands for NaN."""
    return [lacking if np.isnan(value) else f"{value:.3f}" for value in values]


def plural(count: int, noun: str) -> str:
    """How many there are, in words."""
    return f"{count} {noun}{'s' if count > 1 else ''}"


def count_seeds(measured: Sequence[Measured]) -> str:
    """How many split seeds there are, in words."""
    return plural(len({one.cell.seed for one in measured}), "split seed")


def mark_origins(datasets: Iterable[str]) -> tuple[list[str], str]:
    """Names of datasets, marked by where their values come from, and the name of their mean."""
    origins = find_origins(datasets)
    return [f"{name}{MARKS[origin]}" for name, origin in origins.items()], f"mean of {count_origins(origins.values())}"


@with_style
def draw_panels(
    panels: Mapping[str, T],
    draw: Callable[[Axes, str, T], None],
    size: tuple[float, float],
    title: str,
    labels: tuple[str, str],
) -> Figure:
    """A figure of panels with common axes.

    Args:
        panels: what each shows, by its title.
        draw: draws one.
        size: of a panel, in inches.
        title: of the figure.
        labels: of both axes.
    """
    columns = count_columns(len(panels))
    figure = sheet(size[0] * columns + 0.4, size[1] * -(-len(panels) // columns) + 0.6)
    for axis, (name, shown) in zip(make_panels(figure, len(panels)), panels.items(), strict=True):
        draw(axis, name, shown)
    entitle(figure, title)
    figure.supxlabel(labels[0], fontsize=9)
    figure.supylabel(labels[1], fontsize=9)
    return figure


def count_columns(panels: int) -> int:
    """How many panels stand side by side: the fewest places stay empty."""
    return min((5, 4, 6), key=lambda columns: -panels % columns) if panels > 5 else panels


def make_panels(figure: Figure | SubFigure, count: int) -> list[Axes]:
    """Panels with common axes, which only the lowest ones number."""
    columns = count_columns(count)
    grid = figure.subplots(-(-count // columns), columns, sharex=True, sharey=True, squeeze=False)
    axes: list[Axes] = list(chain.from_iterable(grid.tolist()))
    for place, axis in enumerate(axes):
        axis.tick_params(labelbottom=place + columns >= count)
        if place >= count:
            axis.set_axis_off()
    return axes[:count]
