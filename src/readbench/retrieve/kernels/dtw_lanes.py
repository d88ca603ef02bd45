"""The width of the vectors that DTW computes with: one number of each of `LANES` series."""

from __future__ import annotations

from typing import Final

from readbench.kernels.lanes import loading, splatting, wide_registers

LANES: Final = 64 if wide_registers() else 32
"""Series compared at once: as many as keep two rows of the recursion in registers."""

load = loading(LANES)
splat = splatting(LANES)
