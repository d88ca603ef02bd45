"""What the official data of each source consist of, and where they are to be had.

A checksum or size that nobody told us is left out, and said to be unknown. The lists in `files/` (SHA-256, bytes, path)
were made from files of the commits that the addresses name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.resources import files


@dataclass(frozen=True)
class RemoteFile:
    """One file to fetch.

    Args:
        url: its address.
        path: where it belongs in the folder of the source.
        size: bytes; None where unknown.
        checksum: `sha256:...` or `md5:...`; "" where unknown.
        unpack: it is a zip archive whose content is wanted.
    """

    url: str
    path: str
    size: int | None = None
    checksum: str = ""
    unpack: bool = False


@dataclass(frozen=True)
class Extent:
    """A complete copy has `count` files that match any of the patterns; `what` they are.

    Where it is not `whole`, even all of them are only a part of the source.
    """

    patterns: tuple[str, ...]
    count: int
    what: str
    whole: bool = True


@dataclass(frozen=True)
class Official:
    """The official data of one source.

    Args:
        extents: what makes a copy complete; of several layouts one is enough.
        files: what can be fetched without a login; empty where nothing can.
        sums: address of a published list of SHA-256 sums for files without a checksum of their own.
        steps: exact instructions where the data must be got by hand; `{folder}` is where to put them.
    """

    extents: tuple[Extent, ...]
    files: tuple[RemoteFile, ...] = ()
    sums: str = ""
    steps: str = ""


def _listed(name: str, address: str) -> tuple[RemoteFile, ...]:
    """Files of a list, below an address."""
    listed = files("readbench.data.official").joinpath("files", f"{name}.txt").read_text().splitlines()
    rows = (line.split(" ", 2) for line in listed)
    return tuple(RemoteFile(f"{address}/{path}", path, int(size), f"sha256:{digest}") for digest, size, path in rows)


_PHYSIONET = "https://physionet.org/files/mitdb/1.0.0"
_RECORDS = (
    *range(100, 110), *range(111, 120), *range(121, 125), *range(200, 204), 205, *range(207, 211), *range(212, 216),
    217, *range(219, 224), 228, *range(230, 235),
)  # fmt: skip
_DAMADICS_SUMS = {
    "part1": "4fea6d279b1077bc51a15a21170144125e9e973214de57b1f8b622e16ba774a3",
    "part2": "5e23c3b0e5adcb50541704024846d54f33bc374e1fd36f50b1043a663dfba803",
    "part3": "2e961f290e3a7fdd3ebf3e2688af207cd1affef065aae13e3fb68755f7ee9628",
    "part4": "d8a61f82c3b66df5f566bc8c78060db678cc886ab94f4059bab5de3b68784cf2",
}
"""As quoted by a user of the data; not checked by us."""

OFFICIAL = {
    "ctsr": Official(
        (Extent(("*/*_TRAIN.*", "*/*/*_TRAIN.*"), 128, "datasets of the archive"),),
        steps=(
            "1. Open https://www.cs.ucr.edu/~eamonn/time_series_data_2018/ and download UCRArchive_2018.zip.\n"
            "2. The archive is locked: the password is in the briefing document on that page.\n"
            "3. unzip UCRArchive_2018.zip -d {folder}"
        ),
    ),
    "damadics": Official(
        (Extent(("**/*2001.txt",), 25, "days"),),
        steps=(
            "1. Open https://iair.mchtr.pw.edu.pl/Damadics and download Lublin_all_data_part1.zip to part4.zip.\n"
            "2. Compare `sha256sum` with what a user of the data quotes (not checked by us):\n"
            + "".join(f"   {digest}  {part}\n" for part, digest in _DAMADICS_SUMS.items())
            + "3. unzip 'Lublin_all_data_part*.zip' -d {folder}"
        ),
    ),
    "exathlon": Official(
        (Extent(("**/app*/*.zip", "**/app*/*.csv", "**/app*/*/*.zip", "**/app*/*/*.csv"), 93, "traces"),),
        steps="git clone --depth 1 https://github.com/exathlonbenchmark/exathlon {folder}",
    ),
    "hai": Official(
        (
            Extent(
                ("train[1-3].csv", "test[1-5].csv", "hai-21.03/train[1-3].csv", "hai-21.03/test[1-5].csv"), 8, "tables"
            ),
        ),
        steps=(
            "1. git lfs install && git clone --depth 1 https://github.com/icsdataset/hai {folder}\n"
            "2. Files of a few hundred bytes are pointers: run `git lfs pull` in that folder."
        ),
    ),
    "mit_bih": Official(
        (Extent(("**/[12][0-9][0-9].dat",), len(_RECORDS), "records"),),
        files=tuple(
            RemoteFile(f"{_PHYSIONET}/{record}.{kind}", f"{record}.{kind}", 1_950_000 if kind == "dat" else None)
            for record in _RECORDS
            for kind in ("hea", "dat", "atr")
        ),
        sums=f"{_PHYSIONET}/SHA256SUMS.txt",
    ),
    "petrobras_3w": Official(
        (),
        steps=(
            "git clone --depth 1 https://github.com/petrobras/3W {folder}\n"
            "(2.7 GB; its folder dataset/ is what is read)"
        ),
    ),
    "rats40k": Official(
        (Extent(("**/RATs-*-TSImage_Reason.json",), 2, "files"),),
        steps="hf download Time-RA/RATs40K --repo-type dataset --local-dir {folder}",
    ),
    "rcaeval": Official(
        (
            Extent(("**/*_*/*/data.csv",), 375, "cases of RE1"),
            Extent(("**/*-*/*/anomalous.csv",), 50, "cases of Sock Shop 1", whole=False),
        ),
        files=(RemoteFile("https://zenodo.org/records/14590730/files/RE1.zip", "RE1.zip", unpack=True),),
    ),
    "road": Official(
        (
            Extent(("**/signal_extractions/*/*.csv",), 29, "signal extractions"),
            Extent(("**/attacks/*.log", "**/ambient/*.log"), 45, "logs"),
        ),
        files=(
            RemoteFile(
                "https://zenodo.org/records/10462796/files/road.zip",
                "road.zip",
                556_718_276,
                "md5:cab184cfc2fe12c0834bc46188c0f330",
                unpack=True,
            ),
        ),
    ),
    "robot_failures": Official(
        (Extent(("lp[1-5].data", "lp[1-5].data.txt"), 5, "files"),),
        files=_listed(
            "robot_failures",
            "https://raw.githubusercontent.com/MaxBenChrist/robot-failure-dataset/0c1175d796146a30de5f39068db108f3b122aa95",
        ),
    ),
    "skab": Official(
        (
            Extent(
                tuple(
                    f"{place}{kind}/*.csv"
                    for place in ("", "data/")
                    for kind in ("valve1", "valve2", "other", "anomaly-free")
                ),
                35,
                "experiments",
            ),
        ),
        files=_listed("skab", "https://raw.githubusercontent.com/waico/SKAB/b2c0d46c2971dcbfe71e26087b6d231998bb91c2"),
    ),
    "telecomts": Official(
        (Extent(("**/chunked.jsonl",), 33, "files"),),
        steps="hf download AliMaatouk/TelecomTS --repo-type dataset --local-dir {folder}",
    ),
    "tennessee_eastman": Official(
        (
            Extent(("TEP_Fault*", "*/TEP_Fault*"), 4, "tables as Rieth et al. have them"),
            Extent(("d[0-2][0-9]*.dat", "*/d[0-2][0-9]*.dat"), 44, "files of Russell, Chiang and Braatz"),
        ),
        steps=(
            "1. Open https://doi.org/10.7910/DVN/6C3JR1 (Harvard Dataverse).\n"
            "2. Download the four files TEP_*.RData into {folder}"
        ),
    ),
    "voraus": Official(
        (Extent(("voraus-ad-dataset-100hz.parquet",), 1, "file"),),
        steps=(
            "1. Open https://github.com/vorausrobotik/voraus-ad-dataset and follow the link to the dataset.\n"
            "2. Put voraus-ad-dataset-100hz.parquet (1.1 GB) into {folder}"
        ),
    ),
}


def with_sums(files: tuple[RemoteFile, ...], listed: str) -> tuple[RemoteFile, ...]:
    """The same files with the checksums of a published list, `digest  path` a line."""
    digests = {
        path.strip().lstrip("*"): digest for digest, _, path in (row.partition(" ") for row in listed.splitlines())
    }
    return tuple(
        replace(file, checksum=f"sha256:{digests[file.path]}") if file.path in digests and not file.checksum else file
        for file in files
    )
