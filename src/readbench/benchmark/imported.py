"""Which datasets a user has imported, by name; what is in them is read by `readbench.benchmark.exchange`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from readbench.common.files import imported_root
from readbench.engine.registry import SOURCES, Entry

FACTS = "dataset.json"
FAMILY = "imported"


@SOURCES.found_by
def imported_datasets() -> Iterator[Entry]:
    """Every imported dataset, by name."""
    for path in sorted(imported_root().glob(f"*/{FACTS}")):
        if not path.parent.name.startswith("."):
            yield _entry(path.parent)


def _entry(folder: Path) -> Entry:
    def opened() -> object:  # an `Imported`: a name that is read as a type hint must be there
        from readbench.benchmark.exchange import Imported  # noqa: PLC0415 - slow to import, and a name is soon told

        return Imported(folder)

    name = folder.name
    return Entry(name, opened, name, FAMILY, "Imported by the user.", origin="imported")
