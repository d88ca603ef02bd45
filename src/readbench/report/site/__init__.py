"""The site of a run: one self-contained page with leaderboard, methods, datasets and a browser of cases."""

from readbench.report.site.links import case_link
from readbench.report.site.write import PAGE, write_site

__all__ = ["PAGE", "case_link", "write_site"]
