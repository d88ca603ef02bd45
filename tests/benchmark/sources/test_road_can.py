"""CAN frames, their clocks and the signals inside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from readbench.benchmark.sources._road import SIGNALS, DbcSignal, decode, read_dbc, read_layout, read_log, read_untimed
from readbench.errors import DataError
from tests.benchmark.sources.road_files import SPEEDS, TABLE, drive, log, untimed, write

SIGNAL = st.builds(
    DbcSignal, st.integers(0, 63), st.integers(1, 64), motorola=st.booleans(), signed=st.booleans()
).filter(lambda signal: signal.fits)


def naive_decode(payload: int, signal: DbcSignal) -> float:
    """Bit by bit as a DBC file numbers them."""
    octets = payload.to_bytes(8, "big")
    bit, bits = signal.start, []
    for _ in range(signal.length):
        bits.append(octets[bit // 8] >> bit % 8 & 1)
        if signal.motorola:
            bit = bit - 1 if bit % 8 else bit + 15
        else:
            bit += 1
    value = int("".join(map(str, bits if signal.motorola else bits[::-1])), 2)
    if signal.signed and value >> signal.length - 1:
        value -= 1 << signal.length
    return value * signal.scale + signal.offset


@given(SIGNAL, st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5))
def test_decoding_is_bit_exact(signal: DbcSignal, payloads: list[int]) -> None:
    values = decode(np.array(payloads, np.uint64), (signal,))[0]
    expected = np.array([naive_decode(payload, signal) for payload in payloads], np.float32)
    np.testing.assert_array_equal(values, expected)


def test_a_dbc_file_is_read_as_cantools_reads_it(tmp_path: Path) -> None:
    cantools = pytest.importorskip("cantools")
    text = (
        'VERSION ""\n\nBO_ 208 ID_0D0: 8 Vector__XXX\n'
        ' SG_ Signal_2_of_ID : 23|12@0- (0.5,-40) [0|0] "" Vector__XXX\n'
        ' SG_ Signal_1_of_ID : 7|16@0+ (1,0) [0|0] "" Vector__XXX\n'
        ' SG_ Signal_3_of_ID : 36|9@1- (2,1.5) [0|0] "km/h" Vector__XXX\n\n'
    )
    path = tmp_path / "anonymized.dbc"
    path.write_text(text)
    payload = bytes.fromhex("3A4EF4644102B200")
    expected = cantools.database.load_string(text).decode_message(208, payload)
    values = decode(np.array([int.from_bytes(payload, "big")], np.uint64), read_dbc(path)[208])[:, 0]
    assert values.tolist() == [expected[f"Signal_{k}_of_ID"] for k in (1, 2, 3)]


def test_signals_anywhere_in_a_payload_are_decoded_as_cantools_decodes_them(tmp_path: Path) -> None:
    cantools = pytest.importorskip("cantools")
    rng = np.random.default_rng(0)
    drawn = (DbcSignal(int(rng.integers(64)), int(rng.integers(1, 33)), bool(rng.integers(2))) for _ in range(400))
    places = [place for place in drawn if place.fits]
    text = 'VERSION ""\n\n' + "".join(
        f"BO_ {number} ID_{number}: 8 Vector__XXX\n"
        f" SG_ Signal_1_of_ID : {place.start}|{place.length}@{int(not place.motorola)}{'+-'[number % 2]}"
        f' ({1 + number % 3},{number % 5 - 2}) [0|0] "" Vector__XXX\n\n'
        for number, place in enumerate(places)
    )
    path = tmp_path / "anonymized.dbc"
    path.write_text(text)
    layout, oracle = read_dbc(path), cantools.database.load_string(text)
    assert len(layout) == len(places) > 100
    payloads = rng.integers(0, 2**64, 20, np.uint64)
    for number, signals in layout.items():
        message = oracle.get_message_by_frame_id(number)
        expected = [message.decode(payload.to_bytes(8, "big"))["Signal_1_of_ID"] for payload in payloads.tolist()]
        np.testing.assert_array_equal(decode(payloads, signals)[0], np.array(expected, np.float32))


def test_captures_without_times_get_them_back_from_the_ends_of_the_attack(tmp_path: Path) -> None:
    frames = [frame for frame in drive() if frame[1] == SPEEDS]
    path = write(tmp_path, "x.csv", untimed(frames, 2.0, 4.0))
    injected = [time for time, _, _ in frames if 2.0 <= time <= 4.0]
    rebuilt = read_untimed(path, (injected[0], injected[-1]), frames[-1][0])
    # The first frame is taken for the start of the capture, so times before the attack are off by up to 20 ms.
    np.testing.assert_allclose(rebuilt.times, [time for time, _, _ in frames], atol=0.0201)
    np.testing.assert_allclose(rebuilt.times[-30:], [time for time, _, _ in frames[-30:]], atol=1e-9)


def test_an_attack_from_the_first_to_the_last_frame_needs_no_other_times(tmp_path: Path) -> None:
    path = write(tmp_path, "x.csv", untimed(drive()[1:], 0.0, 9.0))
    assert read_untimed(path, (0.0, 6.0), 6.0).times[[0, -1]].tolist() == [0.0, 6.0]


def test_clocks_that_step_back_a_little_are_held(tmp_path: Path) -> None:
    path = write(tmp_path, "x.log", log([(0.0, 1, 0), (0.1, 1, 1), (0.095, 1, 2), (0.2, 1, 3)]))
    np.testing.assert_allclose(read_log(path).times, [0.0, 0.1, 0.1, 0.2])


def test_logs_may_have_other_interfaces_line_ends_and_no_last_line_end(tmp_path: Path) -> None:
    text = log(drive())
    expected = read_log(write(tmp_path, "x.log", text))
    other = read_log(write(tmp_path, "y.log", text.replace("can0", "vcan12").replace("\n", "\r\n").strip()))
    np.testing.assert_array_equal(expected.payloads, other.payloads)
    np.testing.assert_array_equal(expected.times, other.times)


def test_logs_longer_than_a_block_are_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "x.log", log(drive()))
    whole = read_log(path)
    monkeypatch.setattr("readbench.benchmark.sources._road.BLOCK", 100)
    np.testing.assert_array_equal(read_log(path).payloads, whole.payloads)
    write(tmp_path, "x.log", log(drive()).replace("#0031", "#00XX"))
    with pytest.raises(DataError, match="line 51 is"):
        read_log(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "Empty CSV file"),
        ("1,2,3\n", "Expected id, 8 bytes and a label"),
        (untimed(drive(), 2.0, 4.0).replace("1760,0,50,", "1760,0,256,"), "256"),
        (untimed(drive(), 8.0, 9.0), "no frame labelled 1"),
        (untimed(drive(), 2.0, 4.0).replace(",1.0\n", ",3.0\n", 1), "label 3.0 in line 42"),
    ],
)
def test_a_bad_table_without_times_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = write(tmp_path, "x.csv", content)
    with pytest.raises(DataError, match=message) as caught:
        read_untimed(path, (2.0, 4.0), 6.0)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "line", ["SG_ x : 7|8@0+ (a,0)", "SG_ x m0 : 7|8@0+ (1,0)", "SG_ x : 63|9@0+ (1,0)", "SG_ x : 7|8@0+ (1e99,0)"]
)
def test_a_dbc_file_with_other_signals_is_refused(tmp_path: Path, line: str) -> None:
    path = write(tmp_path, "anonymized.dbc", f"BO_ 208 ID: 8 X\n {line}\n")
    with pytest.raises(DataError, match="line 2"):
        read_dbc(path)


def test_times_rebuilt_for_a_real_capture_are_right_to_a_grid_step(real_data: Path, tmp_path: Path) -> None:
    """A capture with times is written without them, filler frames left out, and compared."""
    frames = read_log(real_data / "road/attacks/correlated_signal_attack_3_masquerade.log.gz")
    kept = frames.ids != 0xFFF
    times, ids, words = frames.times[kept], frames.ids[kept], frames.payloads[kept]
    rows = list(zip(times.tolist(), ids.tolist(), words.tolist(), strict=True))
    path = write(tmp_path, "x.csv", untimed(rows, 4.318482, 16.95706))
    rebuilt = read_untimed(path, (4.318482, 16.95706), 16.963905)
    error = np.abs(rebuilt.times - times)
    assert np.median(error) < 0.01
    assert error.max() < 0.05


def test_the_real_layout_is_that_of_the_channels(real_data: Path) -> None:
    layout = read_layout(real_data / "road" / TABLE)
    assert {number: len(signals) for number, signals in layout.items()} == SIGNALS
