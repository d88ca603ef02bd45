"""A run as a web site in one file: tables, figures and a browser of cases."""

from typing import TYPE_CHECKING

from readbench.common.rooms import open_room

if TYPE_CHECKING:
    from readbench.benchmark.report.site._write import PAGE as PAGE, write_site as write_site

open_room(__name__)
