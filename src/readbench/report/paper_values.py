"""Every value of the paper's result tables, to stand beside ours.

A value is found by the label of its table and what it is of: a method in our grammar, a metric and a pollution level.
The paper's per-dataset tables are empty in the published text; its composition table is `readbench.data.paper`.

>>> published("tab:backbones", "charm+nr|dtw-i+gpc", "NDCG@10", 20)
0.619
"""

from __future__ import annotations

from dataclasses import dataclass

CHANGE = "change"
"""A difference of two of the paper's columns: 20 % minus 0 % pollution, or full minus capped corpus."""
FULL = "NDCG@10 on the full corpus"
SPREAD = "deviation of NDCG@10 over datasets"
RERANKERS = ("gpc", "majvote", "qpurity", "prf", "purity")
"""In the paper's order."""
DATASETS = 12
"""Datasets that its means are over."""


@dataclass(frozen=True)
class Column:
    """What a column of a table is of; `{0}` and `{1}` of the method are the parts that name the row."""

    method: str = "{0}"
    metric: str = "NDCG@10"
    rho: int = 0


@dataclass(frozen=True)
class PaperTable:
    """One table of the paper.

    Args:
        label: its label in the source of the paper.
        title: what it shows.
        values: (method, metric, level) -> value.
    """

    label: str
    title: str
    values: dict[tuple[str, str, int], float]


def published(table: str, method: str, metric: str, rho: int) -> float | None:
    """A value of the paper; None where the table has none.

    Args:
        table: label, such as `tab:backbones`.
        method: canonical text.
        metric: name of a metric, or one of the constants above.
        rho: pollution level in percent.
    """
    return PAPER_TABLES[table].values.get((method, metric, rho))


def _table(label: str, title: str, columns: tuple[Column, ...], rows: dict[str, tuple[float, ...]]) -> PaperTable:
    """Rows are named by the parts of their method, separated by a blank; values stand as printed."""
    return PaperTable(
        label,
        title,
        {
            (column.method.format(*parts.split()), column.metric, column.rho): value
            for parts, values in rows.items()
            for column, value in zip(columns, values, strict=True)
        },
    )


def _at_levels(method: str) -> tuple[Column, ...]:
    return tuple(Column(method, rho=rho) for rho in (0, 10, 20))


LEVELS = _at_levels("{0}")
METRICS = tuple(
    Column(metric=name) for name in ("P@1", "P@5", "HR@10", "NDCG@5", "NDCG@10", "NDCG@20", "macro_F1", SPREAD)
)
_TABLES = (
    _table(
        "tab:backbones",
        "Base retrievers, the best system and the supervised reference",
        LEVELS,
        {
            "random": (0.189, 0.168, 0.155),
            "majority": (0.246, 0.242, 0.166),
            "sbd-d": (0.328, 0.271, 0.245),
            "dtw-i": (0.480, 0.414, 0.395),
            "sax-bm25": (0.489, 0.457, 0.431),
            "sfa-bm25": (0.409, 0.386, 0.376),
            "chronos-2": (0.471, 0.455, 0.432),
            "mantis": (0.510, 0.474, 0.454),
            "tirex": (0.483, 0.449, 0.433),
            "charm": (0.486, 0.461, 0.437),
            "charm+nr|dtw-i+gpc": (0.687, 0.640, 0.619),
            "mr-hydra": (0.776, 0.672, 0.658),
            "rdst": (0.711, 0.634, 0.590),
        },
    ),
    _table(
        "tab:app-backbones",
        "Full metric grid of the base retrievers",
        METRICS,
        {
            "random": (0.172, 0.183, 0.699, 0.182, 0.189, 0.192, 0.125, 0.10),
            "majority": (0.246, 0.246, 0.246, 0.246, 0.246, 0.247, 0.060, 0.13),
            "sbd-d": (0.353, 0.340, 0.739, 0.345, 0.328, 0.317, 0.330, 0.17),
            "dtw-i": (0.568, 0.492, 0.857, 0.510, 0.480, 0.470, 0.464, 0.18),
            "dtw-d": (0.507, 0.434, 0.787, 0.451, 0.422, 0.412, 0.435, 0.18),
            "sax-bm25": (0.553, 0.498, 0.897, 0.512, 0.489, 0.466, 0.503, 0.20),
            "sfa-bm25": (0.490, 0.422, 0.862, 0.440, 0.409, 0.390, 0.428, 0.19),
            "chronos-2": (0.530, 0.486, 0.885, 0.497, 0.471, 0.454, 0.445, 0.18),
            "mantis": (0.583, 0.525, 0.878, 0.538, 0.510, 0.489, 0.518, 0.19),
            "tirex": (0.579, 0.491, 0.905, 0.510, 0.483, 0.466, 0.473, 0.15),
            "charm": (0.550, 0.505, 0.897, 0.515, 0.486, 0.471, 0.481, 0.11),
            "mr-hydra": (0.759, 0.771, 0.850, 0.772, 0.776, 0.785, 0.666, 0.15),
            "rdst": (0.711, 0.711, 0.711, 0.711, 0.711, 0.712, 0.617, 0.18),
        },
    ),
    _table(
        "tab:fullcorpus",
        "Capped against full corpus",
        (Column(), Column(metric=FULL), Column(metric=CHANGE)),
        {
            "charm": (0.486, 0.437, -0.049),
            "charm+nr": (0.523, 0.442, -0.081),
            "chronos-2": (0.471, 0.437, -0.034),
            "mantis": (0.510, 0.447, -0.063),
            "tirex": (0.483, 0.434, -0.049),
        },
    ),
    _table(
        "tab:app-nr",
        "Normal residuals on each embedder",
        (*LEVELS, Column(metric=CHANGE)),
        {
            "charm": (0.486, 0.461, 0.437, -0.049),
            "charm+nr": (0.523, 0.511, 0.502, -0.021),
            "mantis": (0.510, 0.474, 0.454, -0.056),
            "mantis+nr": (0.555, 0.539, 0.527, -0.028),
            "chronos-2": (0.471, 0.455, 0.432, -0.039),
            "chronos-2+nr": (0.474, 0.467, 0.452, -0.022),
            "tirex": (0.483, 0.449, 0.433, -0.050),
            "tirex+nr": (0.481, 0.476, 0.451, -0.029),
        },
    ),
    _table(
        "tab:fusion-joint",
        "Fusion leg and mode",
        (Column("{0}|{1}"), Column("{0}|ws|{1}"), Column("{0}|2step|{1}")),
        {
            "charm dtw-i": (0.536, 0.521, 0.498),
            "charm dtw-d": (0.492, 0.477, 0.444),
            "charm sbd-d": (0.445, 0.454, 0.397),
            "charm sax-bm25": (0.519, 0.500, 0.497),
            "charm sfa-bm25": (0.485, 0.448, 0.456),
            "charm+nr dtw-i": (0.575, 0.543, 0.538),
            "charm+nr dtw-d": (0.543, 0.528, 0.500),
            "charm+nr sbd-d": (0.476, 0.520, 0.438),
            "charm+nr sax-bm25": (0.551, 0.543, 0.537),
            "charm+nr sfa-bm25": (0.510, 0.493, 0.491),
            "mantis dtw-i": (0.532, 0.509, 0.509),
            "mantis dtw-d": (0.507, 0.488, 0.471),
            "mantis sbd-d": (0.462, 0.490, 0.410),
            "mantis sax-bm25": (0.531, 0.495, 0.502),
            "mantis sfa-bm25": (0.496, 0.448, 0.465),
            "mantis+nr dtw-i": (0.590, 0.572, 0.561),
            "mantis+nr dtw-d": (0.562, 0.556, 0.519),
            "mantis+nr sbd-d": (0.493, 0.541, 0.440),
            "mantis+nr sax-bm25": (0.582, 0.541, 0.540),
            "mantis+nr sfa-bm25": (0.543, 0.493, 0.498),
            "chronos-2+nr dtw-i": (0.551, 0.514, 0.531),
            "chronos-2+nr dtw-d": (0.528, 0.500, 0.497),
            "chronos-2+nr sbd-d": (0.442, 0.486, 0.413),
            "chronos-2+nr sax-bm25": (0.538, 0.533, 0.529),
            "chronos-2+nr sfa-bm25": (0.499, 0.485, 0.482),
            "tirex dtw-i": (0.520, 0.501, 0.484),
            "tirex dtw-d": (0.486, 0.470, 0.444),
            "tirex sbd-d": (0.445, 0.463, 0.399),
            "tirex sax-bm25": (0.511, 0.507, 0.506),
            "tirex sfa-bm25": (0.479, 0.463, 0.471),
            "tirex+nr dtw-i": (0.554, 0.520, 0.540),
            "tirex+nr dtw-d": (0.521, 0.504, 0.497),
            "tirex+nr sbd-d": (0.442, 0.492, 0.413),
            "tirex+nr sax-bm25": (0.530, 0.528, 0.520),
            "tirex+nr sfa-bm25": (0.491, 0.480, 0.472),
        },
    ),
    _table(
        "tab:app-hybrids",
        "Complete fusion grid",
        _at_levels("{0}|{1}"),
        {
            "charm dtw-i": (0.536, 0.493, 0.453),
            "charm dtw-d": (0.492, 0.461, 0.425),
            "charm sbd-d": (0.445, 0.426, 0.397),
            "charm sax-bm25": (0.519, 0.492, 0.459),
            "charm sfa-bm25": (0.485, 0.459, 0.430),
            "charm+nr dtw-i": (0.575, 0.549, 0.514),
            "charm+nr dtw-d": (0.543, 0.524, 0.491),
            "charm+nr sbd-d": (0.476, 0.456, 0.432),
            "charm+nr sax-bm25": (0.551, 0.540, 0.521),
            "charm+nr sfa-bm25": (0.510, 0.503, 0.480),
            "mantis dtw-i": (0.532, 0.490, 0.452),
            "mantis dtw-d": (0.507, 0.468, 0.432),
            "mantis sbd-d": (0.462, 0.440, 0.408),
            "mantis sax-bm25": (0.531, 0.500, 0.472),
            "mantis sfa-bm25": (0.496, 0.466, 0.447),
            "mantis+nr dtw-i": (0.590, 0.556, 0.534),
            "mantis+nr dtw-d": (0.562, 0.533, 0.509),
            "mantis+nr sbd-d": (0.493, 0.475, 0.454),
            "mantis+nr sax-bm25": (0.582, 0.560, 0.540),
            "mantis+nr sfa-bm25": (0.543, 0.522, 0.507),
            "chronos-2+nr dtw-i": (0.551, 0.521, 0.498),
            "chronos-2+nr dtw-d": (0.528, 0.508, 0.485),
            "chronos-2+nr sbd-d": (0.442, 0.422, 0.404),
            "chronos-2+nr sax-bm25": (0.538, 0.527, 0.510),
            "chronos-2+nr sfa-bm25": (0.499, 0.490, 0.470),
            "tirex dtw-i": (0.520, 0.487, 0.447),
            "tirex dtw-d": (0.486, 0.455, 0.418),
            "tirex sbd-d": (0.445, 0.426, 0.392),
            "tirex sax-bm25": (0.511, 0.490, 0.456),
            "tirex sfa-bm25": (0.479, 0.456, 0.430),
            "tirex+nr dtw-i": (0.554, 0.524, 0.495),
            "tirex+nr dtw-d": (0.521, 0.497, 0.470),
            "tirex+nr sbd-d": (0.442, 0.425, 0.399),
            "tirex+nr sax-bm25": (0.530, 0.522, 0.496),
            "tirex+nr sfa-bm25": (0.491, 0.478, 0.456),
        },
    ),
    _table(
        "tab:rerankers",
        "Rerankers on a fixed pool",
        (Column(), *(Column(f"{{0}}+{name}") for name in RERANKERS)),
        {
            "charm": (0.486, 0.556, 0.538, 0.511, 0.455, 0.386),
            "charm+nr": (0.523, 0.608, 0.612, 0.558, 0.528, 0.461),
            "dtw-i": (0.480, 0.573, 0.525, 0.500, 0.483, 0.342),
            "mantis": (0.510, 0.604, 0.571, 0.528, 0.501, 0.445),
            "mantis+nr": (0.555, 0.645, 0.616, 0.562, 0.511, 0.489),
            "chronos-2+nr": (0.474, 0.582, 0.545, 0.512, 0.463, 0.432),
            "tirex": (0.483, 0.528, 0.517, 0.485, 0.463, 0.394),
            "tirex+nr": (0.481, 0.541, 0.568, 0.518, 0.445, 0.426),
        },
    ),
    _table(
        "tab:app-rerankers",
        "Complete reranker grid",
        _at_levels("{0}+{1}"),
        {
            "charm gpc": (0.556, 0.562, 0.517),
            "charm majvote": (0.538, 0.536, 0.500),
            "charm qpurity": (0.511, 0.513, 0.481),
            "charm prf": (0.455, 0.443, 0.407),
            "charm purity": (0.386, 0.383, 0.332),
            "charm+nr gpc": (0.608, 0.608, 0.578),
            "charm+nr majvote": (0.612, 0.614, 0.579),
            "charm+nr qpurity": (0.558, 0.566, 0.535),
            "charm+nr prf": (0.528, 0.524, 0.499),
            "charm+nr purity": (0.461, 0.464, 0.427),
            "mantis gpc": (0.604, 0.556, 0.532),
            "mantis majvote": (0.571, 0.548, 0.522),
            "mantis qpurity": (0.528, 0.507, 0.486),
            "mantis prf": (0.501, 0.470, 0.450),
            "mantis purity": (0.445, 0.431, 0.413),
            "mantis+nr gpc": (0.645, 0.613, 0.582),
            "mantis+nr majvote": (0.616, 0.610, 0.589),
            "mantis+nr qpurity": (0.562, 0.549, 0.538),
            "mantis+nr prf": (0.511, 0.498, 0.490),
            "mantis+nr purity": (0.489, 0.478, 0.458),
            "chronos-2+nr gpc": (0.582, 0.573, 0.563),
            "chronos-2+nr majvote": (0.545, 0.546, 0.534),
            "chronos-2+nr qpurity": (0.512, 0.508, 0.492),
            "chronos-2+nr prf": (0.463, 0.464, 0.451),
            "chronos-2+nr purity": (0.432, 0.440, 0.417),
            "tirex gpc": (0.528, 0.514, 0.486),
            "tirex majvote": (0.517, 0.513, 0.456),
            "tirex qpurity": (0.485, 0.488, 0.440),
            "tirex prf": (0.463, 0.450, 0.411),
            "tirex purity": (0.394, 0.400, 0.359),
            "tirex+nr gpc": (0.541, 0.525, 0.509),
            "tirex+nr majvote": (0.568, 0.566, 0.551),
            "tirex+nr qpurity": (0.518, 0.523, 0.498),
            "tirex+nr prf": (0.445, 0.447, 0.424),
            "tirex+nr purity": (0.426, 0.427, 0.392),
            "dtw-i gpc": (0.573, 0.517, 0.464),
            "dtw-i majvote": (0.525, 0.468, 0.423),
            "dtw-i qpurity": (0.500, 0.503, 0.416),
            "dtw-i prf": (0.483, 0.427, 0.392),
            "dtw-i purity": (0.342, 0.324, 0.286),
        },
    ),
    _table(
        "tab:stack",
        "Fusion and reranking composed",
        (Column(), *_at_levels("{0}+gpc")),
        {
            "charm+nr|dtw-i": (0.575, 0.687, 0.640, 0.619),
            "mantis+nr|dtw-i": (0.590, 0.665, 0.641, 0.604),
            "charm|dtw-i": (0.536, 0.631, 0.582, 0.535),
            "mantis|dtw-i": (0.532, 0.609, 0.564, 0.552),
        },
    ),
    _table(
        "tab:llm",
        "Language models on the CHARM pool",
        (Column(),),
        {
            "charm": (0.486,),
            "charm+llm(model=toto)": (0.493,),
            "charm+llm(model=chatts)": (0.475,),
            "charm+llm(model=claude)": (0.496,),
            "charm+llm(model=claude-tsad)": (0.492,),
            "classify(model=toto)": (0.159,),
            "classify(model=chatts)": (0.169,),
            "classify(model=claude)": (0.180,),
            "classify(model=claude-tsad)": (0.184,),
        },
    ),
)
PAPER_TABLES = {table.label: table for table in _TABLES}
