from __future__ import annotations

from pathlib import Path

import pytest

from readbench.engine.devices import import_optional, pick_device, use_one_thread
from readbench.engine.encoders import _weights as module
from readbench.engine.encoders._weights import digest_weights, explain_missing_weights, locate_weights
from readbench.errors import DataError, UsageError

FILES = ("config.json", "model.safetensors")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "owner" / "net"
    place.mkdir(parents=True)
    for name in FILES:
        (place / name).write_text(name)
    return place


@pytest.fixture(autouse=True)
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the hub, and no folder of models."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv("READBENCH_MODELS", raising=False)
    return tmp_path / "hub"


def test_a_folder_gives_its_files_in_order(folder: Path) -> None:
    assert locate_weights(str(folder), FILES, "mantis") == tuple(folder / name for name in FILES)


def test_a_hub_id_is_looked_for_in_the_folder_of_models(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READBENCH_MODELS", str(folder.parent.parent))
    assert locate_weights("owner/net", FILES, "mantis") == tuple(folder / name for name in FILES)


def test_an_incomplete_folder_is_named_with_what_it_lacks(folder: Path) -> None:
    (folder / "config.json").unlink()
    with pytest.raises(DataError, match=rf"mantis finds no config\.json in {folder}"):
        locate_weights(str(folder), FILES, "mantis")


@pytest.mark.parametrize("path", ["/no/such/folder", "./net", "~/net", "some/deep/folder", "net"])
def test_a_path_that_does_not_exist_is_no_hub_id(path: str) -> None:
    with pytest.raises(DataError, match=r"mantis finds no .*config\.json and model\.safetensors"):
        locate_weights(path, FILES, "mantis")


def test_a_hub_that_cannot_be_reached_says_how_to_get_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    class Hub:
        @staticmethod
        def snapshot_download(name: str, **options: object) -> str:
            tries.append((name, options["revision"]))
            raise OSError("no route")

    monkeypatch.setattr(module, "import_optional", lambda *_: Hub)
    monkeypatch.setattr(module, "_unreachable", {})
    for _ in range(2):
        with pytest.raises(DataError, match=r"no route.*huggingface\.co/owner/gone.*weights=FOLDER"):
            locate_weights("owner/gone@v1", FILES, "mantis")
    assert tries == [("owner/gone", "v1")]


def test_what_the_hub_gives_is_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Hub:
        @staticmethod
        def snapshot_download(name: str, **options: object) -> str:
            assert (name, options["allow_patterns"]) == ("owner/other", list(FILES))
            return str(folder)

    monkeypatch.setattr(module, "import_optional", lambda *_: Hub)
    assert locate_weights("owner/other", FILES, "mantis") == tuple(folder / name for name in FILES)


def test_a_hub_that_lacks_a_file_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Hub:
        @staticmethod
        def snapshot_download(*_: object, **__: object) -> str:
            (folder / "config.json").unlink()
            return str(folder)

    monkeypatch.setattr(module, "import_optional", lambda *_: Hub)
    with pytest.raises(DataError, match=rf"mantis finds no config\.json in {folder}"):
        locate_weights("owner/other", FILES, "mantis")


@pytest.mark.parametrize(
    ("weights", "reference", "commit"),
    [("owner/net", "main", "abc"), ("owner/net@v1", "v1", "def"), ("owner/net@0123", "", "0123")],
)
def test_what_the_cache_of_the_hub_holds_is_used_without_asking(
    hub_cache: Path, monkeypatch: pytest.MonkeyPatch, weights: str, reference: str, commit: str
) -> None:
    monkeypatch.setattr(module, "_download", None)
    snapshot = hub_cache / "models--owner--net" / "snapshots" / commit
    snapshot.mkdir(parents=True)
    if reference:
        (hub_cache / "models--owner--net" / "refs").mkdir()
        (hub_cache / "models--owner--net" / "refs" / reference).write_text(commit + "\n")
    (snapshot / FILES[0]).write_text("")
    assert explain_missing_weights(weights, FILES)  # a download that was cut off
    (snapshot / FILES[1]).write_text("")
    assert explain_missing_weights(weights, FILES) == ""
    assert locate_weights(weights, FILES, "mantis") == tuple(snapshot / name for name in FILES)
    assert explain_missing_weights("owner/net@v2", FILES)


def test_what_is_missing_is_said_without_asking_the_hub(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_download", None)
    assert explain_missing_weights(str(folder), FILES) == ""
    assert explain_missing_weights("owner/net", FILES).startswith(
        "needs the weights owner/net, which are not on this machine: "
    )
    assert "https://huggingface.co/owner/net" in explain_missing_weights("owner/net@v1", FILES)
    assert explain_missing_weights("./nowhere", FILES).startswith("finds no ./nowhere: give the folder")
    monkeypatch.setenv("READBENCH_MODELS", str(folder.parent.parent))
    assert explain_missing_weights("owner/net", FILES) == ""
    (folder / "config.json").unlink()
    assert explain_missing_weights("owner/net", FILES).startswith(f"finds no config.json in {folder}")


def test_the_digest_follows_contents_not_places(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in FILES:
        (copy / name).write_text(name)
    own = digest_weights(locate_weights(str(folder), FILES, "mantis"))
    assert digest_weights(locate_weights(str(copy), FILES, "mantis")) == own
    (copy / "config.json").write_text("another text")
    assert digest_weights(locate_weights(str(copy), FILES, "mantis")) != own


def test_a_missing_package_is_named_with_its_extra() -> None:
    with pytest.raises(UsageError, match=r"mantis needs no_such_package: pip install 'readbench\[models\]'"):
        import_optional("no_such_package", "mantis")


def test_a_gpu_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UsageError, match=r"mantis\(device=cuda\) finds no CUDA GPU"):
        pick_device("cuda", "mantis")
    assert pick_device("auto", "mantis") == "cpu"


def test_torch_has_one_thread_inside_and_its_own_number_again_outside() -> None:
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    with use_one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)
