"""Nothing that is sent harms the service, the library or another reader."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings, strategies as st

from readbench.cases import Library
from tests.cases.server.conftest import SETTINGS
from tests.cases.server.test_api import csv
from tests.cases.test_hostile_files import workbook

HARM = "<script>harmed=1</script>\"'><img src=x onerror=alert(1)>"


def test_texts_are_escaped_everywhere(client: TestClient, library: Library) -> None:
    values = library.window("w0").values(0)
    library.add_one(values, (HARM, "flow", "speed"), id=HARM, label=HARM, asset=HARM, notes=HARM, tags=(HARM,))
    library.add_one(values, (HARM, "flow", "speed"), id="open", asset=HARM)
    addresses = ("/", "/cases", "/cases/open", "/overview", f"/cases?text={HARM}&tag={HARM}", "/login?next=/")
    for address in addresses:
        text = client.get(address).text
        assert "<script>harmed" not in text
        assert "<img src=x" not in text
    own = client.get("/cases/" + "".join(f"%{byte:02x}" for byte in HARM.encode()))
    assert own.status_code == 200
    assert "<script>harmed" not in own.text
    sent = client.post("/look", files={"file": (f"{HARM}.csv", csv("leak"))}, headers={"Accept": "text/html"})
    assert (sent.status_code, "<script>harmed" in sent.text) == (200, False)
    missing = client.get(f"/cases/{HARM}x", headers={"Accept": "text/html"})
    assert (missing.status_code, "<script>harmed" in missing.text) == (404, False)


def test_pages_run_no_foreign_code(client: TestClient) -> None:
    for address in ("/", "/cases/w0", "/overview", "/api", "/static/case.js", "/api/v1/stats", "/nowhere"):
        headers = client.get(address).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
    assert client.get("/api/v1/stats").headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2f..%2fkeys.json"])
def test_no_path_leads_out_of_the_static_files(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_a_name_of_a_file_is_never_a_path(client: TestClient, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    name = f"../../..{tmp_path}/planted.csv"
    assert client.post("/api/v1/files", files={"file": (name, csv("leak"))}).status_code == 201
    assert sorted(tmp_path.iterdir()) == before


def test_too_large_is_refused_before_it_is_read(client: TestClient) -> None:
    large = b"x" * (SETTINGS.max_bytes + 1)
    told = client.post("/api/v1/search", content=large)
    assert (told.status_code, "at most 400,000" in told.json()["detail"]) == (413, True)
    untold = client.post("/api/v1/search", content=(large[i : i + 50_000] for i in range(0, len(large), 50_000)))
    assert (untold.status_code, "more than 400,000" in untold.json()["detail"]) == (413, True)


def bomb() -> bytes:
    return gzip.compress(b"t,flow\n" + b"1,2\n" * 5_000_000)


def zip_bomb() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        header = b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '<f8', 'fortran_order': False, 'shape': (50000000,), }".ljust(
            117
        )
        file.writestr("flow.npy", header + b"\n" + bytes(40_000_000))
    return content.getvalue()


def pickled() -> bytes:
    content = io.BytesIO()
    np.savez(content, values=np.array([{"a": 1}], dtype=object))
    return content.getvalue()


def wide() -> bytes:
    return (",".join(f"c{i}" for i in range(500)) + "\n" + ",".join("1" * 500) + "\n").encode()


def long_parquet() -> bytes:
    content = io.BytesIO()
    pq.write_table(pa.table({"flow": np.zeros(3_000_000)}), content)
    return content.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv.gz", bomb()),
        ("a.npz", zip_bomb()),
        ("a.npz", pickled()),
        ("a.csv", wide()),
        ("a.parquet", long_parquet()),
        ("a.exe", b"MZ"),
        ("a.csv", b""),
        ("a.csv", b"\xff\xfe\x00"),
        ("a.csv", b"t,flow\n1,1\n"[:7]),
        ("a.csv", b'"' * 1000),
        ("a.parquet", b"PAR1" * 100),
        ("a.npz", b"PK\x03\x04" * 10),
        ("", b"t,flow\n0,1\n"),
    ],
)
def test_malicious_files_get_a_sentence(client: TestClient, library: Library, name: str, content: bytes) -> None:
    for route in ("search-file", "files"):
        answer = client.post(f"/api/v1/{route}", files={"file": (name, content)})
        assert answer.status_code in {400, 413, 422}, answer.text[:300]
        assert len(answer.json()["detail"]) > 10
    assert library.stats().change == 2


def good(ending: str) -> bytes:
    if ending == "csv":
        return csv("leak")
    if ending == "xlsx":
        rows = "".join(f"<row><c><v>{i}</v></c><c t='s'><v>0</v></c><c><v>{i * i}</v></c></row>" for i in range(20))
        return workbook(rows, "<si><t>flow</t></si>")
    content = io.BytesIO()
    columns = {name: np.arange(30.0) for name in ("flow", "speed")}
    if ending == "npz":
        np.savez(content, **columns)  # type: ignore[arg-type]
    else:
        pq.write_table(pa.table(columns), content)
    return content.getvalue()


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), ending=st.sampled_from(["csv", "npz", "parquet", "xlsx"]))
def test_damaged_files_are_refused_or_read(client: TestClient, data: st.DataObject, ending: str) -> None:
    content = bytearray(good(ending))
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    answer = client.post("/api/v1/search-file", files={"file": (f"a.{ending}", bytes(content[:cut]))})
    assert answer.status_code in {200, 400, 422}, answer.text


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b"{",
        b'{"case": "\\ud800"}',
        b'{"k": 1e999, "case": "w0"}',
        b"\x00\xff",
        b'{"case": NaN}',
        b"null",
    ],
)
def test_malformed_json_gets_a_sentence(client: TestClient, content: bytes) -> None:
    answer = client.post("/api/v1/search", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code in {400, 404, 422}
    assert len(answer.json()["detail"]) > 10
