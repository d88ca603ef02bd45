"""The contract every method and source keeps, as checks that a plug-in author runs on his own class.

```python
import pytest
from readbench.testing import RETRIEVER_CHECKS, SOURCE_CHECKS

@pytest.mark.parametrize("check", RETRIEVER_CHECKS, ids=lambda check: check.__name__)
def test_my_method_keeps_the_contract(check):
    check("my-method(k=3)")

@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_my_source_keeps_the_contract(check):
    check(MySource(), root)
```
"""

from readbench.testing.reach import reachable
from readbench.testing.retrievers import RETRIEVER_CHECKS, RetrieverCheck
from readbench.testing.samples import sample_windows
from readbench.testing.sources import SOURCE_CHECKS, SourceCheck

__all__ = [
    "RETRIEVER_CHECKS",
    "SOURCE_CHECKS",
    "RetrieverCheck",
    "SourceCheck",
    "reachable",
    "sample_windows",
]
