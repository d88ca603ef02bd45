"""Methods with a name of their own."""

from __future__ import annotations

import pytest

from readbench.engine.spec import COMPOSED, parse


@pytest.mark.parametrize(("name", "text"), COMPOSED.items())
def test_a_name_means_its_text_and_the_text_is_canonical(name: str, text: str) -> None:
    assert str(parse(name.upper())) == text
    assert parse(text).title == name.capitalize()
    assert parse(name).fingerprint() == parse(text).fingerprint()
