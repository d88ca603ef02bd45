"""Excel workbooks (.xlsx): the largest sheet as tab-separated text, with dates as dates; formulas are not computed.

A workbook is a ZIP archive of XML. Sizes are checked before anything is unpacked; documents that define entities are
refused.
"""

from __future__ import annotations

import csv
import re
import zipfile
import zlib
from collections.abc import Iterator
from datetime import datetime, timedelta
from io import StringIO
from typing import IO, Any, cast
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

from readbench.common.deadlines import check_deadline
from readbench.errors import DataError

_EPOCH = datetime(1899, 12, 30)  # noqa: DTZ001 - sheets have no time zone
_DATE_FORMATS = frozenset([*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)])
"""Numbers of the built-in formats for dates and times."""
_CELL = re.compile(r"([A-Z]{1,3})(\d+)")
_MAX_COLUMNS = 16_384
"""Maximum number of columns in a sheet."""
_MAX_DEPTH = 64
"""Maximum nesting depth of elements."""
_BLOCK_BYTES = 2**14
_MAX_EVENTLESS_BYTES = 2**20
"""Maximum bytes without the start or end of an element: the parser reads them again with every block."""
_PARTS_PER_CELL = 6
"""Maximum elements of one cell: the cell, its value, a text in it."""
_MAX_PARTS = 100_000
"""Maximum elements of one text, or of all styles."""
_MAX_FORMAT_CHARACTERS = 255
"""Maximum characters of a number format."""


def read_workbook(
    name: str, file: IO[bytes], most_bytes: int, most_rows: int, most_columns: int, most_cells: int
) -> str:
    """Convert the sheet with the most bytes to tab-separated text.

    Args:
        name: of the file, for errors.
        file: the workbook.
        most_bytes: maximum unpacked size, and length of the text.
        most_rows: maximum rows.
        most_columns: maximum columns.
        most_cells: maximum cells, and shared texts.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            size = sum(member.file_size for member in archive.infolist())
            _check(name, size, most_bytes, "bytes")
            sheets = sorted(
                (member for member in archive.infolist() if re.fullmatch(r"xl/worksheets/[^/]+\.xml", member.filename)),
                key=lambda member: -member.file_size,
            )
            if not sheets:
                raise DataError(f"{name}: no sheet in this workbook. Save it as .xlsx, or as CSV.")
            texts, dated = _shared_texts(name, archive, most_cells), _date_styles(archive)
            sink = StringIO()
            writer = csv.writer(sink, delimiter="\t", lineterminator="\n")
            cells = 0
            most_parts = _PARTS_PER_CELL * most_columns
            for number, row in enumerate(_rows(archive, sheets[0].filename, texts, dated, most_parts)):
                cells += len(row)
                _check(name, len(row), most_columns, "columns")
                _check(name, number, most_rows, "rows")
                _check(name, cells, most_cells, "cells")
                writer.writerow(row)
                _check(name, sink.tell(), most_bytes, "bytes")  # one long text may stand in every cell
            return sink.getvalue()
    except (zipfile.BadZipFile, zlib.error, ParseError, EOFError, OSError, ValueError, KeyError, RuntimeError) as error:
        raise DataError(
            f"{name}: no workbook that can be read ({error}). Save it again as .xlsx, or as CSV."
        ) from error


def _check(name: str, found: int, most: int, what: str) -> None:
    if found > most:
        raise DataError(f"{name}: {found:,} {what}, more than the {most:,} that are read. Split the file.")


def _elements(archive: zipfile.ZipFile, member: str, wanted: str, most_parts: int = _MAX_PARTS) -> Iterator[Element]:
    """Yield the elements of this name in a document; each one is freed when the next is requested.

    An element with more than `most_parts` parts is refused before it is read to its end.
    """
    if member not in archive.namelist():
        return
    with archive.open(member) as head:
        if b"<!DOCTYPE" in head.read(4096) or b"<!ENTITY" in head.read(4096):
            raise ValueError(f"{member} defines entities, which are never read")
    path: list[Element] = []
    inside = parts = 0
    for event, element in _events(archive, member):
        matches = _tag(element) == wanted
        if event == "start":
            path.append(element)
            inside += matches
            parts = 0 if matches else parts + 1
            if inside and parts > most_parts:
                raise ValueError(f"an element {wanted} of {member} has more than {most_parts:,} parts")
            if len(path) > _MAX_DEPTH:
                raise ValueError(f"{member} is nested more than {_MAX_DEPTH} deep")
            continue
        path.pop()
        inside -= matches
        if matches:
            yield element
        if not inside and path:
            path[-1].remove(element)


def _events(archive: zipfile.ZipFile, member: str) -> Iterator[tuple[str, Element]]:
    """Yield the starts and ends of all elements of a document, parsed block by block."""
    parser: XMLPullParser[Any] = XMLPullParser(("start", "end"))  # entities were refused
    silent = 0
    with archive.open(member) as file:
        while block := file.read(_BLOCK_BYTES):
            check_deadline()
            parser.feed(block)
            silent += len(block)
            for happened in parser.read_events():
                silent = 0
                yield cast("tuple[str, Element]", happened)
            if silent > _MAX_EVENTLESS_BYTES:
                raise ValueError(f"{member} has a text or an attribute of more than {_MAX_EVENTLESS_BYTES:,} bytes")
    parser.close()
    for happened in parser.read_events():
        yield cast("tuple[str, Element]", happened)


def _tag(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _shared_texts(name: str, archive: zipfile.ZipFile, most: int) -> list[str]:
    texts: list[str] = []
    for element in _elements(archive, "xl/sharedStrings.xml", "si"):
        texts.append(_text(element))
        _check(name, len(texts), most, "texts")
    return texts


def _text(element: Element) -> str:
    return "".join(part.text or "" for part in element.iter() if _tag(part) == "t")


def _date_styles(archive: zipfile.ZipFile) -> list[bool]:
    """Whether each cell style shows a date or time."""
    formats = {
        int(element.get("numFmtId", "0")): element.get("formatCode", "")
        for element in _elements(archive, "xl/styles.xml", "numFmt")
    }
    shown = {number for number, code in formats.items() if _shows_dates(code[:_MAX_FORMAT_CHARACTERS])}
    styles: list[bool] = []
    for element in _elements(archive, "xl/styles.xml", "cellXfs"):
        for style in element:
            number = int(style.get("numFmtId", "0"))
            styles.append(number in _DATE_FORMATS or number in shown)
    return styles


def _shows_dates(code: str) -> bool:
    bare = re.sub(r'"[^"]*"|\[[^\]]*\]|\\.', "", code)
    return bool(re.search(r"[dyhms]", bare, re.IGNORECASE))


def _rows(
    archive: zipfile.ZipFile, member: str, texts: list[str], dated: list[bool], most_parts: int
) -> Iterator[list[str]]:
    for row in _elements(archive, member, "row", most_parts):
        cells: list[str] = []
        for cell in row:
            place = _column(cell.get("r", ""), len(cells))
            cells += [""] * (place + 1 - len(cells))
            cells[place] = _value(cell, texts, dated)
        yield cells


def _column(reference: str, following: int) -> int:
    found = _CELL.fullmatch(reference)
    if not found:
        return following
    place = 0
    for letter in found[1]:
        place = 26 * place + ord(letter) - ord("A") + 1
    if place > _MAX_COLUMNS:
        raise ValueError(f"cell {reference} lies outside of any sheet")
    return place - 1


def _value(cell: Element, texts: list[str], dated: list[bool]) -> str:
    kind, style = cell.get("t", "n"), int(cell.get("s", "0"))
    if kind == "inlineStr":
        return _text(cell)
    value = next((part.text or "" for part in cell if _tag(part) == "v"), "")
    if kind == "s":
        return texts[int(value)] if value else ""
    if kind == "n" and value and style < len(dated) and dated[style]:
        return _date(float(value))
    return value


def _date(days: float) -> str:
    """Convert a sheet's day number to a date with milliseconds; below one day, to a time of day.

    >>> _date(46022.5), _date(0.25)
    ('2025-12-31 12:00:00.000', '06:00:00.000')
    """
    if not -1e6 < days < 3e6:
        return str(days)
    moment = _EPOCH + timedelta(milliseconds=round(days * 86_400_000))
    form = "%H:%M:%S.%f" if 0 <= days < 1 else "%Y-%m-%d %H:%M:%S.%f"
    return moment.strftime(form)[:-3]
