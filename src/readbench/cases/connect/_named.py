"""Sources by name, in a TOML file beside the library; their secrets are named there and kept nowhere.

```toml
[plant]
address = "prometheus://127.0.0.1:9090/?asset=rig"
secret = "env:PLANT_TOKEN"
```
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from readbench.cases.connect._protocol import FAMILIES, SignalSource, SourceAddress, open_source
from readbench.common.files import SHORT_WAIT_S, exclusive, write_text
from readbench.errors import DataError, UnknownNameError, UsageError

FILE = "sources.toml"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class NamedSource:
    """A source under a name."""

    name: str
    address: SourceAddress

    def open(self) -> SignalSource:
        """Ready to be asked."""
        return open_source(self.address)


class SourceFile:
    """The sources of a library.

    Args:
        path: of the file, which need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def all(self) -> list[NamedSource]:
        """All of them, in the order in which they came."""
        try:
            entries = tomllib.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return []
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise DataError(f"{self.path} is no TOML: {error}. Correct it, or remove it and connect again.") from error
        return [_read_entry(self.path, name, entry) for name, entry in entries.items()]

    def get(self, name: str) -> NamedSource:
        """The source of a name."""
        found = {own.name: own for own in self.all()}
        if name not in found:
            raise UnknownNameError("source", name, found)
        return found[name]

    def put(self, source: NamedSource) -> None:
        """Keep a source, in place of one of the same name."""
        if not _NAME.fullmatch(source.name):
            raise UsageError(
                f"{source.name[:80]!r} is no name of a source: letters, digits, dots and dashes, 64 at most."
            )
        if source.address.family not in FAMILIES:
            raise UnknownNameError("family of sources", source.address.family, FAMILIES)
        with exclusive(self.path.with_suffix(".lock"), SHORT_WAIT_S):
            self._write({own.name: own for own in self.all()} | {source.name: source})

    def remove(self, name: str) -> None:
        """Forget a source."""
        with exclusive(self.path.with_suffix(".lock"), SHORT_WAIT_S):
            kept = {own.name: own for own in self.all()}
            if name not in kept:
                raise UnknownNameError("source", name, kept)
            del kept[name]
            self._write(kept)

    def _write(self, sources: dict[str, NamedSource]) -> None:
        parts = []
        for own in sources.values():
            lines = [f"[{_quote(own.name)}]", f"address = {_quote(own.address.shown)}"]
            lines += [f"secret = {_quote(own.address.secret)}"] if own.address.secret else []
            parts.append("\n".join(lines))
        write_text(self.path, "\n\n".join(parts) + "\n", mode=0o600)


def _quote(text: str) -> str:
    """A text as TOML has it: as JSON has it, too, where nothing but quotes and control characters is escaped."""
    return json.dumps(text, ensure_ascii=False)


def _read_entry(path: Path, name: str, entry: object) -> NamedSource:
    if not isinstance(entry, dict) or not isinstance(entry.get("address"), str):
        raise DataError(f'{path}: source {name!r} has no address. Write address = "prometheus://host:9090".')
    return NamedSource(name, SourceAddress.parse(entry["address"], str(entry.get("secret", ""))))


def sources_beside(where: str | Path, given: Path | None = None) -> SourceFile:
    """The file of the sources of a library: the one that is named, or that in the library's folder."""
    if given is None and "://" in str(where):
        raise UsageError(f"The library is in no folder: say where its {FILE} is kept, with --sources FILE.")
    return SourceFile(Path(where) / FILE if given is None else given)
