"""Large arrays lie in files that nobody sees, and a full disk is said, not crashed into."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

from readbench.engine import room
from readbench.engine.room import allocate as make
from readbench.errors import DataError


@pytest.mark.parametrize("dtype", [np.float32, np.int64, [("document", np.int32), ("weight", np.float32)]])
def test_what_is_large_lies_in_a_file_without_a_name(
    dtype: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(room, "MAX_IN_MEMORY_BYTES", 99)
    size = np.dtype(dtype).itemsize  # type: ignore[call-overload]
    small, large = (make(count, dtype) for count in (99 // size, 99 // size + 1))  # type: ignore[arg-type]
    assert not isinstance(small.base, np.memmap)
    assert isinstance(large.base, np.memmap)
    assert large.nbytes > 99
    large[:] = np.ones(1, large.dtype)
    assert (large == large[0]).all()
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="this system cannot reserve room on a disk")
def test_a_disk_that_is_too_small_is_said_at_once() -> None:
    with pytest.raises(DataError, match=r"No room for 9007199\.3 GB in .* Set TMPDIR"):
        make(2**51)
