"""A Ray cluster, or Ray on this machine alone."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from readbench.errors import UsageError
from readbench.experiment.executors.base import TRIES, Item, Lost, Result, Work
from readbench.pipeline import Progress

VARIABLES = "READBENCH_"
"""Variables of the caller with this beginning hold on every node."""


class RayCluster:
    """Work on all nodes of a Ray cluster, one processor an item.

    Ray itself begins an item again when its worker or its whole node is lost. How far encodings have come is not told
    across machines.

    Args:
        address: of a running cluster (`auto`, `head:6379`); without one the cluster that this
            process is connected to, else one that lives on this machine as long as the work.
        gpus: that each item needs; Ray then runs as many items at a time as there are GPUs, each with its own.
    """

    name = "ray"

    def __init__(self, address: str | None = None, gpus: float = 0) -> None:
        self.address = address
        self.gpus = gpus

    def connected(self) -> AbstractContextManager[None]:
        """Hold one connection for several calls of `map`, each of which would else make its own."""
        return _connected(_ray(), self.address)

    def map(
        self,
        work: Work[Item, Result],
        items: Sequence[Item],
        encoding: Progress,  # noqa: ARG002 - part of the protocol
    ) -> Iterator[tuple[Item, Result | Lost]]:
        """Each item with its result; see `Executor`."""
        ray = _ray()
        with self.connected():
            needs = {"num_cpus": 1, "num_gpus": self.gpus, "runtime_env": {"env_vars": _variables()}}
            remote = ray.remote(max_retries=TRIES - 1, **needs)(_work)
            pending = {remote.remote(work, item): item for item in items}
            try:
                while pending:
                    for ended in ray.wait(list(pending))[0]:
                        yield pending.pop(ended), _result(ray, ended)
            finally:
                for unfinished in pending:
                    ray.cancel(unfinished, force=True)


def _ray() -> Any:  # noqa: ANN401 - an optional package has no types here
    try:
        import ray  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(
            "--executor ray needs Ray, which is not installed: pip install 'readbench[cluster]'."
            " Without it, --executor processes uses all processors of this machine."
        ) from error
    return ray


@contextmanager
def _connected(ray: Any, address: str | None) -> Iterator[None]:  # noqa: ANN401
    """Use the connection that is there, or hold one as long as the block lasts."""
    if ray.is_initialized():
        yield
        return
    try:
        ray.init(address, log_to_driver=False, logging_level="ERROR", include_dashboard=None if address else False)
    except (ConnectionError, ValueError) as error:
        raise UsageError(f"No Ray cluster answers at {address!r}: {error}. Start one: ray start --head") from error
    try:
        yield
    finally:
        ray.shutdown()


def _variables() -> dict[str, str]:
    """Variables of the caller that every node needs; an item has one processor, so one thread unless told otherwise."""
    own = {name: value for name, value in os.environ.items() if name.startswith(VARIABLES)}
    return {"READBENCH_THREADS": "1"} | own


def _result(ray: Any, reference: Any) -> Any:  # noqa: ANN401
    """The result behind a reference; errors of the work are raised as they were."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error
    except ray.exceptions.RayError as error:
        return Lost(f"{Lost().reason} Ray says: {' '.join(str(error).split())[:300]}")


def _work(work: Work[Item, Result], item: Item) -> Result:
    return work(item, _untold)


def _untold(leg: str, done: int, total: int) -> None:
    """News that stay where they are."""
