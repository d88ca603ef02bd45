"""Addresses inside the page."""

from __future__ import annotations

from urllib.parse import quote


def case_link(dataset: str, seed: int, rho: int, query: str, first: str, second: str) -> str:
    """The address, inside a run's page, of one query with its lists under two methods.

    >>> case_link("sim_tanks", 0, 20, "run-3/7", "sonde|dtw-i", "euclidean")
    '#/case/sim_tanks/0/20/run-3%2F7/sonde%7Cdtw-i/euclidean'
    """
    return "#/case/" + "/".join(quote(str(part), safe="") for part in (dataset, seed, rho, query, first, second))
