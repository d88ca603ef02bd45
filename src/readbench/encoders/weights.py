"""Finding the files of pretrained networks: a local path, a folder of models, or the Hugging Face hub.

`weights` of an encoder is one of

* a folder, or a file where the network is a single file;
* a hub id such as `amazon/chronos-2`, with `@revision` behind it to pin one. Where the environment variable
  `READBENCH_MODELS` names a folder, `amazon/chronos-2` below it is taken first, so that machines without network access
  run the same method texts as those with it.
"""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path

from readbench.encoders.devices import package
from readbench.errors import DataError

_unreachable: dict[str, str] = {}
"""Hub ids that could not be fetched, and why: each is tried once a process, not once a dataset."""


def locate(weights: str, files: tuple[str, ...], owner: str) -> tuple[Path, ...]:
    """Paths of the files of a network, downloaded from the hub where they are not on this machine.

    Args:
        weights: a folder, a file or a hub id.
        files: names of the files, as the hub has them.
        owner: the encoder that asks.
    """
    for place in _local_places(weights):
        if place.is_file() and len(files) == 1:
            return (place,)
        if place.is_dir():
            return _inside(place, files, owner)
    if _is_path(weights):
        raise DataError(f"{owner}: there is no {weights}. Give the folder that holds {' and '.join(files)}.")
    return _inside(_download(weights, files, owner), files, owner)


def digest(paths: tuple[Path, ...]) -> str:
    """Hash of the contents of files, whatever their names and places."""
    parts = [_file_digest(path, path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:16]


@lru_cache(maxsize=64)
def _file_digest(path: Path, size: int, changed: int) -> str:  # noqa: ARG001 - a file that was changed is read again
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _local_places(weights: str) -> list[Path]:
    places = [Path(weights).expanduser()]
    if models := os.environ.get("READBENCH_MODELS"):
        places.append(Path(models) / weights)
    return places


def _is_path(weights: str) -> bool:
    """Whether a text that names nothing on this machine was meant as a path: hub ids are `owner/name`."""
    return weights.startswith((".", "~", "/")) or "\\" in weights or weights.count("/") != 1


def _inside(folder: Path, files: tuple[str, ...], owner: str) -> tuple[Path, ...]:
    missing = [name for name in files if not (folder / name).is_file()]
    if missing:
        raise DataError(f"{owner}: {folder} lacks {' and '.join(missing)}. It must hold {' and '.join(files)}.")
    return tuple(folder / name for name in files)


def _download(weights: str, files: tuple[str, ...], owner: str) -> Path:
    hub = package("huggingface_hub", owner)
    name, _, revision = weights.partition("@")
    if weights not in _unreachable:
        try:
            return Path(hub.snapshot_download(name, revision=revision or None, allow_patterns=list(files)))
        except (OSError, ValueError) as error:  # what the hub's errors have in common
            _unreachable[weights] = str(error).split("\n")[0]
    raise DataError(
        f"{owner}: the weights {weights!r} are not on this machine and the Hugging Face hub did not give them"
        f" ({_unreachable[weights]}). Where there is access, fetch {' and '.join(files)} from"
        f" https://huggingface.co/{name}; then pass their folder, as in {owner}(weights=FOLDER), or put it at {name} in"
        f" the folder that READBENCH_MODELS names."
    )
