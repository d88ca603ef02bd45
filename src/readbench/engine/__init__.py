"""Methods: from windows to a ranking with a calibrated opinion; independent of datasets, runs and libraries."""
