"""Requests of KIP, carried out on a real branch."""

from __future__ import annotations

import pytest

from kbcore.kip.request import read
from kbcore.kip.run import KipContext, run
from kbcore.store import branches
from tests.support.repository.project import AUTHOR, Project
from tests.support.repository.repos import git

TYPE = 'UPSERT { CONCEPT {{type: "$ConceptType", name: "Thing"} SET ATTRIBUTES {description: "A thing."}} }'
THING = 'UPSERT { CONCEPT {{type: "Thing", name: :name} SET ATTRIBUTES {n: :n}} }'
NAMES = 'FIND(?t.name) WHERE { ?t {type: "Thing"} }'


def around(project, **options):
    workspace = project.workspace()
    _, choice, _ = branches.open_branch(workspace, None)
    return KipContext(workspace, choice.branch, AUTHOR, choice.follows_head, **options)


def asked(project, request, **options):
    return run(around(project, **options), read(request if isinstance(request, dict) else {"command": request}))


def error_of(answer):
    assert answer.is_error
    found = answer.response["result"][-1] if "result" in answer.response else answer.response
    return found["error"]


def test_a_batch_runs_in_order_and_each_command_is_one_record(project):
    things = [{"command": THING, "parameters": {"name": name}} for name in "ab"]
    answer = asked(project, {"commands": [TYPE, *things, NAMES], "parameters": {"n": 1}})
    assert [list(one) for one in answer.response["result"]] == [["result"]] * 4
    assert answer.response["result"][-1] == {"result": ["a", "b"]}
    assert (answer.seq, answer.is_error, project.seq()) == (3, False, 3)


def test_a_batch_ends_with_the_first_command_that_fails(project):
    answer = asked(project, {"commands": [TYPE, "FIND(?x", THING], "parameters": {"name": "a", "n": 1}})
    assert [list(one) for one in answer.response["result"]] == [["result"], ["error"]]
    error = error_of(answer)
    assert error["code"] == "KIP_1001"
    assert "command 2 of 3" in error["message"]
    assert error["data"]["command"] == 1
    assert (project.seq(), answer.seq) == (1, 1)


def test_one_command_answers_alone_and_a_batch_of_one_as_a_batch(project):
    assert asked(project, "DESCRIBE CONCEPT TYPES LIMIT 1").response["result"] == ["$ConceptType"]
    batch = asked(project, {"commands": ["DESCRIBE CONCEPT TYPES LIMIT 1"]}).response
    assert batch["result"][0]["result"] == ["$ConceptType"]


def test_a_dry_run_checks_a_write_and_writes_nothing(project):
    answer = asked(project, {"command": TYPE, "dry_run": True})
    ids = ["$ConceptType:Thing"]
    receipt = {"blocks": 1, "upsert_concept_nodes": ids, "upsert_proposition_links": []}
    assert answer.response["result"] == {"dry_run": True, **receipt}
    assert error_of(asked(project, {"command": THING, "parameters": {"name": "a", "n": 1}, "dry_run": True}))
    both = asked(project, {"commands": [TYPE, "FIND(?x"], "dry_run": True})
    assert "The commands before it were only checked." in error_of(both)["message"]
    assert project.seq() == 0


def test_where_nothing_may_be_written_a_write_is_refused_and_reading_is_not(project):
    error = error_of(asked(project, TYPE, is_read_only=True))
    assert (error["code"], error["data"]["line"]) == ("KIP_3004", 1)
    assert "it was not run" in error["message"]
    assert not asked(project, "DESCRIBE DOMAINS", is_read_only=True).is_error
    assert project.seq() == 0


def test_a_place_in_the_text_is_shown_with_line_and_mark(project):
    error = error_of(asked(project, 'FIND(?x)\nWHERE { ?x {type: "Persn"} }'))
    assert (error["code"], error["data"]["line"], error["data"]["column"]) == ("KIP_2001", 2, 19)
    assert error["data"]["excerpt"].endswith("^")
    assert "Person" in error["hint"]


@pytest.mark.sliced(1)
@pytest.mark.parametrize("read", [NAMES, "DESCRIBE CONCEPT TYPES", 'EXPORT ?t WHERE { ?t {type: "Thing"} }'])
def test_a_cursor_of_another_branch_is_refused_with_the_way_out(project, read):
    things = [{"command": THING, "parameters": {"name": name, "n": 1}} for name in "ab"]
    asked(project, {"commands": [TYPE, *things]})
    cursor = asked(project, f"{read} LIMIT 1").response["next_cursor"]
    command = {"command": f"{read} LIMIT 1 CURSOR :c", "parameters": {"c": cursor}}
    git(project.root, "switch", "--quiet", "-c", "other")
    error = error_of(asked(project, command))
    assert (error["code"], "on the same branch" in error["hint"]) == ("KIP_1001", True)
    git(project.root, "switch", "--quiet", "main")
    assert "error" not in asked(project, command).response


def test_a_fact_that_a_file_states_is_reported_with_the_file(project):
    project.sync({"docs/requirements/1.md": "---\nid: REQ-1\ntitle: One\nstatus: open\n---\n"})
    write = 'UPSERT { CONCEPT {{type: "Requirement", name: "REQ-1"} SET ATTRIBUTES {title: "Two"}} }'
    error = error_of(asked(project, write))
    assert error["code"] == "KIP_3004"
    assert "docs/requirements/1.md" in error["message"] + error["hint"]


def test_a_branch_that_moves_meanwhile_refuses_the_write(project):
    surroundings = around(project)
    git(project.root, "switch", "--quiet", "-c", "other")
    error = error_of(run(surroundings, read({"command": TYPE})))
    assert (error["code"], error["data"]["kb_code"], error["data"]["retryable"]) == ("KIP_3005", "branch_moved", True)
    assert "Nothing was written" in error["message"]


def test_the_limits_of_the_configuration_hold(project):
    project.write({".kb/config.json": '{"kip": {"rowLimit": 3}}'})
    assert len(asked(project, 'FIND(?t) WHERE { ?t {type: "$ConceptType"} } LIMIT 3').response["result"]) == 3
    error = error_of(asked(project, 'FIND(?t) WHERE { ?t {type: "$ConceptType"} }'))
    assert error["code"] == "KIP_4002"
    assert "kip.rowLimit" in error["message"]
    project.write({".kb/config.json": '{"kip": {"timeLimitSeconds": 0.05}}'})
    all_with_all = " ".join(f'?{name} {{type: "$ConceptType"}}' for name in "abcdef")
    order = ", ".join(f"?{name}.name" for name in "fedcba")
    error = error_of(asked(project, f"FIND({order}) WHERE {{ {all_with_all} }} ORDER BY {order} LIMIT 1"))
    assert error["code"] == "KIP_4001"


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    "command",
    [
        'UPSERT { CONCEPT {{type: "Domain", name: "New"} SET PROPOSITIONS { ("mentions", ?t) }} } WHERE { %s }',
        "UPDATE ?t SET ATTRIBUTES {n: 1} WHERE { %s }",
        "DELETE CONCEPT ?t DETACH WHERE { %s }",
        'DELETE ATTRIBUTES {"n"} FROM ?t WHERE { %s }',
        "EXPORT ?t WHERE { %s }",
    ],
)
def test_the_limits_of_the_configuration_hold_for_every_where(project, command):
    project.write({".kb/config.json": '{"kip": {"rowLimit": 3}}'})
    error = error_of(asked(project, command % '?t {type: "$ConceptType"}'))
    assert error["code"] == "KIP_4002"
    assert "There are more than 3 rows; `kip.rowLimit` is the limit" in error["message"]
    assert error["hint"].startswith("Narrow WHERE, for")
    project.write({".kb/config.json": '{"kip": {"timeLimitSeconds": 0.05}}'})
    slow = " ".join(f'?{name} {{type: "$ConceptType"}}' for name in "abcdef")
    sums = " && ".join(f"?{name}.name < ?t.name" for name in "abcdef")
    error = error_of(asked(project, command % f'?t {{type: "$ConceptType"}} {slow} FILTER({sums})'))
    assert error["code"] == "KIP_4001"
    assert "`kip.timeLimitSeconds` is the limit" in error["message"]
    assert project.seq() == 0


def test_an_answer_can_be_asked_for_with_fewer_rows(project):
    seen = []

    def fit(piece, to_come):
        seen.append((to_come, piece.again(2).response))
        return piece.response

    find = 'FIND(?t.name) WHERE { ?t {type: "$ConceptType"} } ORDER BY ?t.name'
    run(around(project), read({"commands": [find, "DESCRIBE CONCEPT TYPES"]}), fit)
    assert [to_come for to_come, _ in seen] == [1, 0]
    assert [response["result"] for _, response in seen] == [["$ConceptType", "$PropositionType"]] * 2
    cursor = seen[0][1]["next_cursor"]
    rest = asked(project, {"command": f"{find} CURSOR :c", "parameters": {"c": cursor}}).response["result"]
    assert rest == asked(project, find).response["result"][2:]


def test_an_export_is_a_command_that_makes_the_same_again(project, tmp_path):
    asked(project, {"commands": [TYPE, {"command": THING, "parameters": {"name": "a", "n": 1}}]})
    capsule = asked(project, 'EXPORT ?t WHERE { ?t {type: "Thing"} }').response["result"]["capsule"]
    other = Project(tmp_path / "other")
    asked(other, capsule)
    assert asked(other, NAMES).response["result"] == ["a"]
    other.close()


def test_find_answers_as_of_a_seq_or_a_time(project):
    for number in range(3):
        asked(project, {"commands": [TYPE, THING], "parameters": {"name": f"t{number}", "n": number}})
    assert asked(project, f"{NAMES} AT 2").response["result"] == ["t0"]
    assert asked(project, f"{NAMES} AT 3 LIMIT 1").response["result"] == ["t0"]
    parameters = {"command": f"{NAMES} AT :when", "parameters": {"when": 3}}
    answer = asked(project, parameters)
    assert (answer.response["result"], answer.seq) == (["t0", "t1"], 3)
    assert asked(project, NAMES).response["result"] == ["t0", "t1", "t2"]
    at = project.view().rows("select written_at from record where seq = 2")[0][0]
    assert asked(project, f'{NAMES} AT "{at}"').response["result"] == ["t0"]
    assert asked(project, f'{NAMES} AT "HEAD"').response["result"] == ["t0", "t1", "t2"]
    assert asked(project, f'{NAMES} AT "today"').seq == 4
    for text in ("soon", "2001-01-01", "HEAD~99"):
        assert error_of(asked(project, f'{NAMES} AT "{text}"'))["code"] == "KIP_1001"
    first = asked(project, f"{NAMES} AT 3 LIMIT 1").response
    again = {"command": f"{NAMES} AT 3 LIMIT 1 CURSOR :c", "parameters": {"c": first["next_cursor"]}}
    assert asked(project, again).response["result"] == ["t1"]


def test_find_as_of_what_was_not_yet_defined_says_so(project):
    asked(project, 'UPSERT { CONCEPT {{type: "Person", name: "A"}} }')
    asked(project, TYPE)
    assert error_of(asked(project, f"{NAMES} AT 1"))["code"] == "KIP_2001"


@pytest.mark.parametrize(
    ("when", "reported"),
    [("9", "There is no record 9 yet"), ('"soon"', "neither a seq nor a time"), ('"2999-01-01"', "yet")],
)
def test_find_as_of_what_is_no_time_is_refused_at_its_place(project, when, reported):
    asked(project, TYPE)
    error = error_of(asked(project, f"{NAMES} AT {when}"))
    assert error["code"] == "KIP_1001"
    assert reported in error["message"]
    assert error["data"]["line"] == 1


def test_now_is_the_time_of_the_clock_moved_by_a_duration(project):
    asked(project, {"commands": [TYPE, THING], "parameters": {"name": "new", "n": 1}})
    asked(project, {"command": THING, "parameters": {"name": "old", "n": 1}})
    old = 'UPDATE ?t SET ATTRIBUTES {seen: "2001-01-01T00:00:00Z"} WHERE { ?t {type: "Thing", name: "old"} }'
    assert not asked(project, old).is_error
    fresh = 'FIND(?t.name) WHERE { ?t {type: "Thing"} FILTER(?t.metadata.updated_at > NOW(:d)) }'
    assert asked(project, {"command": fresh, "parameters": {"d": "-1h"}}).response["result"] == ["new", "old"]
    assert asked(project, {"command": fresh, "parameters": {"d": "+1d12h"}}).response["result"] == []
    seen = 'UPDATE ?t SET ATTRIBUTES {stale: true} WHERE { ?t {type: "Thing"} FILTER(?t.attributes.seen < NOW("-1w")) }'
    assert asked(project, seen).response["result"] == {"updated": 1, "matched": 1}
    for wrong in ("7", "-7y", "-999999999w", ""):
        error = error_of(asked(project, {"command": fresh, "parameters": {"d": wrong}}))
        assert (error["code"], "is no duration" in error["message"]) == ("KIP_1001", True)


def test_pages_of_one_find_mean_one_now(project):
    for name in "ab":
        asked(project, {"commands": [TYPE, THING], "parameters": {"name": name, "n": 1}})
    text = 'FIND(?t.name) WHERE { ?t {type: "Thing"} FILTER(?t.metadata.created_at < NOW("+1m")) } LIMIT 1'
    first = asked(project, text).response
    again = asked(project, {"command": f"{text} CURSOR :c", "parameters": {"c": first["next_cursor"]}}).response
    assert (first["result"], again["result"]) == (["a"], ["b"])


def test_links_of_the_vocabulary_are_in_no_average_and_no_bulk_update(project):
    asked(
        project,
        'UPSERT { CONCEPT {{type: "Person", name: "A"} SET PROPOSITIONS '
        '{ ("knows", {type: "Person", name: "$self"}) WITH METADATA {confidence: 0.5} } } }',
    )
    average = "FIND(AVG(?l.metadata.confidence), MAX(?l.metadata.confidence)) WHERE { ?l (?s, ?p, ?o) }"
    assert asked(project, average).response["result"] == [0.5, 0.5]
    update = "UPDATE ?l SET METADATA {seen: true} WHERE { ?l (?s, ?p, ?o) }"
    assert asked(project, f"{update} LIMIT 5").response["result"] == {"updated": 1, "matched": 1}
    assert asked(project, update).response["result"] == {"updated": 0, "matched": 1}


def test_membership_in_lists(project):
    asked(project, TYPE)
    for name, tags in {"a": '["x", 1, true]', "b": "[]", "c": '"xyz"', "d": '[["x"], "y"]'}.items():
        asked(project, f'UPSERT {{ CONCEPT {{{{type: "Thing", name: "{name}"}} SET ATTRIBUTES {{list: {tags}}}}} }}')

    def found(condition, **parameters):
        command = f'FIND(?t.name) WHERE {{ ?t {{type: "Thing"}} FILTER({condition}) }}'
        return asked(project, {"command": command, "parameters": parameters}).response["result"]

    assert found('CONTAINS(?t.attributes.list, "x")') == ["a", "c"]
    assert found("CONTAINS(?t.attributes.list, 1)") == ["a"]
    assert found("CONTAINS(?t.attributes.list, 1.0)") == ["a"]
    assert found("CONTAINS(?t.attributes.list, true)") == ["a"]
    assert found("CONTAINS(?t.attributes.list, null)") == []
    assert found('!CONTAINS(?t.attributes.list, "x")') == ["b", "d"]
    assert found("IN(?t.name, [])") == []
    assert found("!IN(?t.name, :none)", none=[]) == ["a", "b", "c", "d"]


def test_a_dry_run_of_a_batch_sees_what_its_earlier_commands_would_write(project):
    asked(project, 'UPSERT { CONCEPT {{type: "Person", name: "A"}} }')
    things = [{"command": THING, "parameters": {"name": name}} for name in "ab"]
    delete = 'DELETE CONCEPT ?t DETACH WHERE { ?t {type: "Thing", name: "a"} }'
    request = {"commands": [TYPE, *things, NAMES, delete, NAMES], "parameters": {"n": 1}, "dry_run": True}
    answer = asked(project, request)
    assert not answer.is_error
    ids = ("$ConceptType:Thing", "Thing:a", "Thing:b")
    assert [one["result"] for one in answer.response["result"]] == [
        *({"dry_run": True, "blocks": 1, "upsert_concept_nodes": [id_], "upsert_proposition_links": []} for id_ in ids),
        ["a", "b"],
        {"dry_run": True, "deleted_concepts": 1, "deleted_propositions": 0},
        ["b"],
    ]
    assert (answer.seq, project.seq()) == (1, 1)
    assert error_of(asked(project, NAMES))["code"] == "KIP_2001"


def test_a_dry_run_of_a_batch_ends_with_the_first_command_that_would_fail(project):
    thing = {"command": THING, "parameters": {"name": "a", "n": 1}}
    answer = asked(project, {"commands": [TYPE, thing, f"{THING} x", NAMES], "dry_run": True})
    assert len(answer.response["result"]) == 3
    assert error_of(answer)["code"] == "KIP_1001"
    protected = 'DELETE CONCEPT ?t DETACH WHERE { ?t {type: "Person", name: "$self"} }'
    answer = asked(project, {"commands": [TYPE, protected], "dry_run": True})
    assert error_of(answer)["code"] == "KIP_3004"
    assert project.seq() == 0


PERSON = 'UPSERT { CONCEPT { {type: "Person", name: :name} } }'


def test_a_name_that_became_an_alias_is_known_to_finds_and_warned_of_by_upserts(project):
    for name in ("Robert", "Bo"):
        asked(project, {"command": PERSON, "parameters": {"name": name}})
    merge = 'MERGE CONCEPT ?a INTO ?b WHERE { ?a {type: "Person", name: "Bo"} ?b {type: "Person", name: "Robert"} }'
    assert not asked(project, merge).is_error
    find = 'FIND(?p.name) WHERE { ?p {type: "Person", name: :name} }'
    said = {
        name: asked(project, {"command": find, "parameters": {"name": name}}).warnings
        for name in ("Bo", "Robrt", "Robert", "Zzz")
    }
    assert said == {
        "Bo": ("There is no Person 'Bo'. 'Bo' is an alias of 'Robert'.",),
        "Robrt": ("There is no Person 'Robrt'. Did you mean 'Robert'?",),
        "Robert": (),
        "Zzz": ("There is no Person 'Zzz'.",),
    }
    neighbourhood = asked(project, 'DESCRIBE NEIGHBOURHOOD {type: "Person", name: "Robrt"}')
    assert "Did you mean 'Robert'?" in error_of(neighbourhood)["hint"]
    assert "'Bo' is an alias of 'Robert'." in error_of(asked(project, merge))["hint"]
    [warning] = asked(project, {"command": PERSON, "parameters": {"name": "Bo"}}).warnings
    assert warning.startswith("'Bo' is an alias of 'Robert', and 'Person:Bo' is another concept of that name")
    assert asked(project, {"command": PERSON, "parameters": {"name": "Bo"}}).warnings == ()
