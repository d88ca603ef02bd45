"""A small real run with names that mean harm, and its page."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from readbench.benchmark.report import TableStudy, keep_gallery, read_results, tasks_of
from readbench.benchmark.report._case_figures import fault_strip
from readbench.benchmark.report.site import write_site
from readbench.benchmark.runs import run
from readbench.common.plots import save
from tests.benchmark.runs.helpers import small_plan

METHODS = ("random", "stats", "euclidean", "euclidean+majvote")
DATASETS = ("sim_tanks", "sim_tanks(difficulty=2)")
PLAN = small_plan(datasets=DATASETS, methods=METHODS, levels=(0, 20))
GALLERY = "gallery.parquet"
HOSTILE = "</script><script>window.harmed = 1</script><img src=x onerror='window.harmed = 1'>"
HOSTILE_CHANNEL = 'flow"><b onmouseover=harmed()>'


def poisoned_run(folder: Path, cache: Path) -> Path:
    """Run a small plan; one class, one channel and the texts of one dataset are then written as an attacker would."""
    run(PLAN, folder, cache=cache)
    results = read_results(folder)
    assert not keep_gallery(results, tasks_of(results, cache=cache))
    table = pq.read_table(folder / GALLERY)
    metadata = table.schema.metadata[b"readbench"].decode()
    hostile = [name == DATASETS[1] for name in table["dataset"].to_pylist()]
    labels = [
        HOSTILE if harm and label == "leak in tank 3" else label
        for harm, label in zip(hostile, table["label"].to_pylist(), strict=True)
    ]
    channels = [
        [HOSTILE_CHANNEL, *names[1:]] if harm else names
        for harm, names in zip(hostile, table["channels"].to_pylist(), strict=True)
    ]
    table = table.set_column(table.column_names.index("label"), "label", pa.array(labels))
    table = table.set_column(table.column_names.index("channels"), "channels", pa.array(channels))
    facts = json.loads(metadata)
    for task in facts["datasets"][DATASETS[1]]["tasks"].values():
        task[HOSTILE] = task.pop("leak in tank 3")
    pq.write_table(table.replace_schema_metadata({"readbench": json.dumps(facts)}), folder / GALLERY)
    manifest = json.loads((folder / "run.json").read_text())
    manifest["datasets"][DATASETS[1]] |= {"title": f"Tanks {HOSTILE}", "description": HOSTILE, "licence": HOSTILE}
    manifest["datasets"][DATASETS[1]]["url"] = "javascript:window.harmed=1"
    (folder / "run.json").write_text(json.dumps(manifest))
    figure = folder / "report" / "figures" / "fault-strip.svg"
    save(fault_strip(TableStudy(read_results(folder))), figure)
    write_site(folder, figures=[figure])
    return folder
