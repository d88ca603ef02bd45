"""The paper's conclusions, asked again of published rows: each with its effect, interval and number of datasets.

A claim is a list of pairs of methods at a pollution level, or a change between two levels. Its effect is the mean over
datasets of the mean difference over its pairs; the interval draws datasets anew (`bootstrap_datasets`). A claim is
judged on the datasets on which all its methods have every cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from readbench.benchmark.metrics import MIN_DATASETS, ConfidenceInterval, bootstrap_datasets, wilcoxon
from readbench.benchmark.report import ALPHA, ReportTable, Results, bracket, describe, state_method
from readbench.benchmark.runs import POOL_WITH_NORMALS, WITH_NORMALS
from readbench.engine.spec import COMPOSED

ENCODERS = ("rocket", "sonde")
POOLS = (
    "rocket", "sonde", "rocket+nr", "sonde+nr", "dtw-i", "sbd-d", "euclidean", "rocket|dtw-i", "sonde|dtw-i",
    "rocket+nr|dtw-i", "sonde+nr|dtw-i",
)  # fmt: skip
JOINT = "mr-hydra(form=joint)"
"""The supervised reference."""
FIELD = ("euclidean", "sbd-d", "dtw-i", "dtw-d", "sax-bm25", "sfa-bm25", *ENCODERS)


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, or of this project, and what must be positive where it holds.

    Args:
        says: the sentence.
        pairs: (better, worse) methods; the effect is the mean of their differences.
        rho: at this level.
        minus: and less the same at this level, where the claim is about a change; None where it is not.
        metric: by which; the headline of the rows where it is empty.
        unseen: only on datasets that were not in sight when settings of its methods were chosen.
    """

    says: str
    pairs: tuple[tuple[str, str], ...]
    rho: int
    minus: int | None = None
    metric: str = ""
    unseen: bool = False


def _at_levels(says: str, better: str, worse: str) -> Iterator[Claim]:
    """A claim on a clean and on a polluted corpus."""
    yield from (Claim(says, ((better, worse),), rho) for rho in (0, 20))


def _claims() -> Iterator[Claim]:
    for encoder, distance in product(ENCODERS, ("dtw-i", "sbd-d")):
        says = "Embedders find more than distances, which the paper denies"
        yield from _at_levels(f"{says}: {encoder} than {distance}", encoder, distance)
    yield Claim("DTW-I finds more than DTW-D", (("dtw-i", "dtw-d"),), 0)
    yield Claim("One lag for all channels is better: SBD-D than SBD-I", (("sbd-d", "sbd-i"),), 0)
    yield Claim("Symbols find more than distances: SAX than DTW-I", (("sax-bm25", "dtw-i"),), 0)
    for method in (*ENCODERS, "dtw-i"):
        yield Claim(f"Labels of all cases find more than none: MR-Hydra than {method}", ((JOINT, method),), 0)
    for encoder in ENCODERS:
        yield from _at_levels(f"Normal residuals help {encoder}", f"{encoder}+nr", encoder)
        lower = f"Normal residuals lower what pollution costs {encoder}"
        yield Claim(lower, ((encoder, f"{encoder}+nr"),), 0, minus=20)
    for encoder in ENCODERS:
        stack = f"{encoder}+nr|dtw-i+gpc", f"{encoder}|dtw-i+gpc"
        yield from _at_levels(f"Normal residuals help the stack with GPC on {encoder}", *stack)
    for pool in POOLS:
        yield from _at_levels(f"GPC improves the pool {pool}", f"{pool}+gpc", pool)
    for encoder in ENCODERS:
        yield Claim(f"Fusion with DTW-I helps {encoder}", ((f"{encoder}|dtw-i", encoder),), 0)
    for method in FIELD:
        yield Claim(f"Pollution of 20 % costs {method} something", ((method, ""),), 0, minus=20)
    for encoder in ENCODERS:
        says = f"Pollution costs distances more than embedders: dtw-i than {encoder}"
        yield Claim(says, (("dtw-i", encoder),), 0, minus=20)


CLAIMS = tuple(_claims())


QUICK_POOLS = ("rocket", "rocket+nr", "dtw-i", "rocket|dtw-i", "rocket+nr|dtw-i")
"""Pools that all rerankers of the paper were run on."""


def _reranker_claims() -> Iterator[Claim]:
    """What the paper says of rerankers, over all of these pools together."""
    label_free = [(pool, f"{pool}+prf") for pool in QUICK_POOLS]
    yield Claim("Reranking without labels hurts: PRF finds less than its pool", tuple(label_free), 0)
    for reranker in ("purity", "majvote", "qpurity", "gpc"):
        improved = [(f"{pool}+{reranker}", pool) for pool in QUICK_POOLS]
        yield Claim(f"Labels of the pool help: {reranker} finds more than it", tuple(improved), 0)
    best = [(f"{pool}+gpc", f"{pool}+majvote") for pool in QUICK_POOLS]
    yield Claim("GPC finds more than Majority-Vote", tuple(best), 0)


RERANKER_CLAIMS = tuple(_reranker_claims())


SMALL = "sonde(size=small)"


def _own_claims() -> Iterator[Claim]:
    """What this project says of its own systems."""
    flagship, pool = COMPOSED["flagship"], COMPOSED["flagship-pool"]
    yield from _at_levels("Flagship finds more than MR-Hydra", flagship, JOINT)
    yield Claim("The same, only datasets that were not in sight", ((flagship, JOINT),), 0, unseen=True)
    alike = "Flagship to which normal is a class, as to"
    yield Claim(f"{alike} MR-Hydra, finds more than it", ((WITH_NORMALS, JOINT),), 20)
    yield Claim("It loses against Flagship, which drops normals", ((flagship, WITH_NORMALS),), 20)
    yield from _at_levels("Context helps Flagship: than Flagship-window", flagship, COMPOSED["flagship-window"])
    pooled = f"{pool.rpartition('+')[0]}+gpc"
    yield from _at_levels("Flagship-pool finds more than GPC on the same pool", pool, pooled)
    yield Claim(
        "Flagship-pool to which normal is a class, as to GPC, finds more than it", ((POOL_WITH_NORMALS, pooled),), 20
    )
    yield from _at_levels("Flagship-pool finds more than the paper's stack on Sonde", pool, "sonde+nr|dtw-i+gpc")
    for method, other in product((COMPOSED["ours"], "sonde"), ("rocket", "dtw-i")):
        name = "Ours" if method != "sonde" else "Sonde"
        yield Claim(f"{name} finds more than {other}", ((method, other),), 0)
        yield Claim("The same, only datasets that were not in sight", ((method, other),), 0, unseen=True)
    yield from _at_levels("Ours finds more than Ours-dtw, which it was", COMPOSED["ours"], COMPOSED["ours-dtw"])
    yield from _at_levels("MiniRocket helps the small Sonde: Ours finds more", COMPOSED["ours"], SMALL)
    yield Claim("DTW-I helps Sonde: Ours-dtw finds more", ((COMPOSED["ours-dtw"], "sonde"),), 0)
    spread = COMPOSED["flagship-spread"]
    yield Claim("The list that follows the belief has more hits: HR@10", ((spread, flagship),), 0, metric="HR@10")
    yield Claim("Its NDCG@10 is higher, too", ((spread, flagship),), 0)
    yield from _at_levels(
        "The small Sonde finds more: Flagship-fast than Flagship-spread", COMPOSED["flagship-fast"], spread
    )
    yield Claim("Ours has more hits than Flagship: HR@10", ((COMPOSED["ours"], flagship),), 0, metric="HR@10")
    yield Claim("Ours has more hits than Flagship-spread: HR@10", ((COMPOSED["ours"], spread),), 0, metric="HR@10")


OWN_CLAIMS = tuple(_own_claims())


@dataclass(frozen=True)
class ClaimFinding:
    """What rows say of a claim.

    Args:
        claim: which.
        datasets: on how many.
        positive: on how many of them the effect is positive.
        effect: mean over datasets with its interval; None with too few datasets.
        p_value: Wilcoxon over datasets, not corrected for the number of claims.
    """

    claim: Claim
    datasets: int
    positive: int
    effect: ConfidenceInterval | None
    p_value: float

    @property
    def verdict(self) -> str:
        """What may be said: both the interval over datasets and Wilcoxon's test are needed for more than a hint."""
        if self.effect is None:
            return "not computed"
        if self.effect.low <= 0 <= self.effect.high:
            return "not shown here"
        word = "holds here" if self.effect.low > 0 else "the opposite holds here"
        return word if self.p_value <= ALPHA else f"{word} by the interval alone"


def judge_claims(results: Results, claims: Sequence[Claim] = CLAIMS) -> list[ClaimFinding]:
    """What the rows say of each claim."""
    return [_judge(results, claim) for claim in claims]


def _judge(results: Results, claim: Claim) -> ClaimFinding:
    differences = _differences(results, claim)
    if len(differences) < MIN_DATASETS:
        return ClaimFinding(claim, len(differences), 0, None, float("nan"))
    nothing = np.zeros(len(differences))
    effect = bootstrap_datasets(differences, nothing, seed=0)
    positive = int((differences > 0).sum())
    return ClaimFinding(claim, len(differences), positive, effect, wilcoxon(differences, nothing))


def _differences(results: Results, claim: Claim) -> NDArray[np.float64]:
    """The effect on each dataset that all methods of the claim have."""
    names = [name for pair in claim.pairs for name in pair if name]
    levels = {claim.rho, *([] if claim.minus is None else [claim.minus])}
    if any(name not in results.methods for name in names) or not levels <= set(results.levels):
        return np.empty(0)
    held = set.intersection(*(set(results.held(results.methods.index(name))) for name in names))
    if claim.unseen:
        held -= {i for i, d in enumerate(results.datasets) if any(d in state_method(m).chosen_on for m in names)}
    if claim.metric and claim.metric not in results.metrics:
        return np.empty(0)
    rows = sorted(held)
    metric = claim.metric or results.headline
    found = np.mean([_pair(results, pair, claim.rho, metric) for pair in claim.pairs], axis=0)[rows]
    if claim.minus is not None:
        found = found - np.mean([_pair(results, pair, claim.minus, metric) for pair in claim.pairs], axis=0)[rows]
    return np.asarray(found, np.float64)


def _pair(results: Results, pair: tuple[str, str], rho: int, metric: str) -> NDArray[np.float64]:
    better, worse = pair
    scores = results.metrics[metric].orient(results.at(metric, rho).mean(axis=1))
    own: NDArray[np.float64] = scores[:, results.methods.index(better)]
    return own - scores[:, results.methods.index(worse)] if worse else own


def conclusion_table(results: Results, claims: Sequence[Claim] = CLAIMS, name: str = "conclusions") -> ReportTable:
    """One row a claim."""
    findings = judge_claims(results, claims)
    rows = []
    for found in findings:
        own = found.claim
        level = f"{own.rho} %" if own.minus is None else f"{own.rho} → {own.minus} %"
        effect = f"{found.effect.mean:+.3f} {bracket(found.effect)}" if found.effect else "–"
        tested = not np.isnan(found.p_value) and 2.0 ** (1 - found.datasets) <= ALPHA
        p = f"{found.p_value:.2g}" if tested else "–"
        rows.append([own.says, level, effect, f"{found.positive} of {found.datasets}", p, found.verdict])
    caption = (
        f"Claims over {describe(results)}, {results.headline}: mean difference with its 95 % interval when datasets are"
        " drawn anew, on how many datasets it is positive, Wilcoxon's p for this claim alone"
    )
    header = ["Claim", "ρ", "Effect", "Positive on", "p", "Verdict"]
    return ReportTable(name, caption, header, rows, labels=2)
