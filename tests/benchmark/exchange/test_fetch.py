"""Fetching over a real connection: ranges, breaks, wrong files, archives."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from readbench.benchmark.exchange import OFFICIAL, Official, RemoteFile, fetch
from readbench.benchmark.exchange._fetch import ATTEMPTS, transfer
from readbench.benchmark.exchange._official import add_checksums
from readbench.errors import DataError
from tests.benchmark.exchange.server import Site, serving

CONTENT = bytes(range(256)) * 4000
SHA256 = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site({"data.bin": CONTENT})) as served:
        yield served


def remote(site: Site, size: int | None = None, checksum: str = SHA256) -> RemoteFile:
    return RemoteFile(site.url("data.bin"), "data.bin", size, checksum)


def get(file: RemoteFile, target: Path) -> None:
    transfer(file, target, pause=0)


def test_a_file_is_fetched_and_checked(site: Site, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    where = tmp_path / "in" / "data.bin"
    transfer(remote(site, len(CONTENT)), where, lambda _, done, total: seen.append((done, total)))
    assert (tmp_path / "in" / "data.bin").read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["data.bin"]


def test_a_broken_transfer_goes_on_where_it_was(site: Site, tmp_path: Path) -> None:
    site.breaks = [300_000, 200_000]
    get(remote(site), tmp_path / "data.bin")
    assert (tmp_path / "data.bin").read_bytes() == CONTENT
    assert site.asked == ["", "bytes=300000-", "bytes=500000-"]


def test_a_later_command_goes_on_too(site: Site, tmp_path: Path) -> None:
    site.breaks = [100_000] * ATTEMPTS
    with pytest.raises(DataError, match="300,000 bytes are kept: the same command goes on"):
        get(remote(site), tmp_path / "data.bin")
    assert not (tmp_path / "data.bin").exists()
    get(remote(site), tmp_path / "data.bin")
    assert (tmp_path / "data.bin").read_bytes() == CONTENT
    assert site.asked[-1] == "bytes=300000-"


def test_a_server_without_ranges_sends_it_again(site: Site, tmp_path: Path) -> None:
    site.ranges, site.breaks = False, [300_000]
    get(remote(site), tmp_path / "data.bin")
    assert (tmp_path / "data.bin").read_bytes() == CONTENT


def test_without_a_version_nothing_is_joined(site: Site, tmp_path: Path) -> None:
    site.etag, site.breaks = "", [300_000]
    get(remote(site), tmp_path / "data.bin")
    assert site.asked == ["", ""]


def test_another_version_begins_anew(site: Site, tmp_path: Path) -> None:
    site.breaks = [100_000] * ATTEMPTS
    with pytest.raises(DataError):
        get(remote(site), tmp_path / "data.bin")
    changed = CONTENT[::-1]
    site.content["data.bin"], site.etag = changed, '"v2"'
    get(remote(site, checksum=""), tmp_path / "data.bin")
    assert (tmp_path / "data.bin").read_bytes() == changed


def test_more_on_disk_than_on_the_server_begins_anew(site: Site, tmp_path: Path) -> None:
    (tmp_path / "data.bin.part").write_bytes(CONTENT + b"more")
    (tmp_path / "data.bin.part.json").write_text('{"etag": "\\"v1\\""}')
    get(remote(site), tmp_path / "data.bin")
    assert (tmp_path / "data.bin").read_bytes() == CONTENT


@pytest.mark.parametrize("wrong", [{"checksum": "sha256:" + "0" * 64}, {"checksum": "md5:" + "0" * 32}, {"size": 5}])
def test_a_wrong_file_is_not_kept(site: Site, tmp_path: Path, wrong: dict[str, str]) -> None:
    with pytest.raises(DataError, match="is not the official file"):
        get(remote(site, **wrong), tmp_path / "data.bin")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_what_is_there_is_checked_and_never_overwritten(site: Site, tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(b"mine")
    with pytest.raises(DataError, match="Remove it to fetch it again"):
        get(remote(site), tmp_path / "data.bin")
    assert (tmp_path / "data.bin").read_bytes() == b"mine"
    (tmp_path / "data.bin").write_bytes(CONTENT)
    get(remote(site), tmp_path / "data.bin")
    assert not site.asked


def test_a_missing_file_is_asked_for_once(site: Site, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="404"):
        get(RemoteFile(site.url("none.bin"), "none.bin"), tmp_path / "none.bin")
    assert len(site.asked) == 1


def test_only_web_addresses_are_fetched(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="only http and https"):
        get(RemoteFile("file:///etc/hostname", "x"), tmp_path / "x")


def archive(*members: tuple[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members:
            packed.writestr(name, content)
    return file.getvalue()


def test_an_archive_is_unpacked_once(tmp_path: Path) -> None:
    packed = archive(("set/a.csv", b"1"), ("set/b/c.csv", b"2"))
    with serving(Site({"set.zip": packed})) as site:
        official = Official((), (RemoteFile(site.url("set.zip"), "set.zip", len(packed), unpack=True),))
        assert fetch(official, tmp_path / "set", pause=0) == 1
        fetch(official, tmp_path / "set", pause=0)
        assert len(site.asked) == 1
    assert (tmp_path / "set" / "set" / "b" / "c.csv").read_bytes() == b"2"
    assert not (tmp_path / "set" / "set.zip").exists()


@pytest.mark.parametrize("name", ["../out.csv", "/out.csv", "a/../../out.csv", "C:/out.csv"])
def test_an_archive_cannot_write_elsewhere(tmp_path: Path, name: str) -> None:
    with serving(Site({"set.zip": archive(("a.csv", b"1"), (name, b"2"))})) as site:
        official = Official((), (RemoteFile(site.url("set.zip"), "set.zip", unpack=True),))
        with pytest.raises(DataError, match="outside its folder"):
            fetch(official, tmp_path / "set", pause=0)
    assert not (tmp_path / "set" / "a.csv").exists()
    assert not (tmp_path / "out.csv").exists()


def test_a_damaged_archive_is_an_error(tmp_path: Path) -> None:
    with serving(Site({"set.zip": archive(("a.csv", b"1" * 1000))[:-40]})) as site:
        official = Official((), (RemoteFile(site.url("set.zip"), "set.zip", unpack=True),))
        with pytest.raises(DataError, match="cannot be unpacked"):
            fetch(official, tmp_path / "set", pause=0)


def test_published_sums_are_used(site: Site, tmp_path: Path) -> None:
    site.content["SHA256SUMS.txt"] = f"{SHA256[7:]} data.bin\n{'0' * 64} *other.bin\n".encode()
    official = Official((), (remote(site, checksum=""),), sums=site.url("SHA256SUMS.txt"))
    fetch(official, tmp_path / "a", pause=0)
    site.content["SHA256SUMS.txt"] = f"{'0' * 64}  data.bin\n".encode()
    with pytest.raises(DataError, match="is not the official file"):
        fetch(official, tmp_path / "b", pause=0)


def test_sums_never_replace_a_known_checksum() -> None:
    (file,) = add_checksums((RemoteFile("u", "a", checksum="md5:1"),), "2 a\n")
    assert file.checksum == "md5:1"


@pytest.mark.parametrize("name", OFFICIAL)
def test_every_source_can_be_fetched_or_says_how(name: str) -> None:
    official = OFFICIAL[name]
    assert bool(official.files) != bool(official.steps)
    assert all(file.url.startswith("https://") and not file.path.startswith("/") for file in official.files)
    assert not official.steps or "{folder}" in official.steps
    assert len({file.path for file in official.files}) == len(official.files)


def test_what_was_listed_is_what_was_read(real_data: Path) -> None:
    """The checksums of the list are those of the copies at hand."""
    for file in OFFICIAL["robot_failures"].files:
        digest = hashlib.sha256((real_data / "robot_failures" / file.path).read_bytes()).hexdigest()
        assert file.checksum == f"sha256:{digest}"
