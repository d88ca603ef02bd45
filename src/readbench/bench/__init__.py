"""Speed against peers, as ratios measured in one run."""

from readbench.bench.measure import Case, Contender, Result, Timing, measure

__all__ = ["Case", "Contender", "Result", "Timing", "measure"]
