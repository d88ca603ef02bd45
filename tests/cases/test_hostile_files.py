"""Files that were made to hurt: reading takes time that grows as they do, and ends with a sentence at worst."""

from __future__ import annotations

import gzip
import io
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from readbench.cases import ToldContext, read_recording
from readbench.common.tables import Limits
from readbench.common.times import find_zone, is_time_name
from readbench.engine.window_tables import Roles
from readbench.errors import DataError, ReadbenchError

LIMITS = Limits(max_bytes=2**26, max_rows=500_000, max_columns=2010)
FACTOR = 8
MOST_GROWTH = FACTOR**1.6
"""Most that the time may grow by where the file grows by `FACTOR`: what is quadratic takes 64 times as long."""
UNNOTICED_S = 0.8
Made = tuple[str, bytes]


def parquet(**columns: object) -> bytes:
    content = io.BytesIO()
    pq.write_table(pa.table(columns), content)
    return content.getvalue()


def archive(**arrays: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    return content.getvalue()


def workbook(rows: str, shared: str = "", styles: str = "") -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("xl/worksheets/sheet1.xml", f"<worksheet><sheetData>{rows}</sheetData></worksheet>")
        file.writestr("xl/sharedStrings.xml", f"<sst>{shared}</sst>")
        file.writestr("xl/styles.xml", f"<styleSheet>{styles}</styleSheet>")
    return content.getvalue()


def columns(count: int, cell: str, rows: int = 3) -> bytes:
    return ("\n".join([",".join(f"c{i}" for i in range(count)), *[",".join([cell] * count)] * rows]) + "\n").encode()


CELL = "<c><v>1</v></c>"
FORMAT = "<numFmt numFmtId='200' formatCode='{}'/><cellXfs>{}</cellXfs>"
GROWING: dict[str, tuple[int, Callable[[int], Made]]] = {
    "names of columns": (60_000, lambda n: ("a.csv", columns(n, "1", 1))),
    "columns": (240, lambda n: ("a.csv", columns(n, "1"))),
    "columns of texts": (60, lambda n: ("a.csv", columns(n, "x"))),
    "columns of Parquet": (250, lambda n: ("a.parquet", parquet(**{f"c{i}": [1.0] for i in range(n)}))),
    "arrays": (240, lambda n: ("a.npz", archive(**{f"c{i}": np.zeros(2) for i in range(n)}))),
    "lines above the table": (10_000, lambda n: ("a.csv", b"# plant 3, line 4\n" * n + b"t,flow\n0,1\n1,2\n")),
    "comments among rows": (5_000, lambda n: ("a.csv", b"t,flow\n0,1\n" + b"#x\n1,2\n" * n)),
    "a quote that never ends": (10_000, lambda n: ("a.csv", b't,flow\n0,1\n"' + b"a,1\n" * n)),
    "quotes": (10_000, lambda n: ("a.csv", b't,flow\n0,"' + b'"' * n)),
    "a long name with blanks": (2_000, lambda n: ("a.csv", b"t,a" + b" " * n + b"b\n0,1\n1,2\n")),
    "a long name with brackets": (2_000, lambda n: ("a.parquet", parquet(**{"(" * n + "\nx": [1.0, 2.0]}))),
    "a long cell": (10_000, lambda n: ("a.csv", b"t,flow\n0,1" + b" " * n + b"x\n1,2\n")),
    "a long date": (4_000, lambda n: ("a.csv", b"t,flow\n2024-01-01 00:00" + b" " * n + b"x,1\n1,2\n")),
    "a long zone": (2_000, lambda n: ("a.csv", b"zone " + b"A" * n + b"\nt,flow\n2024-01-01 00:00,1\n2024-01-02,2\n")),
    "signals": (500, lambda n: ("a.csv", b"t,tag,value\n" + b"".join(b"%d,t%d,1\n" % (i, i) for i in range(n)))),
    "rows of a workbook": (2_000, lambda n: ("a.xlsx", workbook(f"<row>{CELL}{CELL}</row>" * n))),
    "cells of a workbook": (5_000, lambda n: ("a.xlsx", workbook(f"<row>{CELL * n}</row>"))),
    "other things in a workbook": (10_000, lambda n: ("a.xlsx", workbook("<x/>" * n + f"<row>{CELL}</row>"))),
    "formats": (5_000, lambda n: ("a.xlsx", workbook(CELL, "", FORMAT.format("[" * n, "<xf numFmtId='200'/>" * 20)))),
}


def take(made: Made) -> float:
    """Seconds of one processor until a file is read or refused: the better of two, as memory may be tidied in one."""
    seconds = []
    for _ in range(2):
        began = time.thread_time()
        with suppress(ReadbenchError):
            read_recording(made, Roles(), limits=LIMITS)
        seconds.append(time.thread_time() - began)
    return min(seconds)


def read_or_refuse(made: Made, onset: str = "") -> str:
    """What is said of a file, read or not."""
    try:
        read = read_recording(made, limits=LIMITS, told=ToldContext(onset=onset))
    except ReadbenchError as error:
        return str(error)
    return " ".join(read.remarks)


@pytest.mark.parametrize("what", GROWING)
def test_reading_takes_time_that_grows_as_the_file_does(what: str) -> None:
    size, make = GROWING[what]
    small, large = make(size), make(FACTOR * size)
    take(small)  # once, so that compiling and importing do not count
    assert (long := take(large)) < max(UNNOTICED_S, MOST_GROWTH * take(small)), long


def test_names_take_no_time_of_their_own() -> None:
    began = time.thread_time()
    for text in ("(" * 50_000 + "\nx", "A" * 50_000, "zone " + "Ab" * 50_000, "UTC" + " " * 50_000):
        is_time_name(text)
        find_zone(text)
    assert time.thread_time() - began < 1


@pytest.mark.parametrize(
    "made",
    [
        ("a.xlsx", workbook("<row><c t='s'><v>0</v></c></row>" * 5000, f"<si><t>{'x' * 5000}</t></si>")),
        ("a.xlsx", workbook("<row><c r='XFD1'><v>1</v></c></row>" * 2000)),
        ("a.xlsx", workbook("<x>" * 20_000 + "</x>" * 20_000)),
        ("a.csv", columns(500_000, "1", 1)),
        ("a.csv", b"t,tag,value\n" + b"".join(b"%d,t%d,1\n" % (i, i) for i in range(10_000))),
        ("a.csv.gz", gzip.compress(b"t,flow\n" + b"1,2\n" * 3_000_000)),
    ],
)
def test_what_is_small_and_becomes_large_is_refused_with_little_memory(made: Made) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"more than|nested"):
            read_recording(made, limits=Limits(max_bytes=8 * 2**20, max_rows=100_000, max_columns=2010))
        assert tracemalloc.get_traced_memory()[1] < 40e6
    finally:
        tracemalloc.stop()


def book(sheet: bytes, shared: bytes = b"<sst/>") -> bytes:
    """A workbook of documents as they are."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("xl/worksheets/sheet1.xml", sheet)
        file.writestr("xl/sharedStrings.xml", shared)
    return content.getvalue()


MIB = 2**20


def repeated(text: str, rows: int) -> bytes:
    """A Parquet file with one text in every row, which is in it once."""
    content = io.BytesIO()
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text]))
    pq.write_table(pa.table({"a": column}), content)
    return content.getvalue()


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (("a.csv.gz", gzip.compress(b"t,flow\n" + b"1,2\n" * 25 * MIB, 6)), "over 100 times as many"),
        (("a.csv", b"a,b\n" + b"1,2\n" * 120_000), "rows, more than"),
        (("a.csv", b",".join(b"c%d" % i for i in range(2000)) + b"\n" + (b"1," * 1999 + b"1\n") * 1500), "cells, more"),
        (("a.parquet", repeated("x" * MIB, 90_000)), "bytes, more than"),
        (("a.xlsx", book(b"<worksheet><row>" + b"<c/>" * 8 * MIB + b"</row></worksheet>")), "parts"),
        (("a.xlsx", book(b"<worksheet/>", b"<sst><si>" + b"<t>a</t>" * 4 * MIB + b"</si></sst>")), "parts"),
        (("a.xlsx", book(b"<worksheet a='" + b"x" * 64 * MIB + b"'/>")), "a text or an attribute"),
        (("a.xlsx", book(b"<worksheet><!--" + b"x" * 64 * MIB + b"--></worksheet>")), "a text or an attribute"),
    ],
)
def test_what_unpacks_to_very_much_is_refused_soon_with_bounded_memory(made: Made, words: str) -> None:
    limits = Limits(max_bytes=128 * MIB, max_rows=100_000, max_columns=2010, max_cells=2_000_000)
    tracemalloc.start()
    began = time.thread_time()
    try:
        with pytest.raises(DataError, match=words):
            read_recording(made, limits=limits)
        assert tracemalloc.get_traced_memory()[1] < 200e6
        assert time.thread_time() - began < 10
    finally:
        tracemalloc.stop()


def test_what_nobody_asked_for_in_a_workbook_is_forgotten() -> None:
    made = ("a.xlsx", workbook("<x><y/></x>" * 50_000 + f"<row>{CELL}{CELL}</row>" * 3))
    tracemalloc.start()
    read_recording(made)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6e6


CELLS = st.one_of(
    st.sampled_from(
        ["1", "-1.5", "1,5", "1.234,5", "1e9999", "Bad", "No Data", "", '"', "31.12.2025 23:59", "2024-02-30", "24:61"]
    ),
    st.sampled_from(["12/31/2025 11:59 PM", "Europe/Berlin", "time", "tag", "value", "quality", "Good", "99999999999"]),
    st.text(st.characters(codec="utf-8"), max_size=6),
)
ENCODINGS = ("utf-8", "utf-16", "utf-16-le", "cp1252")
TEXTS = st.tuples(st.sampled_from([",", ";", "\t", "|", " "]), st.lists(st.lists(CELLS, max_size=5), max_size=8))


@pytest.mark.hypothesis
@settings(max_examples=150, deadline=None)
@given(
    text=TEXTS, encoding=st.sampled_from(["utf-8", "utf-16", "utf-16-le", "cp1252"]), onset=st.sampled_from(["", "1"])
)
def test_any_text_is_read_or_refused(text: tuple[str, list[list[str]]], encoding: str, onset: str) -> None:
    mark, rows = text
    content = "\n".join(mark.join(row) for row in rows).encode(encoding, "replace")
    assert read_or_refuse(("a.csv", content), onset)


CHUNKS = st.sampled_from(
    [
        *("<row>", "</row>", "<c>", "<c t='s'>", "<c t='inlineStr'>", "<c r='B2' s='1'>", "<c s='x'>", "</c>", "<v>"),
        *("</v>", "1", "-1", "1e400", "nan", "<is><t>a</t></is>", "<c r='A1'><v>46022.5</v></c>", "&lt;", "x"),
    ]
)


@pytest.mark.hypothesis
@settings(max_examples=100, deadline=None)
@given(parts=st.lists(CHUNKS, max_size=14), style=st.sampled_from(["14", "x", "200", ""]))
def test_any_workbook_is_read_or_refused(parts: list[str], style: str) -> None:
    styles = FORMAT.format("yyyy", f"<xf numFmtId='0'/><xf numFmtId='{style}'/>")
    assert read_or_refuse(("a.xlsx", workbook("".join(parts), "<si><t>x</t></si>", styles)))


LONG = "x" * 2**20


def once(texts: pa.Array) -> pa.Array:
    """Two hundred times the same text, which a Parquet file keeps once."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * 200, pa.int32()), texts)


def listed(items: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(range(len(items) + 1), pa.int32()), items)


@pytest.mark.parametrize(
    "repeated",
    [
        {"x": once(pa.array([LONG]))},
        {"x": once(pa.array([LONG.encode()], pa.binary()))},
        {"x": once(pa.array([LONG], pa.large_string()))},
        {"x": listed(once(pa.array([LONG])))},
        {"x": pa.StructArray.from_arrays([listed(once(pa.array([LONG])))], ["deep"])},
        {"values": listed(pa.array([1.0] * 200)), "channels": listed(once(pa.array([LONG])))},
    ],
    ids=["text", "bytes", "large text", "list", "list in a record", "names of channels"],
)
@pytest.mark.parametrize("groups", [1, 2])
def test_a_text_that_a_file_keeps_once_counts_as_often_as_it_is_repeated(
    repeated: dict[str, pa.Array], groups: int
) -> None:
    content = io.BytesIO()
    table = pa.table({"t": np.arange(200.0), "v": np.ones(200), **repeated})
    pq.write_table(table, content, row_group_size=200 // groups, compression="zstd", store_schema=False)
    assert len(content.getvalue()) < 20_000
    pool = pa.default_memory_pool()
    before, peak = pool.bytes_allocated(), pool.max_memory()
    with pytest.raises(DataError, match="bytes, more than the 67,108,864 that are read"):
        read_recording(("a.parquet", content.getvalue()), limits=LIMITS)
    assert pool.max_memory() <= max(peak, before + 2**26)


def test_binary_values_of_one_size_count_by_that_size() -> None:
    content = io.BytesIO()
    wide = pa.array([b"x" * 2**20], pa.binary(2**20))
    table = pa.table({"t": np.arange(200.0), "v": np.ones(200), "x": wide.take(pa.array([0] * 200))})
    pq.write_table(table, content, compression="zstd", store_schema=False)
    with pytest.raises(DataError, match=r"209,7\d\d,\d+ bytes"):
        read_recording(("a.parquet", content.getvalue()), limits=LIMITS)
