"""Tasks for others: corpus, queries and relevance judgments with a dataset card, in layouts that other loaders read."""

from readbench.data.exported.export import Form, export_task

__all__ = ["Form", "export_task"]
