"""Work for fresh processes; light to import, since those import it.

As a program it starts a process that never ends by itself, writes its number, and waits.
"""

from __future__ import annotations

import os
import signal
import time
from multiprocessing import get_context

from readbench.common.processes import end_with_parent
from readbench.common.progress import Progress
from readbench.errors import UsageError


def double(number: int, progress: Progress) -> int:
    """Twice the number; negative ones are refused, and zero kills the process."""
    progress("doubling", number, 10)
    if number < 0:
        raise UsageError("negative")
    if number == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number


def linger() -> None:
    """Stay as long as the parent does."""
    end_with_parent()
    time.sleep(600)


if __name__ == "__main__":
    process = get_context("spawn").Process(target=linger)
    process.start()
    print(process.pid, flush=True)  # noqa: T201 - the test reads it
    process.join()
