"""READ-Bench: find the historical case that explains a new fault in time-series data.

    import readbench

    task = readbench.load_task("sim_tanks")
    readbench.evaluate("dtw-i", task)                                  # metrics at each pollution level
    readbench.run("sim_tanks", ["euclidean", "dtw-i"], out="runs/first").leaderboard()
    readbench.Method("dtw-i").fit(cases).rank(new, k=5).order          # arrays (N, C, T) are windows

The names below are imported when first used, so that `import readbench` stays fast.
"""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench import errors as errors, testing as testing
    from readbench.benchmark.evaluation import (
        Evaluation as Evaluation,
        RunResults as RunResults,
        evaluate as evaluate,
        read_run as read_run,
        run as run,
    )
    from readbench.benchmark.protocol import (
        Channel as Channel,
        Protocol as Protocol,
        Recording as Recording,
        Source as Source,
        SourceInfo as SourceInfo,
        Task as Task,
        load_task as load_task,
    )
    from readbench.cases import Library as Library
    from readbench.engine import abilities as abilities, protocols as protocols
    from readbench.engine.method import Knowledge as Knowledge, Method as Method
    from readbench.engine.parameters import ParameterRange as ParameterRange
    from readbench.engine.registry import ENCODERS, FUSIONS, METRICS, RERANKERS, RETRIEVERS, SOURCES
    from readbench.engine.windows import Window as Window, WindowSet as WindowSet
    from readbench.studies import STUDIES
    from readbench.version import __version__ as __version__

    register_encoder = ENCODERS.register
    register_fusion = FUSIONS.register
    register_metric = METRICS.register
    register_reranker = RERANKERS.register
    register_retriever = RETRIEVERS.register
    register_source = SOURCES.register
    register_study = STUDIES.register

open_room(__name__)
