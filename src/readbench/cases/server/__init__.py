"""HTTP service of a case library: JSON API and web pages; needs the extra `service`."""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.cases.roles import Role as Role
    from readbench.cases.server._app import Place as Place, check_place as check_place, serve as serve
    from readbench.cases.server._audit import AuditLog as AuditLog
    from readbench.cases.server._keys import KeyFile as KeyFile
    from readbench.cases.server._service import (
        Settings as Settings,
        count_search_processes as count_search_processes,
        share_processors as share_processors,
    )

open_room(__name__)
