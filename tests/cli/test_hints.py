"""Every hint that a command of ``kb`` shows can be followed at the command line: no tool of MCP, and no JSON."""

from __future__ import annotations

import re

import pytest

FOREIGN = (
    r"\bkb[_.](?:query|upsert|delete|check|history|sleep)\b",
    r"\bexecute_kip\b",
    r"[{\[] ?\"",
    r'"\w+":',
    r"\$\.",
)
"""Hints that only a client of the tools, or a program that writes requests, could follow."""
_FIRST_WORDS = (r"Or ", r"And ", r"or ")

CALLS = [
    ("new", "Person"),
    ("new", "rq"),
    ("new", "req"),
    ("new", "req", "title="),
    ("new", "req", "status="),
    ("new", "req", "--title", "x", "type=test"),
    ("new", "req", "--title", "x", "--file", "/etc/x"),
    ("new", "req", "--title", "x", "--file", "a.md", "--store"),
    ("new", "req", "--title", "x", "--id", "REQ-1"),
    ("new", "req", "--title", "x", "--id", "a b\n"),
    ("new", "req", "--title", "x", "--id", "A", "--prefix", "B"),
    ("set", "REQ-9", "a=b"),
    ("set", "REQ-1", "status"),
    ("set", "REQ-1", "id=3"),
    ("set", "REQ-1", "tags+="),
    ("set", "REQ-1", "tags-=x"),
    ("set", "REQ-1", "title+=x"),
    ("set", "REQ-1", "title="),
    ("set", "REQ-1", "status=a", "status=b"),
    ("set", "REQ-1", "verified_by=TEST-1"),
    ("set", "REQ-1", "metadata=x"),
    ("set", "REQ-1", "created_at=x"),
    ("set", "REQ-1", "type=nope"),
    ("set", "REQ-1", "size:=["),
    ("link", "REQ-1", "verifid_by", "TEST-1"),
    ("link", "REQ-1", "verified_by", "NOPE"),
    ("link", "REQ-1", "verified_by", "REQ-2"),
    ("link", "REQ-1", "verified_by:x", "TEST-1"),
    ("link", "REQ-1", "relates_to", "REQ-2"),
    ("link", "REQ-1", "", "REQ-2"),
    ("link", "", "relates_to:x", "REQ-1"),
    ("link", "REQ-1", "verified_by", "TEST-1", "--confidence", "3"),
    ("link", "REQ-1", "verified_by", "TEST-1", "--confidence", "x"),
    ("unlink", "REQ-1", "verified_by", "TEST-1"),
    ("unlink", "REQ-1", "verified_by", "NOPE"),
    ("unlink", "REQ-1", "verifid_by", "TEST-1"),
    ("unlink", "REQ-1", "verified_by:k", "TEST-1"),
    ("unlink", "", "", ""),
    ("confirm", "NOPE"),
    ("confirm", "REQ-1", "x"),
    ("confirm", "REQ-1", "verified_by", "TEST-9"),
    ("confirm", "REQ-1", "verif", "TEST-1"),
    ("rename", "REQ-1", "TEST-1"),
    ("rename", "NOPE", "X"),
    ("rename", "REQ-1", ""),
    ("delete",),
    ("delete", "NOPE"),
    ("delete", "REQ-1"),
    ("delete", "--edge", "REQ-1", "verified_by", "TEST-1"),
    ("delete", "--edge", "a", "b", "c"),
]


@pytest.mark.sliced(13)
@pytest.mark.parametrize("words", CALLS, ids=" ".join)
def test_a_hint_names_nothing_that_the_command_line_does_not_have(synced, kb, words):
    ran = kb(*words)
    assert ran.status != 0
    assert "hint: " in ran.err
    hints = [ran.err.partition("hint: ")[2], *re.findall(r"\(([^()]*)\)$", ran.err, re.MULTILINE)]
    for hint in hints:
        assert [found for form in FOREIGN for found in re.findall(form, hint)] == []
        assert not re.match("|".join(_FIRST_WORDS), hint)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("new", "Person"), "For example `kb new Person --title …`."),
        (
            ("link", "REQ-1", "relates_to", "REQ-2"),
            "Say how the two relate with EDGE as TYPE:KIND, such as relates_to:see_also.",
        ),
        (("link", "REQ-1", "verified_by:x", "TEST-1"), "Write EDGE without the colon and what follows it."),
        (("link", "REQ-1", "", "TEST-1"), "Give the type of the edge as EDGE, such as depends_on."),
        (("link", "REQ-1", "verified_by", "QQ"), "To make it, create it before the edge or in the same write."),
    ],
)
def test_a_hint_says_what_is_typed(synced, kb, words, hint):
    assert hint in kb(*words).err
