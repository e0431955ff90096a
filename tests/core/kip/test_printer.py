"""A tree that is written and parsed again is the same tree, but for the places."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbcore.kip.binding import bind
from kbcore.kip.parsing import parse
from kbcore.kip.printer import write
from kbcore.text.escaping import escape_lines
from tests.support.effort.scale import tries
from tests.support.generators.kip_trees import commands, without_places


@pytest.mark.sliced
@settings(max_examples=tries(20, 60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.booleans().flatmap(lambda some: commands(with_placeholders=some)))
def test_what_is_written_is_parsed_as_the_same_tree(tree) -> None:
    text = write(tree)
    assert without_places(parse(text)) == without_places(tree), text
    assert write(parse(text)) == text
    assert escape_lines(text) == text


@pytest.mark.sliced
@settings(max_examples=tries(20, 60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(commands())
def test_a_tree_without_placeholders_is_bound_as_it_is(tree) -> None:
    assert without_places(bind(tree)) == without_places(tree)
