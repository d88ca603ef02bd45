"""Simulated electrocardiograms, one group per patient."""

from readbench.data.simulators.ecg.simulator import Ecg

__all__ = ["Ecg"]
