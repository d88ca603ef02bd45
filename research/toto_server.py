"""A server of Toto-1.0-QA for the provider `toto-http`, around the inference code that its authors publish.

It runs in their environment, not in ours, on GPUs that hold 32 billion parameters (four of 40 GB, they say):

    git clone https://github.com/DataDog/ARFBench && cd ARFBench    # then its environment, as its README says
    python PATH/TO/research/toto_server.py --arfbench . --port 8001

and in the file of profiles: `[toto]`, `like = "paper-toto"`, `base_url = "http://localhost:8001"`.

Its code is called as its own evaluation calls it: series padded with zeros to 12,800 steps, greedy, the channels' names
behind the question. The code embeds one set of series a question, so that the windows of a question go in together, and
`id_mask` tells them apart.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import torch

MODEL = "Datadog/Toto-1.0-QA-Experimental"
STEPS = 12_800
"""Length that series are padded to: the mean that the network takes over time has the padding in it."""
INTERVAL_S = 60.0
"""Seconds between readings, which questions do not tell; upstream puts no true times into its own either."""


class TotoModel:
    """The model, asked one question at a time.

    Args:
        arfbench: a checkout of the authors' repository.
        weights: hub id or folder.
        steps: see `STEPS`.
    """

    def __init__(self, arfbench: Path, weights: str, steps: int = STEPS) -> None:
        sys.path[:0] = [str(arfbench / "toto-1.0-qa-experimental"), str(arfbench)]
        self.upstream: Any = importlib.import_module("evaluation.eval_toto_vlm")
        self.components: Any = importlib.import_module("model.toto_vlm_components")
        self.weights, self.steps = weights, steps
        self.model, self.processor = self.upstream.load_model_and_processor(weights, force_single_gpu=False)
        self._one = threading.Lock()

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """What goes back for one question of the protocol."""
        series = self.series_of(asked) if asked["series"] else None
        pictures = [f"data:image/png;base64,{picture}" for picture in asked["images"]]
        with self._one:
            prompt, images, _ = self.upstream.get_model_prompt(
                asked["question"], pictures, self.processor, asked["system"], series, add_ts_metadata=True
            )
            shown = {"images": [images]} if images else {}
            inputs = self.processor(text=[prompt], return_tensors="pt", padding=True, truncation=False, **shown)
            device = next(self.model.parameters()).device
            inputs = {name: own.to(device) if hasattr(own, "to") else own for name, own in inputs.items()}
            self.upstream.move_ts_data_to_device(series, device)
            text, written = self.upstream.generate_and_decode(
                self.model, self.processor, inputs, series, series is not None, 0.0, asked["max_tokens"]
            )
        used = {"input_tokens": int(inputs["input_ids"].shape[1]), "output_tokens": len(written)}
        cut = len(written) >= asked["max_tokens"]
        return {"text": text, "usage": used, "stop": "max_tokens" if cut else "end_turn", "model": self.weights}

    def series_of(self, asked: dict[str, Any]) -> Any:  # noqa: ANN401 - a class of upstream
        """All series of a question as upstream holds them, (C, T) each."""
        count = len(asked["series"])
        values, kept = torch.zeros(count, self.steps), torch.zeros(count, self.steps, dtype=torch.bool)
        for row, readings in enumerate(asked["series"]):
            own = torch.tensor(readings[: self.steps])
            values[row, : len(own)], kept[row, : len(own)] = own, True
        windows = torch.tensor(asked["ids"], dtype=torch.float32)
        return self.components.TimeSeriesData(
            series=values,
            padding_mask=kept,
            id_mask=windows[:, None].expand(count, self.steps).clone(),
            timestamp_seconds=(torch.arange(self.steps) * INTERVAL_S).repeat(count, 1),
            time_interval_seconds=torch.full((count,), INTERVAL_S),
            num_groups=count,
            query_group="question",
            group_names=[f"window {own}: {name}" for own, name in zip(asked["ids"], asked["channels"], strict=True)],
        )


def serve(model: TotoModel, port: int) -> ThreadingHTTPServer:
    """A server on this machine alone; `serve_forever` starts it."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Answer one question; what goes wrong goes back in words."""
            try:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                self._send(200, model.answer(asked))
            except (KeyError, TypeError, ValueError) as error:
                self._send(400, {"error": f"no question of the protocol: {error!r}"})
            except RuntimeError as error:  # of torch, most often memory
                self._send(500, {"error": str(error)})

        def _send(self, status: int, said: dict[str, Any]) -> None:
            content = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


if __name__ == "__main__":
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--arfbench", type=Path, required=True, help="checkout of github.com/DataDog/ARFBench")
    words.add_argument("--weights", default=MODEL, help="hub id or folder")
    words.add_argument("--port", type=int, default=8001)
    chosen = words.parse_args()
    serve(TotoModel(chosen.arfbench, chosen.weights), chosen.port).serve_forever()
