"""Studies beside a run: assets, READ-X, early retrieval, compound faults, opinions, active learning, UCR, corpora."""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.benchmark.studies._active_learning import (
        LEARNING_METRIC,
        RANDOM,
        TELLING,
        LabellingResult,
        LearningCurve,
        measure_labelling,
        simulate_labelling,
    )
    from readbench.benchmark.studies._assets import CONSTANT, AssetCell, AssetResult, measure_assets
    from readbench.benchmark.studies._compound import CompoundResult, measure_compound
    from readbench.benchmark.studies._cost import COST_TASK, COSTS, MethodCost, measure_costs, read_costs, write_costs
    from readbench.benchmark.studies._early import EARLY_METRICS, FALSE_NOTICES, EarlyResult, Way, measure_early
    from readbench.benchmark.studies._opinions import (
        HeldOut,
        OpinionQuality,
        Quality,
        form_opinions,
        measure_opinions,
        novel_faults,
        quality,
        require_opinions,
    )
    from readbench.benchmark.studies._readx import READX_METRICS, ReadxCell, ReadxResult, measure_readx
    from readbench.benchmark.studies._scale import (
        SCALE_METRIC,
        SHORTLISTS,
        Findings,
        ScaleCell,
        ScaleMeasurement,
        ScaleStudy,
        TwoStage,
        exponent,
        measure_scale,
    )
    from readbench.benchmark.studies._scale_world import World
    from readbench.benchmark.studies._study import Failure, SeededCell, Study, StudyResult, run_study
    from readbench.benchmark.studies._ucr import accuracy, measure_archive, read_archive_set

__all__ = [
    "CONSTANT",
    "COSTS",
    "COST_TASK",
    "EARLY_METRICS",
    "FALSE_NOTICES",
    "LEARNING_METRIC",
    "RANDOM",
    "READX_METRICS",
    "SCALE_METRIC",
    "SHORTLISTS",
    "TELLING",
    "AssetCell",
    "AssetResult",
    "CompoundResult",
    "EarlyResult",
    "Failure",
    "Findings",
    "HeldOut",
    "LabellingResult",
    "LearningCurve",
    "MethodCost",
    "OpinionQuality",
    "Quality",
    "ReadxCell",
    "ReadxResult",
    "ScaleCell",
    "ScaleMeasurement",
    "ScaleStudy",
    "SeededCell",
    "Study",
    "StudyResult",
    "TwoStage",
    "Way",
    "World",
    "accuracy",
    "exponent",
    "form_opinions",
    "measure_archive",
    "measure_assets",
    "measure_compound",
    "measure_costs",
    "measure_early",
    "measure_labelling",
    "measure_opinions",
    "measure_readx",
    "measure_scale",
    "novel_faults",
    "quality",
    "read_archive_set",
    "read_costs",
    "require_opinions",
    "run_study",
    "simulate_labelling",
    "write_costs",
]

__getattr__ = open_room(__name__)
