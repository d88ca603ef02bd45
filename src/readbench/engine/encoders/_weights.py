"""Locate the files of pretrained networks: a local path, a folder of models, or the Hugging Face hub.

`weights` of an encoder is one of

* a folder, or a file if the network is a single file;
* a hub id such as `amazon/chronos-2`, optionally with `@revision`. It is searched below the folder in the environment
  variable `READBENCH_MODELS` first, so that machines without network access run the same method texts; then in the
  hub's cache; then downloaded.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from readbench.engine.devices import import_optional
from readbench.errors import DataError

_unreachable: dict[str, str] = {}
"""Hub ids that could not be fetched, with the reason; each is tried once per process."""


def locate_weights(weights: str, files: tuple[str, ...], owner: str) -> tuple[Path, ...]:
    """Paths of a network's files, downloaded if they are not on this machine.

    Args:
        weights: a folder, a file or a hub id.
        files: names of the files on the hub.
        owner: name of the encoder, for errors.
    """
    place = _place(weights, files)
    if place is None and not _is_path(weights):
        place = _download(weights, files, owner)
    reason = _reason(place, weights, files)
    if place is None or reason:
        raise DataError(f"{owner} {reason}")
    return (place,) if place.is_file() else tuple(place / name for name in files)


def explain_missing_weights(weights: str, files: tuple[str, ...]) -> str:
    """Why a network cannot be used without a download, and the remedy; "" if all its files are here.

    Continues a sentence after the encoder's name. Nothing is imported or downloaded.

    >>> explain_missing_weights("./nowhere", ("model.ckpt",))
    'finds no ./nowhere: give the folder that holds model.ckpt.'
    """
    return _reason(_place(weights, files), weights, files)


@dataclass(frozen=True)
class HeldWeights:
    """Files of a network on this machine.

    Args:
        paths: of the files.
        revision: of the hub, for files from its cache; "" for a local folder.
        size: bytes.
        digest: SHA-256 of the last file, which contains the weights.
    """

    paths: tuple[Path, ...]
    revision: str
    size: int
    digest: str


def find_weights(weights: str, files: tuple[str, ...]) -> HeldWeights | None:
    """Files of a network on this machine, or None; nothing is downloaded."""
    place = _place(weights, files)
    if place is None or _lacking(place, files):
        return None
    paths = (place,) if place.is_file() else tuple(place / name for name in files)
    revision = place.name if place.parent.name == "snapshots" else ""
    stats = [path.stat() for path in paths]
    size = sum(stat.st_size for stat in stats)
    return HeldWeights(paths, revision, size, _file_digest(paths[-1], stats[-1].st_size, stats[-1].st_mtime_ns))


def digest_weights(paths: tuple[Path, ...]) -> str:
    """Hash of the contents of files, independent of names and paths."""
    parts = [_file_digest(path, path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:16]


@lru_cache(maxsize=64)
def _file_digest(path: Path, size: int, changed: int) -> str:  # noqa: ARG001 - a changed file is read again
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _place(weights: str, files: tuple[str, ...]) -> Path | None:
    """Local folder or file of the weights; None if there is none."""
    places = [Path(weights).expanduser()]
    if models := os.environ.get("READBENCH_MODELS"):
        places.append(Path(models) / weights)
    for place in places:
        if place.is_dir() or (place.is_file() and len(files) == 1):
            return place
    snapshot = _snapshot(weights)
    return None if _lacking(snapshot, files) else snapshot


def _snapshot(weights: str) -> Path:
    """Folder of a repository in the hub's cache, in its documented layout."""
    name, _, revision = weights.partition("@")
    base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    home = Path(os.environ.get("HF_HOME") or base / "huggingface")
    root = Path(os.environ.get("HF_HUB_CACHE") or home / "hub").expanduser() / f"models--{name.replace('/', '--')}"
    reference = root / "refs" / (revision or "main")
    commit = reference.read_text().strip() if reference.is_file() else revision
    return root / "snapshots" / commit


def _lacking(place: Path, files: tuple[str, ...]) -> list[str]:
    """Files missing in a folder; none for a single file."""
    return [] if place.is_file() else [name for name in files if not (place / name).is_file()]


def _reason(place: Path | None, weights: str, files: tuple[str, ...]) -> str:
    names = " and ".join(files)
    if place is None and _is_path(weights):
        return f"finds no {weights}: give the folder that holds {names}."
    if place is None:
        return (
            f"needs the weights {weights}, which are not on this machine: a run of the method by its name asks the"
            f" Hugging Face hub for them. {_advice(weights, files)}"
        )
    if lacking := _lacking(place, files):
        return f"finds no {' and '.join(lacking)} in {place}, which must hold {names}."
    return ""


def _is_path(weights: str) -> bool:
    """Whether a text that exists nowhere here was meant as a path: hub ids are `owner/name`."""
    return weights.startswith((".", "~", "/")) or "\\" in weights or weights.count("/") != 1


def _advice(weights: str, files: tuple[str, ...]) -> str:
    name = weights.partition("@")[0]
    return (
        f"Without access, fetch {' and '.join(files)} from https://huggingface.co/{name} elsewhere; then pass"
        f" their folder as weights=FOLDER, or put it at {name} in the folder that READBENCH_MODELS names."
    )


def _download(weights: str, files: tuple[str, ...], owner: str) -> Path:
    hub = import_optional("huggingface_hub", owner)
    name, _, revision = weights.partition("@")
    if weights not in _unreachable:
        try:
            return Path(hub.snapshot_download(name, revision=revision or None, allow_patterns=list(files)))
        except (OSError, ValueError) as error:  # the common bases of the hub's errors
            _unreachable[weights] = str(error).split("\n")[0]
    raise DataError(
        f"{owner}: the weights {weights} are not on this machine and the Hugging Face hub did not give them"
        f" ({_unreachable[weights]}). {_advice(weights, files)}"
    )
