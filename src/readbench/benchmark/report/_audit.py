"""Pages of an audit, of one dataset or many, as terminal output, markdown and HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from rich.console import Console

from readbench.benchmark.audit import PROBES, DatasetAudit, Finding
from readbench.benchmark.report._overview import show_table
from readbench.benchmark.report._table import ReportTable, html_table, tables_page, tell_number, tell_values
from readbench.common.files import write_text
from readbench.errors import UsageError

MAX_ROWS, MAX_CLASSES = 10, 24
"""Most doubtful labels or near copies, and most classes, that are listed."""
COLUMNS = ("channels", "length", "classes", "corpus", "queries", "relevant_per_query", "imbalance")
WORDS = ("clean", "watch", "hazard", "unclear")
LEGEND = (
    "A share says how much of what the best method gains over chance a shortcut reaches: (probe - chance) / (best - "
    "chance). hazard: what cannot be the fault tells the class; watch: look at it before you trust a score; clean: "
    "nothing was found; unclear: too few groups to tell; a dash: there is nothing to look at."
)
Block = str | ReportTable
"""A paragraph, or a table; a paragraph that begins with # is a heading."""


def audit_blocks(audit: DatasetAudit) -> list[Block]:
    """The page of one dataset."""
    return [
        f"# Audit of {audit.info.title} ({audit.name})",
        *_introduce(audit),
        findings_table(audit.findings),
        methods_table(audit),
        composition_table([audit]),
        classes_table(audit),
        *_listed(audit),
        *(f"{note[:1].upper()}{note[1:]}." for note in (*tell_context(audit.context), *audit.notes)),
        LEGEND,
    ]


def summary_blocks(audits: Sequence[DatasetAudit], absent: Mapping[str, str], command: str) -> list[Block]:
    """The page of many datasets: a table of verdicts, and the hazards of each dataset."""
    blocks: list[Block] = [
        "# Audit of the datasets",
        f"Made by `{command}`; do not edit it by hand.",
        LEGEND,
        hazards_table(audits),
        scores_table(audits),
    ]
    for audit in audits:
        noted = [finding for finding in audit.findings if finding.verdict in {"watch", "hazard"}]
        blocks += [f"## {audit.name}", *_introduce(audit)]
        blocks += [findings_table(noted)] if noted else ["Nothing to watch."]
    if absent:
        blocks.append("## Not audited")
        blocks += [f"{name}: {reason}" for name, reason in absent.items()]
    return blocks


def findings_table(findings: Sequence[Finding]) -> ReportTable:
    """Table with one row per hazard."""
    rows = [
        [
            finding.title,
            finding.verdict,
            finding.sentence,
            tell_number(finding.score),
            _percent(finding.share),
            f"{_percent(finding.low)} to {_percent(finding.high)}" if finding.low == finding.low else "-",
            tell_number(finding.p),
        ]
        for finding in findings
    ]
    header = ["Hazard", "Verdict", "In words", "NDCG@10", "Share", "95 % interval", "p"]
    return ReportTable("findings", "Hazards", header, rows, labels=3)


def hazards_table(audits: Sequence[DatasetAudit]) -> ReportTable:
    """Table of verdicts with one row per dataset, with the share of the best score where a probe is not clean."""
    header = ["Dataset", *(finding.title for finding in audits[0].findings)] if audits else ["Dataset"]
    rows = [[audit.name, *map(_short, audit.findings)] for audit in audits]
    return ReportTable("hazards", "Verdicts, and shares of the best score", header, rows, labels=len(header))


def scores_table(audits: Sequence[DatasetAudit]) -> ReportTable:
    """Table of NDCG@10 of chance, probes and methods with one row per dataset."""
    probes, methods = list(PROBES.values()), list(audits[0].scores) if audits else []
    header = ["Dataset", "chance", *(probe.title.lower() for probe in probes), *methods, "own asset", "at random"]
    rows = []
    for audit in audits:
        scores = {finding.name: finding.score for finding in audit.findings}
        numbers = [audit.chance, *(scores[name] for name in PROBES), *audit.scores.values()]
        rows.append([audit.name, *map(tell_number, (*numbers, audit.own_asset, audit.own_asset_expected))])
    caption = "NDCG@10 on the clean corpus; and the share of the query's own asset in the top 10 of Euclidean distance"
    return ReportTable("scores", caption, header, rows, labels=1)


def methods_table(audit: DatasetAudit) -> ReportTable:
    """Table of NDCG@10 of chance and the cheap methods, and of the hits of Euclidean distance on the own asset."""
    scores = {"chance": audit.chance, **audit.scores, "own asset in the top 10 of euclidean": audit.own_asset}
    scores["own asset at random"] = audit.own_asset_expected
    rows = [[name, tell_number(score)] for name, score in scores.items()]
    return ReportTable("methods", "What is scored on the clean corpus", ["Method", "NDCG@10"], rows, labels=1)


def composition_table(audits: Sequence[DatasetAudit]) -> ReportTable:
    """Table of the paper's columns, with the paper's value where it differs."""
    rows = [[audit.name, *(_beside(audit, column) for column in COLUMNS)] for audit in audits]
    header = ["Dataset", *(column.replace("_", " ") for column in COLUMNS)]
    return ReportTable("composition", "Composition, and the paper's where it differs", header, rows, labels=1)


def classes_table(audit: DatasetAudit) -> ReportTable:
    """Table of windows, groups, corpus and queries by class; only the largest of very many classes."""
    rows = [[name, *map(str, counts.values())] for name, counts in audit.counts.items()]
    caption = "Classes"
    if len(rows) > MAX_CLASSES:
        rows = sorted(rows, key=lambda row: -int(row[1]))[:MAX_CLASSES]
        caption = f"The {MAX_CLASSES} largest of {len(audit.counts)} classes"
    return ReportTable("classes", caption, ["Class", "Windows", "Groups", "Corpus", "Queries"], rows, labels=1)


def show_blocks(blocks: Sequence[Block], console: Console) -> None:
    """Print a page."""
    for block in blocks:
        if isinstance(block, str):
            heading = block.startswith("#")
            text = block.lstrip("# ").replace("`", "")
            console.print(text, style="bold" if heading else "", highlight=False, markup=False)
        else:
            show_table(block, console)


def write_blocks(blocks: Sequence[Block], path: Path) -> None:
    """Write a page as markdown or HTML, by the suffix of the file."""
    makers = {".md": _markdown, ".html": _page}
    if path.suffix not in makers:
        raise UsageError(f"--out takes a file that ends with .md or .html. Got {path.name!r}.")
    write_text(path, makers[path.suffix](blocks))


def tell_context(context: Mapping[str, Any]) -> list[str]:
    """Sentences on the context of the windows."""
    counts = ", ".join(f"{_tell_count(context[part])} {part}" for part in ("queries", "corpus", "normals"))
    low, high = context["rate"] or (None, None)
    rate = "unknown" if low is None else f"{low:g} Hz" if low == high else f"{low:g} to {high:g} Hz"
    known = f"rate {rate}; units of {len(context['units'])} channels; facts: {', '.join(context['facts']) or 'none'}"
    return [f"time before, rule {context['before']}, at most {context['before_steps']} steps: {counts}", known]


def _tell_count(counts: Mapping[str, int]) -> str:
    lent = f" and {counts['lent']} lent by normals of their asset" if counts["lent"] else ""
    return f"{counts['own']} own{lent} of {counts['windows']}"


def _introduce(audit: DatasetAudit) -> list[str]:
    """Origin, size and verdicts of a dataset."""
    info, row = audit.info, audit.composition
    assets = f", {audit.assets} {info.asset_unit or 'asset'}{'s' * (audit.assets > 1)}" if audit.assets else ""
    total = sum(counts["windows"] for counts in audit.counts.values())
    size = (
        f"{total} windows of {row['channels']} channels and {row['length']} steps, {row['classes']} fault types, "
        f"{audit.groups[0]} groups ({info.split_unit}){assets}. Split seed {audit.seed} by {audit.split_by}: "
        f"{row['queries']} queries of {audit.groups[1]} groups, a corpus of {row['corpus'][0]}; chance "
        f"{audit.chance:.3f}, best of the cheap methods {audit.best} with {audit.scores[audit.best]:.3f}. "
        f"Task fingerprint {audit.fingerprint}."
    )
    origin = f"Origin: {audit.origin}; {info.domain}. Licence: {info.licence}. Source: {info.citation}."
    return [origin, size, tell_verdicts(audit)]


def tell_verdicts(audit: DatasetAudit) -> str:
    """The findings with verdict hazard or watch, as sentences."""
    by = {word: [f.title.lower() for f in audit.findings if f.verdict == word] for word in ("hazard", "watch")}
    return f"Hazards: {', '.join(by['hazard']) or 'none'}. To watch: {', '.join(by['watch']) or 'nothing'}."


def _listed(audit: DatasetAudit) -> list[Block]:
    """Tables of the most doubtful labels and the nearest copies."""
    tables: list[Block] = []
    if not isinstance(audit.labels, str) and audit.labels.found:
        rows = [[one.id, one.label, one.instead, f"{one.probability:.3f}"] for one in audit.labels.found[:MAX_ROWS]]
        header = ["Window", "Label", "The others say", "Probability"]
        tables.append(ReportTable("labels", "Contradicted labels", header, rows, labels=3))
    pairs = sorted((*audit.copies.across, *audit.copies.within), key=lambda pair: pair.distance)
    if pairs:
        rows = [[p.first, p.second, "same" if p.same_label else "other", f"{p.distance:.4f}"] for p in pairs[:MAX_ROWS]]
        header = ["Window", "Copy", "Label", "Distance"]
        tables.append(ReportTable("copies", f"Near copies, the nearest of {len(pairs)} pairs", header, rows, labels=3))
    return tables


def _short(finding: Finding) -> str:
    told = finding.verdict in {"watch", "hazard", "unclear"} and finding.share == finding.share
    return f"{finding.verdict} {_percent(finding.share)}" if told else finding.verdict


def _beside(audit: DatasetAudit, column: str) -> str:
    ours = tell_values(audit.composition[column])
    paper = tell_values(audit.paper[column]) if audit.paper else ours
    return ours if ours == paper else f"{ours} (paper {paper})"


def _percent(value: float) -> str:
    return "-" if value != value else f"{value:.0%}"  # noqa: PLR0124 - NaN


def _markdown(blocks: Sequence[Block]) -> str:
    return "\n".join(block + "\n" if isinstance(block, str) else block.markdown() for block in blocks)


def _page(blocks: Sequence[Block]) -> str:
    title = next((block.lstrip("# ") for block in blocks if isinstance(block, str)), "Audit")
    return tables_page("audit", title, "\n".join(map(_html, blocks)))


def _html(block: Block) -> str:
    if isinstance(block, str):
        level = len(block) - len(block.lstrip("#"))
        text = escape(block.lstrip("# ").replace("`", ""))
        return f"<h{level}>{text}</h{level}>" if level else f"<p>{text}</p>"
    text = html_table(block)
    for word in WORDS:
        text = text.replace(f'<td class="name">{word}', f'<td class="name {word}">{word}')
    return text
