"""A library in an object store: the protocol of S3, spoken by a server on this machine."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("moto.server", reason="needs a server that speaks S3: pip install 'moto[server]'")

from readbench.cases import Library
from readbench.errors import StoreError
from tests.cases.samples import FAST, normals, windows

SERVER = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an empty bucket."""
    command = [sys.executable, "-W", "ignore", "-c", SERVER]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        address = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        _make(f"{address}/plant")
        for name, value in {
            "AWS_ENDPOINT": address,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
        }.items():
            monkeypatch.setenv(name, value)
        yield "s3://plant/library"
        server.terminate()


def _make(address: str) -> None:
    """Make a bucket, as soon as the server listens."""
    for _ in range(50):
        try:
            urllib.request.urlopen(urllib.request.Request(address, method="PUT")).close()  # noqa: S310 - loopback
        except urllib.error.URLError:
            time.sleep(0.2)
        else:
            return
    pytest.fail("the server does not answer")


def test_a_library_lives_in_an_object_store(bucket: str) -> None:
    library = Library.create(bucket)
    library.add_normals(normals(5))
    library.add(windows(6))
    library.edit("w1", notes="Replaced the bearing.")
    library.delete(["w2"])
    library.undo()
    again = Library.open(bucket)
    assert [case.id for case in again.cases()] == [f"w{i}" for i in range(6)]
    assert again.search(windows(1, seed=4), method=FAST).faults[0].label == "leak"
    assert [case.id for case in again.find("bearing")] == ["w1"]
    assert len(Library.open(bucket, as_of=4)) == 5


def test_a_second_writer_waits_and_is_then_refused(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Library.create(bucket)
    other = Library.open(bucket)
    monkeypatch.setattr("readbench.cases._lance.CLAIM_WAIT_S", 0.5)
    with one.store.writing(), pytest.raises(StoreError, match=r"is being written by process \d+ on"):
        other.add(windows(1))
    other.add(windows(1))
    monkeypatch.setattr("readbench.cases._lance.CLAIM_WAIT_S", 60.0)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda name: Library.open(bucket).add(windows(2, prefix=name)), "abc"))
    assert one.store.journal().sort_by("step")["step"].to_pylist() == list(range(7))
    assert [change.number for change in other.history()] == [1, 2, 3, 4]
