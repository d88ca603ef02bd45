"""Text tables from historians, loggers and spreadsheets: find the layout and parse the cells.

`read_text` finds encoding, delimiter, header, units and the first row of readings, skips other lines, and reports what
it found. `NumberStyle` parses numbers with a decimal comma, thousands separators or a unit after them; quality words
(`GAP_WORDS`) become gaps. Time is linear in the size of the file.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from readbench.common.times import find_zone, is_date, is_time_name
from readbench.errors import DataError

DELIMITERS = ",;\t|"
_GAP_WORDS_TEXT = (
    "|-|--|---|?|.|nan|na|n/a|n.a.|#n/a|#na|#value!|#ref!|#div/0!|#name?|#num!|null|none|nil|bad|no data|nodata|"
    "no_data|i/o timeout|io timeout|bad input|bad data|bad quality|badquality|bad_quality|bad value|calc failed|"
    "calc off|pt created|point created|scan off|scan timeout|off scan|not connect|not connected|no connection|"
    "comm fail|comm loss|configure|out of serv|out of service|intf shut|intfshut|shutdown|over range|under range|"
    "overrange|underrange|arc offline|arc off-line|offline|off-line|missing|invalid|uncertain|no sample|"
    "no result|no good data|timeout|failed|failure|error|err|fault|undefined|unknown|not available|unavailable|"
    "trace down|stale|substituted|snapshotfixed|doubtful|1.#qnan|-1.#ind|1.#inf|-1.#inf|ungültig|ungueltig|"
    "kein wert|keine daten|schlecht|ausfall|nicht verfügbar|pas de données|sin datos|inf|-inf|+inf|infinity|"
    "-infinity"
)
GAP_WORDS = frozenset(_GAP_WORDS_TEXT.split("|"))
"""Cell texts that stand for a missing reading, in lower case."""
_UNITS_TEXT = (
    "s|sec|ms|us|µs|min|h|hr|d|day|%|%rh|‰|ppm|ppb|-|1|k|°c|℃|degc|deg_c|deg.c|c|°f|degf|f|pa|hpa|kpa|mpa|mbar|"
    "bar|barg|bara|psi|psig|psia|atm|torr|mmhg|inh2o|mmh2o|mwc|m|cm|mm|µm|um|nm|km|in|inch|ft|yd|m2|m²|m3|m³|l|"
    "ml|gal|bbl|l/s|l/min|lpm|l/h|m3/s|m3/h|m³/h|m3/min|m³/s|nm3/h|nm³/h|sm3/h|sm3/d|gpm|cfm|scfm|bbl/d|kg/s|"
    "kg/h|t/h|g/s|lb/h|m/s|mm/s|mm/sec|cm/s|km/h|ft/s|in/s|mph|m/s2|m/s²|g|mg|kg|t|lb|hz|khz|mhz|ghz|rpm|1/min|"
    "u/min|min-1|1/s|rad/s|deg/s|rad|deg|°|v|mv|kv|µv|a|ma|ka|µa|w|kw|mw|gw|va|kva|mva|var|kvar|mvar|wh|kwh|mwh|"
    "j|kj|mj|n|kn|nm|knm|n·m|ohm|ω|kω|mω|s/m|µs/cm|us/cm|ms/cm|ph|ntu|mg/l|g/l|kg/m3|kg/m³|g/cm3|mol/l|cp|mpa·s|"
    "pa·s|cst|lux|lx|db|dba|db(a)|c/s|counts|cnt|count|bool|digital|none|null|n/a|date|time|yyyy-mm-dd|"
    "dd.mm.yyyy|string|float|double|real|int|unitless|dimensionless|kj/kg|w/m2|w/m²|mv/g|pct|percent|"
    "unit|units|einheit|einheiten|eu|eng units"
)
_UNITS = frozenset(_UNITS_TEXT.split("|"))
"""Units accepted in a row of units, in lower case."""
_MINUS = "\u2212"
_NUMBER = re.compile(r"[+\u2212-]?(\d{1,3}( \d{3})+([.,]\d+)?|\d[\d.,'\u00a0\u202f]*|[.,]\d+)([eE][+-]?\d+)?")
_WITH_UNIT = re.compile(r"[+-]?\d[\d.,]*\s*[%°A-Za-zµΩ][\w%°/²³·]{0,9}")
_BRACKETS = "()[]<> "
MAX_NAME_LENGTH = 500
"""Maximum characters of a column name."""
_SNIFFED_BYTES = 2**20
_SNIFFED_LINES = 400
_SNIFFED_COLUMNS = 50
_MIN_NUMBER_SHARE = 0.9
"""Minimum share of numbers among the cells of a channel that are no gaps."""
_MAX_LISTED_WORDS = 3
_DECIMAL_COMMA = r"^[+\x{2212}-]?(\d{1,3}([. '\x{00a0}\x{202f}]\d{3})+|\d+)?,\d+([eE][+-]?\d+)?$"


@dataclass(frozen=True)
class NumberStyle:
    """Number format: `decimal` is a dot or a comma.

    >>> NumberStyle(",").parse(pa.array(["1.234,5", "0,5", "Bad", "x"]))[0].tolist()
    [1234.5, 0.5, nan, nan]
    """

    decimal: str = "."

    def parse(self, texts: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_], str]:  # noqa: ANN401 - an Arrow array
        """Parse texts to (numbers, mask of texts that are neither number nor gap, common unit or "")."""
        texts = pc.fill_null(pc.utf8_trim_whitespace(texts.cast(pa.string())), "")
        gap = pc.is_in(pc.utf8_lower(pc.utf8_trim(texts, _BRACKETS)), value_set=pa.array(sorted(GAP_WORDS)))
        plain, unit = self._strip_units(self._normalise(texts))
        known = pc.and_(pc.match_substring_regex(plain, r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"), pc.invert(gap))
        numbers = pc.if_else(known, plain, None).cast(pa.float64())
        values = np.asarray(numbers.to_numpy(zero_copy_only=False), np.float64)
        wrong = np.asarray(pc.invert(pc.or_(gap, known)).to_numpy(zero_copy_only=False), bool)
        return values, wrong, unit

    def _normalise(self, texts: Any) -> Any:  # noqa: ANN401 - an Arrow array of texts
        """Rewrite numbers with a decimal dot, an ASCII minus and no thousands separators; keep other texts."""
        texts = pc.replace_substring(texts, _MINUS, "-")
        point, other = ("\\,", "\\.") if self.decimal == "," else ("\\.", "\\,")
        grouped = rf"^[+-]?\d{{1,3}}((?:{other}|[ '\x{{00a0}}\x{{202f}}])\d{{3}})+({point}\d*)?([eE][+-]?\d+)?$"
        several = pc.match_substring_regex(texts, grouped)
        removed = pc.replace_substring_regex(texts, rf"{other}|[ '\x{{00a0}}\x{{202f}}]", "")
        texts = pc.if_else(several, removed, texts)
        return pc.replace_substring(texts, ",", ".") if self.decimal == "," else texts

    @staticmethod
    def _strip_units(texts: Any) -> tuple[Any, str]:  # noqa: ANN401 - an Arrow array of texts
        """Remove the unit after the number if all texts have the same one; return the texts and the unit."""
        pattern = r"^(?P<number>[+-]?\d+\.?\d*)\s*(?P<unit>%|°[CF]?|[A-Za-zµΩ][A-Za-zµΩ0-9/%²³]{0,7})$"
        found = pc.extract_regex(texts, pattern)
        if found.null_count == len(found):
            return texts, ""
        numbers, units = pc.struct_field(found, [0]), pc.struct_field(found, [1])
        names = [unit for unit in pc.unique(units).to_pylist() if unit]
        if len(names) != 1 or not _is_unit(names[0]):
            return texts, ""
        return pc.coalesce(numbers, texts), names[0]

    def read(self, texts: Any) -> tuple[NDArray[np.float64], list[str], str] | None:  # noqa: ANN401 - an Arrow array
        """Parse a column to (numbers, gap words, unit); None if it holds text."""
        values, wrong, unit = self.parse(texts)
        count = np.isfinite(values).sum()
        if not count or wrong.sum() > (1 - _MIN_NUMBER_SHARE) * (count + wrong.sum()):
            return None
        return values, _words(texts, np.isnan(values)), unit


DECIMAL_DOT = NumberStyle()


def _words(texts: Any, gaps: NDArray[np.bool_]) -> list[str]:  # noqa: ANN401 - an Arrow array of texts
    """The most frequent texts in place of readings, with their counts."""
    if not gaps.any():
        return []
    found = pc.value_counts(pc.fill_null(pc.utf8_trim_whitespace(texts.filter(pa.array(gaps))), ""))
    pairs = sorted(found.to_pylist(), key=lambda pair: -pair["counts"])
    return [f"{pair['counts']} × {pair['values'][:20] or 'empty'}" for pair in pairs[:_MAX_LISTED_WORDS]]


@dataclass(frozen=True, eq=False)
class TextTable:
    """Result of `read_text`.

    Args:
        data: Arrow table of numbers, dates and texts.
        style: number style of its text columns.
        units: units from a row of units, by column.
        zone: time zone named above the table; "" if none.
        remarks: decisions made while reading, in sentences.
    """

    data: pa.Table
    style: NumberStyle = DECIMAL_DOT
    units: Mapping[str, str] = field(default_factory=dict)
    zone: str = ""
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Layout:
    """Place of the table in a text: `first` is the line of its first row, `header` the line of names or -1."""

    delimiter: str
    names: list[str]
    first: int
    header: int
    units: dict[str, str]
    zone: str
    remarks: tuple[str, ...]


def read_text(name: str, content: bytes, most_columns: int) -> TextTable:
    r"""Read the table of a text file with at most `most_columns` columns; `name` is for errors.

    >>> found = read_text("a.csv", "Werk 3\n\nZeit;T1\n;°C\n0,0;1,5\n0,5;Bad\n".encode("latin-1"), 100)
    >>> found.data.column_names, found.units, found.style.read(found.data["T1"])[0].tolist()
    (['Zeit', 'T1'], {'T1': '°C'}, [1.5, nan])
    """
    content, said = _to_utf8(name, content)
    lines = _first_lines(content)
    layout = _find_layout(name, lines, most_columns)
    content, dropped = _drop_lines(content, lines, layout)
    if layout.delimiter == " ":
        content = re.sub(rb"[ \t]+", b" ", re.sub(rb"(?m)^[ \t]+|[ \t]+(?=\r?$)", b"", content))
    data, ragged = _parse(name, content, layout, texts_only=False)
    style = _find_style(data)
    if style.decimal == ",":  # a dot is a thousands separator then, even in what looks like a number
        data, _ = _parse(name, content, layout, texts_only=True)
    data = _drop_empty(data, layout)
    remarks = [*said, *layout.remarks, *dropped, *ragged]
    if style.decimal == ",":
        remarks.append("Numbers have a decimal comma.")
    return TextTable(data, style, layout.units, layout.zone, tuple(remarks))


def _to_utf8(name: str, content: bytes) -> tuple[bytes, list[str]]:
    """Convert to UTF-8 with normal line ends; return a remark if the encoding was another."""
    said: list[str] = []
    encoding = _find_encoding(content)
    if encoding != "utf-8":
        try:
            content = content.decode(encoding).encode()
        except (UnicodeDecodeError, UnicodeEncodeError) as error:
            raise DataError(f"{name}: is no text ({error}). Save the file as UTF-8.") from error
        said = [f"The text was read as {'Windows-1252' if encoding == 'latin-1' else encoding.upper()}."]
    content = content.removeprefix(codecs.BOM_UTF8)
    if b"\0" in content:
        raise DataError(f"{name}: is no text: it holds zero bytes. Save the file as CSV in UTF-8.")
    if b"\r" in content and b"\n" not in content:
        content = content.replace(b"\r", b"\n")
    return content, said


def _find_encoding(content: bytes) -> str:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    head = np.frombuffer(content[:4096], np.uint8)
    for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        if len(head) > 3 and (head[first::2] == 0).mean() > 0.6:
            return encoding
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(content), _SNIFFED_BYTES):
            decoder.decode(content[start : start + _SNIFFED_BYTES])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return "cp1252" if not set(content) & {0x81, 0x8D, 0x8F, 0x90, 0x9D} else "latin-1"
    return "utf-8"


def _first_lines(content: bytes) -> list[str]:
    head = content[:_SNIFFED_BYTES]
    lines = head.split(b"\n", _SNIFFED_LINES)
    if len(lines) > _SNIFFED_LINES or (len(head) < len(content) and len(lines) > 1):
        lines = lines[:-1]
    return [line.rstrip(b"\r").decode("utf-8", "replace") for line in lines]


def _is_number(cell: str) -> bool:
    return bool(_NUMBER.fullmatch(cell) or _WITH_UNIT.fullmatch(cell))


def _kind(cell: str) -> str:
    """Classify a cell: `value` (number or date), `gap` or `text`."""
    cell = cell.strip()
    if cell.strip(_BRACKETS).casefold() in GAP_WORDS:
        return "gap"
    return "value" if _is_number(cell) or is_date(cell) else "text"


def _split(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """Split each line into cells; a quoted cell cannot continue on the next line here."""
    if delimiter == " ":
        return [line.split() for line in lines]
    rows = []
    for line in lines:
        try:
            rows.append([cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])])
        except csv.Error:
            rows.append(line.split(delimiter))
    return rows


def _find_layout(name: str, lines: list[str], most_columns: int) -> _Layout:
    told = re.fullmatch(r"\ufeff?\"?sep=(.)\"?", lines[0].strip()) if lines else None
    start = 1 if told else 0
    if not any(line.strip(f'{DELIMITERS} "') for line in lines[start:]):
        raise DataError(f"{name}: no header. The file is empty: the first line must name the columns.")
    widest = max(line.count(mark) for line in lines for mark in DELIMITERS) + 1
    delimiter = told[1] if told else _find_delimiter(lines) if widest <= most_columns else ","
    if widest > most_columns:
        raise DataError(f"{name}: {widest:,} columns, more than the {most_columns:,} that are read. Split the file.")
    rows = [[], *_split(lines[1:], delimiter)] if told else _split(lines, delimiter)
    width = _usual_width(rows)
    columns = _value_columns(rows, width)
    first = _first_row(rows, width, columns)
    header, unit_row = _find_header(rows, width, first)
    if first < 0:
        first = header + 1
    while columns and first - 1 > max(header, unit_row) and _may_be_row(rows[first - 1], width, columns[0]):
        first -= 1
    names, said = _name_columns(name, rows[header] if header >= 0 else [], width)
    units = dict(zip(names, map(_bare_unit, rows[unit_row]), strict=False)) if unit_row >= 0 else {}
    above = "\n".join(lines[: max(header, 0)])
    skipped = [i for i in range(start, first) if lines[i].strip() and i not in {header, unit_row}]
    if skipped:
        said.append(f"{len(skipped)} line{'s' * (len(skipped) > 1)} above the table or its readings left out.")
    if unit_row >= 0:
        said.append(f"Line {unit_row + 1} was read as units.")
    if header < 0:
        said.append("There is no header: columns are named by their number.")
    zone = find_zone(above) if re.search(r"(?i)zone|utc|gmt", above) else ""
    return _Layout(
        delimiter, names, first, header, {key: unit for key, unit in units.items() if unit}, zone, tuple(said)
    )


def _find_delimiter(lines: list[str]) -> str:
    """Find the delimiter that splits the last sampled lines into equally many cells, most of them readable."""
    best, chosen = (0.0, 0), ""
    later = [line for line in lines[len(lines) // 2 :] if line.strip()][-100:] or lines
    for delimiter in DELIMITERS:
        rows = [row[:_SNIFFED_COLUMNS] for row in _split(later, delimiter)]
        width = _usual_width(rows)
        if width < 2:
            continue
        even = [row for row in rows if len(row) == width]
        cells = [cell for row in even for cell in row]
        score = len(even) / len(rows) * (0.2 + sum(_kind(cell) != "text" for cell in cells) / len(cells))
        if (round(score, 6), width) > best:
            best, chosen = (round(score, 6), width), delimiter
    if chosen:
        return chosen
    widths = [len(row) for row in _split(later, " ")]
    numbers = [cell for row in _split(later, " ") for cell in row]
    if min(widths) == max(widths) > 1 and all(_is_number(cell) for cell in numbers):
        return " "
    return max(DELIMITERS, key=lines[0].count)


def _usual_width(rows: list[list[str]]) -> int:
    """Most frequent number of cells in the later half of the sample."""
    later = [len(row) for row in rows[len(rows) // 2 :] if any(row)] or [len(row) for row in rows if any(row)]
    return max(Counter(later).items(), key=lambda pair: pair[::-1])[0] if later else 0


def _value_columns(rows: list[list[str]], width: int) -> list[int]:
    """Indices of the sampled columns in which at least half of the cells are numbers or dates."""
    sample = [row for row in rows[len(rows) // 2 :] if len(row) == width] or [r for r in rows if len(r) == width]
    return [
        place
        for place in range(min(width, _SNIFFED_COLUMNS))
        if sum(_kind(row[place]) == "value" for row in sample) >= 0.5 * len(sample)
    ]


def _may_be_row(row: list[str], width: int, column: int) -> bool:
    """Whether a row above the first readings belongs to the table and only lacks values."""
    return len(row) == width and any(row) and _kind(row[column]) != "text"


def _first_row(rows: list[list[str]], width: int, columns: list[int]) -> int:
    """Index of the first row of readings; -1 if no column holds any."""
    if not columns:
        return _first_by_any(rows, width)
    for number, row in enumerate(rows):
        if len(row) != width or row[0].startswith(("#", "%")):
            continue
        kinds = [_kind(row[place]) for place in columns]
        if kinds[0] != "text" and "value" in kinds and 2 * kinds.count("text") <= len(kinds):
            return number
    return -1


def _first_by_any(rows: list[list[str]], width: int) -> int:
    """First row of a table without readings: the one below the first row of full width."""
    number = next((number for number, row in enumerate(rows) if len(row) == width and any(row)), -2)
    return number + 1 if number + 1 < len(rows) else -1


def _find_header(rows: list[list[str]], width: int, first: int) -> tuple[int, int]:
    """Indices of the row of names and the row of units; -1 for none."""
    if first < 0:
        return next((number for number, row in enumerate(rows) if any(row)), 0), -1
    full = [
        number
        for number, row in enumerate(rows[:first])
        if abs(len(row) - width) <= 1 and sum(map(bool, row)) >= max(1, 0.6 * width - 1) and len(row) + 1 > width > 0
    ]
    full = [number for number in full if width == 1 or sum(map(bool, rows[number])) > 1 or number == first - 1]
    if not full:
        return -1, -1
    units = [number for number in full if _is_unit_row(rows[number]) and number != full[0]]
    names = [number for number in full if number not in units]
    timed = [number for number in names if any(is_time_name(cell.lstrip("#% ")) for cell in rows[number])]
    whole = [number for number in names if len(rows[number]) == width > 2 and all(rows[number])]
    header = timed[-1] if timed else (whole or names[-1:])[0]
    after = [number for number in units if number > header]
    return header, after[0] if after else -1


def _is_unit_row(row: list[str]) -> bool:
    cells = [cell for cell in row if cell]
    known = [_is_unit(_bare_unit(cell)) or cell[:1] + cell[-1:] in {"[]", "()"} for cell in cells]
    return bool(cells) and sum(known) >= 0.75 * len(cells)


def _is_unit(text: str) -> bool:
    """Whether a text is a unit, or a quotient of two units.

    >>> _is_unit("m3/h"), _is_unit("ml/s"), _is_unit("flow")
    (True, True, False)
    """
    whole = text.casefold()
    return whole in _UNITS or all(part in _UNITS for part in whole.split("/", 1))


def _bare_unit(cell: str) -> str:
    text = cell.strip().strip("[]").strip()
    text = text[1:-1] if text.startswith("(") and text.endswith(")") else text
    return "" if text.casefold() in {"-", "none", "null", "n/a", "string", "float", "double", "real", "int"} else text


def _name_columns(name: str, cells: list[str], width: int) -> tuple[list[str], list[str]]:
    cells = [cell.lstrip("#%").strip() if place == 0 else cell for place, cell in enumerate(cells)]
    names = [cell.strip() or f"column {place}" for place, cell in enumerate(cells[:width], start=1)]
    names += [f"column {place}" for place in range(len(names) + 1, width + 1)]
    if long := next((column for column in names if len(column) > MAX_NAME_LENGTH), None):
        raise DataError(
            f"{name}: a column has a name of {len(long):,} characters. Give it one of {MAX_NAME_LENGTH} at most."
        )
    counts = Counter(names)
    if twice := next((column for column in names if counts[column] > 1), None):
        if not is_time_name(twice):
            raise DataError(f"{name}: two columns have the name {twice!r}. Rename one.")
        seen: Counter[str] = Counter()
        for place, column in enumerate(names):
            seen[column] += 1
            names[place] = column if seen[column] == 1 else f"{column} ({seen[column]})"
    return names, []


def _drop_lines(content: bytes, lines: list[str], layout: _Layout) -> tuple[bytes, list[str]]:
    header = lines[layout.header].encode() if layout.header >= 0 else b""
    repeated = header and any(mark in content for mark in (b"\n" + header + b"\n", b"\n" + header + b"\r\n"))
    if not repeated and b"\n#" not in content:
        return content, []
    rows = content.split(b"\n")
    kept = [
        row
        for number, row in enumerate(rows)
        if number < layout.first or not (row.startswith(b"#") or (header and row.rstrip(b"\r") == header))
    ]
    count = len(rows) - len(kept)
    said = [f"{count} line{'s' * (count > 1)} among the rows left out: comments and repeated headers."] if count else []
    return b"\n".join(kept), said


def _parse(name: str, content: bytes, layout: _Layout, *, texts_only: bool) -> tuple[pa.Table, list[str]]:
    """Parse the rows; a row of another width raises an error, unless it is at the end of the file and too short."""
    wrong: list[Any] = []

    def note(row: Any) -> str:  # noqa: ANN401 - an Arrow row
        wrong.append(row)
        return "skip"

    kinds = dict.fromkeys(layout.names, pa.string()) if texts_only else None
    try:
        data = pyarrow.csv.read_csv(
            pa.BufferReader(content),
            # One thread, so that errors name the row.
            read_options=pyarrow.csv.ReadOptions(use_threads=False, column_names=layout.names, skip_rows=layout.first),
            parse_options=pyarrow.csv.ParseOptions(delimiter=layout.delimiter, invalid_row_handler=note),
            # Dates stay texts: `readbench.common.times` reads more forms and keeps their zones.
            convert_options=pyarrow.csv.ConvertOptions(column_types=kinds, timestamp_parsers=["no date"]),
        )
    except pa.ArrowException as error:
        raise DataError(f"{name}: {str(error).replace('Row #', 'line ').strip()}. Correct the file.") from error
    last = data.num_rows + len(wrong)
    for place, row in enumerate(wrong):
        at_end = row.number is not None and row.number - layout.first > last - len(wrong) + place
        if not at_end or not data.num_rows or row.actual_columns > row.expected_columns:
            raise DataError(
                f"{name}: line {row.number}: Expected {row.expected_columns} columns, got {row.actual_columns}: "
                f"{row.text[:60]}. Correct the file."
            )
    count = len(wrong)
    return data, [f"{count} line{'s' * (count > 1)} at the end left out: fewer cells than the table."] if count else []


def _find_style(data: pa.Table) -> NumberStyle:
    """Decide on a decimal comma: some comma cannot be a thousands separator, or no cell has a dot."""
    commas = dots = False
    for field_ in data.schema:
        if not pa.types.is_string(field_.type):
            dots |= pa.types.is_floating(field_.type)
            continue
        texts = pc.utf8_trim_whitespace(data[field_.name])
        with_comma = texts.filter(pc.match_substring_regex(texts, _DECIMAL_COMMA))
        if not len(with_comma):
            dots |= bool(pc.any(pc.match_substring_regex(texts, r"^[+-]?\d+\.\d+$")).as_py())
            continue
        thousands = pc.match_substring_regex(with_comma, r"^[+-]?[1-9]\d{0,2}(,\d{3})+$")
        if not pc.all(thousands).as_py():
            return NumberStyle(",")
        commas = True
    return NumberStyle("," if commas and not dots else ".")


def _drop_empty(data: pa.Table, layout: _Layout) -> pa.Table:
    """Drop the unnamed empty column that a delimiter at the end of each line makes."""
    last = layout.names[-1]
    if last == f"column {len(layout.names)}" and len(layout.names) > 1 and data[last].null_count == data.num_rows:
        return data.drop_columns([last])
    return data
