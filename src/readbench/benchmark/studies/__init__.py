"""Studies beside a run: active learning, the UCR archive, shortcuts, full corpora."""

from readbench.benchmark.studies._active_learning import (
    LEARNING_METRIC,
    RANDOM,
    TELLING,
    LabellingResult,
    simulate_labelling,
)
from readbench.benchmark.studies._scale import (
    SCALE_METRIC,
    SHORTLISTS,
    Failure,
    Findings,
    ScaleCell,
    ScaleListener,
    ScaleMeasurement,
    ScaleStudy,
    TwoStage,
    exponent,
    run_study,
)
from readbench.benchmark.studies._scale_world import World
from readbench.benchmark.studies._shortcuts import Shortcuts, probe_shortcuts
from readbench.benchmark.studies._ucr import accuracy, archive_sets

__all__ = [
    "LEARNING_METRIC",
    "RANDOM",
    "SCALE_METRIC",
    "SHORTLISTS",
    "TELLING",
    "Failure",
    "Findings",
    "LabellingResult",
    "ScaleCell",
    "ScaleListener",
    "ScaleMeasurement",
    "ScaleStudy",
    "Shortcuts",
    "TwoStage",
    "World",
    "accuracy",
    "archive_sets",
    "exponent",
    "probe_shortcuts",
    "run_study",
    "simulate_labelling",
]
