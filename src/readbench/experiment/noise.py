"""Wrong labels: how many cases of the archive carry the name of another fault type.

Labels are given case by case, so a wrong one is wrong for all windows of a fault in a recording. Cases become wrong in
an order that the split seed and their names fix, until the share of the corpus's faults is reached; the last case is
cut off there. A larger share contains every smaller one, and the same case gets the same wrong name under both. Normals
stay normal, and the wrong names are those of other fault types of the corpus.

Only what methods may know is changed: queries and evaluation keep the true labels.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from readbench.data import Task
from readbench.windows import NORMAL

Labels = NDArray[np.int32]


def mislabelled(task: Task, percent: float) -> Labels:
    """(N,) labels of the largest corpus, of whose faults so many percent are called something else.

    A corpus of one fault type has no other name to give and keeps its labels.
    """
    true = task.corpus.labels
    faults = np.flatnonzero(true > NORMAL)
    classes = np.unique(true[faults])
    labels = true.copy()
    if len(classes) < 2:
        return labels
    cases = [f"{task.seed} wrong {group} {label}" for group, label in zip(task.corpus.groups, true, strict=True)]
    digests = {case: hashlib.sha256(case.encode()).digest() for case in sorted(set(cases))}
    order = sorted(faults.tolist(), key=lambda item: digests[cases[item]])
    for item in order[: round(percent / 100 * len(faults))]:
        others = classes[classes != true[item]]
        labels[item] = others[int.from_bytes(digests[cases[item]][-8:], "big") % len(others)]
    return labels
