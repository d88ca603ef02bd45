"""The table of odd windows, in its small form: fewer cases, and one library of each kind."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("lancedb", reason="the case library needs LanceDB: pip install 'readbench[cases]'")

from readbench.engine.windows import WindowSet
from readbench.errors import DataError
from research.odd_windows import ALWAYS, ODD, SOURCES, Site, build_site, expect, find_fault, make_odd, measure_remarks

FOREIGN = WindowSet.from_arrays([300 + 50 * np.sin(np.arange(256) / 9 * np.arange(1, 4)[:, None])])[0]
METHOD = "rocket(features=504)+verdict"
SMALL = {"cases": 150, "normals": 240, "queries": 60}


@pytest.fixture(scope="module", params=[SOURCES[0], "skab", "mit_bih"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A simulated library, and real ones where their files are."""
    try:
        return build_site(request.param, tmp_path_factory.mktemp("odd"), **SMALL)
    except DataError as error:
        pytest.skip(f"no files of {request.param}: {error}")


def test_every_odd_window_is_in_the_table() -> None:
    assert set(ODD) < set(ALWAYS)
    assert sum(len(expect(source)) for source in SOURCES) >= 30


def test_answers_to_odd_windows_are_as_they_must_be(site: Site) -> None:
    wrong = {
        name: fault
        for name, odd in make_odd(site.questions[0], FOREIGN)
        if (fault := find_fault(site.library.search(odd, method=METHOD, k=1), expect(site.name)[name]))
    }
    assert not wrong


def test_true_windows_are_hardly_ever_remarked_on(site: Site) -> None:
    for windows in (site.questions, site.normals):
        warned, refused = measure_remarks(site.library, windows)
        assert warned <= 0.05
        assert refused <= 0.03


def test_a_sensor_that_stands_still_is_not_taken_for_another_one(site: Site) -> None:
    one = site.questions[0]
    kinds = set()
    for channel in range(len(one.values)):
        values = one.values.copy()
        values[channel, 16:] = values[channel, 16]
        kinds |= {remark.kind for remark in site.library.check(values, channels=one.channels).plausibility}
    assert "frozen" in kinds
    assert "swapped" not in kinds
