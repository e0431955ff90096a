"""Parameters take the places of placeholders as values; what cannot stand there is refused with its place."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from kbcore.errors import KipRefused
from kbcore.errors.remedies import render
from kbcore.kip import syntax as s
from kbcore.kip.binding import bind, placeholders, read
from kbcore.kip.parsing import parse
from tests.support.effort.scale import tries
from tests.support.generators.kip_trees import JSON, commands

NODE = '?n {type: "T"}'


def refusal(text: str, parameters: dict) -> KipRefused:
    with pytest.raises(KipRefused) as caught:
        read(text, parameters)
    return caught.value


@settings(max_examples=tries(14, 40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(commands(with_placeholders=True))
def test_a_tree_is_bound_whole_or_refused(tree) -> None:
    names = placeholders(tree)
    for value in ({"a": 1}, "knows", 3, ["a"], 0, 0.5):
        left = left_open(tree, dict.fromkeys(names, value))
        assert not left or (names and left in {"KIP_1001", "KIP_4002"})


def left_open(tree, parameters: dict) -> object:
    """Return the placeholders that are left, or the code of the refusal."""
    try:
        return placeholders(bind(tree, parameters))
    except KipRefused as error:
        return error.data["kip_code"]


@settings(max_examples=tries(14, 40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(JSON)
def test_a_value_comes_through_as_it_is(value) -> None:
    text = 'UPSERT { CONCEPT { {type: "T", name: "N"} SET ATTRIBUTES {a: :v, b: [0, {"k": :v}], "c d": :v} } }'
    tree = read(text, {"v": value})
    assert isinstance(tree, s.Upserts)
    block = tree.upserts[0].blocks[0]
    assert block.attributes.as_json() == {"a": value, "b": [0, {"k": value}], "c d": value}


def test_a_placeholder_is_replaced_by_any_value_that_a_command_can_hold() -> None:
    query = read(
        "FIND(?n) WHERE { ?n {type: :t, name: :n} (?n, :p{:a,:b}, {id: :i}) FILTER(?n.x < :x && IN(?n.y, :l)) }"
        " LIMIT :k CURSOR :c",
        {"t": "T", "n": "N", "p": "knows", "a": 1, "b": 2, "i": "C:1", "x": 0.5, "l": [1, None], "k": 5, "c": "x"},
    )
    match query:
        case s.FindCommand(
            where=s.ClauseGroup(
                (
                    s.ConceptPattern(matcher=s.Matcher(None, s.Text("T"), s.Text("N"))),
                    s.LinkPattern(triple=s.Triple(predicate=s.Hops(s.Text("knows"), s.Count(1), s.Count(2)))),
                    s.FilterClause(
                        s.AllOf((s.Comparison(right=s.JsonValue(0.5)), s.IsIn(values=s.JsonValue([1, None]))))
                    ),
                )
            ),
            limit=s.Count(5),
            cursor=s.Text("x"),
        ):
            pass
        case other:
            pytest.fail(f"{other}")
    search = read("SEARCH CONCEPT :q WITH TYPE :t MODE :m THRESHOLD :h", {"q": "a", "t": "T", "m": "exact", "h": 1})
    assert isinstance(search, s.SearchCommand)
    assert (search.term.value, search.threshold.json) == ("a", 1)
    update = read(f"UPDATE ?n SET ATTRIBUTES :a WHERE {{ {NODE} }}", {"a": {"k": [1]}})
    assert isinstance(update, s.Update)
    assert [(one.key, one.value.json) for one in update.attributes.assignments] == [("k", [1])]


def test_what_is_put_in_is_never_read_as_kip() -> None:
    evil = '"} } // :b'
    tree = read("FIND(?n) WHERE { ?n {type: :a, name: :b} }", {"a": evil, "b": ":a"})
    assert isinstance(tree, s.FindCommand)
    matcher = tree.where.clauses[0].matcher
    assert (matcher.type.value, matcher.name.value) == (evil, ":a")


def test_a_longer_name_is_not_taken_for_a_shorter_one() -> None:
    error = refusal("FIND(?n) WHERE { ?n {type: :name} }", {"n": "T"})
    assert error.message == "The parameter `name` is not given (given: 'n') (line 1, column 28)."


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        ({}, "(no parameters were given)", 'Give its value in `parameters`: {"limit": …}.'),
        ({"limt": 1, "x": 2}, "(given: 'limt', 'x')", "Did you mean 'limt'?"),
        ({":limit": 1}, "(given: ':limit')", 'Leave the colon out in `parameters`: {"limit": …}.'),
    ],
)
def test_a_missing_parameter_is_named_with_those_that_are_given(given, message, hint) -> None:
    error = refusal(f"FIND(?n) WHERE {{ {NODE} FILTER(?n.x == :y) }} LIMIT :limit", {**given, "y": 1})
    assert message.removesuffix(")") in error.message.replace(", 'y'", "").replace(
        "given: 'y'", "no parameters were given"
    )
    assert render(error.remedy, lambda part: part.tools) == hint
    assert error.data["missing"] == ["limit"]
    assert error.data["column"] == 60


def test_the_command_line_says_where_it_takes_a_parameter() -> None:
    error = refusal(f"FIND(?n) WHERE {{ {NODE} }} LIMIT :limit", {})
    assert error.hint == "Give its value with --param limit=VALUE, at the prompt by `:limit = VALUE`."


def test_all_missing_parameters_are_listed_in_the_order_of_the_text() -> None:
    assert refusal("FIND(?n) WHERE { ?n {type: :b, name: :a} } LIMIT :b", {}).data["missing"] == ["b", "a"]


QUERY = "FIND(?n) WHERE {{ ?n {{type: :v}} (?n, :v, ?m) FILTER(?n.x == :v) }}"


@pytest.mark.parametrize(
    ("text", "value", "message"),
    [
        ("FIND(?n) WHERE { ?n {type: :v} }", 5, "The parameter `v` is the number 5; a type is a text"),
        ("FIND(?n) WHERE { (?n, :v, ?m) }", {"a": 1}, "The parameter `v` is a map; a predicate is a text"),
        ("FIND(?n) WHERE { FILTER(?n.x == :v) }", [1], "The parameter `v` is a list; a condition compares texts"),
        ("FIND(?n) WHERE { FILTER(IN(?n.x, :v)) }", [[]], "The parameter `v` is a list; IN takes a list of"),
        ("FIND(?n) WHERE { FILTER(IN(?n.x, :v)) }", "a", "The parameter `v` is a text; IN takes a list of"),
        ("FIND(?n) WHERE { FILTER(IN(?n.x, [1, :v])) }", [1], "The parameter `v` is a list; a condition compares"),
        (f"FIND(?n) WHERE {{ {NODE} }} LIMIT :v", 0, "is the number 0; LIMIT takes a whole number of at least 1"),
        (f"FIND(?n) WHERE {{ {NODE} }} LIMIT :v", True, "is true or false; LIMIT takes a whole number"),
        (f"FIND(?n) WHERE {{ {NODE} }} LIMIT :v", "5", "is a text; LIMIT takes a whole number"),
        (f"FIND(?n) WHERE {{ {NODE} }} LIMIT :v", 1.5, "is the number 1.5; LIMIT takes a whole number"),
        (f"FIND(?n) WHERE {{ {NODE} }} CURSOR :v", None, "is null; a cursor is a text"),
        ('FIND(?n) WHERE { (?n, "p"{1,:v}, ?m) }', -1, "is the number -1; a number of hops takes"),
        ('FIND(?n) WHERE { (?n, "p"{3,:v}, ?m) }', 2, "The fewest hops (3) are more than the most (2)"),
        ('UPSERT { CONCEPT { {type: "T", name: "N"} SET ATTRIBUTES :v } }', [], "is a list; this is a map"),
        ('UPSERT { CONCEPT { {type: "T", name: "N"} EXPECT VERSION :v } }', -1, "EXPECT VERSION takes"),
        (f"UPDATE ?n SET METADATA {{a: ADD(?n.a, :v)}} WHERE {{ {NODE} }}", "1", "is a text; this is a number"),
        ('SEARCH CONCEPT "x" THRESHOLD :v', True, "is true or false; this is a number"),
        ("SEARCH CONCEPT :v", "a\0b", "The parameter `v` holds a NUL character"),
        ("SEARCH CONCEPT :v", "\ud800", "The parameter `v` holds half of a surrogate pair"),
        ('SEARCH CONCEPT "x" THRESHOLD :v', float("nan"), "holds a number that JSON does not know"),
    ],
)
def test_a_value_of_a_wrong_kind_is_refused_at_its_placeholder(text, value, message) -> None:
    error = refusal(text, {"v": value})
    assert message in error.message
    assert error.data["kip_code"] == "KIP_1001"
    if value in (5, None):
        shown = "null" if value is None else "5"
        assert error.hint == f"""Give it as a text, "{shown}"; a shell needs v='"{shown}"'."""
    assert error.data["offset"] == text.index('"p"' if "fewest" in message else ":v") + (
        4 if "fewest" in message else 0
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('FIND(?n) WHERE { (?n, "p"{1,:v}, ?m) }', 11),
        ('UPSERT { CONCEPT { {type: "T", name: "N"} SET ATTRIBUTES {a: :v} } }', "x" * 70_000),
    ],
)
def test_a_value_that_is_too_large_is_a_matter_of_resources(text, value) -> None:
    assert refusal(text, {"v": value}).data["kip_code"] == "KIP_4002"


@pytest.mark.parametrize(
    "text",
    [
        'FIND(?n) WHERE { ?n {name: "Hello :name!"} }',
        'FIND(?n) WHERE { ?n {type: "T"} FILTER(CONTAINS(?n.x, ":name")) }',
        'UPSERT { CONCEPT { {type: "T", name: "N"} SET ATTRIBUTES {a: [{"b": "x:name"}]} } }',
        'UPSERT { CONCEPT { {type: "T", name: "N"} SET ATTRIBUTES {":name": 1} } }',
        f'UPDATE ?n SET ATTRIBUTES {{":name": ?n.a}} WHERE {{ {NODE} }}',
    ],
)
def test_a_known_placeholder_inside_of_quotes_is_refused_and_an_unknown_one_is_text(text) -> None:
    error = refusal(text, {"name": "Ada"})
    assert "`:name` is inside of a quoted text" in error.message
    assert ":name without quotes" in error.hint
    assert read(text, {"other": 1, "nam": 2}) == parse(text)


def test_a_tree_without_placeholders_comes_back_as_it_is() -> None:
    tree = parse(f"FIND(?n) WHERE {{ {NODE} }} LIMIT 5")
    assert bind(tree, {"unused": 1}) is tree


def test_a_tree_can_be_bound_many_times() -> None:
    text = 'UPSERT { CONCEPT { {type: "T", name: :n} SET ATTRIBUTES {a: [:n, 1]} } }'
    tree = parse(text)
    for name in ("A", "B"):
        bound = bind(tree, {"n": name})
        assert isinstance(bound, s.Upserts)
        assert bound.upserts[0].blocks[0].attributes.as_json() == {"a": [name, 1]}
    assert placeholders(tree) == {"n": text.index(":n")}
