from __future__ import annotations

from pathlib import Path

import pytest

from readbench.encoders import weights as module
from readbench.encoders.devices import package, pick_device
from readbench.encoders.weights import digest, locate
from readbench.errors import DataError, UsageError

FILES = ("config.json", "model.safetensors")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "owner" / "net"
    place.mkdir(parents=True)
    for name in FILES:
        (place / name).write_text(name)
    return place


def test_a_folder_gives_its_files_in_order(folder: Path) -> None:
    assert locate(str(folder), FILES, "mantis") == tuple(folder / name for name in FILES)


def test_a_hub_id_is_looked_for_in_the_folder_of_models(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READBENCH_MODELS", str(folder.parent.parent))
    assert locate("owner/net", FILES, "mantis") == tuple(folder / name for name in FILES)


def test_an_incomplete_folder_is_named_with_what_it_lacks(folder: Path) -> None:
    (folder / "config.json").unlink()
    with pytest.raises(DataError, match=rf"mantis: {folder} lacks config\.json"):
        locate(str(folder), FILES, "mantis")


@pytest.mark.parametrize("path", ["/no/such/folder", "./net", "~/net", "some/deep/folder", "net"])
def test_a_path_that_does_not_exist_is_no_hub_id(path: str) -> None:
    with pytest.raises(DataError, match=r"mantis: there is no .*config\.json and model\.safetensors"):
        locate(path, FILES, "mantis")


def test_a_hub_that_cannot_be_reached_says_how_to_get_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    class Hub:
        @staticmethod
        def snapshot_download(name: str, **options: object) -> str:
            tries.append((name, options["revision"]))
            raise OSError("no route")

    monkeypatch.setattr(module, "package", lambda *_: Hub)
    monkeypatch.setattr(module, "_unreachable", {})
    for _ in range(2):
        with pytest.raises(DataError, match=r"no route.*huggingface\.co/owner/gone.*mantis\(weights=FOLDER\)"):
            locate("owner/gone@v1", FILES, "mantis")
    assert tries == [("owner/gone", "v1")]


def test_what_the_hub_gives_is_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Hub:
        @staticmethod
        def snapshot_download(name: str, **options: object) -> str:
            assert (name, options["allow_patterns"]) == ("owner/other", list(FILES))
            return str(folder)

    monkeypatch.setattr(module, "package", lambda *_: Hub)
    assert locate("owner/other", FILES, "mantis") == tuple(folder / name for name in FILES)


def test_the_digest_follows_contents_not_places(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in FILES:
        (copy / name).write_text(name)
    own = digest(locate(str(folder), FILES, "mantis"))
    assert digest(locate(str(copy), FILES, "mantis")) == own
    (copy / "config.json").write_text("another text")
    assert digest(locate(str(copy), FILES, "mantis")) != own


def test_a_missing_package_is_named_with_its_extra() -> None:
    with pytest.raises(UsageError, match=r"mantis needs no_such_package: pip install 'readbench\[models\]'"):
        package("no_such_package", "mantis")


def test_a_gpu_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UsageError, match=r"mantis\(device=cuda\) finds no CUDA GPU"):
        pick_device("cuda", "mantis")
    assert pick_device("auto", "mantis") == "cpu"
