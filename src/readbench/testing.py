"""The contract every method, source and metric keeps, as checks that a plug-in author runs on his own class.

```python
import pytest
from readbench.testing import ENCODER_CHECKS, METRIC_CHECKS, RERANKER_CHECKS, RETRIEVER_CHECKS, SOURCE_CHECKS

@pytest.mark.parametrize("check", RETRIEVER_CHECKS, ids=lambda check: check.__name__)
def test_my_method_keeps_the_contract(check):
    check("my-method(k=3)")

@pytest.mark.parametrize("check", ENCODER_CHECKS, ids=lambda check: check.__name__)
def test_my_encoder_keeps_the_contract(check):
    check("my-encoder")

@pytest.mark.parametrize("check", RERANKER_CHECKS, ids=lambda check: check.__name__)
def test_my_reranker_keeps_the_contract(check):
    check("my-reranker(k=5)")

@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
def test_my_source_keeps_the_contract(check):
    check(MySource(), root)

@pytest.mark.parametrize("check", METRIC_CHECKS, ids=lambda check: check.__name__)
def test_my_metric_keeps_the_contract(check):
    check("MRR@10")
```
"""

from readbench.benchmark.testing import METRIC_CHECKS, SOURCE_CHECKS, MetricCheck, SourceCheck
from readbench.engine.testing import (
    ENCODER_CHECKS,
    RERANKER_CHECKS,
    RETRIEVER_CHECKS,
    EncoderCheck,
    RerankerCheck,
    RetrieverCheck,
    reachable,
    sample_pool,
    sample_windows,
)

__all__ = [
    "ENCODER_CHECKS",
    "METRIC_CHECKS",
    "RERANKER_CHECKS",
    "RETRIEVER_CHECKS",
    "SOURCE_CHECKS",
    "EncoderCheck",
    "MetricCheck",
    "RerankerCheck",
    "RetrieverCheck",
    "SourceCheck",
    "reachable",
    "sample_pool",
    "sample_windows",
]
