"""From windows to a ranking with an opinion; knows nothing of datasets, runs or libraries."""
