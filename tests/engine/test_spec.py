from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings, strategies as st

from readbench.engine.parameters import Value
from readbench.engine.registry import ENCODERS, FUSIONS, RERANKERS, RETRIEVERS, TRANSFORMS, Registry
from readbench.engine.spec import Leg, MethodSpec, Stage, build_source, parse, parse_dataset, split_specs
from readbench.errors import ParameterError, SpecError, UnknownNameError, UsageError
from tests.vocabulary import vocabulary


@pytest.fixture(autouse=True, scope="module")
def _vocabulary() -> Iterator[None]:
    with vocabulary():
        yield


VALUES: dict[str, st.SearchStrategy[Value]] = {
    "metric": st.just("euclid"),
    "k": st.integers(1, 10**6),
    "band": st.floats(0, 1),
    "norm": st.sampled_from(["window", "none"]),
    "seed": st.integers(-(10**30), 10**30),
    "k0": st.floats(0, 1e300),
    "alpha": st.floats(0, 1),
    "kernel": st.just("matern"),
    "model": st.text(st.characters(codec="utf-8", exclude_characters="'"), max_size=8),
    "think": st.just(value=True),
}
LEGS = ("charm", "mantis", "dtw-i", "random")


@st.composite
def stages(draw: st.DrawFn, registry: Registry, names: tuple[str, ...]) -> Stage:
    """A stage with some parameters away from their default, in declaration order."""
    name = draw(st.sampled_from(names))
    given = []
    for key, declared in registry.get(name).parameters.items():
        if draw(st.booleans()) and (value := draw(VALUES[key])) != declared.default:
            given.append((key, value))
    return Stage(name, tuple(given))


@st.composite
def legs(draw: st.DrawFn) -> Leg:
    if draw(st.booleans()):
        return Leg(draw(stages(RETRIEVERS, ("dtw-i", "random"))))
    encoder = draw(stages(ENCODERS, ("charm", "mantis")))
    return Leg(encoder, tuple(draw(st.lists(stages(TRANSFORMS, ("nr",)), max_size=2))))


@st.composite
def specs(draw: st.DrawFn) -> MethodSpec:
    parts = draw(st.lists(legs(), min_size=1, max_size=4))
    fusion, reranker = stages(FUSIONS, ("rrf", "ws", "2step")), stages(RERANKERS, ("gpc", "majvote", "llm"))
    fusions = [draw(fusion) for _ in parts[1:]]
    return MethodSpec(tuple(parts), tuple(fusions), tuple(draw(st.lists(reranker, max_size=3))))


def assert_text_and_spec_are_inverse(spec: MethodSpec) -> None:
    assert parse(str(spec)) == spec
    assert str(parse(str(spec))) == str(spec)


@given(specs())
def test_text_and_spec_are_inverse(spec: MethodSpec) -> None:
    assert_text_and_spec_are_inverse(spec)


@pytest.mark.parametrize(
    "broken",
    [
        MethodSpec((Leg(Stage("dtw-i", (("band", 0.1),))),)),
        MethodSpec((Leg(Stage("dtw-i", (("norm", "none"), ("band", 0.2)))),)),
        MethodSpec((Leg(Stage("dtw")),)),
        MethodSpec((Leg(Stage("random", (("seed", "3"),))),)),
    ],
    ids=["default written out", "parameters out of order", "alias for a name", "text for a number"],
)
def test_the_inverse_check_notices_what_is_not_canonical(broken: MethodSpec) -> None:
    with pytest.raises(AssertionError):
        assert_text_and_spec_are_inverse(broken)


ALIASES = {"dtw-i": ["dtw-i", "dtw"], "nr": ["nr", "residual"], "majvote": ["majvote", "vote"]}


def _literal(value: Value) -> str:
    if value is None or isinstance(value, bool):
        return str(value)
    return repr(value).replace("e+", "e") if not isinstance(value, str) else f"'{value}'"


class Scribe:
    """Writes a spec as untidily as the grammar allows."""

    def __init__(self, draw: Callable[[st.SearchStrategy[str]], str]) -> None:
        self.draw = draw

    def space(self) -> str:
        return self.draw(st.sampled_from(["", "", " ", "\t ", "\n"]))

    def stage(self, registry: Registry, stage: Stage) -> str:
        name = self.draw(st.sampled_from(ALIASES.get(stage.name, [stage.name])))
        name = self.draw(st.sampled_from([name, name.upper(), name.title()]))
        given = dict(stage.parameters)
        for key, declared in registry.get(stage.name).parameters.items():
            if key not in given and self.draw(st.sampled_from(["no", "yes"])) == "yes":
                given[key] = declared.default
        keys = self.draw(st.permutations(list(given)).map(",".join)).split(",") if given else []
        inside = f"{self.space()},{self.space()}".join(
            f"{key}{self.space()}={self.space()}{_literal(given[key])}" for key in keys
        )
        brackets = f"{self.space()}({self.space()}{inside}{self.space()})"
        return name + (brackets if given else self.draw(st.sampled_from(["", "()", " ( )"])))

    def plus(self, parts: list[str]) -> str:
        return f"{self.space()}+{self.space()}".join(parts)

    def leg(self, leg: Leg) -> str:
        home = RETRIEVERS if leg.stage.name in RETRIEVERS else ENCODERS
        return self.plus([self.stage(home, leg.stage), *(self.stage(TRANSFORMS, t) for t in leg.transforms)])

    def spec(self, spec: MethodSpec) -> str:
        text = self.space() + self.leg(spec.legs[0])
        for fusion, leg in zip(spec.fusions, spec.legs[1:], strict=True):
            short = fusion == Stage("rrf") and self.draw(st.sampled_from(["short", "long"])) == "short"
            bar = "|" if short else f"|{self.space()}{self.stage(FUSIONS, fusion)}{self.space()}|"
            text += self.space() + bar + self.space() + self.leg(leg)
        return self.plus([text, *(self.stage(RERANKERS, r) for r in spec.rerankers)]) + self.space()


@given(specs(), st.data())
def test_case_aliases_spaces_order_and_defaults_make_no_difference(spec: MethodSpec, data: st.DataObject) -> None:
    untidy = Scribe(data.draw).spec(spec)
    assert parse(untidy) == spec
    assert str(parse(untidy)) == str(spec)
    assert parse(untidy).fingerprint() == spec.fingerprint()


@given(specs(), specs())
def test_fingerprints_are_equal_exactly_for_equal_methods(left: MethodSpec, right: MethodSpec) -> None:
    assert (left.fingerprint() == right.fingerprint()) == (left == right)
    assert (str(left) == str(right)) == (left == right)


@given(st.lists(specs(), max_size=4))
def test_a_list_of_methods_is_split_where_they_were_joined(methods: list[MethodSpec]) -> None:
    texts = [str(spec) for spec in methods]
    assert split_specs([", ".join(texts)]) == texts
    assert split_specs(texts) == texts


CANONICAL = {
    "dtw-i": "dtw-i",
    "DTW": "dtw-i",
    "dtw-i()": "dtw-i",
    "dtw-i(band=0.1, norm=channel)": "dtw-i",
    "dtw-i(norm=none,band=.05)": "dtw-i(band=0.05,norm=none)",
    "dtw-i(band=1.0)": "dtw-i(band=1)",
    "dtw-i(band=1e-3)": "dtw-i(band=0.001)",
    "charm + NR | dtw-i + gpc": "charm+nr|dtw-i+gpc",
    "charm|rrf|dtw-i": "charm|dtw-i",
    "charm|rrf(k0=60)|dtw-i": "charm|dtw-i",
    "charm|RRF(k0=10)|dtw-i": "charm|rrf(k0=10)|dtw-i",
    "charm|ws(alpha=.3)|dtw-i": "charm|ws(alpha=0.3)|dtw-i",
    "charm|ws(alpha=.5)|dtw-i": "charm|ws|dtw-i",
    "charm|2step|dtw-i": "charm|2step|dtw-i",
    "charm+nr(k=3)+nr": "charm+nr(k=3)+nr",
    "mantis(metric=euclid)+vote+gpc(kernel=matern,k=50)": "mantis(metric=euclid)+majvote+gpc(k=50,kernel=matern)",
    "dtw-i+llm(claude)": "dtw-i+llm(model=claude)",
    "dtw-i+llm(claude, k=5, think=true)": "dtw-i+llm(model=claude,k=5,think=true)",
    "dtw-i+llm(small)": "dtw-i+llm",
    "dtw-i+llm(k=none)": "dtw-i+llm",
    "dtw-i+llm('a b')": 'dtw-i+llm(model="a b")',
    'dtw-i+llm("it\'s")': 'dtw-i+llm(model="it\'s")',
    "dtw-i+llm('say \"a\"')": "dtw-i+llm(model='say \"a\"')",
    "dtw-i+llm('')": 'dtw-i+llm(model="")',
    "dtw-i+llm('a,b)|c')": 'dtw-i+llm(model="a,b)|c")',
    "random(seed=-3)": "random(seed=-3)",
    "charm|rrf(k0=1e300)|charm": "charm|rrf(k0=1e300)|charm",
}


@pytest.mark.parametrize(("text", "canonical"), CANONICAL.items())
def test_texts_have_one_canonical_form(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical
    assert str(parse(canonical)) == canonical
    assert parse(text).fingerprint() == parse(canonical).fingerprint()


def test_a_whole_method_is_read_into_its_parts() -> None:
    assert parse("charm+nr(k=3)|ws(alpha=.3)|dtw-i|random+gpc+llm(claude)") == MethodSpec(
        legs=(Leg(Stage("charm"), (Stage("nr", (("k", 3),)),)), Leg(Stage("dtw-i")), Leg(Stage("random"))),
        fusions=(Stage("ws", (("alpha", 0.3),)), Stage("rrf")),
        rerankers=(Stage("gpc"), Stage("llm", (("model", "claude"),))),
    )


def test_fusion_is_read_from_left_to_right() -> None:
    spec = parse("charm|ws|dtw-i|2step|random")
    assert [leg.stage.name for leg in spec.legs] == ["charm", "dtw-i", "random"]
    assert [fusion.name for fusion in spec.fusions] == ["ws", "2step"]


def test_values_have_the_declared_type() -> None:
    spec = parse("charm|rrf(k0=10)|dtw-i(band=1)+gpc(k=7)+llm(7,think=True)")
    values = [dict(stage.parameters) for stage in (*spec.fusions, spec.legs[1].stage, *spec.rerankers)]
    assert [[type(v) for v in given.values()] for given in values] == [[float], [float], [int], [str, bool]]


UNREADABLE = {
    "": ("expected a method", 0),
    "   ": ("expected a method", 3),
    "+nr": ("expected a method", 0),
    "charm+": ("expected a stage after '+'", 6),
    "charm|": ("expected a method", 6),
    "charm||dtw-i": ("expected a method", 6),
    "charm|ws||dtw-i": ("expected a method", 9),
    "charm dtw-i": ("expected '|', '+' or the end", 6),
    "charm)": ("expected '|', '+' or the end", 5),
    "dtw-i(": ("expected a value", 6),
    "dtw-i(band": ("takes parameters by name only", 10),
    "dtw-i(band=": ("expected a value", 11),
    "dtw-i(band=0.1": ("expected ',' or ')'", 14),
    "dtw-i(band=0.1,)": ("expected a value", 15),
    "dtw-i(,band=0.1)": ("expected a value", 6),
    "dtw-i(band=0.1 norm=none)": ("expected ',' or ')'", 15),
    "dtw-i(band=0.1,band=0.2)": ("parameter 'band' is given twice", 23),
    "dtw-i+llm(a,b)": ("parameter 'model' is given twice", 13),
    "dtw-i+llm(a,model=b)": ("parameter 'model' is given twice", 19),
    "dtw-i+llm('claude)": ("the quote is not closed", 10),
    'dtw-i+llm(model="claude': ("the quote is not closed", 16),
    "dtw-i(0.1)": ("'dtw-i' takes parameters by name only, as key=value", 9),
    "dtw-i+nr": ("'nr' needs an embedding, and 'dtw-i' has none", 8),
    "charm|ws": ("expected '|' after the fusion mode 'ws'", 8),
    "charm|ws(alpha=.3)dtw-i": ("expected '|' after the fusion mode 'ws'", 18),
    "charm+gpc+nr": ("'nr' changes the embedding: write it before 'gpc'", 12),
    "charm+gpc|dtw-i": ("reranker 'gpc' applies to the fused list: write it last", 9),
    "charm+nr+gpc+llm|dtw-i": ("reranker 'gpc' applies to the fused list: write it last", 16),
}


@pytest.mark.parametrize(("text", "expected"), UNREADABLE.items())
def test_what_cannot_be_read_is_pointed_at(text: str, expected: tuple[str, int]) -> None:
    message, position = expected
    with pytest.raises(SpecError) as caught:
        parse(text)
    first, shown, pointer = str(caught.value).split("\n")
    assert repr(text) in first
    assert message in first
    assert shown == f"  {text}"
    assert pointer == " " * (position + 2) + "^"


UNKNOWN = {
    "charn": "Unknown method 'charn'. Did you mean 'charm'?",
    "CHARN": "Did you mean 'charm'?",
    "charm|dwt-i": "Did you mean 'dtw-i'",
    "mantis+gcp": "Did you mean 'gpc'",
    "mantis+residul": "Did you mean 'residual'",
    "mantis+charm": "Unknown stage after '+' 'charm'",
    "dtw-i(bnad=0.1)": "Unknown parameter of dtw-i 'bnad'. Did you mean 'band'?",
    "charm+gpc(kernal=rbf)": "Unknown parameter of gpc 'kernal'. Did you mean 'kernel'?",
    "charm|ws(alhpa=.3)|dtw-i": "Unknown parameter of ws 'alhpa'. Did you mean 'alpha'?",
    "charm|2stp|dtw-i": "Did you mean '2step'",
    "charm|2stp(k=3)|dtw-i": "Did you mean '2step'",
}


@pytest.mark.parametrize(("text", "message"), UNKNOWN.items())
def test_an_unknown_name_comes_with_the_nearest_right_one(text: str, message: str) -> None:
    with pytest.raises(UnknownNameError, match=re.escape(message)):
        parse(text)


@pytest.mark.parametrize(
    "text",
    ["dtw-i(band=2)", "dtw-i(band=wide)", "dtw-i(norm=NONE)", "charm+nr(k=0)", "charm+nr(k=1.5)", "charm+nr(k=none)"],
)
def test_a_value_outside_its_range_is_refused_when_read(text: str) -> None:
    with pytest.raises(ParameterError, match=r"The '\w+' parameter of [\w-]+ must be .* Got .* instead"):
        parse(text)


WORDS = ["charm", "nr", "dtw-i", "gpc", "llm", "ws", "2step", "band", "k", ".5", "3", "nan", "x", "é"]
MARKS = ["|", "+", "(", ")", "=", ",", "'", '"', " ", "\n"]


@settings(max_examples=300)
@given(st.lists(st.sampled_from(WORDS) | st.sampled_from(MARKS), max_size=9))
def test_any_text_is_either_read_or_refused_on_purpose(words: list[str]) -> None:
    try:
        spec = parse("".join(words))
    except UsageError:
        return
    assert_text_and_spec_are_inverse(spec)


@pytest.mark.parametrize(
    ("texts", "parts"),
    [
        ([], []),
        ([""], []),
        (["a,b", "c"], ["a", "b", "c"]),
        ([" a , ,b, "], ["a", "b"]),
        (["a(x=1,y=2),b"], ["a(x=1,y=2)", "b"]),
        (["a('x,y'),b"], ["a('x,y')", "b"]),
        (['a("x),\'y"),b'], ['a("x),\'y")', "b"]),
        (["a|ws(alpha=.3)|b+c(d,e=1),f"], ["a|ws(alpha=.3)|b+c(d,e=1)", "f"]),
    ],
)
def test_commas_split_only_outside_parentheses_and_quotes(texts: list[str], parts: list[str]) -> None:
    assert split_specs(texts) == parts


def test_entries_come_in_reading_order_of_their_kinds() -> None:
    spec = parse("charm+nr|ws|dtw-i+gpc+vote")
    assert [entry.name for entry in spec.entries()] == ["charm", "nr", "dtw-i", "ws", "gpc", "majvote"]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("charm+nr|dtw-i+gpc", "CHARM+NR|DTW-I+GPC"),
        ("charm|charm", "CHARM|CHARM"),
        ("charm+nr(k=3)|ws(alpha=.3)|dtw(norm=none)", "CHARM+NR(k=3)|WS(alpha=0.3)|DTW-I(norm=none)"),
        ("charm|rrf(k0=5)|random|mantis", "CHARM|RRF(k0=5)|Random|Mantis"),
        ("random+llm(gpc)+gpc", "Random+LLM(model=gpc)+GPC"),
        ("random+llm('charm|nr')", 'Random+LLM(model="charm|nr")'),
    ],
)
def test_titles_read_like_the_rows_of_a_table(text: str, title: str) -> None:
    assert parse(text).title == title


def test_the_fingerprint_depends_on_where_a_component_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = parse("charm|dtw-i")
    before = spec.fingerprint()
    entry = ENCODERS.get("charm")
    other = type(entry)(**{**vars(entry), "origin": "their-methods 2.0"})
    monkeypatch.setitem(ENCODERS._entries, "charm", other)
    assert spec.fingerprint() != before


def test_specs_are_values_that_can_be_compared_and_hashed() -> None:
    assert len({parse("charm|dtw-i"), parse("CHARM | rrf | dtw"), parse("dtw-i|charm")}) == 2


@pytest.mark.parametrize(
    ("text", "canonical"),
    [("plant", "plant"), (" PLANT ( seed = 7 )", "plant"), ("works(level=3,seed=8)", "plant(seed=8,level=3)")],
)
def test_a_dataset_is_written_like_a_stage(text: str, canonical: str) -> None:
    assert str(parse_dataset(text)) == canonical
    assert parse_dataset(canonical) == parse_dataset(text)


@pytest.mark.parametrize("text", ["plant|plant", "plant+nr", "plant plant", "plant(seed=1))"])
def test_a_dataset_is_one_stage_and_nothing_else(text: str) -> None:
    with pytest.raises(SpecError, match="expected the end"):
        parse_dataset(text)


def test_an_unknown_dataset_comes_with_the_nearest_one() -> None:
    with pytest.raises(UnknownNameError, match=r"Unknown dataset 'plnat'\. Did you mean 'plant'"):
        parse_dataset("plnat")


def test_a_dataset_is_built_with_its_parameters() -> None:
    source = build_source("plant(level=3)")
    assert (source.seed, source.level) == (7, 3)
