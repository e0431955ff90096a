"""Every hint that reaches a client of the tools can be followed there: no command or option that it cannot give."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from kbcore import errors
from kbcore.errors import KBError, Problem
from kbmcp.tools.hints import hint_for, in_tool_words
from kbmcp.tools.tool_list import TOOLS
from tests.mcp.agents import ROOT, direct
from tests.support.project import req

TOOL_COMMANDS = ("query", "show", "log", "diff", "revert", "check", "apply", "delete")
COMMAND_LINE_ONLY = ("maintenance", "store/init.py", "watch.py", "sync/run.py")
"""What of the core no tool reaches."""
NAMING_TOOLS = {"rules/suspect_edge.py"}
"""What of the core names a tool itself, for clients of both."""
FUNCTIONS_OF_COMMANDS = ("copy_from",)
SAMPLE = "X"


def misleading(text):
    """Return what a client of the tools could not do of what a text tells it."""
    found = [f"`kb {name}`" for name in re.findall(r"\bkb ([a-z]+)\b(?! --import)", text) if name in TOOL_COMMANDS]
    found += re.findall(r"(?:[Rr]un|[Ss]ee) (?<!user to run )`kb [a-z]+", text)
    outside = re.sub(r"`(?:kb|git) [^`]*`", "", text)
    if "server" not in outside:
        found += re.findall(r"(?<![\w'-])--[a-z][a-z-]+", outside)
    return found + re.findall(r"\{kb_\w+\}|COMMAND|^Or ", text)


def sentences_of_the_core():
    """Yield every text of the core that names a command or an option, and its place; X is for what is filled in."""
    for path in sorted((ROOT / "kbcore").rglob("*.py")):
        place = path.relative_to(ROOT / "kbcore").as_posix()
        if place.startswith(COMMAND_LINE_ONLY):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        commands = [node for node in ast.walk(tree) if getattr(node, "name", "") in FUNCTIONS_OF_COMMANDS]
        silent |= {id(part) for command in commands for part in ast.walk(command)}
        parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
        for node in ast.walk(tree):
            text = ""
            if isinstance(node, ast.JoinedStr) and id(node) not in silent:
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else SAMPLE for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts | silent:
                text = node.value
            if re.search(r"\bkb [a-z]{3,}|\s--[a-z]{2,}", text):
                yield f"{place}:{node.lineno}", text


@pytest.mark.parametrize(
    ("words", "edge"),
    [
        ("A implements B", '{"type": "implements", "from": "A", "to": "B"}'),
        ("'A b' implements:part 'B c'", '{"type": "implements", "from": "A b", "to": "B c", "kind": "part"}'),
    ],
)
def test_what_confirms_an_edge_is_told_as_a_call_or_as_something_to_ask_for(words, edge):
    hint = f"See `kb log B`. If the edge no longer holds, correct it; if it holds, confirm it: `kb confirm {words}`"
    said = in_tool_words(hint, is_dotted=False)
    assert said.endswith(f'confirm it with kb_upsert and {{"edges": [{edge}]}}')
    assert said.startswith("See kb_history with action log and `id` B. If")
    asked = in_tool_words(hint, is_dotted=False, is_read_only=True)
    assert asked.endswith(f"confirm it, for which you ask the user to run `kb confirm {words}`")


def test_a_server_without_the_tools_of_the_core_names_none_of_them():
    naming = set()
    for place, text in sentences_of_the_core():
        said = in_tool_words(text, is_dotted=False, has_core=False)
        if re.search(r"\bkb_(query|upsert|delete|check|history)\b", said):
            naming.add(place.partition(":")[0])
    assert naming == NAMING_TOOLS
    for kind in (
        errors.StaleBase,
        errors.NotFound,
        errors.IntegrityViolation,
        errors.BranchMoved,
        errors.LimitExceeded,
    ):
        said = in_tool_words(hint_for(kind("It failed."), "kb.sleep", has_core=False), is_dotted=False, has_core=False)
        assert "kb_" not in said.replace("kb_sleep", ""), said


def test_an_option_that_no_tool_has_makes_a_command_one_for_the_user():
    said = [in_tool_words(f"Run `kb apply {rest}`.", is_dotted=False) for rest in ("FILE --import", "--important")]
    assert said == ["Ask the user to run `kb apply FILE --import`.", "Call kb_upsert."]


def test_what_the_core_says_of_its_commands_is_told_in_the_words_of_the_tools():
    said = {place: in_tool_words(text, is_dotted=False) for place, text in sentences_of_the_core()}
    assert len(said) > 10
    assert {place: (text, found) for place, text in said.items() if (found := misleading(text))} == {}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Run `kb doctor`: it writes nothing.", "Ask the user to run `kb doctor`: it writes nothing."),
        ("Edit a.md and run `kb sync`.", "Edit a.md and call kb_upsert with `sync` true."),
        ("Edit a.md and sync.", "Edit a.md and call kb_upsert with `sync` true."),
        ("Edit docs/x and sync.md.", "Edit docs/x and sync.md."),
        ("Mend x and sync and sync first.", "Mend x and sync and call kb_upsert with `sync` true first."),
        (
            "Edit docs/x and sync.md and sync; fields that it does not state are free.",
            "Edit docs/x and sync.md and call kb_upsert with `sync` true; fields that it does not state are free.",
        ),
        ("Edit docs/a --force b.md or c --at d.md.", "Edit docs/a --force b.md or c --at d.md."),
        ("`kb query edge` lists the edges.", 'kb_query with type "edge" lists the edges.'),
        ("`kb query --text 'A'` looks for it.", "kb_query with `text` looks for it."),
        ("The records are 1 to 3; see `kb log`.", "The records are 1 to 3; see kb_history with action log."),
        (
            "Records up to seq 2 are good and readable with --at 2.",
            "Records up to seq 2 are good and readable with `at` 2.",
        ),
        ("Remove the edge first, or use --force to leave it as it is.", "Remove the edge first."),
        (
            "Revert record 3 first; --force takes the old values over it.",
            "Revert record 3 first, or write the old values with kb_upsert.",
        ),
        ("Remove it first, or use --force.", "Remove it first."),
        ("Or run `kb apply --import FILE`.", "Or ask the user to run `kb apply --import FILE`."),
        ("`kb show 3` shows what happened.", "kb_history with action show and `seq` 3 shows what happened."),
        (
            "Create B, or remove it: kb delete --edge 'A 1' relates_to B.",
            'Create B, or remove it with kb_delete and `edges` [{"type": "relates_to", "from": "A 1", "to": "B"}].',
        ),
        ("Did you mean '--force `kb log` and sync'?", "Did you mean '--force `kb log` and sync'?"),
    ],
)
def test_a_remedy_is_told_in_the_words_of_the_tools(said, told):
    assert in_tool_words(said, is_dotted=False) == told


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
            hint = in_tool_words(hint_for(error, tool.key), is_dotted=False)
            assert hint.endswith((".", "!"))
            assert misleading(hint) == []
            assert hint != "Do this."
        if kind not in {errors.StaleBase, errors.RevertConflict}:  # theirs says all that any other would
            assert hint_for(kind("It failed.", hint="Do this."), tool.key).startswith("Do this.")


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


@pytest.fixture(scope="module")
def tools(shared):
    """The tools of a branch whose facts are of files and of clients, with links that lead nowhere."""
    unknown = "links:\n  - {type: depends_on, target: REQ-9}"
    shared.sync(
        {
            "docs/requirements/one.md": req("REQ-1", priority="must").replace("---\n\n", "links: [REQ-2]\n---\n\n"),
            "docs/requirements/two.md": req("REQ-2").replace("---\n\n", f"{unknown}\n---\n\n"),
            "docs/requirements/bad.md": "---\nid: [\n---\n",
        }
    )
    edge = {"type": "depends_on", "from": "OWN", "to": "ENDS"}
    shared.apply(entities=[entity("OWN"), entity("ENDS")], edges=[edge], changeset_id="used")
    shared.apply(entities=[entity("OWN", title="Second")])
    with direct(shared.root) as found:
        yield found


@pytest.mark.parametrize(("name", "arguments"), CALLS)
def test_no_answer_tells_an_agent_what_it_cannot_do(name, arguments, tools):
    answer = tools.answer(name, **arguments)
    assert {text: found for text in texts_in(answer) if (found := misleading(text))} == {}
    assert answer["branch"] == "main"
    assert isinstance(answer["seq"], int)


@pytest.mark.parametrize(("name", "arguments"), CALLS)
def test_a_single_problem_is_told_once(name, arguments, tools):
    error = tools.answer(name, **arguments).get("error", {"details": []})
    if len(error["details"]) == 1:
        assert error["details"][0].keys() <= {"path", "code", "source"}
        assert error["hint"] not in error["message"]
        assert error["message"].count(error["message"].split(". ")[0]) == 1


def test_a_refusal_outside_of_a_repository_and_before_the_first_use_can_be_followed(tmp_path: Path, project):
    with direct(tmp_path) as nowhere:
        told = nowhere.answer("kb_upsert", entities=[entity("A")])["error"]
        assert misleading(told["hint"]) == []
    project.switch("feature", create=True)
    with direct(project.root, is_read_only=True) as reader:
        assert reader.answer("kb_query")["total"] == 0


def test_what_writes_is_for_the_user_where_the_server_only_reads():
    remedy = "Create B, or remove it: kb delete --edge A depends_on B."
    assert in_tool_words(remedy, is_dotted=False, is_read_only=True) == (
        "Create B, or remove it, for which you ask the user to run `kb delete --edge A depends_on B`."
    )
    assert in_tool_words("Run `kb apply`.", is_dotted=False, is_read_only=True) == "Ask the user to run `kb apply`."


def test_a_revert_that_a_sync_would_take_back_says_whom_to_ask(project):
    project.sync({"docs/requirements/one.md": req("REQ-1")})
    with direct(project.root) as tools:
        [warning] = tools.answer("kb_history", action="revert", seq=1)["warnings"]
        assert misleading(warning) == []
