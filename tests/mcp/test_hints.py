"""Every hint that reaches a client of the tools can be followed there: no command or option that it cannot give."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kbcore import errors
from kbcore.errors import KBError, Problem
from kbcore.errors.remedies import by_front_end, kb
from kbmcp.tools.hints import hint_for, in_tool_words
from kbmcp.tools.tool_list import TOOLS
from tests.mcp.agents import direct
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project, req
from tests.support.repository.repos import commit_files, git, make_repository

TOOL_COMMANDS = ("query", "show", "log", "diff", "revert", "check", "apply", "delete")


def misleading(text):
    """Return what a client of the tools could not do of what a text tells it."""
    found = [f"`kb {name}`" for name in re.findall(r"\bkb ([a-z]+)\b(?! --import)", text) if name in TOOL_COMMANDS]
    found += re.findall(r"(?:[Rr]un|[Ss]ee) (?<!user to run )`kb [a-z]+", text)
    outside = re.sub(r"`(?:kb|git) [^`]*`", "", text)
    if "server" not in outside:
        found += re.findall(r"(?<![\w'-])--[a-z][a-z-]+", outside)
    return found + re.findall(r"\{kb_\w+\}|COMMAND|^Or |[\x02\x03]", text)


@pytest.mark.parametrize(
    ("words", "typed", "edge"),
    [
        (("A", "implements", "B"), "A implements B", '{"type": "implements", "from": "A", "to": "B"}'),
        (
            ("A b", "implements:part", "B c"),
            "'A b' implements:part 'B c'",
            '{"type": "implements", "from": "A b", "to": "B c", "kind": "part"}',
        ),
    ],
)
def test_what_confirms_or_removes_an_edge_is_a_call_or_something_to_ask_for(words, typed, edge):
    hint = f"See {kb('log', 'B')}. If it is true, confirm it: {kb('confirm', *words)}"
    assert in_tool_words(hint, is_dotted=False) == (
        f'See kb_history with action log and `id` B. If it is true, confirm it: kb_upsert with {{"edges": [{edge}]}}'
    )
    asked = in_tool_words(hint, is_dotted=False, is_read_only=True)
    assert asked.endswith(f"confirm it: ask the user to run `kb confirm {typed}`")
    remove = f"Remove it: {kb('delete', '--edge', *words)}."
    assert in_tool_words(remove, is_dotted=True) == f"Remove it: kb.delete with `edges` [{edge}]."
    asked = in_tool_words(remove, is_dotted=False, is_read_only=True)
    assert asked == f"Remove it: ask the user to run `kb delete --edge {typed}`."


def test_a_server_without_the_tools_of_the_core_names_none_of_them():
    for name in TOOL_COMMANDS:
        assert in_tool_words(f"{kb(name)} helps.", is_dotted=False, has_core=False) == f"`kb {name}` helps."
    for kind in (
        errors.StaleBase,
        errors.NotFound,
        errors.IntegrityViolation,
        errors.BranchMoved,
        errors.LimitExceeded,
    ):
        hint = hint_for(kind("It failed."), "kb.sleep", is_dotted=False, has_core=False)
        said = in_tool_words(hint, is_dotted=False, has_core=False)
        assert "kb_" not in said.replace("kb_sleep", ""), said


def test_an_option_that_no_tool_has_makes_a_command_one_for_the_user():
    hints = [f"{kb('apply', *words, lead='Run')}." for words in (["FILE", "--import"], ["--important"])]
    said = [in_tool_words(hint, is_dotted=False) for hint in hints]
    assert said == ["Ask the user to run `kb apply FILE --import`.", "Call kb_upsert."]


@pytest.mark.parametrize(
    ("hint", "reported"),
    [
        (f"{kb('doctor', lead='Run')}: it writes nothing.", "Ask the user to run `kb doctor`: it writes nothing."),
        (f"Edit a.md and {kb('sync', lead='run')}.", "Edit a.md and call kb_upsert with `sync` true."),
        ("Edit docs/run `kb sync`.md --at {kb_query}.", "Edit docs/run `kb sync`.md --at {kb_query}."),
        (f"{kb('query', 'edge')} lists the edges.", 'kb_query with type "edge" lists the edges.'),
        (f"{kb('query', '--text', 'A')} looks for it.", "kb_query with `text` looks for it."),
        (f"There are 3; {kb('log', lead='see')}.", "There are 3; see kb_history with action log."),
        (f"Readable with {by_front_end('--at', '`at`')} 2.", "Readable with `at` 2."),
        (f"Remove it first{by_front_end(', or use --force', '')}.", "Remove it first."),
        (by_front_end("x", "Ask {kb_query}."), "Ask kb_query."),
        (
            f"Or {kb('apply', '--import', 'FILE', lead='run')}.",
            "Or ask the user to run `kb apply --import FILE`.",
        ),
        (f"{kb('log', '{kb_query}')} shows it.", "kb_history with action log and `id` {kb_query} shows it."),
        (f"{kb('show', 3)} shows it.", "kb_history with action show and `seq` 3 shows it."),
        (f"{kb('show', 'REQ-3')} shows it.", 'kb_query with `ids` ["REQ-3"] and `edges` true shows it.'),
        (f"{kb('check', '--rule', 'acyclic')} lists them.", 'kb_check with `rules` ["acyclic"] lists them.'),
    ],
)
def test_a_remedy_is_reported_in_the_words_of_the_tools(hint, reported):
    assert in_tool_words(hint, is_dotted=False) == reported


def classes(parent=KBError):
    for child in parent.__subclasses__():
        if child.code and child.__module__ == errors.__name__:
            yield child
        yield from classes(child)


@pytest.mark.parametrize("kind", [*classes()], ids=lambda kind: kind.code)
def test_every_error_has_a_remedy_that_an_agent_can_follow(kind):
    one, other = Problem("$.a", "code", "First.", "Do this."), Problem("$.b", "code", "Second.", "Do that.")
    for tool in TOOLS:
        for error in (kind("It failed."), kind("It failed.", hint="Do this.", details=[one, other])):
            hint = in_tool_words(hint_for(error, tool.key, is_dotted=False), is_dotted=False)
            assert hint.endswith((".", "!"))
            assert misleading(hint) == []
            assert hint != "Do this."
        if kind not in {errors.StaleBase, errors.RevertConflict}:  # theirs says all that any other would
            own = kind("It failed.", hint="Do this.")
            assert hint_for(own, tool.key, is_dotted=False).startswith("Do this.")


def texts_in(value):
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts_in(inner)


def entity(key, **fields):
    return {"id": key, "type": "req", "title": key, "status": "open", **fields}


CALLS = [
    ("kb_query", {"limt": 1}),
    ("kb_query", {"type": "rq", "sort": "titel", "fields": [""], "where": ["owner"], "has": [":"], "lacks": ["veri"]}),
    ("kb_query", {"from": "NOPE"}),
    ("kb_query", {"from": "REQ-1", "follow": ["dependson"], "depth": 99, "at": -1}),
    ("kb_query", {"at": "yesterday"}),
    ("kb_query", {"at": 1000}),
    ("kb_query", {"cursor": "part.x"}),
    ("kb_query", {"cursor": "nonsense"}),
    ("kb_query", {"type": "edge", "tags": ["a"], "where": {"nope": "x"}}),
    ("kb_upsert", {}),
    ("kb_upsert", {"entities": [entity("REQ-1", title="Mine")]}),
    ("kb_upsert", {"entities": [{"id": "NEW"}, entity("A", type="rq"), {"id": "REQ-1", "type": "test"}, 1]}),
    ("kb_upsert", {"edges": [{"type": "verified_by", "from": "REQ-1", "to": "NOPE"}]}),
    ("kb_upsert", {"edges": [{"type": "verified_by", "from": "REQ-1", "to": "REQ-2"}]}),
    ("kb_upsert", {"edges": [{"type": "relates_to", "from": "REQ-1", "to": "OWN"}]}),
    ("kb_upsert", {"entities": [entity("OWN", title="Late")], "expected_seq": 1}),
    ("kb_upsert", {"entities": [entity("OWN")], "expected_seq": 1000}),
    ("kb_upsert", {"entities": [entity("B")], "changeset_id": "used"}),
    ("kb_upsert", {"entities": [entity("C")], "expect_branch": "other"}),
    ("kb_delete", {"entities": [{"id": "REQ-1", "expected_version": 1}, {"id": "OWN"}]}),
    ("kb_delete", {"entities": [{"id": "NOPE", "expected_version": 1}]}),
    ("kb_delete", {"entities": [{"id": "OWN", "expected_version": 1}]}),
    ("kb_delete", {"entities": [{"id": "ENDS", "expected_version": 2}]}),
    ("kb_delete", {"edges": [{"type": "verified_by", "from": "REQ-1", "to": "NOPE"}]}),
    ("kb_delete", {"edges": [{"type": "depends_on", "from": "REQ-1", "to": "REQ-2"}]}),
    ("kb_upsert", {"edges": [{"type": "relates_to", "from": "OWN", "to": "ENDS"}]}),
    ("kb_upsert", {"edges": [{"type": "depends_on", "from": "OWN", "to": "ENDS", "kind": "x"}]}),
    ("kb_upsert", {"edges": [{"type": "dependson", "from": "OWN", "to": "ENDS"}]}),
    ("kb_upsert", {"edges": [{"type": "", "from": "", "to": "", "confidence": 3}]}),
    ("kb_upsert", {"entities": [{"id": "NEW", "type": "req"}, {"id": "a\nb", "type": "req", "title": "x"}]}),
    ("kb_upsert", {"entities": [{"id": "OWN", "tags": "x", "mode": "never", "attributes": []}]}),
    ("kb_upsert", {"rename": {"NOPE": "X"}}),
    ("kb_upsert", {"rename": {"OWN": "ENDS"}}),
    ("kb_upsert", {"rename": {"OWN": ""}}),
    ("kb_delete", {}),
    ("kb_delete", {"edges": [{"type": "nope", "from": "a", "to": "b"}]}),
    ("kb_delete", {"edges": [{"type": "depends_on", "from": "OWN", "to": "ENDS", "kind": "x"}]}),
    ("kb_check", {}),
    ("kb_check", {"rules": ["orfans"], "limit": 1}),
    ("kb_check", {"limit": 0}),
    ("kb_history", {}),
    ("kb_history", {"action": "show"}),
    ("kb_history", {"action": "show", "seq": 1000}),
    ("kb_history", {"action": "diff", "seq": 1000}),
    ("kb_history", {"action": "log", "id": "NOPE", "limit": 0}),
    ("kb_history", {"action": "log", "seq": 1}),
    ("kb_history", {"action": "revert", "seq": 2}),
    ("kb_history", {"action": "revert", "seq": 3, "to": 4, "id": "A"}),
]


def fill(project):
    """Give a branch facts of files and of clients, with links that lead nowhere."""
    unknown = "links:\n  - {type: depends_on, target: REQ-9}"
    project.sync(
        {
            "docs/requirements/one.md": req("REQ-1", priority="must").replace("---\n\n", "links: [REQ-2]\n---\n\n"),
            "docs/requirements/two.md": req("REQ-2").replace("---\n\n", f"{unknown}\n---\n\n"),
            "docs/requirements/bad.md": "---\nid: [\n---\n",
        }
    )
    edge = {"type": "depends_on", "from": "OWN", "to": "ENDS"}
    project.apply(entities=[entity("OWN"), entity("ENDS")], edges=[edge], changeset_id="used")
    project.apply(entities=[entity("OWN", title="Second")])


@pytest.fixture(scope="module")
def tools(shared):
    fill(shared)
    with direct(shared.root) as found:
        yield found


@pytest.mark.parametrize(("name", "arguments"), CALLS)
def test_no_answer_tells_an_agent_what_it_cannot_do(name, arguments, tools):
    answer = tools.answer(name, **arguments)
    assert {text: found for text in texts_in(answer) if (found := misleading(text))} == {}
    assert answer["branch"] == "main"
    assert isinstance(answer["seq"], int)


@pytest.mark.parametrize(("name", "arguments"), CALLS)
def test_a_single_problem_is_reported_once(name, arguments, tools):
    error = tools.answer(name, **arguments).get("error", {"details": []})
    if len(error["details"]) == 1:
        assert error["details"][0].keys() <= {"path", "code", "source"}
        assert error["hint"] not in error["message"]
        assert error["message"].count(error["message"].split(". ")[0]) == 1


def test_a_refusal_outside_of_a_repository_and_before_the_first_use_can_be_followed(tmp_path: Path, project):
    with direct(tmp_path) as nowhere:
        reported = nowhere.answer("kb_upsert", entities=[entity("A")])["error"]
        assert misleading(reported["hint"]) == []
    project.switch("feature", create=True)
    with direct(project.root, is_read_only=True) as reader:
        assert reader.answer("kb_query")["total"] == 0


def test_what_writes_is_for_the_user_where_the_server_only_reads():
    said = in_tool_words(f"{kb('apply', lead='Run')}.", is_dotted=False, is_read_only=True)
    assert said == "Ask the user to run `kb apply`."


def test_a_revert_that_a_sync_would_take_back_says_whom_to_ask(project):
    project.sync({"docs/requirements/one.md": req("REQ-1")})
    with direct(project.root) as tools:
        [warning] = tools.answer("kb_history", action="revert", seq=1)["warnings"]
        assert misleading(warning) == []


def test_an_edge_with_a_kind_is_removed_as_the_violation_says(project):
    files = {f"docs/requirements/{name}.md": req(f"REQ-{name}") for name in ("1", "2")}
    project.sync(files)
    project.apply(edges=[{"type": "relates_to", "kind": "see", "from": "REQ-1", "to": "REQ-2"}])
    project.sync({"docs/requirements/1.md": None})
    with direct(project.root) as tools:
        [violation] = tools.answer("kb_check", rules=["unresolved-reference"])["violations"]
        call = re.search(r"kb_delete with `edges` (\[.*\])", violation["hint"])
        assert tools.answer("kb_delete", edges=json.loads(call[1]))["edges"]["deleted"] == 1
        assert tools.answer("kb_check", rules=["unresolved-reference"])["violations"] == []


def test_an_edge_made_suspect_by_a_pending_change_names_what_shows_it(project):
    name = "docs/requirements/1.md"
    project.sync({name: req("REQ-1"), "docs/requirements/2.md": req("REQ-2", links="[REQ-1]")})
    project.write({name: req("REQ-1") + "\nAnother text.\n"})
    with direct(project.root) as tools:
        [violation] = tools.answer("kb_check", rules=["suspect-edge"])["violations"]
    assert f"See `git diff HEAD -- {name}`, and record the change with kb_upsert with `sync` true." in violation["hint"]


def test_in_a_bare_repository_the_user_is_asked_to_sync_in_a_worktree(tmp_path):
    root = make_repository(tmp_path / "source")
    commit_files(root, {"docs/requirements/a.md": req("REQ-1", links="[GONE]")})
    git(tmp_path, "clone", "--quiet", "--bare", root, tmp_path / "bare.git")
    bare = tmp_path / "bare.git"
    (bare / ".kb").mkdir()
    stores_at(bare).mkdir(parents=True)
    git(bare, "worktree", "add", "--quiet", tmp_path / "tree", "main")
    tree = Project(tmp_path / "tree", is_new=False)
    tree.sync()
    tree.close()
    ask = "sk the user to run `kb sync` in a worktree of the repository"
    with direct(bare) as tools:
        [violation] = tools.answer("kb_check", rules=["unresolved-reference"])["violations"]
        refused = tools.answer("kb_upsert", entities=[{"id": "REQ-1", "title": "Other"}])["error"]
        sync = tools.answer("kb_upsert", entities=[], sync=True)["error"]
    assert ask in violation["hint"]
    assert (refused["code"], ask in refused["hint"]) == ("derived_fact", True), refused
    assert "Start the server in one of its worktrees" in sync["hint"], sync


def test_for_a_branch_that_is_not_checked_out_the_user_is_asked_to_sync_there(project):
    git(project.root, "switch", "--quiet", "--create", "other")
    project.sync({"docs/requirements/one.md": req("REQ-1", priority="must")})
    git(project.root, "switch", "--quiet", "--force", "main")
    ask = "ask the user to run `kb sync` with other checked out (`git switch other`)"
    with direct(project.root, branch="other") as tools:
        _, violation = tools.answer("kb_check", rules=["must-coverage"])["violations"]
        refused = tools.answer("kb_upsert", entities=[{"id": "REQ-1", "title": "Other"}])["error"]
    assert ask in violation["hint"]
    assert 'kb_upsert with {"edges": [{"type": "verified_by", "from": "REQ-1", "to": "ID"}]}' in violation["hint"]
    assert (refused["code"], ask in refused["hint"]) == ("derived_fact", True), refused
