"""Whatever characters a command holds, it is split in linear time, and what is no KIP is named with its place."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbcore import limits
from kbcore.errors import KipRefused
from kbcore.kip import syntax as s
from kbcore.kip.parsing import parse
from kbcore.kip.parsing.lexer import Tokens

NAME = 'SEARCH CONCEPT "%s"'
VALUE = 'UPSERT { CONCEPT { {type: "T", name: "N"} SET ATTRIBUTES {a: %s} } }'


def refusal(text: str) -> KipRefused:
    with pytest.raises(KipRefused) as caught:
        parse(text)
    return caught.value


@settings(deadline=None)
@given(st.text(max_size=60) | st.text("FIND(?x) {}[]\"'\\/*:.,-0123456789e|&<>=!\n\t", max_size=60))
def test_any_text_is_split_without_loss(text) -> None:
    tokens = Tokens(text)
    assert tokens.kinds[-1] == "end"
    for at, word in zip(tokens.ats, tokens.words, strict=True):
        assert text[at : at + len(word)] == word
    error = None
    try:
        parse(text)
    except KipRefused as caught:
        error = caught
    assert error is None or 0 <= error.data["offset"] <= len(text)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("\ufeffDESCRIBE PRIMER", "A byte order mark (U+FEFF) is here", "Save the text without it."),
        ("DESCRIBE\u2028PRIMER", "U+2028 (line separator) is no blank of KIP", "a plain line break"),
        ("DESCRIBE\u00a0PRIMER", "U+00A0 (no-break space) is no blank of KIP", "Use a space"),
        ("DESCRIBE\u200bPRIMER", "U+200B (zero width space) is no blank of KIP", "Use a space"),
        ("DESCRIBE\u202ePRIMER", "U+202E (right-to-left override) is no blank", "Use a space"),
        ("DESCRIBE\x85PRIMER", "U+0085 is no blank of KIP", "Use a space"),
        ("DESCRIBE PRIMER\0", "A control character (\\x00) is outside of a text", "without it"),
        ("DESCRIBE\x0cPRIMER", "A control character (\\x0c) is outside", "without it"),
        ("FIND(?имя) WHERE { }", "U+0438 (cyrillic small letter i) is only allowed inside", "of ASCII"),
        ("FIND(?naïve) WHERE { }", "U+00EF", "of ASCII"),
        ("SEARCH CONCEPT “x”", "U+201C (left double quotation mark) is no quote", "straight double quotes"),
        ("SEARCH CONCEPT `x`", "found ```", "double quotes"),
        ('SEARCH CONCEPT "x', "A text opens here and is not closed", "on its line"),
        ('SEARCH CONCEPT "x\ny"', "A text opens here and is not closed", "`\\n`"),
        ('SEARCH CONCEPT "x\ty"', "A text contains a raw tab", "`\\t`"),
        ('SEARCH CONCEPT "x\0y"', "A text contains a raw NUL", "no text of KB contains a NUL"),
        ('SEARCH CONCEPT "x\x1by"', "A text contains a raw control character", "`\\u001b`"),
        (NAME % "C:\\path", "`\\p` begins no escape", "\\\\"),
        (NAME % "\\u12", "`\\u` begins no escape", "four hex digits"),
        (NAME % "\\ud800", "half of a surrogate pair as an escape", "whole characters"),
        (NAME % "\\udc00\\ud800", "half of a surrogate pair as an escape", "whole characters"),
        (NAME % "\\u0000", "a NUL as an escape", "no NUL"),
        (VALUE % "01", "'01' is no number", "no leading zero"),
        (VALUE % "1.", "'1.' is no number", "both sides of the point"),
        (VALUE % ".5", "'.5' is no number", "both sides of the point"),
        (VALUE % "+1", "'+1' is no number", "no plus"),
        (VALUE % "0x10", "'0x10' is no number", "as JSON does"),
        (VALUE % "1e999", "does not fit into 64 bits", "as text"),
        (VALUE % ("9" * 19), "does not fit into 64 bits", "as text"),
        (VALUE % ("9" * 5000), "does not fit into 64 bits", "as text"),
        (VALUE % "$self", "found `$self`", '"$self"'),
        ("FIND(?) WHERE { }", "found `?`", "directly followed by"),
        ("FIND(? n) WHERE { }", "found `?`", "directly followed by"),
        (f"FIND(?{'x' * 101}) WHERE {{ }}", "is too long", "at most 100 characters"),
        (f"FIND(?x{'.y' * 33}) WHERE {{ }}", "The path is too long", "at most 32 names"),
    ],
)
def test_what_is_no_kip_is_named_with_its_remedy(text, message, hint) -> None:
    error = refusal(text)
    assert error.data["kip_code"] == "KIP_1001"
    assert message in error.message
    assert hint in error.hint
    error.message.encode()


def test_half_of_a_surrogate_pair_is_no_text() -> None:
    error = refusal('SEARCH CONCEPT "\ud800"')
    assert error.message == "The text contains half of a surrogate pair (line 1, column 17)."
    error.data["excerpt"].encode()


@pytest.mark.parametrize("blank", [" ", "\t", "\n", "\r\n", "\r", "// x\n", "// x\r", "\t// \u2028 \" '\n"])
def test_blanks_and_comments_stand_between_all_tokens(blank) -> None:
    tokens = ["", "FIND", "(", "?n", ")", "WHERE", "{", "?n", "{", "type", ":", '"T"', "}", "}", "LIMIT", "5", ""]
    tree = parse(blank.join(tokens))
    assert isinstance(tree, s.FindCommand)
    assert tree.limit.value == 5


def test_a_comment_may_end_the_text_and_no_comment_is_in_a_string() -> None:
    tree = parse('SEARCH CONCEPT "http://x" // the end')
    assert isinstance(tree, s.SearchCommand)
    assert tree.term.value == "http://x"


def test_strings_hold_every_whole_character() -> None:
    tree = parse(r'SEARCH CONCEPT "\u00e9\ud83d\ude00\/\"\\\b\f\n\r\t' + "é😀\u2028\u202e\x7f\ufeff" + '"')
    assert isinstance(tree, s.SearchCommand)
    assert tree.term.value == 'é😀/"\\\b\f\n\r\té😀\u2028\u202e\x7f\ufeff'


@pytest.mark.parametrize(
    ("written", "value"),
    [("0", 0), ("-0", 0), ("1.0", 1.0), ("-1.5e-3", -0.0015), ("9223372036854775807", 2**63 - 1), ("2E+3", 2000.0)],
)
def test_numbers_keep_their_kind(written, value) -> None:
    tree = parse(VALUE % written)
    assert isinstance(tree, s.Upserts)
    [found] = tree.upserts[0].blocks[0].attributes.as_json().values()
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("value", ["true", "null", "1", '"x"', ":v", "[]", "{}"])
def test_a_value_may_follow_its_colon_without_a_blank(value) -> None:
    tree = parse('UPSERT{CONCEPT{{type:"T",name:"N"}SET ATTRIBUTES{a:%s,"b":%s}}}' % (value, value))  # noqa: UP031
    assert isinstance(tree, s.Upserts)
    assert len(tree.upserts[0].blocks[0].attributes.members) == 2


def test_a_text_that_is_too_long_is_a_matter_of_resources() -> None:
    error = refusal(" " * (limits.MAX_KIP_BYTES + 1))
    assert error.data["kip_code"] == "KIP_4002"
    assert str(limits.MAX_KIP_BYTES) in error.message
    assert refusal(NAME % ("é" * 40_000)).data["kip_code"] == "KIP_4002"
    parse(NAME % ("x" * limits.MAX_TEXT_BYTES))
    padding = limits.MAX_KIP_BYTES - len("DESCRIBE PRIMER")
    assert parse("DESCRIBE PRIMER" + " " * padding) == s.DescribePrimer()


DEEP = {
    "values": lambda n: VALUE % ("[" * n + "]" * n),
    "objects": lambda n: VALUE % ('{"a":' * n + "1" + "}" * n),
    "groups": lambda n: "FIND(?n) WHERE {" + "NOT {" * n + '?n {type: "T"}' + "}" * n + "}",
    "conditions": lambda n: "FIND(?n) WHERE { FILTER(" + "!(" * n + "1 == 1" + ")" * n + ") }",
    "links": lambda n: "FIND(?n) WHERE { " + "(" * n + '?a, "p", ?b' + '), "p", ?b' * (n - 1) + ") }",
    "facts": lambda n: "UPSERT { PROPOSITION { " + "(" * n + '?a, "p", ?b' + '), "p", ?b' * (n - 1) + ") } }",
    "calculations": lambda n: (
        "UPDATE ?n SET ATTRIBUTES {a: " + "ADD(1, " * n + "1" + ")" * n + '} WHERE { ?n {type: "T"} }'
    ),
}


@pytest.mark.parametrize("kind", DEEP)
def test_nesting_is_bounded_and_never_a_matter_of_the_stack(kind) -> None:
    parse(DEEP[kind](30))
    for depth in (limits.MAX_KIP_DEPTH + 1, 5_000):
        error = refusal(DEEP[kind](depth))
        assert error.data["kip_code"] == "KIP_4002"
        assert str(limits.MAX_KIP_DEPTH) in error.message


def test_the_deepest_command_leaves_room_on_the_stack() -> None:
    deepest = DEEP["conditions"](limits.MAX_KIP_DEPTH - 2)
    kept = sys.getrecursionlimit()
    frame, used = sys._getframe(), 0
    while frame:
        frame, used = frame.f_back, used + 1
    sys.setrecursionlimit(used + 400)
    try:
        parse(deepest)
    finally:
        sys.setrecursionlimit(kept)


@pytest.mark.sliced(5)
@pytest.mark.parametrize("filler", [*"?\"'\\:/-.é{9x|\0", "/*", "//\n", "?x.", '"\\'])
def test_a_long_row_of_one_sign_is_split_in_linear_time(filler) -> None:
    steps = []
    for length in (10_000, 100_000):
        tokens = Tokens(filler * (length // len(filler)))
        steps.append(len(tokens.kinds))
        with pytest.raises(KipRefused):
            parse(filler * (length // len(filler)))
    assert steps[1] <= 12 * steps[0]
