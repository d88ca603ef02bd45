"""The server of Toto-1.0-QA, around a stand-in with the signatures of its authors' code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import requests

from readbench.engine.llm import read_match
from readbench.engine.llm._messages import Image, ModelRequest, SeriesPart, Text
from readbench.engine.llm._providers import Toto
from readbench.engine.llm._settings import Profile
from tests.serving import answering

torch = pytest.importorskip("torch")

COMPONENTS = """
from dataclasses import dataclass
from typing import Any

@dataclass
class TimeSeriesData:
    series: Any
    padding_mask: Any
    id_mask: Any
    timestamp_seconds: Any
    time_interval_seconds: Any
    num_groups: int
    query_group: str
    group_names: list
"""
EVALUATION = """
import torch

SEEN = []

class Processor:
    def __call__(self, text, return_tensors, padding, truncation, images=None):
        return {"input_ids": torch.zeros(1, len(text[0].split()), dtype=torch.long), "said": text}

def load_model_and_processor(model_path, force_single_gpu=True):
    assert not force_single_gpu
    return torch.nn.Linear(2, 2), Processor()

def get_model_prompt(question, image_paths, processor, system_prompt=None, ts_data=None, add_ts_metadata=False):
    assert add_ts_metadata
    SEEN.append((image_paths, ts_data))
    return f"{system_prompt} {question}", list(image_paths), []

def move_ts_data_to_device(ts_data, device):
    if ts_data is not None:
        ts_data.series = ts_data.series.to(device)

def generate_and_decode(model, processor, inputs, ts_data, use_timeseries, temperature, max_new_tokens):
    assert (temperature, use_timeseries) == (0.0, ts_data is not None)
    if max_new_tokens == 13:
        raise RuntimeError("CUDA out of memory")
    words = '{"match": "yes", "confidence": 80}' if max_new_tokens > 4 else '{"match"'
    return words, torch.zeros(min(max_new_tokens, 9))
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder laid out like the authors' repository."""
    for name, text in (("model/toto_vlm_components", COMPONENTS), ("evaluation/eval_toto_vlm", EVALUATION)):
        file = tmp_path / "toto-1.0-qa-experimental" / f"{name}.py"
        file.parent.mkdir(parents=True)
        (file.parent / "__init__.py").touch()
        file.write_text(text)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in [own for own in sys.modules if own.split(".")[0] in ("evaluation", "model")]:
        del sys.modules[name]


@pytest.fixture
def served(checkout: Path) -> Iterator[tuple[str, list[Any]]]:
    """Address of a server, and what its model was shown."""
    from research.toto_server import TotoModel, serve  # noqa: PLC0415 - needs torch

    model = TotoModel(checkout, "stand-in", steps=128)
    with answering(serve(model, 0)) as address:
        yield address, model.upstream.SEEN


def question() -> ModelRequest:
    values = np.arange(20, dtype=np.float32)
    parts = (
        Text("same fault?"),
        Image(b"png", 2, 2),
        SeriesPart(0, '"a"', values, ""),
        SeriesPart(1, '"a"', values[:5], ""),
    )
    return ModelRequest("role", parts, {})


def test_a_question_reaches_the_authors_code_and_its_answer_comes_back(served: tuple[str, list[Any]]) -> None:
    url, seen = served
    reply = Toto(Profile(provider="toto-http", model="toto", base_url=url)).complete(question())
    assert read_match(reply.text) == 80.0
    assert (reply.stop, reply.model, reply.usage.output_tokens) == ("end", "stand-in", 9)
    pictures, series = seen[0]
    assert pictures == ["data:image/png;base64,cG5n"]
    assert series.series.shape == (2, 128)
    assert series.padding_mask.sum(dim=1).tolist() == [20, 5]
    assert series.id_mask[:, 0].tolist() == [0.0, 1.0]
    assert series.series[0, 19] == 19.0
    assert series.group_names == ['window 0: "a"', 'window 1: "a"']


def test_an_answer_that_fills_its_tokens_is_cut_off(served: tuple[str, list[Any]]) -> None:
    reply = Toto(Profile(provider="toto-http", model="toto", base_url=served[0], max_tokens=4)).complete(question())
    assert reply.stop == "truncated"


def test_what_goes_wrong_is_told(served: tuple[str, list[Any]]) -> None:
    assert requests.post(f"{served[0]}/answer", json={"question": "?"}, timeout=9).status_code == 400
    full: dict[str, Any] = {
        "series": [],
        "ids": [],
        "channels": [],
        "images": [],
        "question": "?",
        "system": "",
        "max_tokens": 13,
    }
    failed = requests.post(f"{served[0]}/answer", json=full, timeout=9)
    assert (failed.status_code, failed.json()["error"]) == (500, "CUDA out of memory")
