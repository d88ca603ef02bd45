"""What a component declares is not asked of it: the check is skipped, and the report says by which declaration."""

from __future__ import annotations

from unittest import SkipTest

from readbench.engine.registry import TAGS, Entry


def not_asked(component: str, declaration: str) -> SkipTest:
    """To be raised where a rule does not apply; pytest and unittest report the test as skipped, with this reason."""
    return SkipTest(f"{component} declares {declaration}")


def require_untagged(entry: Entry, tag: str) -> None:
    """Skip the check for a component that declares the tag.

    >>> from readbench.engine.registry import RETRIEVERS
    >>> require_untagged(RETRIEVERS.get("euclidean"), "by-position")
    """
    if tag in entry.tags:
        raise not_asked(entry.name, f"{tag}: {TAGS[tag]}")
