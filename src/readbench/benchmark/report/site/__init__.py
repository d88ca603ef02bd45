"""A run as a web site in one file: tables, figures and a browser of cases."""

from readbench.benchmark.report.site._write import PAGE, write_site
