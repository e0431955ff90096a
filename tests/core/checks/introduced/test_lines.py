"""The line of a violation: of the link, the field or the entity that it speaks of, and none where that is not known."""

from __future__ import annotations

from typing import Any

import pytest

from kbcore.checks.introduced.lines import with_lines
from kbcore.extract.facts import Facts, StatedEntity, StatedLink
from kbcore.rules import Violation

FACTS = Facts(
    entities=(StatedEntity("REQ-1", "req", {}, 2, {"status": 4, "title": 3}), StatedEntity("REQ-2", "req", {}, 12)),
    links=(StatedLink("REQ-1", "GONE", line=7), StatedLink("REQ-2", "TEST-1", line=15)),
)


def line(key: str = "REQ-1", source: str = "a.md", facts: Facts | None = FACTS, **more: Any) -> int:
    one = Violation("rule", "error", key, "Worded as it may be: GONE, `title`.", "", source, **more)
    (found,) = with_lines([one], lambda _: facts)
    return found.line


@pytest.mark.parametrize(
    ("key", "more", "expected"),
    [
        ("REQ-1", {"values": ("", "GONE")}, 7),
        ("REQ-1", {"values": ("depends_on", "GONE")}, 7),
        ("REQ-1", {"field": "status"}, 4),
        ("REQ-1", {"field": "owner"}, 2),
        ("REQ-1", {}, 2),
        ("REQ-2", {}, 12),
        ("TEST-1", {"values": ("verified_by", "REQ-2")}, 15),
        ("REQ-3", {}, 0),
        ("REQ-1", {"field": "status", "line": 9}, 9),
    ],
)
def test_a_line_is_that_of_the_link_the_field_or_the_entity_whatever_the_message_says(key, more, expected):
    assert line(key, **more) == expected


def test_what_is_not_known_has_no_line():
    assert line(facts=None) == 0
    assert line(source="") == 0


def test_each_file_is_asked_for_once_and_not_without_end():
    asked = []
    many = [Violation("rule", "error", "REQ-1", f"bad {n}", "", f"{n // 2}.md") for n in range(2400)]
    lines = [one.line for one in with_lines(many, lambda path: asked.append(path) or FACTS)]
    assert len(asked) == len(set(asked)) == 1000
    assert len([one for one in lines if one]) == 2000


def test_the_links_of_a_file_are_gone_through_once_for_all_its_violations():
    rounds = []

    class Links(tuple[StatedLink, ...]):
        __slots__ = ()

        def __iter__(self):
            rounds.append(self)
            return super().__iter__()

    links = Links([StatedLink("REQ-1", "ELSE", line=5), *FACTS.links, StatedLink("REQ-1", "GONE", line=20)])
    facts = Facts(entities=FACTS.entities, links=links)
    many = [Violation("rule", "error", "REQ-1", f"Said {n} times.", "", "a.md", values=("", "GONE")) for n in range(9)]
    assert {one.line for one in with_lines(many, lambda _: facts)} == {7}
    assert len(rounds) == 1
