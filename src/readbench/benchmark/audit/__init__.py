"""What a dataset can be trusted with: shortcuts, copies, doubtful labels and power, each with a verdict."""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.benchmark.audit._audit import (
        DatasetAudit,
        Finding,
        Verdict,
        audit_task,
        judge_copies,
        judge_labels,
        judge_power,
        judge_probes,
        judge_twins,
        measure_power,
    )
    from readbench.benchmark.audit._copies import Copies, Copy, Leaks, find_copies, find_leaks
    from readbench.benchmark.audit._labels import Contradiction, DoubtfulLabels, doubt_labels
    from readbench.benchmark.audit._probes import (
        PROBES,
        Probe,
        deal_labels,
        expect_by_chance,
        measure_gain,
        share_discounts,
    )

__getattr__ = open_room(__name__)
