"""From a trained body to the file that ships (ONNX, weights in half precision, arithmetic in single), and back."""

from __future__ import annotations

import io
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from readbench.training.body import Body, Shape
from readbench.training.draws import LENGTH

OPSET = 17
HALF = ".half"
SMALLEST = 64
"""Numbers from which on a tensor is stored in half precision."""


def export(body: Body, path: Path, metadata: dict[str, Any]) -> None:
    """Write the body: input `series` (B, 512), output `vectors` (B, 2 width), any B."""
    model = halved(_traced(body.cpu()))
    helper.set_model_props(model, {name: json.dumps(value) for name, value in metadata.items()})
    onnx.checker.check_model(model)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.SerializeToString())


def _traced(body: Body) -> onnx.ModelProto:
    """The body as a graph whose tensors have the names of its parameters, so that `load` finds them."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter that keeps the names is the older one, and says so
        torch.onnx.export(
            body,
            (torch.zeros(2, LENGTH),),
            buffer,
            input_names=["series"],
            output_names=["vectors"],
            dynamic_axes={"series": {0: "count"}, "vectors": {0: "count"}},
            opset_version=OPSET,
            do_constant_folding=False,
            training=torch.onnx.TrainingMode.TRAINING,  # else equal tensors become one, and the others lose their names
            dynamo=False,
        )
    return onnx.load_model_from_string(buffer.getvalue())


def halved(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same model with large float tensors stored in float16 and cast when it is loaded."""
    casts = []
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype != np.float32 or values.size < SMALLEST:
            continue
        name = tensor.name
        tensor.CopyFrom(numpy_helper.from_array(values.astype(np.float16), f"{name}{HALF}"))
        casts.append(helper.make_node("Cast", [f"{name}{HALF}"], [name], to=TensorProto.FLOAT))
    nodes = [*casts, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def load(path: Path) -> Body:
    """The body in a file that `export` wrote."""
    model = onnx.load_model(path)
    config = json.loads(next(item.value for item in model.metadata_props if item.key == "config"))
    body = Body(Shape(**config["shape"]))
    stored = {t.name.removesuffix(HALF): numpy_helper.to_array(t) for t in model.graph.initializer}
    body.load_state_dict({name: torch.from_numpy(stored[name].astype(np.float32)) for name in body.state_dict()})
    return body.eval()
