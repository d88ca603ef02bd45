"""Doctests of rooms that need an optional package are collected only where it is installed."""

from importlib.util import find_spec

NEEDS = {
    "readbench/engine/encoders/sonde_network.py": ("torch", "onnx"),
    "readbench/cases/server/*": ("fastapi", "uvicorn", "jinja2", "prometheus_client", "lancedb"),
}
collect_ignore_glob = [room for room, packages in NEEDS.items() if not all(map(find_spec, packages))]
