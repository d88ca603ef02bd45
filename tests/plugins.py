"""Packages with plug-ins, laid out as an installer does, and the command line that finds them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests import warm

Readbench = Callable[..., subprocess.CompletedProcess[str]]


def install(site: Path, name: str, code: str, *, version: str = "1.2.3") -> None:
    """Lay a distribution out in `site` as an installer does, with its plug-in entry point."""
    module = name.replace("-", "_")
    package = site / module
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "methods.py").write_text(code)
    info = site / f"{module}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[readbench.plugins]\n{name} = {module}.methods\n")
    (info / "INSTALLER").write_text("pip\n")
    files = sorted(path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file())
    (info / "RECORD").write_text("".join(f"{path},,\n" for path in [*files, f"{info.name}/RECORD"]))


def command_line(site: Path, folder: Path) -> Readbench:
    """The command line in a process that finds the packages in `site` and works in `folder`.

    Where `site` holds another `readbench`, that one is imported anew; else the call comes from the warm process.
    """
    words = warm.PLAIN if (site / "readbench").exists() else warm.readbench()
    environment = {key: value for key, value in os.environ.items() if key not in {"READBENCH_DATA", "PYTHONWARNINGS"}}
    path = os.pathsep.join([str(site), *filter(None, [environment.get("PYTHONPATH")])])

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*words, *arguments],
            env=environment | {"PYTHONPATH": path, "COLUMNS": "200"},
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )

    return run
