"""Training needs torch and onnx, which the package itself does not: without them these tests are skipped."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install 'readbench[training]'")
pytest.importorskip("onnx", reason="training needs onnx: pip install 'readbench[training]'")

torch.set_num_threads(1)  # tensors this small wait for one another longer than they take
