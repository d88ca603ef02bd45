"""CTSR: every class of every dataset of the UCR archive is a class of one large retrieval set.

Read are `<Dataset>_TRAIN` and `<Dataset>_TEST` files, `.tsv` as in `UCRArchive_2018/<Dataset>/`, plain or gzipped, in
`ctsr/` itself or one folder below it. The archive's second copy of datasets with gaps, in a folder whose name begins
with `Missing_value`, is left alone: gaps are handled here. A dataset may lack one of its two files. `.ts` (aeon,
sktime) and `.txt` files are read where there is no `.tsv`; of the official layouts, only 108 of the 128 `.tsv`
datasets were seen working.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from readbench.data.clean import fill_missing
from readbench.data.recording import Recording
from readbench.data.source import Channel, Protocol, SourceInfo
from readbench.data.sources.ctsr.formats import SUFFIXES, Series, label_order, read_labels, read_series
from readbench.data.sources.files import find_files, fingerprint_files, plain_name
from readbench.errors import DataError, SourceMissingError
from readbench.registry import SOURCES
from readbench.windows import resample

VERSION = 1
"""Raise when the recordings change although the files do not."""
LENGTH = 512
SIDES = ("TRAIN", "TEST")


@SOURCES.register("ctsr", title="CTSR")
class Ctsr:
    """Series of the UCR archive; a class is a dataset together with one of its labels.

    The class names depend on which datasets are there: `resolved` gives the source with all of them.
    """

    info = SourceInfo(
        name="ctsr",
        title="CTSR",
        domain="physiological and general signals",
        description=(
            "Univariate series of the UCR archive, from spectra, outlines, motions, appliances, electrocardiograms and "
            "other sensors. A class is a dataset together with one of its labels, so none of them is a fault and none "
            "is normal. The archive's train and test files are pooled and held out at random. Padding is removed, gaps "
            "take the last value before them, and every series is interpolated linearly to 512 points. Most datasets "
            "were standardised series by series before they were published, some were not."
        ),
        channels=(Channel("value"),),
        faults=(),
        protocol=Protocol(length=LENGTH, label_rule="native", composition="query-classes"),
        split_unit="series",
        asset_unit="",
        licence="free for research with citation; no formal licence",
        citation=(
            "Yeh et al., CTSR (2023); series of Dau et al., The UCR time series archive, IEEE/CAA J. Autom. Sinica 6 "
            "(2019) 1293-1305"
        ),
        url="https://www.cs.ucr.edu/~eamonn/time_series_data_2018/",
        size="128 datasets",
        verified=True,
    )

    def resolved(self, root: Path | None) -> Ctsr:
        """The source with the classes of the datasets under `root`: by name of dataset, then by label as a number."""
        labels: dict[str, set[str]] = {}
        for path in self._files(root):
            labels.setdefault(_dataset(path), set()).update(read_labels(path))
        faults = [
            _class_name(dataset, label) for dataset in labels for label in sorted(labels[dataset], key=label_order)
        ]
        source = Ctsr()
        source.info = replace(self.info, faults=tuple(faults))
        return source

    def fingerprint(self, root: Path | None) -> str:
        """Hash of all files."""
        return fingerprint_files(self._files(root), VERSION)

    def recordings(self, root: Path | None) -> Iterator[Recording]:
        """One recording per series, dataset after dataset, train before test."""
        classes = self.info.classes if self.info.faults else self.resolved(root).info.classes
        codes = {name: code for code, name in enumerate(classes)}
        for path in self._files(root):
            for series in read_series(path):
                name = _class_name(_dataset(path), series.label)
                if name not in codes:
                    raise DataError(f"{path}: class {name!r} in line {series.line} is new. Resolve the source again.")
                yield _recording(path, series, codes[name])

    def _files(self, root: Path | None) -> list[Path]:
        """One file per dataset and side, sorted by dataset, train first."""
        patterns = [f"{folder}/*_{side}{s}" for folder in ("*", "*/*") for side in SIDES for s in SUFFIXES]
        chosen: dict[tuple[str, int], Path] = {}
        for path in sorted(find_files(self.info, root, patterns), key=_preference):
            name = Path(plain_name(path.name)).stem
            if path.parent.parent.name.startswith("Missing_value") or _dataset(path) != name.rpartition("_")[0]:
                continue
            key = (_dataset(path), SIDES.index(name.rpartition("_")[2]))
            if (other := chosen.setdefault(key, path)) != path and other.parent != path.parent:
                raise DataError(f"{path.parent}: dataset {key[0]} is also in {other.parent}. Keep one of the two.")
        if not chosen:
            raise SourceMissingError(
                f"{self.info.name}: no <Dataset>/<Dataset>_TRAIN.tsv below {root}/{self.info.name}. "
                f"Get the files from {self.info.url}"
            )
        return [chosen[key] for key in sorted(chosen)]


def _recording(path: Path, series: Series, label: int) -> Recording:
    """The series without gaps, on 512 points; its id says where it stands."""
    name = f"{Path(plain_name(path.name)).stem}:{series.line}"
    values = series.values[None]
    raw = Recording(name, values, ("value",), np.full(values.shape[1], label, np.int32), group=name)
    grid = resample(fill_missing(raw).values.astype(np.float32), LENGTH)
    return replace(raw, values=grid, labels=np.full(LENGTH, label, np.int32))


def _dataset(path: Path) -> str:
    return path.parent.name


def _class_name(dataset: str, label: str) -> str:
    return f"{dataset} / {label}"


def _preference(path: Path) -> tuple[int, str]:
    return SUFFIXES.index(Path(plain_name(path.name)).suffix), path.as_posix()
