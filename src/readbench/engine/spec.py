"""Method specs: parse a text such as `charm+nr|dtw-i+gpc` to a frozen `MethodSpec`, and write it.

```
method  := leg ( fusion leg )* ( "+" reranker )*
leg     := stage ( "+" transform )*                 a retriever, or an encoder with embedding transforms
fusion  := "|"  |  "|" mode "|"                     "|" alone is reciprocal-rank fusion (rrf)
stage   := name [ "(" value | key "=" value { "," key "=" value } ")" ]
```

`+nr` binds to the encoder before it; fusion is left-associative; rerankers come last and see the fused list. Names are
case-insensitive on input. The canonical text names only parameters that differ from their defaults, in declaration
order, so that equal methods have equal texts and fingerprints.

>>> spec = parse("ED(norm=channel)")
>>> str(spec), parse(str(spec)) == spec
('euclidean', True)
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from readbench.common.files import digest
from readbench.engine.parameters import Value
from readbench.engine.registry import ENCODERS, FUSIONS, RERANKERS, RETRIEVERS, SOURCES, TRANSFORMS, Entry, Registry
from readbench.errors import SpecError, UnknownNameError

DEFAULT_FUSION = "rrf"
COMPOSED = {
    "ours": "sonde(size=small)|ws(alpha=0.7)|rocket+nr",
    "ours-dtw": "sonde|ws(alpha=0.7)|dtw-i",
    "ours-before": "sonde|ws(alpha=0.7)|dtw-i|ws(alpha=0.2)|departure",
    "flagship": "sonde|ws(alpha=0.7)|rocket|ws(alpha=0.7)|dtw-i|ws|departure+verdict(views=pooled)",
    "flagship-spread": "sonde|ws(alpha=0.7)|rocket|ws(alpha=0.7)|dtw-i|ws|departure+verdict(views=pooled,spread=0.3)",
    "flagship-fast": (
        "sonde(size=small)|ws(alpha=0.7)|rocket|ws(alpha=0.7)|dtw-i|ws|departure+verdict(views=pooled,spread=0.3)"
    ),
    "flagship-window": "sonde|ws(alpha=0.7)|rocket|ws(alpha=0.7)|dtw-i+verdict",
    "flagship-pool": "sonde|ws(alpha=0.7)|rocket|ws(alpha=0.7)|dtw-i+verdict(pool=20)",
}
"""Named methods as canonical texts: the best without labels, its predecessor, and this with the time before a window;
with all labels and the time before, ranked by probability, with a diversified list, with the small encoder, and without
the time before; with the labels of 20 candidates per query."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_PLAIN_VALUE = re.compile(r"[^\s,()|+='\"]+")


@dataclass(frozen=True)
class Stage:
    """A named component with the parameters that differ from their defaults."""

    name: str
    parameters: tuple[tuple[str, Value], ...] = ()

    def __str__(self) -> str:
        if not self.parameters:
            return self.name
        return f"{self.name}({','.join(f'{key}={_text(value)}' for key, value in self.parameters)})"


@dataclass(frozen=True)
class Leg:
    """A retriever, or an encoder with its embedding transforms."""

    stage: Stage
    transforms: tuple[Stage, ...] = ()

    def __str__(self) -> str:
        return "+".join(map(str, (self.stage, *self.transforms)))


@dataclass(frozen=True)
class MethodSpec:
    """A method: legs, the fusions between them (one less than legs), and rerankers in order."""

    legs: tuple[Leg, ...]
    fusions: tuple[Stage, ...] = ()
    rerankers: tuple[Stage, ...] = ()

    def __str__(self) -> str:
        text = str(self.legs[0])
        for fusion, leg in zip(self.fusions, self.legs[1:], strict=True):
            text += ("|" if fusion == Stage(DEFAULT_FUSION) else f"|{fusion}|") + str(leg)
        return "+".join([text, *map(str, self.rerankers)])

    def entries(self) -> list[Entry]:
        """Registered entries of all stages, in order."""
        found = []
        for leg in self.legs:
            home = RETRIEVERS if leg.stage.name in RETRIEVERS else ENCODERS
            found += [home.get(leg.stage.name), *(TRANSFORMS.get(t.name) for t in leg.transforms)]
        found += [FUSIONS.get(f.name) for f in self.fusions]
        return found + [RERANKERS.get(r.name) for r in self.rerankers]

    def fingerprint(self) -> str:
        """Hash of the canonical text and of each component's origin (package and version)."""
        return digest(str(self), [entry.origin for entry in self.entries()])

    @property
    def title(self) -> str:
        """Name in tables, as in the paper: `CHARM+NR|DTW-I+GPC`; named methods use their name."""
        if named := composed_title(str(self)):
            return named
        titles = iter([entry.title for entry in self.entries()])

        def titled(stage: Stage) -> Stage:
            title = next(titles)
            return stage if stage == Stage(DEFAULT_FUSION) else replace(stage, name=title)

        legs = tuple(Leg(titled(leg.stage), tuple(map(titled, leg.transforms))) for leg in self.legs)
        return str(MethodSpec(legs, tuple(map(titled, self.fusions)), tuple(map(titled, self.rerankers))))


def composed_title(canonical: str) -> str:
    """Name in tables of a named method, by its canonical text; "" for any other.

    >>> composed_title(str(parse("ours-dtw"))), composed_title("sonde")
    ('Ours-dtw', '')
    """
    return next((name.capitalize() for name, text in COMPOSED.items() if text == canonical), "")


def parse(text: str) -> MethodSpec:
    """Parse a method text or name; errors point at the position or list similar names.

    >>> str(parse("ours"))
    'sonde(size=small)|ws(alpha=0.7)|rocket+nr'
    """
    return _Reader(COMPOSED.get(text.strip().lower(), text)).method()


def parse_dataset(text: str) -> Stage:
    """Parse a dataset with parameters, written like a stage of a method.

    >>> str(parse_dataset("sim_tanks(difficulty=2, seed=20050703)"))
    'sim_tanks(difficulty=2)'
    """
    reader = _Reader(text)
    stage = reader.stage(SOURCES, reader.name("a dataset"))
    if not reader.done():
        raise reader.error("expected the end")
    return stage


def build_source(text: str) -> Any:  # noqa: ANN401 - a readbench.benchmark.protocol.Source, which engine cannot import
    """Build the data source that a text names."""
    stage = parse_dataset(text)
    return SOURCES.get(stage.name).build(**dict(stage.parameters))


def split_specs(texts: Iterable[str]) -> list[str]:
    """Split each text at commas outside parentheses and quotes.

    >>> split_specs(["random,dtw-i(band=0.1,norm=none)", "stats"])
    ['random', 'dtw-i(band=0.1,norm=none)', 'stats']
    """
    parts: list[str] = []
    for text in texts:
        depth, quote, start = 0, "", 0
        for i, char in enumerate(text):
            if quote or char in "'\"":
                quote = "" if char == quote else quote or char
            elif char in "()":
                depth += 1 if char == "(" else -1
            elif char == "," and depth == 0:
                parts.append(text[start:i])
                start = i + 1
        parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


class _Reader:
    """Recursive descent parser of one method text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def method(self) -> MethodSpec:
        legs: list[Leg] = []
        fusions: list[Stage] = []
        rerankers: list[Stage] = []
        while True:
            leg, trailing = self._leg(after_bar=bool(legs))
            legs.append(leg)
            rerankers += trailing
            if self.done():
                return MethodSpec(tuple(legs), tuple(fusions), tuple(rerankers))
            if trailing:
                raise self.error(f"reranker {trailing[0].name!r} applies to the fused list: write it last")
            fusions.append(self._fusion())

    def _leg(self, *, after_bar: bool) -> tuple[Leg, list[Stage]]:
        name = self.name("a method")
        base = RETRIEVERS if name in RETRIEVERS else ENCODERS
        if name not in base:
            homes = (RETRIEVERS, ENCODERS, FUSIONS) if after_bar else (RETRIEVERS, ENCODERS)
            known = [*COMPOSED, *(known for home in homes for known in home.names(aliases=True))]
            raise UnknownNameError("method", name, known)
        stage = self.stage(base, name)
        transforms: list[Stage] = []
        rerankers: list[Stage] = []
        while self._accept("+"):
            name = self.name("a stage after '+'")
            if name in TRANSFORMS:
                if rerankers:
                    raise self.error(f"{name!r} changes the embedding: write it before {rerankers[0].name!r}")
                if base is RETRIEVERS:
                    raise self.error(f"{name!r} needs an embedding, and {stage.name!r} has none")
                transforms.append(self.stage(TRANSFORMS, name))
            elif name in RERANKERS:
                rerankers.append(self.stage(RERANKERS, name))
            else:
                known = [*RERANKERS.names(aliases=True), *TRANSFORMS.names(aliases=True)]
                raise UnknownNameError("stage after '+'", name, known)
        return Leg(stage, tuple(transforms)), rerankers

    def _fusion(self) -> Stage:
        if not self._accept("|"):
            raise self.error("expected '|', '+' or the end")
        if (match := _NAME.match(self.text, self._skip())) and match.group() in FUSIONS:
            self.at = match.end()
            stage = self.stage(FUSIONS, match.group())
            if not self._accept("|"):
                raise self.error(f"expected '|' after the fusion mode {stage.name!r}")
            return stage
        return Stage(FUSIONS.get(DEFAULT_FUSION).name)

    def stage(self, registry: Registry, name: str) -> Stage:
        entry = registry.get(name)
        given = self._arguments(entry) if self._accept("(") else {}
        declared = entry.parameters
        for key, value in given.items():
            declared[key].check(entry.name, value)
        changed = [(key, given[key]) for key in declared if key in given and given[key] != declared[key].default]
        return Stage(entry.name, tuple(changed))

    def _arguments(self, entry: Entry) -> dict[str, Value]:
        given: dict[str, Value] = {}
        declared = entry.parameters
        while not self._accept(")"):
            if given and not self._accept(","):
                raise self.error("expected ',' or ')'")
            key, raw = self._argument(entry)
            if key not in declared:
                raise UnknownNameError(f"parameter of {entry.name}", key, declared)
            if key in given:
                raise self.error(f"parameter {key!r} is given twice")
            given[key] = declared[key].read(raw)
        return given

    def _argument(self, entry: Entry) -> tuple[str, str]:
        first = self._value()
        if self._accept("="):
            return first, self._value()
        if not entry.positional:
            raise self.error(f"{entry.name!r} takes parameters by name only, as key=value")
        return entry.positional, first

    def _value(self) -> str:
        start = self._skip()
        if start < len(self.text) and self.text[start] in "'\"":
            end = self.text.find(self.text[start], start + 1)
            if end < 0:
                raise self.error("the quote is not closed")
            self.at = end + 1
            return self.text[start + 1 : end]
        match = _PLAIN_VALUE.match(self.text, start)
        if not match:
            raise self.error("expected a value")
        self.at = match.end()
        return match.group()

    def name(self, what: str) -> str:
        match = _NAME.match(self.text, self._skip())
        if not match:
            raise self.error(f"expected {what}")
        self.at = match.end()
        return match.group().lower()

    def _accept(self, char: str) -> bool:
        start = self._skip()
        if self.text[start : start + 1] != char:
            return False
        self.at = start + 1
        return True

    def _skip(self) -> int:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.at

    def done(self) -> bool:
        return self._skip() == len(self.text)

    def error(self, message: str) -> SpecError:
        pointer = " " * self.at + "^"
        return SpecError(f"Cannot read {self.text!r}: {message}.\n  {self.text}\n  {pointer}")


def _text(value: Value) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    text = str(value).replace("e+", "e") if isinstance(value, float) else str(value)
    if isinstance(value, str) and not _PLAIN_VALUE.fullmatch(text):
        return f'"{text}"' if '"' not in text else f"'{text}'"
    return text
