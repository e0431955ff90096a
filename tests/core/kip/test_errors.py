"""The error of a command that is refused: the place, what was expected, and one remedy that fits."""

from __future__ import annotations

import pytest

from kbcore.errors import KBError, KipRefused
from kbcore.kip.errors import CODES, REFERENCE, envelope, placed, placing, refused
from kbcore.kip.parsing import parse
from kbcore.kip.places import excerpt, place_of

A = '?n {type: "A"}'


def refusal(text: str) -> KipRefused:
    with pytest.raises(KipRefused) as caught:
        parse(text)
    return caught.value


# A command, the column of the place, a part of the message, a part of the hint.
CASES = [
    ("find(?n) WHERE { }", 1, "found `find`", "in capitals: FIND."),
    ("", 1, "found the end of the command", "DESCRIBE PRIMER"),
    ("SELECT * FROM x", 1, "Expected `FIND`, `UPSERT`", "FIND(?n) WHERE"),
    ("FNID(?n)", 1, "found `FNID`", "Did you mean FIND?"),
    ("FIND ?n WHERE { }", 6, "Expected `(`, found `?n`", "FIND(…) WHERE { … }."),
    ("FIND(?n WHERE { }", 9, "Expected `,` or `)`, found `WHERE`", "Close the `(` of line 1, column 5 with `)`."),
    ("FIND(?n, ) WHERE { }", 10, "found `)`", "no comma comes"),
    ("FIND() WHERE { }", 6, "found `)`", "Name what to find, as in FIND(?x.name)"),
    ("FIND(COUNT(*)) WHERE { }", 12, "found `*`", "COUNT(?n)"),
    ("FIND(?n.) WHERE { }", 6, "found `?n.`", "A path has no blanks"),
    ("FIND(?n) { }", 10, "Expected `WHERE`, found `{`", "FIND(…) WHERE"),
    ("FIND(?n) WHERE { }", 18, "found `}`", "at least one clause"),
    ("FIND(?n) WHERE { FILTR(1 == 1) }", 18, "found `FILTR`", "Did you mean FILTER?"),
    ("FIND(?n) WHERE { optional { } }", 18, "found `optional`", "in capitals: OPTIONAL."),
    (f"FIND(?n) WHERE {{ {A}, {A} }}", 32, "found `,`", "without commas"),
    (f"FIND(?n) WHERE {{ {A} LIMIT 5", 33, "found `LIMIT`", "Close the `{` of line 1, column 16 with `}`."),
    (f"FIND(?n) WHERE {{ {A}", 32, "found the end of the command", "Close the `{` of line 1, column 16 with `}`."),
    (f"FIND(?n) WHERE {{ {A} }} }}", 35, "found `}`", "Remove the `}`"),
    (f"FIND(?n) WHERE {{ {A} )", 33, "found `)`", "The `{` of line 1, column 16 closes with `}`."),
    (f"FIND(?n) WHERE {{ {A} }} LIMIT 5 ORDER BY ?n", 43, "Expected `CURSOR` or the end", "ORDER BY … LIMIT"),
    (f"FIND(?n) WHERE {{ {A} }} LIMIT 0", 41, "'0' is not a whole number of at least 1", "1 or more"),
    (f"FIND(?n) WHERE {{ {A} }} LIMIT 1.5", 41, "'1.5' is not a whole number", "1 or more"),
    (f"FIND(?n) WHERE {{ {A} }};", 34, "found `;`", "Leave out the `;`"),
    (f"FIND(?n) WHERE {{ {A} }} FIND(?n)", 35, "found `FIND`", "send the FIND as another command of the batch"),
    (f"FIND(?n) WHERE {{ {A} }} OFFSET 5", 35, "found `OFFSET`", "LIMIT and CURSOR"),
    ("FIND(?n) WHERE { /* x */ }", 18, "found `/*`", "only // comments"),
    ("FIND(?n) WHERE { ?n {type: 'A'} }", 28, "found `'A'`", "double quotes"),
    ("FIND(?n) WHERE { ?n {type: A} }", 28, "found `A`", "double quotes"),
    ('FIND(?n) WHERE { ?n {type = "A"} }', 27, "Expected `:`, found `=`", "`:` between key and value"),
    ('FIND(?n) WHERE { ?n {"type": "A"} }', 22, 'found the text "type"', "keys have no quotes"),
    ('FIND(?n) WHERE { ?n {type: "A", } }', 33, "found `}`", "No comma follows the last"),
    ('FIND(?n) WHERE { ?n {type: "A", type: "B"} }', 33, "found `type`", "`type` is here twice."),
    ('FIND(?n) WHERE { ?n {id: "A", type: "B"} }', 29, "found `,`", "An id is used alone"),
    ('FIND(?n) WHERE { ?n.x {type: "A"} }', 18, "`?n.x`", "Write ?n alone."),
    ("FIND(?n) WHERE { (?n, knows, ?m) }", 23, "found `knows`", '(?a, "knows", ?b)'),
    ('FIND(?n) WHERE { (?n, "p" ?m) }', 27, "Expected `|` or `,`, found `?m`", '(subject, "predicate", object)'),
    ('FIND(?n) WHERE { (?d {type: "D"}, "p", ?n) }', 22, "found `{`", "a clause of its own"),
    ('FIND(?n) WHERE { ("Ada", "p", ?n) }', 19, 'found the text "Ada"', "{type: "),
    ('FIND(?n) WHERE { (?a, "p"{,3}, ?b) }', 27, "found `,`", "the fewest hops too"),
    ('FIND(?n) WHERE { (?a, "p"{3,2}, ?b) }', 27, "are more than the most", "{fewest,most}"),
    ('FIND(?n) WHERE { (?a, "p"|"q"{1,2}, ?b) }', 30, "found `{`", "UNION"),
    ("FIND(?n) WHERE { (?a, ?p{1,2}, ?b) }", 25, "found `{`", "not to variables"),
    ("FIND(?n) WHERE { FILTER(?n.x = 3) }", 30, "found `=`", "`=` is `==` in KIP."),
    ("FIND(?n) WHERE { FILTER(?n.x <> 3) }", 31, "found `>`", "`<>` is `!=`"),
    ("FIND(?n) WHERE { FILTER(?n.x == 3 and ?n.y == 4) }", 35, "found `and`", "`&&` joins"),
    ("FIND(?n) WHERE { FILTER(?n.x == 3 & ?n.y == 4) }", 35, "found `&`", "`&&`"),
    ("FIND(?n) WHERE { FILTER(?n.x) }", 29, "Expected `==`", "a condition is no value alone"),
    ("FIND(?n) WHERE { FILTER(!!(?n.x == 1)) }", 26, "found `!`", "!(!(…))"),
    ('FIND(?n) WHERE { FILTER(?n.x IN ["a"]) }', 30, "found `IN`", "IN(?n.type,"),
    ('FIND(?n) WHERE { FILTER(contains(?n.x, "a")) }', 25, "found `contains`", "in capitals: CONTAINS."),
    ('FIND(?n) WHERE { FILTER(?n.x > NOW() - "P1D") }', 38, "found `-`", '`NOW("-1d")` moves the time'),
    ("FIND(?n) WHERE { FILTER(?n.x + 1 == 3) }", 30, "found `+`", "does not calculate"),
    ("FIND(n) WHERE { }", 6, "found `n`", "?n."),
    ("FIND(?n) WHERE { FILTER(n.x == 1) }", 25, "found `n`", "?n."),
    ("UPSERT { CONCEPT x { } }", 18, "Expected a handle (?x) or `{`, found `x`", "A handle is `?` and a name."),
    ('UPSERT { CONCEPT { {type:"A",name:"x"} SET ATTRIBUTES {a: ?n.b} } }', 59, "found `?n.b`", "paths are used in"),
    ("UPSERT { }", 10, "found `}`", "Say what to write"),
    ('UPSERT { CONCEPT ?x { {name: "x"} } }', 23, "`name` alone", "{type:"),
    ('UPSERT { CONCEPT ?x { {type:"A",name:"x"} SET ATTRIBUTES {a: 1 b: 2} } }', 64, "found `b`", "comma in front"),
    ('UPSERT { CONCEPT ?x { {type:"A",name:"x"} SET ATTRIBUTES {a: 1, a: 2} } }', 65, "'a' is here twice", "once"),
    ('UPSERT { CONCEPT ?x { {type:"A",name:"x"} SET ATTRIBUTES {a: None} } }', 62, "found `None`", "write `null`"),
    ('UPSERT { CONCEPT ?x { {type:"A",name:"x"} SET ATTRIBUTES {a: NaN} } }', 62, "found `NaN`", "write `null`"),
    ('UPSERT { CONCEPT ?x { {type:"A",name:"x"} SET ATTRIBUTES {a-b: 1} } }', 60, "found `-b`", "double quotes"),
    ("FIND(?n) WHERE { FILTER ?n.x == 3 }", 25, "found `?n.x`", "FILTER(?x.name"),
    ('FIND(?n) WHERE { FILTER(LOWER(?n.x) == "a") }', 25, "found `LOWER`", "no function LOWER; there are `CONTAINS`"),
    ('FIND(?n) WHERE { (?a, "p"*, ?b) }', 26, "found `*`", '"…"{1,3}'),
    ('FIND(?n) WHERE { (?a, "p"+, ?b) }', 26, "found `+`", '"…"{1,3}'),
    ('FIND(?n["x"]) WHERE { }', 8, "found `[`", "?x.attributes.key"),
    ('UPSERT { CONCEPT ?x { {type:"A",name:"x"} SET ATTRIBUTES {a: 007} } }', 62, "'007' is no number", "JSON"),
    ('UPSERT { CONCEPT ?x { {type:"A",name:"x"} SET PROPOSITIONS {} } }', 61, "found `}`", "SET PROPOSITIONS out"),
    ('UPSERT { CONCEPT ?x { {type:"A",name:"x"} SET PROPOSITIONS {(?x,"p",?y)} } }', 62, "`?x`", "its subject"),
    ('UPSERT { CONCEPT ?x { {type:"A",name:"x"} WITH METADATA {} } }', 43, "found `WITH`", "after the brace"),
    ('UPSERT { CONCEPT ?x { {type:"A",name:"x"} SET ATTRIBUTES {} SET ATTRIBUTES {} } }', 61, "here twice", "one SET"),
    ('UPSERT { PROPOSITION { (?a, "p", ?b) SET PROPOSITIONS {} } }', 42, "Expected `ATTRIBUTES`", "of their own"),
    ('UPSERT { CONCEPT { {type:"A",name:"x"} } } WITH METADATA {} WHERE { }', 61, "found `WHERE`", "UPSERT {"),
    ('UPSERT { CONCEPT { {type:"A",name:"x"} } } DELETE', 44, "found `DELETE`", "another command of the batch"),
    (f"DELETE CONCEPT ?n WHERE {{ {A} }}", 19, "Expected `DETACH`", "DELETE CONCEPT ?x DETACH"),
    (f'DELETE ATTRIBUTES {{"a": 1}} FROM ?n WHERE {{ {A} }}', 23, "found `:`", "without values"),
    (f'DELETE ATTRIBUTES {{"a",}} FROM ?n WHERE {{ {A} }}', 24, "found `}`", "follows the last key"),
    ("UPDATE ?n WHERE { }", 11, "Expected `SET`", "Say what to change"),
    ("UPDATE ?n SET ATTRIBUTES {a: ADD(?n.a)} ", 38, "Expected `,`", "ADD takes two."),
    ("DESCRIBE CONCEPT TYP", 18, "Expected `TYPES` or `TYPE`", "Did you mean TYPE?"),
    ("DESCRIBE TYPES", 10, "`SYNTAX`, `NEIGHBOURHOOD`, `CONCEPT` or `PROPOSITION`", "DESCRIBE CONCEPT TYPES"),
    ('SEARCH "x"', 8, 'found the text "x"', 'SEARCH CONCEPT "…"'),
    ('SEARCH CONCEPT "x" THRESHOLD "y"', 30, 'found the text "y"', 'The nearest form: SEARCH CONCEPT "pay"'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "column", "message", "hint"), CASES, ids=[case[0][:60] for case in CASES])
def test_a_mistake_is_reported_with_its_place_and_its_remedy(text, column, message, hint) -> None:
    error = refusal(text)
    assert error.data["kip_code"] == "KIP_1001"
    assert message in error.message
    assert error.message.endswith(f"(line 1, column {column}).")
    assert (error.data["line"], error.data["column"], error.data["offset"]) == (1, column, column - 1)
    assert hint in error.hint
    assert error.hint.endswith((".", "?", ")"))


def test_what_reads_another_variable_than_its_target_is_a_fault_of_reference() -> None:
    error = refusal("UPDATE ?n SET ATTRIBUTES {a: ?m.a} WHERE { }")
    assert error.data["kip_code"] == "KIP_3001"
    assert error.message == "UPDATE ?n reads only ?n, not ?m (line 1, column 30)."


def test_the_line_is_shown_with_a_caret_below_the_place() -> None:
    error = refusal('FIND(?n)\r\nWHERE {\r\n\t?n {type: "Ä\u202e"} x\r\n}')
    assert error.data["line"] == 3
    assert error.data["excerpt"] == '3 | \\t?n {type: "Ä\\u202e"} x\n  |                        ^'


@pytest.mark.parametrize("length", [50, 500, 5000])
def test_a_wide_line_is_cut_around_the_place(length) -> None:
    text = "x" * length + "!" + "y" * length
    above, below = excerpt(text, length).split("\n")
    assert above[below.index("^")] == "!"
    assert len(above) < 130
    assert ("…" in above) == (length > 60)


def test_places_count_lines_of_every_system() -> None:
    text = "a\nb\r\nc\rd"
    assert [str(place_of(text, text.index(letter))) for letter in "abcd"] == [
        f"line {line}, column 1" for line in (1, 2, 3, 4)
    ]
    assert place_of(text, 1000) == place_of(text, len(text))


def test_a_refusal_is_reported_in_the_shape_of_kip() -> None:
    reported = envelope(refusal("FIND ?n"))["error"]
    assert list(reported) == ["code", "message", "hint", "name", "data"]
    assert (reported["code"], reported["name"]) == ("KIP_1001", "InvalidSyntax")
    assert reported["data"] == {
        "offset": 5, "expected": ["`(`"], "line": 1, "column": 6, "excerpt": "1 | FIND ?n\n  |      ^",
    }  # fmt: skip
    bare = envelope(refused(REFERENCE, "No such variable."))["error"]
    assert bare == {
        "code": "KIP_3001",
        "message": "No such variable.",
        "hint": REFERENCE.hint,
        "name": "ReferenceError",
    }


def test_a_refusal_is_one_of_the_errors_of_kb() -> None:
    error = refusal("FIND ?n")
    assert isinstance(error, KBError)
    shown = error.as_json()
    assert (shown["code"], shown["kip_code"], shown["applied"], shown["retryable"]) == (
        "kip_refused", "KIP_1001", "no", False,
    )  # fmt: skip


def test_a_place_is_given_once_and_only_where_there_is_one() -> None:
    with pytest.raises(KipRefused) as caught, placing("one\ntwo"):
        raise refused(REFERENCE, "?x is bound nowhere.", at=4)
    assert caught.value.message == "?x is bound nowhere (line 2, column 1)."
    assert placed(caught.value, "other") is caught.value
    anywhere = refused(REFERENCE, "It failed.")
    assert placed(anywhere, "text") is anywhere


def test_every_code_has_a_name_a_meaning_and_a_remedy_of_its_own() -> None:
    assert [code.code for code in CODES] == sorted(code.code for code in CODES)
    for field in ("code", "name", "meaning"):
        assert len({getattr(code, field) for code in CODES}) == len(CODES)
    for code in CODES:
        assert code.meaning.endswith(".")
        assert code.hint.endswith(".")
