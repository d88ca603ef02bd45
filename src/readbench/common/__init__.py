"""Helpers that every room uses: files, cache, progress, deadlines, users' tables, times, plots."""
