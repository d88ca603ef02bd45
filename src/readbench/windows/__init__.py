"""The one container of windows, its file format, and the ways to bring windows onto a common grid."""

from readbench.windows.container import NORMAL, UNLABELLED, Window, WindowSet, concatenate
from readbench.windows.disk import WindowWriter, load_windows, save_windows
from readbench.windows.reconcile import (
    ChannelStats,
    Normalisation,
    channel_axis,
    dense,
    normalise,
    resample,
)

__all__ = [
    "NORMAL",
    "UNLABELLED",
    "ChannelStats",
    "Normalisation",
    "Window",
    "WindowSet",
    "WindowWriter",
    "channel_axis",
    "concatenate",
    "dense",
    "load_windows",
    "normalise",
    "resample",
    "save_windows",
]
