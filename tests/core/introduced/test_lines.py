"""The line of a violation: of the link, the field or the entity that it speaks of, and none where that is not known."""

from __future__ import annotations

import pytest

from kbcore.extract.facts import Facts, StatedEntity, StatedLink
from kbcore.introduced.lines import lines_of
from kbcore.rules import Violation

FACTS = Facts(
    entities=(StatedEntity("REQ-1", "req", {}, 2, {"status": 4, "title": 3}), StatedEntity("REQ-2", "req", {}, 12)),
    links=(StatedLink("REQ-1", "GONE", line=7), StatedLink("REQ-2", "TEST-1", line=15)),
)


def line(message: str, key: str = "REQ-1", source: str = "a.md", facts: Facts | None = FACTS) -> int | None:
    one = Violation("rule", "error", key, message, "", source)
    return lines_of([one], lambda _: facts).get(one)


@pytest.mark.parametrize(
    ("message", "key", "expected"),
    [
        ("REQ-1 links to GONE, but there is no GONE.", "REQ-1", 7),
        ("REQ-1 depends_on GONE.", "REQ-1", 7),
        ("REQ-1 has no `status`, which every req needs.", "REQ-1", 4),
        ("The req REQ-1 is linked to nothing.", "REQ-1", 2),
        ("REQ-2 is of no use.", "REQ-2", 12),
        ("REQ-2 verified_by TEST-1 leads from req to test.", "TEST-1", 15),
        ("REQ-3 is stated elsewhere.", "REQ-3", None),
        ("a.md:9: not valid YAML", "a.md", 9),
    ],
)
def test_a_line_is_that_of_what_the_message_speaks_of(message, key, expected):
    assert line(message, key) == expected


def test_what_is_not_known_has_no_line():
    assert line("REQ-1 links to GONE.", facts=None) is None
    assert line("REQ-1 links to GONE.", source="") is None


def test_each_file_is_asked_for_once_and_not_without_end():
    asked = []
    many = [Violation("rule", "error", "REQ-1", f"bad {n}", "", f"{n // 2}.md") for n in range(2400)]
    lines = lines_of(many, lambda path: asked.append(path) or FACTS)
    assert len(asked) == len(set(asked)) == 1000
    assert len(lines) == 2000


def test_the_links_of_a_file_are_gone_through_once_for_all_its_violations():
    rounds = []

    class Links(tuple[StatedLink, ...]):
        __slots__ = ()

        def __iter__(self):
            rounds.append(self)
            return super().__iter__()

    links = Links([StatedLink("REQ-1", "ELSE", line=5), *FACTS.links, StatedLink("REQ-1", "GONE", line=20)])
    facts = Facts(entities=FACTS.entities, links=links)
    many = [
        Violation("rule", "error", "REQ-1", f"REQ-1 links to GONE for the {n}. time.", "", "a.md") for n in range(9)
    ]
    assert {*lines_of(many, lambda _: facts).values()} == {7}
    assert len(rounds) == 1
