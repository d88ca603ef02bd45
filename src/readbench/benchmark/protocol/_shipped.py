"""Facts that ship with the package as files, each beside the module that reads it."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from readbench.benchmark.protocol._source import Channel, Protocol, SourceInfo


def read_shipped(module: str, name: str) -> str:
    """Text of a file in the folder of a module.

    Args:
        module: the `__name__` of who asks.
        name: of the file, with `/` where it lies deeper.
    """
    package = module.rpartition(".")[0]
    return files(package).joinpath(*name.split("/")).read_text(encoding="utf-8")


def read_shipped_rows(module: str, name: str) -> list[dict[str, str]]:
    """Rows of a CSV file in the folder of a module, by the names in its first line.

    >>> read_shipped_rows(__name__, "paper.csv")[0]["dataset"]
    'ctsr'
    """
    return list(csv.DictReader(read_shipped(module, name).splitlines(), strict=True))


def read_info(
    module: str,
    name: str,
    *,
    channels: Sequence[Channel] = (),
    faults: Sequence[str] = (),
    **protocol: Any,  # noqa: ANN401 - fields of Protocol
) -> SourceInfo:
    """Facts of a source from `facts/NAME.toml` in the folder of its module; what is given here goes before the file.

    Args:
        module: the `__name__` of who asks.
        name: of the source.
        channels: channels that the module lists or computes. In the file each is `[name, unit, description]`.
        faults: fault types, likewise.
        protocol: fields of the protocol, likewise.
    """
    facts = tomllib.loads(read_shipped(module, f"facts/{name}.toml"))
    listed = [Channel(*row) for row in facts.get("channels", ())]
    rules = {"length": None} | facts.get("protocol", {}) | protocol
    computed = {
        "channels": tuple(channels or listed),
        "faults": tuple(faults or facts.get("faults", ())),
        "protocol": Protocol(**rules),
    }
    return SourceInfo(name=name, **(facts | computed))
