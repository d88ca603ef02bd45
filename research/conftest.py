"""Doctests are collected only where what they import is installed; exports run in environments of their own."""

from importlib.util import find_spec

NEEDS = {
    "training/*": ("torch", "onnx"),
    "exports/moment.py": ("momentfm",),
    "exports/tspulse.py": ("tsfm_public",),
    "toto_server.py": ("torch",),
}
collect_ignore_glob = [room for room, packages in NEEDS.items() if not all(map(find_spec, packages))]
