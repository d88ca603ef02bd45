"""Doctests of training are collected only where torch and onnx are installed."""

from importlib.util import find_spec

NEEDS = {"training/*": ("torch", "onnx")}
collect_ignore_glob = [room for room, packages in NEEDS.items() if not all(map(find_spec, packages))]
