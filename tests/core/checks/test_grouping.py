"""Violations of one kind as one entry: which others it names."""

from __future__ import annotations

import msgspec

from kbcore.checks.grouping import FEW, grouped
from kbcore.rules.registry import Violation


def test_others_of_a_kind_name_no_place_twice_nor_that_of_the_first():
    one = Violation(
        rule="unreadable-source", severity="error", id="a.md", message="Not closed.", remedy="", source="a.md", line=1
    )
    again = [msgspec.structs.replace(one, line=line) for line in range(2, FEW + 2)]
    elsewhere = [msgspec.structs.replace(one, id="b.md", source="b.md", line=line) for line in (1, 2)]

    [group] = grouped([one, *again, *elsewhere])

    [entry] = group.shown
    assert (len(entry.others), [each.id for each in entry.elsewhere]) == (FEW + 2, ["b.md"])
