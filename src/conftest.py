"""Doctests of rooms that need an optional package are collected only where it is installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") and find_spec("onnx") else ["readbench/training/*"]
