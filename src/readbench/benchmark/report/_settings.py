"""Tables of settings and of labelling for a run, beside the paper's.

Settings come from the registry and the methods of the run, the paper's from `paper_settings.csv`. Label rules and split
units come from the sources, the annotations that labels are read from out of `labelling.csv`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from readbench.benchmark.protocol import read_shipped_rows
from readbench.benchmark.report._methods import canonical, mark_dataset
from readbench.benchmark.report._results import Results
from readbench.benchmark.report._statements import state_method
from readbench.benchmark.report._table import ReportTable
from readbench.engine.registry import ENCODERS, FUSIONS, RERANKERS, RETRIEVERS, SOURCES, TRANSFORMS, Entry, Registry
from readbench.engine.spec import MethodSpec, Stage, parse

NONE = "-"


@dataclass(frozen=True)
class SettingsPage:
    """A table of settings: name, caption, registries of its parts, and the template of a method with a part."""

    name: str
    caption: str
    registries: tuple[Registry, ...]
    probe: str


PAGES = (
    SettingsPage("settings-retrievers", "distances, symbolic retrievers and classifiers", (RETRIEVERS,), "{}"),
    SettingsPage("settings-encoders", "encoders and what is done to their vectors", (ENCODERS, TRANSFORMS), "{}"),
    SettingsPage("settings-fusion", "fusion and reranking", (FUSIONS, RERANKERS), "euclidean+{}"),
)


def settings_tables(results: Results) -> list[ReportTable]:
    """Settings of the parts of the run and of the paper, one table per kind with parts."""
    return [table for page in PAGES if (table := settings_table(page, results))]


def settings_table(page: SettingsPage, results: Results) -> ReportTable | None:
    """Table with one row per part of the run or the paper; None without any."""
    used = _used(results.methods)
    paper = {row["part"]: row["settings"] for row in read_shipped_rows(__name__, "paper_settings.csv")}
    rows = []
    for registry in page.registries:
        for entry in registry:
            if entry.name not in used and entry.name not in paper:
                continue
            changes = [_tell(entry, stage) for stage in used.get(entry.name, ())]
            others = "; ".join(dict.fromkeys(text for text in changes if text)) or NONE
            here = "yes" if entry.name in used else "no"
            reads = _tell_reads(page, registry, entry)
            rows.append([entry.title, here, reads, _tell(entry) or "none", others, paper.get(entry.name, NONE)])
    caption = (
        f"Settings of {page.caption}: whether the run has them, what they read beside the windows, defaults, what"
        " methods of the run change, and the paper's"
    )
    header = ["Part", "In the run", "Reads", "Settings", "Changed to", "Paper"]
    return ReportTable(page.name, caption, header, rows, labels=len(header)) if rows else None


def _used(methods: Iterable[str]) -> dict[str, list[Stage]]:
    """Name of a part -> its stages in the methods."""
    found: dict[str, list[Stage]] = {}
    for text in methods:
        for stage in _stages(parse(text)) if canonical(text) else ():
            found.setdefault(stage.name, []).append(stage)
    return found


def _stages(spec: MethodSpec) -> Iterator[Stage]:
    for leg in spec.legs:
        yield from (leg.stage, *leg.transforms)
    yield from (*spec.fusions, *spec.rerankers)


def _tell(entry: Entry, stage: Stage | None = None) -> str:
    """Defaults of a part, or the parameters that a stage sets."""
    default = {name: parameter.default for name, parameter in entry.parameters.items()}
    shown = default if stage is None else dict(stage.parameters)
    return ", ".join(f"{name} = {str(value).lower()}" for name, value in shown.items())


def _tell_reads(page: SettingsPage, registry: Registry, entry: Entry) -> str:
    if registry is FUSIONS:
        return NONE
    stated = state_method(f"rocket+{entry.name}" if registry is TRANSFORMS else page.probe.format(entry.name))
    labels = {"none": "", "unknown": "", "pool": f"labels of {stated.budget} hits", "all": "all labels"}[stated.labels]
    return ", ".join(filter(None, (labels, "known normals" if stated.normals else ""))) or NONE


RULES = {"majority": "window majority", "majority-or-coverage": "majority or coverage", "native": "native label"}
"""Label rules in the paper's words."""


def labelling_table(results: Results) -> ReportTable | None:
    """Table of label sources, label rules and split units by dataset, with the paper's below; None without any."""
    rows: list[list[str]] = []
    rules: list[int] = []
    labelling = {row["dataset"]: row for row in read_shipped_rows(__name__, "labelling.csv")}
    for dataset in results.datasets:
        if dataset not in SOURCES or dataset not in labelling:
            continue
        info, known = SOURCES.get(dataset).build().info, labelling[dataset]
        unit = info.split_unit + " (native split)" * (info.protocol.native_split and "native" not in info.split_unit)
        rules.append(len(rows))
        here = [known["source"], RULES[info.protocol.label_rule], unit, info.asset_unit or NONE]
        rows.append([mark_dataset(results, dataset), "here", *here])
        if known["paper_rule"]:
            rows.append(["", "paper", known["paper_source"], known["paper_rule"], known["paper_unit"], NONE])
    caption = (
        "How fault types are derived: the annotation that they are read from, the rule that labels a window, what is"
        " held out whole, and what an asset is"
    )
    header = ["Dataset", "", "Label source", "Label rule", "Split unit", "Asset"]
    return ReportTable("labelling", caption, header, rows, labels=len(header), rules=tuple(rules[1:])) if rows else None
