"""Data that come and go: what users import, tasks for other loaders, and the official files."""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.benchmark.exchange._explain import explain_import
    from readbench.benchmark.exchange._exported import Form, export_task
    from readbench.benchmark.exchange._fetch import fetch
    from readbench.benchmark.exchange._imported import Draft, Imported, check_name, draft_dataset
    from readbench.benchmark.exchange._official import OFFICIAL, Extent, Official, RemoteFile, State, Status, status_of
    from readbench.benchmark.exchange._ready_made import ReadyTask, check_unchanged, is_ready_task, read_ready_task
    from readbench.benchmark.exchange._recordings import ImportedRecordings, read_cases, table_files
    from readbench.benchmark.imported import imported_datasets

__getattr__ = open_room(__name__)
