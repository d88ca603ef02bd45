"""Folders of files that grow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from readbench.cases.connect import open_source
from readbench.common.tables import Limits, Table, read_table
from readbench.errors import SourceMissingError, UsageError
from tests.cases.connect.conftest import START


def rows(first: int, last: int, factor: float = 1.0) -> str:
    return "".join(f"{START + i},{factor * i},{i % 3}\n" for i in range(first, last))


def test_new_rows_and_new_files_are_followed(tmp_path: Path) -> None:
    path = tmp_path / "day.csv"
    path.write_text("time,p [bar],q\n" + rows(0, 5000))
    source = open_source(f"folder://{tmp_path}")
    assert [(own.name, own.unit) for own in source.channels()] == [("p", "bar"), ("q", "")]
    follower = source.follow(START + 4999)
    follower.poll(START + 5000)
    with path.open("a") as file:
        file.write(rows(5000, 5010) + f"{START + 5010},50")
    found = follower.poll(START + 5011).of_asset("")["p"]
    assert found.values.tolist() == [float(i) for i in range(5000, 5010)]
    with path.open("a") as file:
        file.write("10,1\n")
    assert follower.poll(START + 5012).of_asset("")["p"].values.tolist() == [5010.0]
    (tmp_path / "next.csv").write_text("time,p [bar],q\n" + rows(5011, 5015))
    assert follower.poll(START + 5016).of_asset("")["p"].values.tolist() == [5011.0, 5012.0, 5013.0, 5014.0]
    assert len(source.read(START + 100, START + 199).of_asset("")["q"].times) == 100


def test_of_a_file_that_grew_only_the_new_rows_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from readbench.cases.connect import _folder  # noqa: PLC0415

    path = tmp_path / "day.csv"
    path.write_text("time,p,q\n" + rows(0, 20_000))
    source = open_source(f"folder://{tmp_path}")
    source.channels()
    sizes = []

    def read(given: tuple[str, bytes], limits: Limits) -> Table:
        sizes.append(len(given[1]))
        return read_table(given, limits)

    monkeypatch.setattr(_folder, "read_table", read)
    with path.open("a") as file:
        file.write(rows(20_000, 20_010))
    assert len(source.read(START + 20_000, START + 20_020)) == 20
    assert sizes[0] < 2 * _folder.HEAD


def test_long_tables_columns_of_assets_and_changed_units(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "time,pump,tag,value,unit\n"
        + "".join(f"{START + i},pump {k},pressure,{1 + k},bar\n" for i in range(5) for k in range(2))
        + "".join(f"{START + i},pump 0,pressure,200,kPa\n" for i in range(5, 9))
    )
    source = open_source(f"folder://{tmp_path}?asset=pump&time=time&channel=tag&value=value&unit=unit")
    found = source.read(START, START + 10)
    assert found.assets == ("pump 0", "pump 1")
    own = found.of_asset("pump 0")["pressure"]
    assert (own.unit, own.values.tolist()) == ("kPa", [100.0] * 5 + [200.0] * 4)
    assert "changed from bar to kPa" in found.remarks[0]


def test_folders_and_files_name_assets(tmp_path: Path) -> None:
    for name in ("pump 1", "pump 2"):
        (tmp_path / name).mkdir()
        table = pa.table({"time": START + np.arange(5.0), "p": np.arange(5.0)})
        pyarrow.parquet.write_table(table, tmp_path / name / "day.parquet")
    assert open_source(f"folder://{tmp_path}?by=folder").read(START, START + 9).assets == ("pump 1", "pump 2")
    assert open_source(f"folder://{tmp_path}?by=file").read(START, START + 9).assets == ("day",)


def test_a_file_that_is_still_written_waits_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "good.csv").write_text("time,p\n" + "".join(f"{START + i},1\n" for i in range(5)))
    (tmp_path / "half.parquet").write_bytes(b"PAR1 not yet")
    found = open_source(f"folder://{tmp_path}").read(START, START + 9)
    assert len(found) == 5
    assert found.remarks[0].startswith("half.parquet was left out")


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceMissingError, match="no folder"):
        open_source(f"folder://{tmp_path}/none").channels()
    with pytest.raises(UsageError, match="file, folder or none"):
        open_source(f"folder://{tmp_path}?by=name")
