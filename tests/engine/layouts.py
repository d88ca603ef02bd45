"""Layouts of tables as historians, loggers and spreadsheets write them: a small text each, and what it says."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass, field

NAN = float("nan")
NEW_YEARS_EVE = 1767225598.0
"""2025-12-31 23:59:58 UTC."""


@dataclass(frozen=True)
class Layout:
    """A file, and what must be understood of it.

    Args:
        name: what writes such files.
        content: of the file.
        values: readings by channel, in order of time.
        start: time of the first row in seconds; None without times.
        step: seconds from row to row.
        zone: of the times.
        units: by channel, those that are known.
        says: words that must stand in the remarks.
        file: its name.
    """

    name: str
    content: bytes | str
    values: dict[str, list[float]]
    start: float | None = NEW_YEARS_EVE
    step: float = 1.0
    zone: str = ""
    units: dict[str, str] = field(default_factory=dict)
    says: tuple[str, ...] = ()
    file: str = "a.csv"

    @property
    def bytes(self) -> bytes:
        """The content of the file."""
        return self.content if isinstance(self.content, bytes) else self.content.encode()


def workbook(rows: list[list[str | float]], dated: int = -1) -> bytes:
    """A workbook with one sheet; the numbers of the column `dated` are shown as dates."""
    texts: list[str] = []
    lines = []
    for number, row in enumerate(rows, start=1):
        cells = []
        for place, value in enumerate(row):
            reference = f"{chr(ord('A') + place)}{number}"
            if isinstance(value, str):
                texts.append(value)
                cells.append(f'<c r="{reference}" t="s"><v>{len(texts) - 1}</v></c>' if value else "")
            else:
                cells.append(f'<c r="{reference}" s="{int(place == dated)}"><v>{value!r}</v></c>')
        lines.append(f'<row r="{number}">{"".join(cells)}</row>')
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    shared = "".join(f"<si><t>{text}</t></si>" for text in texts)
    formats = '<cellXfs><xf numFmtId="0"/><xf numFmtId="22"/></cellXfs>'
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        sheet = f"<worksheet {space}><sheetData>{''.join(lines)}</sheetData></worksheet>"
        archive.writestr("xl/worksheets/sheet1.xml", sheet)
        archive.writestr("xl/sharedStrings.xml", f"<sst {space}>{shared}</sst>")
        archive.writestr("xl/styles.xml", f"<styleSheet {space}>{formats}</styleSheet>")
    return file.getvalue()


EXCEL_EVE = 46022 + 86398 / 86400
TWO = {"T1": [1.5, 2.5], "P1": [10.0, 11.0]}
LAYOUTS = [
    Layout("plain", "time,T1,P1\n0,1.5,10\n1,2.5,11\n", TWO, start=0.0),
    Layout("seconds as words", "Seconds;T1;P1\n0;1.5;10\n1;2.5;11\n", TWO, start=0.0),
    Layout(
        "iso, zoned", "timestamp,T1,P1\n2025-12-31T23:59:58Z,1.5,10\n2025-12-31T23:59:59Z,2.5,11\n", TWO, zone="UTC"
    ),
    Layout(
        "iso, with an offset and a fraction",
        "timestamp\tT1\tP1\n2026-01-01 00:59:58,250 +01:00\t1.5\t10\n2026-01-01 00:59:59,250 +01:00\t2.5\t11\n",
        TWO,
        start=NEW_YEARS_EVE + 0.25,
        zone="+01:00",
    ),
    Layout(
        "PI DataLink, German",
        "Zeit;T1;P1\n31.12.2025 23:59:58;1,5;10,0\n31.12.2025 23:59:59;Bad;No Data\n01.01.2026 00:00:00;2,5;11,0\n",
        {"T1": [1.5, NAN, 2.5], "P1": [10.0, NAN, 11.0]},
        says=("Gaps in 'T1': 1 × Bad", "Gaps in 'P1': 1 × No Data", "decimal comma"),
    ),
    Layout(
        "PI, words of digital states",
        "Timestamp,T1,P1\n31-Dec-25 23:59:58,1.5,10\n31-Dec-25 23:59:59,I/O Timeout,Pt Created\n"
        "01-Jan-26 00:00:00,2.5,11\n",
        {"T1": [1.5, NAN, 2.5], "P1": [10.0, NAN, 11.0]},
        says=("I/O Timeout",),
    ),
    Layout(
        "PI, tags with descriptions and units",
        "Tag,T1,P1\nDescription,Outlet temperature,Feed pressure\nUnits,degC,bar\n"
        "31-Dec-2025 23:59:58,1.5,10\n31-Dec-2025 23:59:59,2.5,11\n",
        TWO,
        units={"T1": "degC", "P1": "bar"},
        says=("Line 3 was read as units",),
    ),
    Layout(
        "PI, a row per reading",
        "tag,time,value,status\nT1,2025-12-31 23:59:58,1.5,Good\nP1,2025-12-31 23:59:58,10,Good\n"
        "T1,2025-12-31 23:59:59,999,Bad\nP1,2025-12-31 23:59:59,11,Good\n",
        {"T1": [1.5, NAN], "P1": [10.0, 11.0]},
        says=("1 reading of bad quality taken as gap", "A row is one reading"),
    ),
    Layout(
        "Aspen IP.21, a row per reading",
        "NAME,TS,IP_INPUT_VALUE,IP_INPUT_QUALITY\nT1,31-DEC-25 23:59:58.0,1.5,Good\nT1,31-DEC-25 23:59:59.0,2.5,Good\n"
        "P1,31-DEC-25 23:59:58.0,10,Good\nP1,31-DEC-25 23:59:59.0,11,Bad\n",
        {"T1": [1.5, 2.5], "P1": [10.0, NAN]},
    ),
    Layout(
        "Aspen Process Explorer",
        "Aspen Process Explorer\nUnit 12\n\nTime,T1,P1\n12/31/2025 23:59:58,1.5,10\n12/31/2025 23:59:59,2.5,11\n",
        TWO,
        says=("2 lines above the table",),
    ),
    Layout(
        "AVEVA Historian, wide",
        "DateTime,T1,T1 Quality,P1,P1 Quality\n2025-12-31 23:59:58.000,1.5,192,10,192\n"
        "2025-12-31 23:59:59.000,2.5,0,11,192\n",
        {"T1": [1.5, NAN], "P1": [10.0, 11.0]},
        says=("T1 Quality (quality)",),
    ),
    Layout(
        "Wonderware, a row per reading",
        "DateTime;TagName;Value;OPCQuality\n2025-12-31 23:59:58;T1;1,5;192\n2025-12-31 23:59:59;T1;2,5;192\n"
        "2025-12-31 23:59:58;P1;10;192\n2025-12-31 23:59:59;P1;(null);0\n",
        {"T1": [1.5, 2.5], "P1": [10.0, NAN]},
    ),
    Layout(
        "Ignition, database",
        "tagid,floatvalue,dataintegrity,t_stamp\n7,1.5,192,1767225598000\n7,2.5,192,1767225599000\n",
        {"7": [1.5, 2.5]},
        zone="UTC",
        says=("milliseconds since 1970",),
    ),
    Layout(
        "Ignition, easy chart",
        '"t_stamp","T1","P1"\n"Wed Dec 31 2025 23:59:58","1.5","10"\n"Wed Dec 31 2025 23:59:59","2.5","11"\n',
        TWO,
    ),
    Layout(
        "Siemens WinCC, a row per reading",
        '"VarName";"TimeString";"VarValue";"Validity";"Time_ms"\n'
        '"T1";"31.12.2025 23:59:58";1,5;1;46022999976,8519\n"T1";"31.12.2025 23:59:59";2,5;1;46022999988,4259\n'
        '"P1";"31.12.2025 23:59:58";10;1;46022999976,8519\n"P1";"31.12.2025 23:59:59";11;0;46022999988,4259\n',
        {"T1": [1.5, 2.5], "P1": [10.0, NAN]},
    ),
    Layout(
        "Siemens WinCC, a time beside each trend",
        "T1 Time;T1 ValueY;P1 Time;P1 ValueY\n31.12.2025 23:59:58;1,5;31.12.2025 23:59:58;10\n"
        "31.12.2025 23:59:59;2,5;31.12.2025 23:59:59;11\n",
        TWO,
        says=("Each signal has its column of times",),
    ),
    Layout(
        "Siemens, date and time apart",
        "Datum;Uhrzeit;T1;P1\n31.12.2025;23:59:58;1,5;10\n31.12.2025;23:59:59;2,5;11\n",
        TWO,
        says=("in two columns, 'Datum' and 'Uhrzeit'",),
    ),
    Layout(
        "InfluxDB, annotated",
        "#group,false,false,false,false,true\n#datatype,string,long,dateTime:RFC3339,double,string\n"
        "#default,_result,,,,\n,result,table,_time,_value,_field\n,,0,2025-12-31T23:59:58Z,1.5,T1\n"
        ",,0,2025-12-31T23:59:59Z,2.5,T1\n,,1,2025-12-31T23:59:58Z,10,P1\n,,1,2025-12-31T23:59:59Z,11,P1\n",
        TWO,
        zone="UTC",
    ),
    Layout(
        "InfluxDB, two tables with a header each",
        ",result,table,_time,_value,_field\n,,0,2025-12-31T23:59:58Z,1.5,T1\n,,0,2025-12-31T23:59:59Z,2.5,T1\n\n"
        ",result,table,_time,_value,_field\n,,1,2025-12-31T23:59:58Z,10,P1\n,,1,2025-12-31T23:59:59Z,11,P1\n",
        TWO,
        zone="UTC",
        says=("repeated headers",),
    ),
    Layout(
        "InfluxDB, command line",
        "name,time,T1,P1\nplant,1767225598000000000,1.5,10\nplant,1767225599000000000,2.5,11\n",
        TWO,
        zone="UTC",
        says=("nanoseconds", "name (texts: plant)"),
    ),
    Layout(
        "Grafana, series as columns",
        '"Time","T1","P1"\n"2025-12-31 23:59:58",1.50 °C,10 bar\n"2025-12-31 23:59:59",2.50 °C,11 bar\n',
        TWO,
        units={"T1": "°C", "P1": "bar"},
    ),
    Layout(
        "Grafana, series as rows",
        "Series;Time;Value\nT1;2025-12-31T23:59:58+00:00;1.5\nT1;2025-12-31T23:59:59+00:00;2.5\n"
        "P1;2025-12-31T23:59:58+00:00;10\nP1;2025-12-31T23:59:59+00:00;null\n",
        {"T1": [1.5, 2.5], "P1": [10.0, NAN]},
        zone="UTC",
    ),
    Layout(
        "Prometheus, a row per reading",
        "metric,timestamp,value\nT1,1767225598.000,1.5\nT1,1767225599.000,2.5\nP1,1767225598.000,10\n"
        "P1,1767225599.000,NaN\n",
        {"T1": [1.5, 2.5], "P1": [10.0, NAN]},
        zone="UTC",
    ),
    Layout(
        "LabVIEW measurement file",
        "LabVIEW Measurement\t\nWriter_Version\t2\nReader_Version\t2\nSeparator\tTab\nDecimal_Separator\t.\n"
        "Date\t2025/12/31\nTime\t23:59:58\n***End_of_Header***\t\n\t\nChannels\t2\nSamples\t2\t2\n"
        "Y_Unit_Label\tVolts\tVolts\n***End_of_Header***\t\t\nX_Value\tT1\tP1\tComment\n"
        "0.000000\t1.5\t10\t\n0.500000\t2.5\t11\t\n",
        TWO,
        start=0.0,
        step=0.5,
        file="a.lvm",
    ),
    Layout(
        "LabVIEW, seconds since 1904",
        "Timestamp\tT1\tP1\n3850070398.000\t1.5\t10\n3850070399.000\t2.5\t11\n",
        TWO,
        zone="UTC",
        says=("since 1904",),
    ),
    Layout(
        "TDMS as text",
        "Root name\tRun 7\nAuthor\tTest bench\n\nTime [s]\tT1 [degC]\tP1 [bar]\n0,00\t1,5\t10,0\n0,25\t2,5\t11,0\n",
        {"T1 [degC]": [1.5, 2.5], "P1 [bar]": [10.0, 11.0]},
        start=0.0,
        step=0.25,
        units={"T1 [degC]": "degC", "P1 [bar]": "bar"},
        file="a.txt",
    ),
    Layout("MATLAB, no header", "0,1.5,10\n0.1,2.5,11\n", {"column 2": [1.5, 2.5], "column 3": [10.0, 11.0]}, 0.0, 0.1),
    Layout(
        "MATLAB, datenum",
        "datenum,T1,P1\n739982.9999768519,1.5,10\n739982.9999884259,2.5,11\n",
        TWO,
        says=("MATLAB",),
    ),
    Layout(
        "MATLAB, writetimetable",
        "Time,T1,P1\n31-Dec-2025 23:59:58,1.5,10\n31-Dec-2025 23:59:59,NaN,11\n",
        {"T1": [1.5, NAN], "P1": [10.0, 11.0]},
    ),
    Layout(
        "numbers between blanks",
        "% exported\n  0.0   1.5   10\n  0.5   2.5   11\n",
        {"column 2": [1.5, 2.5], "column 3": [10.0, 11.0]},
        start=0.0,
        step=0.5,
        file="a.dat",
    ),
    Layout(
        "DASYLab",
        "DASYLab - V 11.00;;\nWorksheet name: pump;;\nRecording date: 31.12.2025;;\nBlock length: 1;;\n"
        "Delta: 0,5 s;;\nMeasurement time;T1 [°C];P1 [bar]\nTime;T1 [°C];P1 [bar]\n0,0;1,5;10\n0,5;2,5;11\n",
        {"T1 [°C]": [1.5, 2.5], "P1 [bar]": [10.0, 11.0]},
        start=0.0,
        step=0.5,
        units={"T1 [°C]": "°C", "P1 [bar]": "bar"},
        file="a.asc",
    ),
    Layout(
        "MDF as CSV",
        "timestamps,T1,P1\ns,degC,bar\n0,1.5,10\n0.01,2.5,11\n",
        TWO,
        start=0.0,
        step=0.01,
        units={"T1": "degC", "P1": "bar"},
    ),
    Layout(
        "CANalyzer log as CSV",
        "Time[s];T1[C];P1[bar]\n0.000;1.5;10\n0.020;2.5;11\n",
        {"T1[C]": [1.5, 2.5], "P1[bar]": [10.0, 11.0]},
        start=0.0,
        step=0.02,
        units={"T1[C]": "C", "P1[bar]": "bar"},
    ),
    Layout(
        "Excel, preamble and serial dates",
        workbook(
            [
                ["Werk 3"],
                [],
                ["Datum", "T1", "P1"],
                ["", "°C", "bar"],
                [EXCEL_EVE, 1.5, 10.0],
                [EXCEL_EVE + 1 / 86400, 2.5, "Bad"],
            ],
            dated=0,
        ),
        {"T1": [1.5, 2.5], "P1": [10.0, NAN]},
        units={"T1": "°C", "P1": "bar"},
        file="a.xlsx",
    ),
    Layout(
        "Excel, serial dates without a format",
        workbook([["Date", "T1", "P1"], [EXCEL_EVE, 1.5, 10.0], [EXCEL_EVE + 1 / 86400, 2.5, 11.0]]),
        TWO,
        says=("Excel",),
        file="a.xlsx",
    ),
    Layout(
        "Excel, saved as CSV in Germany",
        "sep=;\r\nZeit;T1;P1;\r\n31.12.2025 23:59:58;1,5;10;\r\n31.12.2025 23:59:59;2,5;11;\r\n",
        TWO,
    ),
    Layout(
        "Excel, Unicode text",
        "Zeit\tT1 °\tP1\r\n31.12.2025 23:59:58\t1,5\t10\r\n31.12.2025 23:59:59\t2,5\t11\r\n".encode("utf-16"),
        {"T1 °": [1.5, 2.5], "P1": [10.0, 11.0]},
        says=("UTF-16",),
        file="a.txt",
    ),
    Layout(
        "Windows-1252",
        "Zeit;Kühlwasser [°C];P1\n0;1,5;10\n1;2,5;11\n".encode("cp1252"),
        {"Kühlwasser [°C]": [1.5, 2.5], "P1": [10.0, 11.0]},
        start=0.0,
        units={"Kühlwasser [°C]": "°C"},
    ),
    Layout("a mark of UTF-8, old line ends", b"\xef\xbb\xbftime,T1,P1\r0,1.5,10\r1,2.5,11\r", TWO, start=0.0),
    Layout(
        "separators of thousands",
        'time,T1,P1\n0,"1,234.5",10\n1,"2,345,678.5",11\n',
        {"T1": [1234.5, 2345678.5], "P1": [10.0, 11.0]},
        start=0.0,
    ),
    Layout(
        "separators of thousands, Swiss and German",
        "time;T1;P1\n0;1'234,5;1.000,5\n1;2'345,5;1.001,5\n",
        {"T1": [1234.5, 2345.5], "P1": [1000.5, 1001.5]},
        start=0.0,
    ),
    Layout(
        "American dates, afternoon",
        "Date/Time,T1,P1\n12/31/2025 11:59:58 PM,1.5,10\n12/31/2025 11:59:59 PM,2.5,11\n",
        TWO,
    ),
    Layout(
        "dates that only the other rows make clear",
        "Date,T1,P1\n11/12/2025,1.5,10\n12/12/2025,2.5,11\n13/12/2025,3.5,12\n",
        {"T1": [1.5, 2.5, 3.5], "P1": [10.0, 11.0, 12.0]},
        start=1765411200.0,
        step=86400.0,
    ),
    Layout(
        "dates that nothing makes clear",
        "Date,T1,P1\n01/02/2025 00:00:01,1.5,10\n01/02/2025 00:00:02,2.5,11\n",
        TWO,
        start=1735776001.0,
        says=("01/02/2025 were read with the month before day",),
    ),
    Layout(
        "microseconds",
        "epoch,T1,P1\n1767225598000000,1.5,10\n1767225598500000,2.5,11\n",
        TWO,
        step=0.5,
        zone="UTC",
        says=("microseconds",),
    ),
    Layout("milliseconds by the header", "time_ms,T1,P1\n0,1.5,10\n20,2.5,11\n", TWO, start=0.0, step=0.02),
    Layout(
        "a zone in the header",
        "Time (UTC+1),T1,P1\n2026-01-01 00:59:58,1.5,10\n2026-01-01 00:59:59,2.5,11\n",
        TWO,
        zone="+01:00",
    ),
    Layout(
        "a zone above the table",
        "Time zone: Europe/Berlin\nTime;T1;P1\n01.01.2026 00:59:58;1,5;10\n01.01.2026 00:59:59;2,5;11\n",
        TWO,
        zone="Europe/Berlin",
    ),
    Layout(
        "compact dates",
        "ts,T1,P1\n20251231T235958Z,1.5,10\n20251231T235959Z,2.5,11\n",
        TWO,
        zone="UTC",
    ),
    Layout(
        "times of day over midnight",
        "Uhrzeit;T1;P1\n23:59:59,5;1,5;10\n00:00:00,0;2,5;11\n",
        TWO,
        start=86399.5,
        step=0.5,
    ),
    Layout(
        "a time that is there twice",
        "time,T1,P1\n0,1.5,10\n1,2.5,\n1,,11\n2,3.5,12\n",
        {"T1": [1.5, 2.5, 3.5], "P1": [10.0, 11.0, 12.0]},
        start=0.0,
        says=("1 row of a time that was there already merged",),
    ),
    Layout(
        "whole seconds of a faster recorder",
        "time,T1\n2025-12-31 23:59:58,1\n2025-12-31 23:59:58,2\n2025-12-31 23:59:59,3\n2025-12-31 23:59:59,4\n",
        {"T1": [1.0, 2.0, 3.0, 4.0]},
        step=0.5,
        says=("spread evenly",),
    ),
    Layout(
        "a footer",
        "time,T1,P1\n0,1.5,10\n1,2.5,11\n2,3.5,12\nend of report\n",
        {"T1": [1.5, 2.5, 3.5], "P1": [10.0, 11.0, 12.0]},
        start=0.0,
        says=("at the end left out",),
    ),
    Layout(
        "states and a column without readings",
        "time,T1,valve,P9\n0,1.5,open,\n1,2.5,closed,\n",
        {"T1": [1.5, 2.5]},
        start=0.0,
        says=("valve (texts: open, closed)", "P9 (no readings)"),
    ),
    Layout(
        "the hour that comes twice, with its zone",
        "Time zone: Europe/Berlin\nTime;T1\n"
        "27.10.2024 01:45;1\n27.10.2024 02:15;2\n27.10.2024 02:45;3\n"
        "27.10.2024 02:15;4\n27.10.2024 02:45;5\n27.10.2024 03:15;6\n",
        {"T1": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]},
        start=1729986300.0,
        step=1800.0,
        zone="Europe/Berlin",
        says=("Clocks went back in Europe/Berlin",),
    ),
    Layout(
        "the same, the newest row first, a row per reading",
        "Time zone: Europe/Berlin\nTime;Tag;Value\n"
        "27.10.2024 03:15;T1;6\n27.10.2024 02:45;T1;5\n27.10.2024 02:15;T1;4\n"
        "27.10.2024 02:45;T1;3\n27.10.2024 02:15;T1;2\n27.10.2024 01:45;T1;1\n",
        {"T1": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]},
        start=1729986300.0,
        step=1800.0,
        zone="Europe/Berlin",
        says=("Clocks went back in Europe/Berlin",),
    ),
    Layout(
        "the hour that comes twice, nobody knows where",
        "Time;T1\n27.10.2024 01:15;1\n27.10.2024 01:45;2\n27.10.2024 02:15;3\n27.10.2024 02:45;4\n"
        "27.10.2024 02:15;5\n27.10.2024 02:45;6\n27.10.2024 03:15;7\n27.10.2024 03:45;8\n",
        {"T1": [1.0, 2.0, 5.0, 6.0, 7.0, 8.0]},
        start=1729991700.0,
        step=1800.0,
        says=("2 rows of a time that was there already", "If clocks were set back, name their zone."),
    ),
    Layout(
        "dates of digits alone",
        "Zeitpunkt;T1;P1\n20251231235958;1,5;10\n20251231235959;2,5;11\n",
        TWO,
    ),
    Layout(
        "a row of units by units, the same gaps everywhere",
        "Time;T1;P1\n;K/min;ml/s\n31.12.2025 23:59:58;1,5;10,0\n31.12.2025 23:59:59;Bad;Bad\n",
        {"T1": [1.5, NAN], "P1": [10.0, NAN]},
        units={"T1": "K/min", "P1": "ml/s"},
        says=("Gaps in 'T1', 'P1': 1 × Bad.",),
    ),
    Layout(
        "blanks between thousands",
        "time;T1;P1\n0;1 234,5;10\n1;2 345 678,5;11\n",
        {"T1": [1234.5, 2345678.5], "P1": [10.0, 11.0]},
        start=0.0,
    ),
    Layout(
        "days in a column that speaks of no date",
        f"Time;T1;P1\n{EXCEL_EVE};1.5;10\n{EXCEL_EVE + 1 / 86400};2.5;11\n",
        TWO,
        says=("days as Excel counts them",),
    ),
    Layout(
        "blanks that do not break, and a long minus",
        "Fecha;T1;P1\n31/12/2025 11:59:58\u00a0p.\u00a0m.;\u22121,5;10\n31/12/2025 11:59:59\u202fPM;\u22122,5;11\n",
        {"T1": [-1.5, -2.5], "P1": [10.0, 11.0]},
    ),
    Layout(
        "numbers of rows before the times",
        ",timestamp,T1,P1\n0,2025-12-31 23:59:58,1.5,10\n1,2025-12-31 23:59:59,2.5,11\n",
        TWO,
        says=("column 1 (numbers of rows)",),
    ),
    Layout("no times at all", "T1,P1\n1.5,10\n2.5,11\n", TWO, start=None, says=("No column was taken as the time",)),
]
