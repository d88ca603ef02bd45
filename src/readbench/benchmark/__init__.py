"""The benchmark: data, metrics, runs, studies and reports over the engine."""
