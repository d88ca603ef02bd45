"""RCAEval cases are read as their own code lays them out, and nothing damaged passes."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from readbench.benchmark.protocol import Composition, Recording, build, compose_task
from readbench.benchmark.sources import RcaEval
from readbench.benchmark.sources._rcaeval import FAULTS
from readbench.errors import DataError, SourceMissingError
from readbench.testing import SOURCE_CHECKS, SourceCheck

START = 1_692_569_000
INJECTED = 700
ROWS = 1400
METRICS = {"RE1-OB": ("cart_cpu", "cart_latency-90"), "RE1-SS": ("front-end_cpu", "orders_mem", "orders_load")}
SERVICES = {"RE1-OB": ("adservice", "cart"), "RE1-SS": ("front-end", "orders")}
PACKERS = [bytes, gzip.compress]


def lines(metrics: tuple[str, ...], rows: int = ROWS, *, first: int = 0) -> list[str]:
    """A table whose readings tell row and column."""
    table = [["time", *metrics]]
    table += [[str(START + r), *(f"{r + c / 10}" for c in range(len(metrics)))] for r in range(first, first + rows)]
    return [",".join(row) for row in table]


def write_case(folder: Path, system: str, *, table: str = "data.csv", injected: str = f"{START + INJECTED}\n") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / table).write_text("\n".join([*lines(METRICS[system]), ""]))
    (folder / "inject_time.txt").write_text(injected)
    return folder / table


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """RE1 with two systems of two services, three faults and one repetition."""
    for system, services in SERVICES.items():
        for service in services:
            for fault in ("cpu", "delay", "loss"):
                write_case(tmp_path / f"rcaeval/RE1/{system}/{service}_{fault}/1", system)
    return tmp_path


def write_sock_shop(root: Path) -> None:
    for service in ("carts", "user-db"):
        for fault in ("cpu", "mem"):
            folder = root / f"rcaeval/sock-shop-1-rcd/{service}-{fault}/2"
            folder.mkdir(parents=True)
            for name, first in (("normal", 0), ("anomalous", 100_000)):
                text = "\n".join(lines(METRICS["RE1-OB"], 270, first=first))
                (folder / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))


def read(root: Path, source: RcaEval | None = None) -> dict[str, Recording]:
    return {recording.id: recording for recording in (source or RcaEval()).recordings(root)}


def test_ten_minutes_on_either_side_of_the_injection_are_kept(root: Path) -> None:
    recording = read(root)["RE1-OB/cart_delay/1"]
    assert recording.start == START + INJECTED - 600
    assert recording.values[recording.channels.index("cart_cpu")].tolist() == list(range(100, 1300))
    assert recording.labels.tolist() == [0] * 600 + [FAULTS.index("delay") + 1] * 600
    assert (recording.group, recording.asset) == ("RE1-OB/cart_delay", "RE1-OB")


def test_a_case_gives_two_normal_and_two_faulty_windows(root: Path, tmp_path: Path) -> None:
    found = build(RcaEval(), root, tmp_path / "cache").windows
    assert Counter(found.labels.tolist()) == {0: 24, 1: 8, 4: 8, 5: 8}


def test_channels_are_those_of_all_systems_and_absent_ones_have_no_reading(root: Path) -> None:
    names = tuple(sorted((*METRICS["RE1-OB"], *METRICS["RE1-SS"])))
    assert tuple(channel.name for channel in RcaEval().resolved(root).info.channels) == names
    for recording in read(root).values():
        present = {name for name, row in zip(names, recording.values, strict=True) if not np.isnan(row).all()}
        assert recording.channels == names
        assert present == set(METRICS[recording.asset])


def test_every_class_has_a_name_in_the_order_of_the_faults() -> None:
    assert len(RcaEval.info.faults) == len(FAULTS)


def test_one_group_of_each_fault_is_held_out_of_fifteen() -> None:
    share = RcaEval.info.protocol.test_share
    assert round(share * 15) == 1


def test_fewer_rows_than_ten_minutes_are_all_kept(root: Path) -> None:
    write_case(root / "rcaeval/RE1/RE1-OB/cart_cpu/1", "RE1-OB", injected=f"{START + 5}")
    recording = read(root)["RE1-OB/cart_cpu/1"]
    assert np.bincount(recording.labels).tolist() == [5, 600]


def test_collections_are_preferred_in_order_and_can_be_chosen(root: Path) -> None:
    write_case(root / "rcaeval/RE2-OB/cart_socket/3", "RE1-OB", table="simple_metrics.csv")
    write_sock_shop(root)
    assert "RE1-OB/cart_delay/1" in read(root)
    assert set(read(root, RcaEval("re2"))) == {"RE2-OB/cart_socket/3"}
    assert read(root, RcaEval("re2"))["RE2-OB/cart_socket/3"].labels[-1] == 6
    assert len(read(root, RcaEval("sock-shop-1"))) == 8
    prints = {RcaEval(name).fingerprint(root) for name in ("re1", "re2", "sock-shop-1")}
    assert len(prints) == 3
    assert RcaEval().fingerprint(root) == RcaEval("re1").fingerprint(root)


def test_the_two_halves_of_a_sock_shop_case_are_never_joined(tmp_path: Path) -> None:
    write_sock_shop(tmp_path)
    recordings = read(tmp_path)
    normal, anomalous = (recordings[f"sock-shop-1/user-db_mem/2/{half}"] for half in ("normal", "anomalous"))
    assert normal.labels.tolist() == [0] * 270
    assert anomalous.labels.tolist() == [2] * 270
    assert normal.group == anomalous.group == "sock-shop-1/user-db_mem"
    assert anomalous.start - normal.start == 100_000


def test_what_is_missing_is_named_with_where_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "rcaeval").mkdir()
    with pytest.raises(SourceMissingError, match=r"no \*_\*/\*/data\.csv or .*anomalous\.csv .*zenodo"):
        read(tmp_path)


def test_a_case_without_injection_time_or_normal_half_is_refused(root: Path) -> None:
    (root / "rcaeval/RE1/RE1-SS/orders_cpu/1/inject_time.txt").unlink()
    with pytest.raises(SourceMissingError, match=r"orders_cpu/1/data\.csv: there is no inject_time\.txt beside it"):
        read(root)
    write_sock_shop(root)
    (root / "rcaeval/sock-shop-1-rcd/carts-cpu/2/normal.csv.gz").unlink()
    with pytest.raises(SourceMissingError, match=r"carts-cpu/2/anomalous\.csv\.gz: there is no normal\.csv beside it"):
        read(root, RcaEval("sock-shop-1"))


@pytest.mark.parametrize("place", ["cart_f1/1", "cart_cpu/first", "_cpu/1"])
def test_a_case_of_another_kind_is_refused(root: Path, place: str) -> None:
    write_case(root / f"rcaeval/RE1/RE1-OB/{place}", "RE1-OB")
    with pytest.raises(DataError, match=rf"{place}/data\.csv: a case lies in <service>_<fault>/<number>/"):
        read(root)


def test_a_case_that_is_there_twice_is_refused(root: Path) -> None:
    write_case(root / "rcaeval/copy/RE1-OB/cart_cpu/1", "RE1-OB")
    with pytest.raises(DataError, match=r"cart_cpu/1/data\.csv: the same case is in .*cart_cpu/1"):
        read(root)


@pytest.mark.parametrize("text", ["", "noon", "nan", "1692569700 1692569800"])
def test_an_injection_time_that_is_none_is_refused(root: Path, text: str) -> None:
    write_case(root / "rcaeval/RE1/RE1-OB/cart_cpu/1", "RE1-OB", injected=text)
    with pytest.raises(DataError, match=r"inject_time\.txt: .* is no time in seconds"):
        read(root)


@pytest.mark.parametrize("seconds", [-1, 0, ROWS, 10**6])
def test_an_injection_outside_the_table_is_refused(root: Path, seconds: int) -> None:
    write_case(root / "rcaeval/RE1/RE1-OB/cart_cpu/1", "RE1-OB", injected=f"{START + seconds}")
    with pytest.raises(DataError, match=r"cart_cpu/1/data\.csv: the injection at \d+ .* is not inside its times"):
        read(root)


GOOD = lines(METRICS["RE1-OB"])
DAMAGED = {
    "empty": (b"", "no header"),
    "header only": (f"{GOOD[0]}\n".encode(), "no rows after the header"),
    "cut inside a row": ("\n".join(GOOD).encode()[:-10], "line 1401: Expected 3 columns"),
    "cut gzip": (gzip.compress("\n".join(GOOD).encode())[:-20], "damaged or incomplete"),
    "no time": ("\n".join(GOOD).replace("time", "when").encode(), "expected the column 'time'"),
    "no metric": ("\n".join(line.split(",")[0] for line in GOOD).encode(), "and at least one metric"),
    "same column twice": ("\n".join(GOOD).replace("cart_latency-90", "cart_cpu").encode(), "names 'cart_cpu' twice"),
    "text": ("\n".join(GOOD).replace(",8.1", ",slow").encode(), "line 10: .*invalid value 'slow'"),
    "repeated row": ("\n".join([*GOOD[:9], GOOD[8], *GOOD[9:]]).encode(), "row 9: .* not later than"),
    "no reading": ("\n".join([GOOD[0], *(f"{START + r},," for r in range(ROWS))]).encode(), "no metric has any"),
    "not text": (b"\xff\xfe\x00time", "the header is no text"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_table_is_named_with_what_is_wrong(root: Path, name: str) -> None:
    content, message = DAMAGED[name]
    (root / "rcaeval/RE1/RE1-OB/cart_cpu/1/data.csv").write_bytes(content)
    with pytest.raises(DataError, match=rf"cart_cpu/1/data\.csv.*{message}"):
        read(root)


def test_infinite_and_empty_readings_are_gaps(root: Path) -> None:
    text = "\n".join(GOOD).replace(",708,", ",inf,").replace(",709.0,", ",inf,").replace(",710.0,", ",,")
    (root / "rcaeval/RE1/RE1-OB/cart_cpu/1/data.csv").write_text(text)
    row = read(root)["RE1-OB/cart_cpu/1"].values[0]
    assert np.flatnonzero(~np.isfinite(row)).tolist() == [609, 610]


def test_the_fingerprint_follows_tables_places_and_injection_times(root: Path) -> None:
    prints = [RcaEval().fingerprint(root)]
    folder = root / "rcaeval/RE1/RE1-OB/cart_cpu/1"
    (folder / "inject_time.txt").write_text(f"{START + INJECTED + 1}")
    prints.append(RcaEval().fingerprint(root))
    (folder / "data.csv").write_text("\n".join(GOOD).replace("709.1", "709.2"))
    prints.append(RcaEval().fingerprint(root))
    folder.rename(folder.with_name("2"))
    prints.append(RcaEval().fingerprint(root))
    assert len(set(prints)) == 4


@given(at=st.integers(0, 800), new=st.binary(max_size=6), cut=st.integers(0, 6), packer=st.sampled_from(PACKERS))
def test_a_changed_table_gives_a_recording_or_a_data_error(
    tmp_path_factory: pytest.TempPathFactory, at: int, new: bytes, cut: int, packer: Callable[[bytes], bytes]
) -> None:
    folder = tmp_path_factory.getbasetemp() / "fuzzed/rcaeval/OB/cart_cpu/1"
    path = write_case(folder, "RE1-OB", injected=f"{START + 10}")
    content = packer("\n".join(GOOD[:30]).encode())
    path.write_bytes(content[:at] + new + content[at + cut :])
    try:
        (recording,) = RcaEval().recordings(folder.parents[3])
    except DataError as error:
        assert str(error).startswith(str(path))  # noqa: PT017 - either outcome is right
    else:
        assert recording.values.shape == (len(recording.channels), len(recording.labels))


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_source_keeps_the_contract(root: Path, check: SourceCheck) -> None:
    check(RcaEval(), root)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rcaeval")


def test_real_sock_shop_cases_give_the_known_windows(real_data: Path, cache: Path) -> None:
    found = build(RcaEval("sock-shop-1"), real_data, cache).windows
    assert Counter(found.labels.tolist()) == {0: 50, 1: 25, 2: 25}
    assert set(found.channel_counts.tolist()) == {38}
    assert len(set(found.groups)) == 10


def test_a_real_task_holds_out_one_service_of_each_fault(real_data: Path, cache: Path) -> None:
    task = compose_task(build(RcaEval("sock-shop-1"), real_data, cache), seed=0, settings=Composition())
    assert {rho: len(positions) for rho, positions in task.levels.items()} == {0: 40, 10: 44, 20: 50}
    assert Counter(task.queries.labels.tolist()) == {1: 5, 2: 5}


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_the_real_source_keeps_the_contract(real_data: Path, check: SourceCheck) -> None:
    check(RcaEval("sock-shop-1"), real_data)


def test_the_normal_half_of_a_sock_shop_case_is_the_time_before_the_other(tmp_path: Path) -> None:
    write_sock_shop(tmp_path)
    for rule in ("onset", "preceding"):
        halves = read(tmp_path, RcaEval(before=rule))  # type: ignore[arg-type]
        name = next(name for name in halves if name.endswith("/anomalous"))
        before, normal = halves[name].before, halves[name.replace("anomalous", "normal")]
        assert (before is None) == (rule == "preceding")
        if before is not None:
            np.testing.assert_array_equal(before, normal.values)
        assert normal.before is None
