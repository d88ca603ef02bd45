"""Plans of `readbench run --suite NAME` and `--sweep NAME`, and what of them cannot run here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from readbench.benchmark.runs._budget import parse_budget
from readbench.benchmark.runs._plan import Plan
from readbench.engine.llm import list_profiles, split_model
from readbench.engine.method import Method
from readbench.engine.registry import ENCODERS, SOURCES
from readbench.engine.spec import COMPOSED, MethodSpec, parse
from readbench.errors import UnknownNameError, UsageError

FLOORS = ("random", "majority")
SHORTCUTS = ("channel-presence", "stats")
DISTANCES = ("euclidean", "sbd-d", "dtw-i", "dtw-d")
SYMBOLIC = ("sax-bm25", "sfa-bm25")
EMBEDDERS = ("charm", "chronos-2", "mantis", "tirex", "rocket", "sonde")
FUSION_LEGS = ("dtw-i", "dtw-d", "sbd-d", "sax-bm25", "sfa-bm25")
FUSION_MODES = ("|", "|ws|", "|2step|")
LABEL_AWARE = ("purity", "qpurity", "majvote", "gpc")
RERANKERS = ("prf", *LABEL_AWARE)
REFERENCES = ("mr-hydra", "rdst")
COVERED = (
    "ctsr", "mit_bih", "petrobras_3w", "skab", "tennessee_eastman", "bearings", "itu_5gc", "haizhe_auv", "dbsherlock",
    "lbnl_ahu", "phmap23", "nppad", "itsc_motor",
)  # fmt: skip
"""Sources of suites. Of the others often only fragments are available, which distort a mean: name them with
`--datasets`."""
WITH_NORMALS = COMPOSED["flagship"].replace("verdict(", "verdict(drop_normals=false,")
"""The flagship with normal as one more class."""
POOL_WITH_NORMALS = COMPOSED["flagship-pool"].replace("pool=20", "pool=20,drop_normals=false")
"""Flagship-pool with normal as one more class."""
FLAGSHIP_POOL = COMPOSED["flagship-pool"].rpartition("+")[0]
"""The pool of Flagship-pool, before any label is read."""
QUICK_DATASETS = ("sim_tanks", "sim_motor", "sim_ecg")
STUDIED = {"novel": "opinions", "readx": "readx", "early": "early"}
"""Former suites -> their studies."""
LANGUAGE_MODELS = "llm"
"""The sweep that asks language models; it needs their profiles."""
PAPER_MODELS = ("toto", "chatts", "claude", "claude-tsad")
"""Language models of the paper, by the names of profiles; `claude` and `claude-tsad` are one."""
SERIES_POINTS = {"chatts": ",points=1024"}
"""Points per channel of models that differ from the default."""
NO_TOTO = (
    "toto: Toto-1.0-QA runs in its authors' environment on four large GPUs: start research/toto_server.py there and"
    ' write a profile [toto] with like = "paper-toto" into the file that READBENCH_LLM names'
)
AXES: dict[str, dict[str, Any]] = {
    "budget": {"labels": ("0", "5", "10", "20", "50", "100")},
    "share": {"labels": ("1%", "2%", "5%", "10%", "20%", "50%", "all"), "levels": (0,)},
    "noise": {"labels": ("all", "all~10%", "all~20%", "all~30%"), "levels": (0,)},
    "pollution": {"levels": (0, 10, 20, 30, 40, 50)},
    LANGUAGE_MODELS: {"levels": (0,), "seeds": (0,)},
}
"""Parts of the plan that a sweep varies."""


@dataclass(frozen=True)
class Suite:
    """A plan of what can run here, and the reasons for the rest."""

    plan: Plan
    skipped: dict[str, str]

    def under(self, labels: tuple[str, ...]) -> Suite:
        """The suite under other label budgets, without the methods that cannot run under some of them."""
        refused: dict[str, str] = {}
        for method in self.plan.methods:
            try:
                for text in labels:
                    parse_budget(text).check(Method(method))
            except UsageError as error:
                refused[method] = str(error)
        methods = tuple(method for method in self.plan.methods if method not in refused)
        return Suite(replace(self.plan, methods=methods, labels=labels), self.skipped | refused)


def suite(name: str, root: Path | None, named: tuple[str, ...] = ()) -> Suite:
    """The suite of a name (one of `SUITES`) on the sources with a folder under `root`; `named` replaces its methods."""
    if name in STUDIED:
        raise UsageError(f"{name} is a study, no suite: readbench study {STUDIED[name]}.")
    if name in SWEEPS:
        raise UsageError(f"{name} is a sweep, no suite: readbench run --sweep {name}.")
    if name not in SUITES:
        raise UnknownNameError("suite", name, SUITES)
    datasets = (QUICK_DATASETS, {"seeds": (0,)}) if name == "quick" else (datasets_at_hand(root), {})
    return _plan("suite", name, SUITES[name], named, *datasets)


def sweep(name: str, root: Path | None, named: tuple[str, ...] = ()) -> Suite:
    """The sweep of a name, one of `SWEEPS`; see `suite`."""
    if name not in SWEEPS:
        raise UnknownNameError("sweep", name, SWEEPS)
    return _plan("sweep", name, SWEEPS[name], named, datasets_at_hand(root), AXES.get(name, {}))


def _plan(
    kind: str,
    name: str,
    methods: Callable[[], Iterable[str]],
    named: tuple[str, ...],
    datasets: tuple[str, ...],
    changes: Mapping[str, Any],
) -> Suite:
    chosen, skipped = (named, dict[str, str]()) if named else _runnable(methods())
    if not chosen:
        raise UsageError(f"Nothing of {kind} {name!r} can run here: {'; '.join(sorted(set(skipped.values())))}")
    return Suite(Plan(datasets=datasets, methods=chosen, **changes), skipped)


def quick() -> Iterable[str]:
    """Floors, a shortcut probe, distances, encoders and our own systems, on the smaller of the embedded data."""
    return ("random", "stats", "euclidean", "dtw-i", "rocket", "sonde", "ours", "flagship")


def flagship() -> Iterable[str]:
    """Our systems beside the paper's composition on the encoders that run here, and the supervised references.

    Variants separate the parts of the lead: the flagship with known normals dropped or as a class, as the references
    have it; its pool also with the paper's GPC; the paper's stack with and without normal residuals.
    """
    legs = ("dtw-i", "rocket", "sonde", "ours", "ours-dtw", "ours-before")
    flagships = ("flagship", "flagship-spread", "flagship-fast", "flagship-window", WITH_NORMALS)
    ours = (*legs, *flagships, "flagship-pool", POOL_WITH_NORMALS, f"{FLAGSHIP_POOL}+gpc")
    stacks = [f"{encoder}{residuals}|dtw-i+gpc" for encoder in ("rocket", "sonde") for residuals in ("+nr", "")]
    return (*ours, *stacks, *REFERENCES, "mr-hydra(form=joint)")


def label_free() -> Iterable[str]:
    """Everything that reads no label: a floor, a shape distance, encoders, and our systems."""
    return ("euclidean", "dtw-i", "rocket", "ts2vec", "sonde", "sonde(size=small)", "departure", "ours", "ours-before")


def classical() -> Iterable[str]:
    """Every distance and symbolic retriever of the paper, with the floors and the shortcut probes."""
    return (*FLOORS, *SHORTCUTS, *DISTANCES, *SYMBOLIC)


def sbd() -> Iterable[str]:
    """SBD with its own lag per channel against one shared lag."""
    return ("sbd-i", "sbd-d")


def norm() -> Iterable[str]:
    """How raw windows are scaled, for each distance."""
    return [f"{m}(norm={n})" for m in (*DISTANCES, "sbd-i") for n in ("channel", "window", "none", "normals")]


def metric() -> Iterable[str]:
    """Cosine against Euclidean distance for each embedder."""
    return [f"{e}(metric={m})" for e in (*EMBEDDERS, "ts2vec") for m in ("euclidean", "cosine")]


def nr() -> Iterable[str]:
    """Each embedder with and without normal-residual scoring."""
    return [text for e in EMBEDDERS for text in (e, f"{e}+nr")]


def nr_k() -> Iterable[str]:
    """Normal-residual scoring with 1, 3, 10, 30 and 100 neighbours."""
    return [f"{e}+nr({k})" for e in EMBEDDERS for k in (1, 3, 10, 30, 100)]


def fusion() -> Iterable[str]:
    """Every embedder and its NR variant with every shape or symbolic leg in three modes."""
    return [f"{e}{mode}{leg}" for e in nr() for leg in FUSION_LEGS for mode in FUSION_MODES]


def rerank() -> Iterable[str]:
    """Every reranker on every pool: embedders without and with normal residuals, DTW-I, and both together."""
    pools = (*nr(), "dtw-i", *(f"{pool}|dtw-i" for pool in nr()))
    return [text for pool in pools for text in (pool, *(f"{pool}+{r}" for r in RERANKERS))]


def budget() -> Iterable[str]:
    """Label-aware rerankers on one pool, from no label to 100 labels a query; GPC also with a window that stays."""
    pool = "rocket+nr|dtw-i"
    return [pool, *(f"{pool}+{reranker}" for reranker in (*LABEL_AWARE, "gpc(k=20)"))]


def robustness() -> Iterable[str]:
    """Our systems with and without labels, the paper's composition, and the most frequent label."""
    return ("ours", "flagship", "flagship-pool", "rocket+nr|dtw-i+gpc", "majority")


def pollution() -> Iterable[str]:
    """The same, and the flagship without dropping known normals, which otherwise hides pollution from it."""
    return (*robustness(), WITH_NORMALS)


def llm() -> Iterable[str]:
    """The paper's language-model table: the pool, four models that rerank it, and the same without retrieval.

    The pool is CHARM's where its weights are at hand, else that of our own encoder. ChatTS sees as many points as it
    was made for.
    """
    pool = "sonde" if ENCODERS.get("charm").unavailable() else "charm"
    asked = [f"{name}({model}{SERIES_POINTS.get(model, '')})" for name in ("llm", "classify") for model in PAPER_MODELS]
    return [pool, *(f"{pool}+{text}" if text.startswith("llm") else text for text in asked)]


def paper() -> Iterable[str]:
    """Everything of the paper: base retrievers, NR, the fusion grid, rerankers, references, and language models.

    TS2Vec, which the paper names and does not measure, stands beside them: it needs no weights.
    """
    return [*classical(), *nr(), "ts2vec", *fusion(), *rerank(), *REFERENCES, *llm()]


def full() -> Iterable[str]:
    """Something for every table and figure of a report: the paper, its sweeps, scalings, and our systems."""
    return [*paper(), *nr_k(), *metric(), *sbd(), *norm(), *flagship()]


SUITES: dict[str, Callable[[], Iterable[str]]] = {
    "quick": quick,
    "flagship": flagship,
    "label-free": label_free,
    "classical": classical,
    "paper": paper,
    "full": full,
}
SWEEPS: dict[str, Callable[[], Iterable[str]]] = {
    "sbd": sbd,
    "norm": norm,
    "metric": metric,
    "nr": nr,
    "nr-k": nr_k,
    "fusion": fusion,
    "rerank": rerank,
    "budget": budget,
    "share": robustness,
    "noise": robustness,
    "pollution": pollution,
    LANGUAGE_MODELS: llm,
}
"""Methods of which one part is varied, or which are measured under several labels or levels."""


def _runnable(texts: Iterable[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Canonical texts of methods that can run here, and reasons for the others."""
    methods: dict[str, None] = {}
    skipped: dict[str, str] = {}
    for text in texts:
        try:
            spec = parse(text)
        except UsageError as error:
            skipped[text] = str(error)
            continue
        reason = next((f"{e.name} {r}" for e in spec.entries() if (r := e.unavailable())), "") or _unasked(spec)
        if reason:
            skipped[str(spec)] = reason
        else:
            methods[str(spec)] = None
    return tuple(methods), skipped


def _unasked(spec: MethodSpec) -> str:
    """Why a language model of a method cannot be asked; empty if it can, or without any."""
    stages = [*(leg.stage for leg in spec.legs), *spec.rerankers]
    for stage in (stage for stage in stages if stage.name in ("llm", "classify")):
        name = split_model(str(dict(stage.parameters)["model"]))[0]
        if name == "toto" and name not in list_profiles():
            return NO_TOTO
        if name not in list_profiles():
            return f'{name}: write a profile [{name}] with like = "paper-{name}" into the file that READBENCH_LLM names'
    return ""


def datasets_at_hand(root: Path | None) -> tuple[str, ...]:
    """Sources of `COVERED` that have a folder under the root, else the generated ones."""
    found = [name for name in COVERED if root is not None and (root / name).is_dir()]
    return tuple(found or [e.name for e in SOURCES if e.origin != "imported" and e.build().info.generated])
