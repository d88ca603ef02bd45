"""Tools for those who work on the project; not in the wheel."""
