"""Facts of HAI 21.03 from its technical manual: the tags, the control loops and when each of them was attacked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LOOPS = {
    "P1-PC": "boiler pressure control attacked (P1-PC)",
    "P1-LC": "boiler level control attacked (P1-LC)",
    "P1-FC": "boiler flow control attacked (P1-FC)",
    "P2-SC": "turbine speed control attacked (P2-SC)",
    "P2-TC": "turbine trip control attacked (P2-TC)",
    "P3-LC": "water treatment level control attacked (P3-LC)",
}
"""The attacked control loops and the names of their classes, in order."""

# fmt: off
TAGS = (
    "P1_B2004", "P1_B2016", "P1_B3004", "P1_B3005", "P1_B4002", "P1_B4005", "P1_B400B", "P1_B4022", "P1_FCV01D",
    "P1_FCV01Z", "P1_FCV02D", "P1_FCV02Z", "P1_FCV03D", "P1_FCV03Z", "P1_FT01", "P1_FT01Z", "P1_FT02", "P1_FT02Z",
    "P1_FT03", "P1_FT03Z", "P1_LCV01D", "P1_LCV01Z", "P1_LIT01", "P1_PCV01D", "P1_PCV01Z", "P1_PCV02D", "P1_PCV02Z",
    "P1_PIT01", "P1_PIT02", "P1_PP01AD", "P1_PP01AR", "P1_PP01BD", "P1_PP01BR", "P1_PP02D", "P1_PP02R", "P1_STSP",
    "P1_TIT01", "P1_TIT02", "P2_24Vdc", "P2_AutoGo", "P2_AutoSD", "P2_Emerg", "P2_MASW", "P2_ManualGO",
    "P2_ManualSD", "P2_OnOff", "P2_RTR", "P2_SCO", "P2_SCST", "P2_SIT01", "P2_TripEx", "P2_VIBTR01", "P2_VIBTR02",
    "P2_VIBTR03", "P2_VIBTR04", "P2_VT01", "P2_VTR01", "P2_VTR02", "P2_VTR03", "P2_VTR04", "P3_FIT01", "P3_LCP01D",
    "P3_LCV01D", "P3_LH01", "P3_LIT01", "P3_LL01", "P3_PIT01", "P4_HT_FD", "P4_HT_LD", "P4_HT_PO", "P4_HT_PS",
    "P4_LD", "P4_ST_FD", "P4_ST_GOV", "P4_ST_LD", "P4_ST_PO", "P4_ST_PS", "P4_ST_PT01", "P4_ST_TT01",
)
"""The 79 data points of version 21.03."""
# fmt: on


@dataclass(frozen=True)
class Attack:
    """One row of the schedule.

    Args:
        name: as the manual calls it.
        loops: attacked control loops; the first one is the class.
        start: to the minute, local time.
        duration: in seconds.
    """

    name: str
    loops: tuple[str, ...]
    start: str
    duration: int

    @property
    def label(self) -> int:
        """Class of the first attacked loop."""
        return list(LOOPS).index(self.loops[0]) + 1

    @property
    def start_seconds(self) -> float:
        """Scheduled minute in seconds since 1970, in the clock of the files."""
        return float(np.datetime64(self.start, "s").astype(np.int64))


def _attacks(table: str) -> tuple[Attack, ...]:
    """One line an attack: name, loops joined by `+`, start, duration."""
    fields = (line.split() for line in table.strip().splitlines())
    return tuple(Attack(name, tuple(loops.split("+")), start, int(s)) for name, loops, start, s in fields)


SCHEDULE = {
    "test1": _attacks("""
        A101 P1-PC 2020-07-07T15:35 192
        A102 P1-FC 2020-07-07T17:28 98
        A103 P1-LC 2020-07-07T18:59 190
        A104 P2-SC 2020-07-07T20:21 60
        A105 P2-SC 2020-07-07T21:03 89
    """),
    "test2": _attacks("""
        A201 P2-TC 2020-07-09T15:47 83
        A202 P1-PC 2020-07-09T17:38 422
        A203 P1-LC 2020-07-09T18:59 17
        A204 P1-FC 2020-07-09T20:10 259
        A205 P1-PC 2020-07-09T21:15 123
        A206 P1-FC 2020-07-09T23:02 256
        A207 P2-TC 2020-07-10T01:08 68
        A208 P1-LC 2020-07-10T01:33 261
        A209 P1-LC 2020-07-10T03:03 159
        A210 P1-PC 2020-07-10T05:29 421
        A211 P2-SC 2020-07-10T07:51 45
        A212 P2-SC 2020-07-10T09:13 152
        A213 P1-LC 2020-07-10T10:49 254
        A214 P1-PC 2020-07-10T12:51 152
        A215 P2-SC 2020-07-10T15:11 151
        A216 P1-FC 2020-07-10T15:40 65
        A217 P2-TC 2020-07-10T16:22 184
        A218 P1-FC 2020-07-10T18:21 99
        A219 P3-LC 2020-07-10T21:25 119
        A220 P3-LC 2020-07-10T22:56 119
    """),
    "test3": _attacks("""
        A301 P1-LC+P1-FC 2020-07-13T13:51 132
        A302 P1-PC+P1-FC 2020-07-13T15:21 421
        A303 P1-PC+P1-LC 2020-07-13T18:11 189
        A304 P2-SC+P2-TC 2020-07-13T20:53 106
        A305 P2-SC+P2-TC 2020-07-13T21:23 84
        A306 P1-PC+P2-SC 2020-07-13T23:55 238
        A307 P1-FC+P2-TC 2020-07-14T01:51 110
        A308 P1-LC+P2-SC 2020-07-14T03:53 255
    """),
    "test4": _attacks("""
        A401 P1-PC+P1-LC 2020-07-28T12:43 254
        A402 P1-FC+P3-LC 2020-07-28T13:45 262
        A403 P1-LC+P3-LC 2020-07-28T15:57 263
        A404 P2-SC+P1-LC 2020-07-28T17:45 258
        A405 P2-SC+P3-LC 2020-07-28T20:47 120
    """),
    "test5": _attacks("""
        A501 P1-PC+P2-TC 2020-07-30T11:16 172
        A502 P1-FC+P2-SC 2020-07-30T13:30 258
        A503 P1-LC+P2-SC 2020-07-30T16:05 256
        A504 P1-FC+P3-LC 2020-07-30T17:45 120
        A505 P1-LC+P2-SC 2020-07-30T18:38 203
        A506 P2-SC+P3-LC 2020-07-30T20:42 153
        A507 P2-SC+P2-TC 2020-07-30T23:13 79
        A508 P1-FC+P1-LC 2020-07-31T01:15 51
        A509 P1-PC+P1-PC 2020-07-31T02:01 241
        A510 P1-LC+P1-LC 2020-07-31T09:54 262
        A511 P2-TC+P3-LC 2020-07-31T10:40 120
        A512 P1-FC+P1-FC 2020-07-31T11:21 262
    """),
}
"""Attacks of each test file in order of time."""
