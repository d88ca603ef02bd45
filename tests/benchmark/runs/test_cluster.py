"""A real Ray cluster of two nodes on this machine: the same bytes, whoever dies on the way."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from readbench.benchmark.runs import LostItem, RayCluster, run
from readbench.common.progress import SILENT
from tests.benchmark.runs.helpers import assert_same_results, small_plan
from tests.benchmark.runs.work import begun, dies_when_told, refused

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head that does no work, and two nodes that do."""
    pytest.importorskip("ray")
    import ray  # noqa: PLC0415
    from ray.cluster_utils import Cluster  # noqa: PLC0415

    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes.add_node(num_cpus=1, resources={"first": 1})
    nodes.add_node(num_cpus=1, resources={"second": 1})
    ray.init(nodes.address, log_to_driver=False, logging_level="ERROR")
    yield nodes
    ray.shutdown()
    nodes.shutdown()


class Killing:
    """After the first cell kills one worker at its work; after the third takes a whole node away."""

    def __init__(self, cluster: Any) -> None:  # noqa: ANN401
        self.cluster = cluster
        self.cells = 0
        self.killed: list[int] = []
        self.nodes = 2

    def __call__(self, what: str, done: int, total: int | None, /) -> None:  # noqa: ARG002
        if what != "cells" or not done:
            return
        self.cells += 1
        if not self.killed and (working := workers_at_work()):
            self.killed = working[:1]
            os.kill(working[0], signal.SIGKILL)
        elif self.killed and self.cells > 3 and self.nodes == 2:
            self.cluster.remove_node(self.cluster.list_all_nodes()[-1])
            self.nodes = 1


def workers_at_work() -> list[int]:
    """Descendants of this process that Ray has named after the function they run."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], check=True, capture_output=True, text=True)  # noqa: S607
    lines = [line.split(maxsplit=2) for line in listed.stdout.splitlines()]
    parents = {int(own): int(parent) for own, parent, _ in lines}
    working = [int(own) for own, _, name in lines if name.startswith("ray::") and "_work" in name]
    return [own for own in working if os.getpid() in ancestors(own, parents)]


def ancestors(process: int, parents: dict[int, int]) -> set[int]:
    found: set[int] = set()
    while (process := parents.get(process, 0)) and process not in found:
        found.add(process)
    return found


def test_ray_gives_up_only_what_kills_every_worker(cluster: Any, tmp_path: Path) -> None:  # noqa: ANN401
    assert cluster.address
    items = [(tmp_path, 0, 0), (tmp_path, 1, 99), (tmp_path, 2, 1)]
    results = {item[1]: result for item, result in RayCluster().map(dies_when_told, items, SILENT)}
    assert isinstance(results[1], LostItem)
    assert (results[0], results[2]) == (0, 2)
    assert begun(tmp_path)[1] == 3
    with pytest.raises(KeyError, match="no 4"):
        list(RayCluster().map(refused, [4], SILENT))


def test_a_lost_worker_and_a_lost_node_change_no_byte(cluster: Any, tmp_path: Path, private_cache: Path) -> None:  # noqa: ANN401
    plan = small_plan(seeds=(7, 8))
    run(plan, tmp_path / "local", cache=private_cache)
    progress = Killing(cluster)
    summary = run(plan, tmp_path / "ray", executor=RayCluster(), cache=tmp_path / "cold", progress=progress)
    assert progress.killed
    assert progress.nodes == 1
    assert not summary.failures
    assert_same_results(tmp_path / "local", tmp_path / "ray")
