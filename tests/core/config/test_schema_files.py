"""Project schemas: what a file may add to KB's own types, and the report of every fault in it."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest

from kbcore.config.schema_files import load_schema
from kbcore.errors import InvalidConfig, Problem
from kbcore.model.schema import CORE, Attribute, EdgeType, EntityType, attribute_problem
from kbcore.model.schema_text import core_schema_text

A, B = ".kb/schema/a.yaml", ".kb/schema/b.yaml"
CORE_PATH = ".kb/schema/core.yaml"
CONTRACT_EXAMPLE = """\
entities: {fact: {description: …, attributes: {confidence: {type: number, required: false}}}}
edges: {constrains: {from: [req], to: [fact], acyclic: false, description: …}}
"""


def faults(text: str, other: str = "") -> list[Problem]:
    with pytest.raises(InvalidConfig) as caught:
        load_schema({A: text, B: other})
    return list(caught.value.details)


def only_fault(text: str, other: str = "") -> Problem:
    (problem,) = faults(text, other)
    return problem


def test_no_file_means_kbs_own_schema():
    assert load_schema({}) == CORE
    assert load_schema({A: "", B: "# nothing yet\n"}) == CORE
    assert load_schema({A: "entities:\nedges:\n"}) == CORE


def test_the_example_of_the_documentation_loads():
    schema = load_schema({A: CONTRACT_EXAMPLE})
    attributes = {"confidence": Attribute("number")}
    assert schema.entities["fact"] == EntityType("fact", "…", attributes=attributes, origin=A)
    assert schema.edges["constrains"] == EdgeType("constrains", ("req",), ("fact",), "…", origin=A)
    assert schema.fits("constrains", "req", "fact")


def test_everything_that_a_type_can_say_is_read():
    text = """
entities:
  risk:
    description: What may go wrong.
    required: [owner, title]
    statuses: [open, on, "0023", 1.10]
    statusDefault: on
    attributes:
      level: {values: [low, high], required: true, description: How bad.}
      Due date:
  Person: {statuses: [active]}
edges:
  threatens: {from: risk, to: [any, link], acyclic: true, kind: true, impact: none}
"""
    schema = load_schema({A: text})
    assert schema.entities["risk"] == EntityType(
        "risk",
        "What may go wrong.",
        ("title", "status", "owner"),
        "on",
        ("open", "on", "0023", "1.10"),
        {
            "level": Attribute("text", required=True, values=("low", "high"), description="How bad."),
            "Due date": Attribute(),
        },
        A,
    )
    assert schema.entities["Person"].status_default == "active"
    assert schema.edges["threatens"] == EdgeType(
        "threatens", ("risk",), ("any", "link"), acyclic=True, needs_kind=True, impact="none", origin=A
    )


def test_ends_may_be_defined_in_another_file():
    schema = load_schema({A: "edges: {e: {from: [x], to: [y]}}", B: "entities: {x: {}, y: {}}"})
    assert schema.fits("e", "x", "y")


def test_core_types_can_be_added_to_from_several_files():
    one = """
entities:
  req:
    description: What we promise.
    statuses: [draft, agreed, met]
    attributes: {risk: {values: [low, high]}}
edges:
  depends_on: {acyclic: false}
  relates_to: {acyclic: true}
"""
    two = "entities: {req: {statusDefault: agreed, attributes: {effort: {type: number}}}, test: }\n"
    schema = load_schema({A: one, B: two})
    req = schema.entities["req"]
    assert (req.description, req.status_default, req.statuses) == (
        "What we promise.",
        "agreed",
        ("draft", "agreed", "met"),
    )
    assert (list(req.attributes)[1:], req.required, req.origin) == (["risk", "effort"], ("title", "status"), "")
    assert schema.entities["test"] == CORE.entities["test"]
    assert not schema.edges["depends_on"].acyclic
    assert schema.edges["relates_to"].acyclic
    assert schema.edges["depends_on"].to_types == ("req",)
    assert CORE.edges["depends_on"].acyclic


def test_a_project_adds_values_to_the_list_of_a_core_attribute():
    text = "entities: {test: {attributes: {kind: {values: [performance, e2e]}}}}"
    kind = load_schema({A: text}).entities["test"].attributes["kind"]
    assert kind.values == ("unit", "integration", "e2e", "performance")
    assert (kind.type, kind.description) == ("text", CORE.entities["test"].attributes["kind"].description)
    assert CORE.entities["test"].attributes["kind"].values == ("unit", "integration", "e2e")
    with pytest.raises(InvalidConfig) as refused:
        load_schema({A: text, B: text})
    assert [(one.code, one.place) for one in refused.value.details] == [("defined_twice", f"{B}:1")]


@pytest.mark.parametrize(
    ("text", "path", "word"),
    [
        ("entities: {req: {required: [title]}}", "$.entities.req.required", "`required`"),
        ("entities: {test: {attributes: {kind: {type: text}}}}", "$.entities.test.attributes.kind.type", "`type`"),
        ("entities: {symbol: {attributes: {kind: {values: [a]}}}}", "$.entities.symbol.attributes.kind", "'kind'"),
        ("edges: {implements: {from: [req]}}", "$.edges.implements.from", "`from`"),
        ("edges: {implements: {to: [req]}}", "$.edges.implements.to", "`to`"),
        ("edges: {implements: {kind: true}}", "$.edges.implements.kind", "`kind`"),
        ("edges: {implements: {description: x}}", "$.edges.implements.description", "`description`"),
    ],
)
def test_what_is_fixed_in_core_types_stays(text, path, word):
    problem = only_fault(text)
    assert (problem.path, problem.code, problem.place) == (path, "core_type", f"{A}:1")
    assert word in problem.message


@pytest.mark.parametrize(
    ("one", "two", "words"),
    [
        ("entities:\n  fact:\n", "\n\nentities: {fact: {}}", "The entity type 'fact'"),
        ("edges:\n  e: {from: req, to: req}\n", "\n\nedges: {e: {from: req, to: req}}", "The edge type 'e'"),
        (
            "entities:\n  req: {statuses: [draft]}\n",
            "\n\nentities: {req: {statuses: [draft]}}",
            "`statuses` of 'req'",
        ),
        (
            "entities:\n  req: {attributes: {x: }}\n",
            "\n\nentities: {req: {attributes: {x: }}}",
            "attribute 'x' of 'req'",
        ),
        (
            "edges:\n  depends_on: {acyclic: false}\n",
            "\n\nedges: {depends_on: {acyclic: true}}",
            "`acyclic` of 'dep",
        ),
    ],
)
def test_a_second_definition_names_both_places(one, two, words):
    problem = only_fault(one, two)
    assert (problem.code, problem.place) == ("defined_twice", f"{B}:3")
    assert words in problem.message
    assert f"at {A}:2 and at {B}:3" in problem.message


@pytest.mark.parametrize(
    ("text", "path", "code", "hint"),
    [
        ("entites: {}", "$.entites", "unknown_key", "'entities'"),
        ("entities: {fact: {desciption: x}}", "$.entities.fact.desciption", "unknown_key", "'description'"),
        (
            "entities: {a: {attributes: {b: {tpye: x}}}}",
            "$.entities.a.attributes.b.tpye",
            "unknown_key",
            "'type'",
        ),
        (
            "entities: {a: {attributes: {b: {type: nubmer}}}}",
            "$.entities.a.attributes.b.type",
            "unknown_type",
            "number",
        ),
        ("entities: {a: {required: [ownr]}}", "$.entities.a.required[0]", "unknown_field", "'owner'"),
        ("entities: {a: {attributes: {b: }, required: [{b: c}]}}", "$.entities.a.required[0]", "wrong_type", ""),
        (
            "entities: {a: {required: [b], attributes: {b: }}}",
            "$.entities.a.required[0]",
            "unknown_field",
            "required: true",
        ),
        ("entities: {a: {required: [created_at]}}", "$.entities.a.required[0]", "unknown_field", ""),
        ("edges: {e: {from: [rec], to: any}}", "$.edges.e.from[0]", "unknown_type", "'req'"),
        ("edges: {e: {from: any, to: evnt}}", "$.edges.e.to", "unknown_type", "'event'"),
        ("edges: {e: {to: any}}", "$.edges.e", "missing_key", "from: [req]"),
        ("edges: {e: }", "$.edges.e", "missing_key", "to: [req]"),
        ("edges: {e: {from: [], to: any}}", "$.edges.e.from", "wrong_type", "Leave the key out"),
        ("edges: {e: {from: [req, req], to: any}}", "$.edges.e.from[1]", "duplicate", "Keep one"),
        (
            "edges: {e: {from: any, to: any, acyclic: yes}}",
            "$.edges.e.acyclic",
            "wrong_type",
            "`true` or `false`",
        ),
        (
            "edges: {e: {from: any, to: any, kind: [true]}}",
            "$.edges.e.kind",
            "wrong_type",
            "`true` or `false`",
        ),
        ("entities: {link: }", "$.entities.link", "reserved_name", "another name"),
        ("entities: {any: }", "$.entities.any", "reserved_name", "another name"),
        ("edges: {edge: {from: any, to: any}}", "$.edges.edge", "reserved_name", "another name"),
        ("entities: {a-b: }", '$.entities["a-b"]', "bad_name", "small letters"),
        ("entities: {aB: }", "$.entities.aB", "bad_name", "UpperCamelCase"),
        ("entities: {A_b: }", "$.entities.A_b", "bad_name", "UpperCamelCase"),
        ("edges: {Upper: {from: any, to: any}}", "$.edges.Upper", "bad_name", "small letters"),
        (f"entities: {{{'a' * 101}: }}", f"$.entities.{'a' * 101}", "bad_name", "100"),
        (
            "entities: {a: {attributes: {title: }}}",
            "$.entities.a.attributes.title",
            "reserved_name",
            "another",
        ),
        ("entities: {a: {attributes: {' x': }}}", '$.entities.a.attributes[" x"]', "bad_name", "printable"),
        (
            "entities: {a: {statuses: [b], statusDefault: c}}",
            "$.entities.a.statusDefault",
            "bad_status",
            "Add it",
        ),
        ("entities: {req: {statuses: [b]}}", "$.entities.req.statuses", "bad_status", "Add it"),
        ("entities: {a: {statuses: {}}}", "$.entities.a.statuses", "wrong_type", ""),
        ("entities: {a: {statusDefault: }}", "$.entities.a.statusDefault", "wrong_type", ""),
        ('entities: {a: {statusDefault: ""}}', "$.entities.a.statusDefault", "bad_text", "printable"),
        ("entities: {a: {description: [x]}}", "$.entities.a.description", "wrong_type", "quotes"),
        ('entities: {a: {description: "\\e[31m"}}', "$.entities.a.description", "bad_text", "Remove"),
        (
            "entities: {a: {attributes: {b: {type: number, values: [1]}}}}",
            "$.entities.a.attributes.b.values",
            "wrong_type",
            "text",
        ),
        ("entities: {a: []}", "$.entities.a", "wrong_type", ""),
        ("entities: [a]", "$.entities", "wrong_type", ""),
        ("[a]", "$", "wrong_type", ""),
        ("a: 1\na: 2\n", "$.a", "unknown_key", "entities"),
    ],
)
def test_a_fault_names_its_place_and_a_remedy(text, path, code, hint):
    found = {(problem.path, problem.code): problem for problem in faults(text)}
    assert hint in found[path, code].hint
    assert found[path, code].place.startswith(f"{A}:")


def test_all_problems_of_all_files_are_reported_at_once():
    one = "entities:\n  fact:\n    descr: x\n  fact:\nedges:\n  e:\n    from: [nothing]\n    to: [fact]\n"
    two = "entities:\n  - x: y\n edges: {}\n"
    with pytest.raises(InvalidConfig) as caught:
        load_schema({B: two, A: one, CORE_PATH: "entities:\n"})
    assert [(problem.place, problem.code) for problem in caught.value.details] == [
        (f"{A}:3", "unknown_key"),
        (f"{A}:4", "duplicate_key"),
        (f"{A}:7", "unknown_type"),
        (f"{B}:3", "invalid_yaml"),
        (f"{CORE_PATH}:1", "core_schema_changed"),
    ]
    assert caught.value.message.endswith("(and 4 more)")
    assert "counts" not in caught.value.details[1].message


@pytest.mark.parametrize("change", [lambda text: "\ufeff" + text, lambda text: text.replace("\n", "\r\n")])
def test_the_core_file_as_init_writes_it_is_passed_over(change):
    assert load_schema({CORE_PATH: change(core_schema_text())}) == CORE


def test_a_core_file_that_another_version_wrote_is_passed_over():
    """A branch of last year has the core file of last year."""
    first, _, rest = core_schema_text().partition("\n")
    older = rest.replace("A requirement: something", "A requirement, something")
    summed = first[: first.rindex(" ") + 1] + hashlib.sha256(older.encode()).hexdigest()[:32]
    assert load_schema({CORE_PATH: f"{summed}\n{older}"}) == CORE
    assert only_fault_of_core(f"{first}\n{older}").code == "core_schema_changed"


def test_a_changed_core_file_is_refused_with_the_way_out():
    problem = only_fault_of_core(core_schema_text() + "\n  mine: {}\n")
    assert problem.code == "core_schema_changed"
    assert "project.yaml" in problem.hint
    assert "`kb init`" in problem.hint


def only_fault_of_core(text: str) -> Problem:
    with pytest.raises(InvalidConfig) as caught:
        load_schema({CORE_PATH: text})
    (problem,) = caught.value.details
    return problem


def test_without_project_files_yaml_is_not_imported():
    program = """
import sys
from kbcore.config.schema_files import load_schema
from kbcore.model.schema_text import core_schema_text
load_schema({"core.yaml": core_schema_text()})
sys.exit("yaml" in sys.modules or "duckdb" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("change", [lambda text: "\ufeff" + text, lambda text: text.replace("\n", "\r\n")])
def test_a_byte_order_mark_and_windows_line_breaks_do_no_harm(change):
    assert load_schema({A: change(CONTRACT_EXAMPLE)}) == load_schema({A: CONTRACT_EXAMPLE})


def test_what_a_change_affects_is_declared_or_the_end_that_names_the_other():
    text = """
edges:
  needs: {from: req, to: req}
  about: {from: any, to: any, kind: true}
  feeds: {from: req, to: req, impact: both}
  supersedes: {impact: to}
"""
    edges = load_schema({A: text}).edges
    assert {name: edges[name].impact for name in ("needs", "about", "feeds", "supersedes", "affects")} == {
        "needs": "from",
        "about": "both",
        "feeds": "both",
        "supersedes": "to",
        "affects": "to",
    }
    problem = only_fault("edges: {needs: {from: req, to: req, impact: sideways}}")
    assert (problem.place, "from, to, both, none" in problem.message) == (f"{A}:1", True)


def test_an_object_may_be_held_to_members_that_say_something():
    waived = load_schema({A: "entities: {task: {attributes: {waived: {keys: [review, test]}}}}"})
    attribute = waived.entities["task"].attributes["waived"]
    assert attribute == Attribute("object", keys=("review", "test"))
    assert attribute_problem(attribute, {"review": "by the vendor"}) == ""
    assert attribute_problem(attribute, "review") == 'must be an object such as {"review": "some text"}'
    assert attribute_problem(Attribute("object"), "review") == "must be an object"
    assert "'reveiw'; there may be review, test" in attribute_problem(attribute, {"reveiw": "x"})
    assert attribute_problem(attribute, {"reveiw": "x"}).endswith(', as in {"review": "some text"}')
    assert 'at \'test\', as in {"test": "some text"}' in attribute_problem(attribute, {"review": "x", "test": " "})
    problem = only_fault("entities: {task: {attributes: {waived: {type: list, keys: [a]}}}}")
    assert "`keys` are of objects" in problem.message


def test_a_project_that_defines_note_has_its_own_type_of_that_name():
    text = "entities: {note: {required: [owner], statuses: [raw, kept], attributes: {file: {type: list}}}}"
    found = load_schema({".kb/schema/p.yaml": text}).entities["note"]
    assert (found.origin, found.description, found.is_memo) == (".kb/schema/p.yaml", "", False)
    assert (found.required, found.status_default) == (("title", "status", "owner"), "raw")
    assert found.attributes == {"file": Attribute("list")}
    assert load_schema({}).entities["note"].is_memo


def test_a_project_that_has_an_attribute_of_tasks_which_kb_has_by_now_keeps_its_own():
    text = "entities: {task: {attributes: {order: {type: text}, points: {type: number}}}}"
    found = load_schema({".kb/schema/p.yaml": text}).entities["task"]
    assert found.is_memo
    assert found.attributes == {
        **CORE.entities["task"].attributes,
        "order": Attribute("text"),
        "points": Attribute("number"),
    }
