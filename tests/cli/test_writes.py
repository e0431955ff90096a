"""``kb apply`` and ``kb delete``: changesets from files and by name, all or nothing."""

from __future__ import annotations

import io
import json
import resource
import shutil
from collections.abc import Callable

import pytest

from kbcli import app
from kbcli.input import changeset_yaml
from tests.support.processes.cli import DOCUMENTS, write
from tests.support.repository.places import stores_at

ANSWER = {
    *("branch", "seq", "changeset_id", "applied", "duplicate", "dry_run", "created", "updated", "unchanged"),
    *("deleted", "edges", "warnings"),
}
NEW = {"entities": [{"id": "REQ-7", "type": "req", "title": "New", "status": "open"}]}
YAML = """
message: why
expected_seq: 1
entities:
  - id: 0007
    type: req
    title: 1.10
    status: on
    owner: null
    tags: [2026-01-01, true]
    attributes: {count: 3, share: 0.5, done: true, note: "3", nothing: null, at: 2026-01-01}
edges:
  - {type: depends_on, from: 0007, to: REQ-1, confidence: 0.9}
"""


def apply(kb, request, *words):
    return kb("apply", "-", "--json", *words, stdin=json.dumps(request))


def test_a_changeset_is_applied_and_answered_in_the_fixed_shape(kb, synced):
    answer = apply(kb, NEW).json
    assert set(answer) == ANSWER
    assert (answer["branch"], answer["seq"], answer["applied"], answer["created"]) == ("main", 2, True, ["REQ-7"])
    assert apply(kb, NEW).json["unchanged"] == ["REQ-7"]


def test_two_empty_lists_are_a_changeset_that_changes_nothing_and_one_alone_is_none(kb, synced):
    done = apply(kb, {"entities": [], "edges": [], "message": "an export of nothing"})
    assert (done.status, done.json["applied"]) == (0, False)
    assert apply(kb, {"entities": []}).status == 10


def test_the_text_says_what_was_done(kb, synced):
    write(synced, {"c.json": json.dumps(NEW | {"edges": [{"type": "depends_on", "from": "REQ-7", "to": "REQ-1"}]})})
    assert kb("apply", "c.json", "--dry-run").out == "Would change main at seq 1: 1 created; edges: 1 created.\n"
    assert kb("apply", "c.json").out == "main at seq 2: 1 created; edges: 1 created.\n"
    assert kb("apply", "c.json").out == "main at seq 2: nothing to change.\n"


@pytest.mark.sliced
def test_problems_that_differ_in_numbers_alone_are_reported_together(kb, synced):
    entities = [{"id": f"REQ-{number}", "type": "req", "title": "T"} for number in range(10, 3000)]
    ran = kb("apply", "-", stdin=json.dumps({"entities": [{"id": "X", "type": "reqq", "title": "T"}, *entities]}))
    lines = ran.err.splitlines()
    assert "2991 problems" in lines[0]
    assert lines[2].startswith("  $.entities[1].status: `status` of 'REQ-10' is missing.")
    assert "  … and 195 more like these of the first 200 problems; --json has each." in lines
    assert sum("reqq" in line for line in lines) == 1
    assert len(lines) < 10, ran.err
    reported = kb("apply", "-", "--json", stdin=json.dumps({"entities": entities})).error["details"]
    assert len(reported) == 200


def test_a_changeset_in_yaml_means_what_it_would_mean_in_json(kb, synced):
    write(synced, {"changes.yaml": YAML})
    assert kb("apply", "changes.yaml", "--json").json["created"] == ["0007"]
    entity = kb("query", "--id", "0007", "--json").json["entities"][0]
    assert (entity["title"], entity["status"], entity["tags"]) == ("1.10", "on", ["2026-01-01", "true"])
    assert "owner" not in entity
    assert entity["attributes"] == {
        "at": "2026-01-01", "count": 3, "done": True, "note": "3", "share": 0.5,
    }  # fmt: skip
    assert kb("query", "edge", "--where", "from=0007", "--json").json["edges"][0]["confidence"] == 0.9


def test_standard_input_may_be_yaml_too(kb, synced):
    ran = kb("apply", "-", "--json", stdin="entities:\n- {id: REQ-8, type: req, title: T, status: open}\n")
    assert ran.json["created"] == ["REQ-8"]


@pytest.mark.sliced(3)
@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("c.json", '{"entities": [\n{"id": "A", "id": "B"}]}', 2),
        ("c.json", '{"a": 1,\n}', 1),
        ("c.json", '{"a": NaN}', 1),
        ("c.yaml", "entities:\n- id: A\n  id: B\n", 3),
        ("c.yaml", "entities: [\n", 1),
        ("c.yaml", "a: &x 1\nb: *x\n", 1),
        ("c.yaml", "a: !!python/object/apply:os.system [ls]\n", 1),
        ("c.yaml", "a: 1\n---\nb: 2\n", 2),
        ("c.yaml", "a:\n" + "".join(" " * depth + "- \n" for depth in range(40)), None),
        ("c.yml", "a: 'x\n", None),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_its_line(kb, synced, name, text, line):
    write(synced, {name: text})
    ran = kb("apply", name, "--json")
    assert ran.status == 10, ran
    place = ran.error["details"][0]["source"]
    assert place.startswith(f"{name}:")
    assert line is None or place == f"{name}:{line}"
    assert ran.error["details"][0]["hint"]
    assert kb("query", "--json").json["seq"] == 1


def test_an_empty_name_of_a_file_is_called_so(kb, synced):
    for words in (("apply", ""), ("dml", "check", "")):
        ran = kb(*words)
        assert (ran.status, "error: The name of the file is empty." in ran.err) == (2, True), words


def test_an_empty_changeset_is_called_so(kb, synced):
    write(synced, {"c.yaml": "\n"})
    for name, shown in (("-", "standard input"), ("c.yaml", "c.yaml")):
        ran = kb("apply", name)
        assert ran.status == 10
        assert f"{shown} is empty." in ran.err


def test_what_is_wrong_is_reported_once(kb, synced):
    for text in ('{"entities": [{"id": "A", "type": "reqs", "title": "T", "status": "x"}]}', '{"entities": [1 2]}'):
        reported = kb("apply", "-", stdin=text)
        words = reported.json if reported.out else reported.err
        assert reported.err.count("'reqs'") + reported.err.count("comma is missing") == 1, words
    both = kb(
        "apply", "-", stdin='{"entities": [{"id": "A", "type": "reqs"}, {"id": "A", "type": "tset", "owner": 1}]}'
    )
    assert both.err.count("'reqs'") == both.err.count("`owner`") == 1


@pytest.mark.parametrize("text", ["", "null", "[]", "3", "text", "- a\n", "entities: x", "{}"])
def test_what_is_no_changeset_is_refused(kb, synced, text):
    assert kb("apply", "-", stdin=text).status == 10


def test_a_value_of_a_changeset_in_yaml_that_a_comment_cuts_is_a_warning_with_its_line(kb, synced):
    entity = "entities:\n- id: T-9\n  type: test\n  status: active\n"
    ran = kb("apply", "-", stdin=f"{entity}  title: Fix\n    bug #12\n  tags:\n  - a\n  - b #c\n")
    assert ran.status == 0
    assert "standard input:6: the value of `title` is 'Fix bug': ` #` begins a comment" in ran.err
    assert "standard input:9: the value is 'b'" in ran.err
    assert "warning" not in kb("apply", "-", stdin=f"{entity}  title: 'Fix bug #12' # said\n").err


def test_yaml_bombs_and_depth_are_refused_quickly():
    deep = "a: " + "[" * 100_000
    assert changeset_yaml.read(deep)[1]
    bomb = "a: &a [x,x]\n" + "".join(f"b{n}: &b{n} [*a,*a]\n" for n in range(40))
    assert changeset_yaml.read(bomb)[1]


def test_files_are_named_relative_to_where_kb_was_started(kb, synced):
    write(synced, {"docs/c.json": json.dumps(NEW)})
    assert kb("apply", "c.json", cwd=synced / "docs").status == 0
    assert kb("-C", "docs", "apply", "c.json").status == 0
    assert kb("apply", synced / "docs" / "c.json").status == 0
    assert kb("apply", "c.json").status == 2
    assert kb("apply", "docs").status == 2


def test_every_problem_is_reported_at_once_and_nothing_is_written(kb, synced):
    request = {
        "entities": [{"id": "A", "type": "rec", "title": "T", "status": "open"}, {"id": "B", "titel": "x"}],
        "edges": [{"type": "depends_on", "from": "A", "to": "GONE"}],
    }
    ran = apply(kb, request)
    assert ran.status in {10, 11}
    assert "$.entities[1].titel" in {problem["path"] for problem in ran.error["details"]}
    assert ran.error["applied"] == "no"
    assert kb("query", "--json").json["seq"] == 1


def test_a_fact_of_a_file_is_refused_and_the_file_named(kb, synced):
    ran = kb("apply", "-", stdin='{"entities": [{"id": "REQ-1", "title": "Mine"}]}')
    assert ran.status == 15
    assert "docs/requirements/login.md" in ran.err


def test_the_same_changeset_id_is_applied_once(kb, synced):
    request = NEW | {"changeset_id": "once"}
    assert apply(kb, request).json["duplicate"] is False
    assert apply(kb, request).json["duplicate"] is True
    assert "applied before" in kb("apply", "-", stdin=json.dumps(request)).out
    assert apply(kb, {"changeset_id": "once", "entities": [{"id": "REQ-7", "title": "Other"}]}).status == 13


def test_the_branch_can_be_another_than_the_one_checked_out(kb, synced):
    assert apply(kb, NEW, "--branch", "nope").status == 62
    kb("branch", "ensure", "main")
    assert apply(kb, NEW, "--branch", "main").json["branch"] == "main"


def add_more(kb) -> None:
    request = {
        "entities": [{"id": key, "type": "req", "title": key, "status": "open"} for key in ("A", "B", "C")],
        "edges": [
            {"type": "depends_on", "from": "A", "to": "B"},
            {"type": "depends_on", "from": "B", "to": "C"},
            {"type": "relates_to", "kind": "rivals", "from": "A", "to": "C"},
        ],
    }
    assert apply(kb, request).status == 0


def test_entities_and_edges_are_deleted_by_name(kb, synced):
    add_more(kb)
    answer = kb("delete", "--edge", "A", "depends_on", "B", "--edge", "A", "relates_to:rivals", "C", "--json").json
    assert answer["edges"]["deleted"] == 2
    answer = kb("delete", "A", "--json").json
    assert (answer["deleted"], answer["applied"]) == (["A"], True)
    assert set(answer) == ANSWER


def test_an_entity_that_others_point_at_needs_cascade(kb, synced):
    add_more(kb)
    refused = kb("delete", "C")
    assert refused.status == 11
    assert refused.err.endswith("\nhint: Remove these edges first, or use --cascade, which removes them too.\n")
    assert "use --cascade" in kb("delete", "C", "--json").error["hint"]
    assert kb("delete", "C", "--cascade", "--dry-run", "--json").json["edges"]["deleted"] == 2
    assert kb("delete", "C", "--cascade").out == "main at seq 3: 1 deleted; edges: 2 deleted.\n"


def test_what_is_named_twice_is_deleted_once(kb, synced):
    add_more(kb)
    edge = ("--edge", "A", "depends_on", "B")
    assert kb("delete", "A", "A", *edge, *edge).out == "main at seq 3: 1 deleted; edges: 2 deleted.\n"


def test_deleting_what_is_not_there_or_nothing_is_refused(kb, synced):
    ran = kb("delete", "REQ1")
    assert ran.status == 64
    assert ran.err.splitlines() == [
        "error: The changeset names what is not there: There is no entity 'REQ1'. Nothing was written.",
        "hint: Did you mean 'REQ-1'?",
    ]
    assert "\n  There is no entity 'REQ1'." in kb("delete", "REQ1", "X").err
    assert "\n  at --edge\n" in kb("delete", "--edge", "REQ-1", "implements", "X").err
    assert kb("delete", "REQ1", "--json").error["details"][0]["path"] == "$.entities[0].id"
    assert kb("delete").status == 2
    assert "`id` is empty" in kb("delete", "").err
    assert kb("delete", *(f"X-{number}" for number in range(101))).status == 14


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class SlowPerson(Terminal):
    """Somebody who types an answer only after something else has happened."""

    def __init__(self, answer: str, meanwhile: Callable[[], object]) -> None:
        super().__init__(answer)
        self.meanwhile = meanwhile

    def readline(self, *size: int) -> str:
        self.meanwhile()
        return super().readline(*size)


def at_a_terminal(user, answer: str | Terminal, *words: str) -> tuple[int, str]:
    """Run ``kb`` as if a person sat there who types an answer."""
    screen = Terminal()
    user.setattr("sys.stdin", Terminal(answer) if isinstance(answer, str) else answer)
    user.setattr("sys.stderr", screen)
    return app.main(list(words)), screen.getvalue()


@pytest.mark.sliced
def test_a_terminal_is_asked_before_anything_is_removed(kb, synced, user):
    add_more(kb)
    status, screen = at_a_terminal(user, "n\n", "delete", "A")
    assert status == 130
    assert "Remove 1 entity and 2 edges from main?" in screen
    assert "Nothing was removed." in screen
    assert at_a_terminal(user, "", "delete", "A")[0] == 130
    assert kb("query", "--id", "A", "--json").json["total"] == 1
    status, screen = at_a_terminal(user, "y\n", "delete", "A")
    assert status == 0
    assert kb("query", "--id", "A", "--json").json["total"] == 0
    status, screen = at_a_terminal(user, "", "delete", "--yes", "B")
    assert (status, screen.count("\n")) == (0, 1)
    assert "orphans (warning): C (req) is linked to nothing." in screen


def test_a_terminal_shows_what_is_removed_and_only_that_is_removed(kb, synced, user):
    add_more(kb)

    def change() -> None:
        request = {"entities": [{"id": "A", "title": "Other"}]}
        user.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(request).encode())))
        assert app.main(["apply", "-", "--quiet"]) == 0

    status, screen = at_a_terminal(user, SlowPerson("y\n", change), "delete", "A")
    assert "  A (req) A, version 2\n" in screen
    assert "  A depends_on B, version 2\n" in screen
    assert status == 12
    assert "'A' is at version 3, not 2" in " ".join(screen.split())
    assert kb("query", "--id", "A", "--json").json["total"] == 1
    status, screen = at_a_terminal(user, "n\n", "delete", "--edge", "A", "depends_on", "B")
    assert "  A depends_on B, version 2\nRemove 0 entities and 1 edge from main?" in screen
    assert at_a_terminal(user, "y\n", "delete", "GONE")[0] == 64


def test_a_changeset_beyond_the_limit_is_refused(kb, synced):
    with (synced / "big.json").open("w") as file:
        file.truncate(9 * 1024 * 1024)
    assert kb("apply", "big.json").status == 14


def test_the_page_of_an_entity_names_all_that_state_an_edge(kb, synced):
    write(synced, {"docs/requirements/a.md": "---\nid: REQ-8\ntitle: A\nlinks: [{depends_on: [REQ-1]}]\n---\n"})
    assert kb("sync").status == 0
    request = {"edges": [{"type": "depends_on", "from": "REQ-8", "to": "REQ-1"}]}
    assert kb("apply", "-", stdin=json.dumps(request)).status == 0
    shown = kb("show", "REQ-8").out.splitlines()
    row = shown[next(at for at, line in enumerate(shown) if "STATED IN" in line) + 1]
    assert row.rstrip().endswith("cli, docs/requirements/a.md")


def test_a_write_is_answered_before_its_view_is_published(synced, user):
    base = synced / ".git/kb/cache/main/view.duckdb"
    before, seen = base.stat().st_ino, list[int]()

    class Screen(io.StringIO):
        def write(self, text: str) -> int:
            seen.append(base.stat().st_ino)
            return super().write(text)

    request = {
        "entities": [{"id": f"N-{number}", "type": "req", "title": "T", "status": "open"} for number in range(2100)]
    }
    user.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(request).encode())))
    user.setattr("sys.stdout", Screen())
    user.chdir(synced)
    assert app.main(["apply", "-"]) == 0
    assert {*seen} == {before}
    assert base.stat().st_ino != before


@pytest.mark.sliced(1)
@pytest.mark.parametrize("is_json", [False, True])
def test_only_a_command_that_writes_says_that_nothing_was_written_and_it_says_so_once(kb, synced, is_json):
    mode = ["--json"] if is_json else []
    apply = ["apply", "-", *mode]
    refused = [
        kb(*apply, stdin='{"entities": [{"id": "A", "type": "unknown"}]}'),
        kb(*apply, stdin='{"entities": [{"id": "A", "type": "unknown"}, {"id": "B", "type": "unknown"}]}'),
        kb(*apply, stdin="no JSON"),
        kb(*apply, stdin=""),
        kb("delete", "NOBODY", *mode),
        kb("revert", "99", *mode),
    ]
    shutil.rmtree(stores_at(synced) / "main")
    refused.append(kb(*apply, stdin='{"entities": [{"id": "A", "type": "req", "title": "t", "status": "open"}]}'))
    upsert = 'UPSERT { CONCEPT {{type: "Person", name: "Ann"} SET ATTRIBUTES {person_class: "Human"}} }'
    refused.append(kb("kip", upsert, *mode))
    for ran in refused:
        assert (ran.out + ran.err).lower().count("nothing was written") == 1, ran
    find = ["kip", 'FIND(?r) WHERE { ?r {type: "Requirement"} }']
    for words in (["query"], ["query", "--id", "A"], ["check"], ["log"], ["show", "A"], ["coverage"], ["export"], find):
        ran = kb(*words, *(mode if words != ["export"] else []))
        assert ran.status == 45, ran
        assert "nothing was written" not in (ran.out + ran.err).lower(), ran


def test_an_export_that_cannot_be_written_leaves_the_old_one_whole(kb, synced):
    kb("apply", "-", stdin=json.dumps({"entities": [{"id": "REQ-1", "attributes": {"long": "x" * 60_000}}]}))
    (synced / "kept").write_text("the old one")
    (synced / "all.json").symlink_to("kept")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))
    try:
        ran = kb("export", "all.json", "--force")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (ran.status, "cannot be written" in ran.err) == (24, True)
    assert (synced / "kept").read_text() == "the old one"
    (synced / "kept").chmod(0o640)
    assert kb("export", "all.json", "--force").status == 0
    assert len(json.loads((synced / "kept").read_text())["entities"]) > 1
    assert ((synced / "all.json").is_symlink(), (synced / "kept").stat().st_mode & 0o777) == (True, 0o640)


def test_an_export_that_is_applied_without_import_is_refused_in_few_lines(kb, synced):
    stamps = {"created_at": "2020-01-02", "updated_at": "2020-01-02", "source": "x"}
    entities = [
        entity | stamps for entity in ({**NEW["entities"][0], "id": f"REQ-{number}"} for number in range(20, 40))
    ]
    ran = kb("apply", "-", stdin=json.dumps({"entities": entities}))
    assert "  … and 56 more like these; --json has each." in ran.err
    assert len(ran.err.splitlines()) < 8, ran.err


def test_an_export_of_everything_that_meets_the_documents_of_it_names_what_fits(kb, synced, models, tmp_path):
    export = kb("export").out
    other = shutil.copytree(models / "ready", tmp_path / "other", symlinks=True)
    write(other, DOCUMENTS)
    says = (
        "hint: An export of everything is for an empty store; `kb sync` records what documents state. `kb backup` and "
    )
    ran = kb("apply", "-", "--import", stdin=export, cwd=other)
    assert (ran.status, says in ran.err, "`kb merge …`" in ran.err) == (19, True, True), ran.err
    assert kb("sync", cwd=other).status == 0
    ran = kb("apply", "-", "--import", stdin=export, cwd=other)
    assert (ran.status, says in ran.err) == (10, True), ran.err


def test_an_export_to_a_link_that_leads_nowhere_says_so(kb, synced):
    (synced / "l.json").symlink_to("nowhere.json")
    ran = kb("export", "l.json")
    assert "is a link that leads to no file" in ran.err
    assert not (synced / "nowhere.json").exists()
