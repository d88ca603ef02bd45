"""What a dataset can be trusted with: shortcuts, copies, doubtful labels and power, each with a verdict."""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.benchmark.audit._audit import (
        DatasetAudit as DatasetAudit,
        Finding as Finding,
        Verdict as Verdict,
        audit_task as audit_task,
        judge_copies as judge_copies,
        judge_labels as judge_labels,
        judge_power as judge_power,
        judge_probes as judge_probes,
        judge_twins as judge_twins,
        measure_power as measure_power,
    )
    from readbench.benchmark.audit._copies import (
        Copies as Copies,
        Copy as Copy,
        Leaks as Leaks,
        find_copies as find_copies,
        find_leaks as find_leaks,
    )
    from readbench.benchmark.audit._labels import (
        Contradiction as Contradiction,
        DoubtfulLabels as DoubtfulLabels,
        doubt_labels as doubt_labels,
    )
    from readbench.benchmark.audit._probes import (
        PROBES as PROBES,
        Probe as Probe,
        deal_labels as deal_labels,
        expect_by_chance as expect_by_chance,
        measure_gain as measure_gain,
        share_discounts as share_discounts,
    )

open_room(__name__)
