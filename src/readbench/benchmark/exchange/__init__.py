"""Data that come and go: what users import, tasks for other loaders, and the official files."""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.benchmark.exchange._explain import explain_import as explain_import
    from readbench.benchmark.exchange._exported import Form as Form, export_task as export_task
    from readbench.benchmark.exchange._fetch import fetch as fetch
    from readbench.benchmark.exchange._imported import (
        Draft as Draft,
        Imported as Imported,
        check_name as check_name,
        draft_dataset as draft_dataset,
    )
    from readbench.benchmark.exchange._official import (
        OFFICIAL as OFFICIAL,
        Extent as Extent,
        Official as Official,
        RemoteFile as RemoteFile,
        State as State,
        Status as Status,
        status_of as status_of,
    )
    from readbench.benchmark.exchange._ready_made import (
        ReadyTask as ReadyTask,
        check_unchanged as check_unchanged,
        is_ready_task as is_ready_task,
        read_ready_task as read_ready_task,
    )
    from readbench.benchmark.exchange._recordings import (
        ImportedRecordings as ImportedRecordings,
        read_cases as read_cases,
        table_files as table_files,
    )
    from readbench.benchmark.imported import imported_datasets as imported_datasets

open_room(__name__)
