"""HTTP service of a case library: JSON API and web pages; needs the extra `service`."""

from readbench.cases.roles import Role
from readbench.cases.server._app import Place, check_place, serve
from readbench.cases.server._audit import AuditLog
from readbench.cases.server._keys import KeyFile
from readbench.cases.server._service import Settings, count_search_processes, share_processors

__all__ = [
    "AuditLog",
    "KeyFile",
    "Place",
    "Role",
    "Settings",
    "check_place",
    "count_search_processes",
    "serve",
    "share_processors",
]
