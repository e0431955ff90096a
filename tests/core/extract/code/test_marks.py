"""Links of comments and decorators of source code, and the symbols that they are of."""

from __future__ import annotations

import pytest

from kbcore.extract.code.extractor import EXTRACTOR
from kbcore.extract.facts import SourceFile
from tests.support.repository.project import Project

EDGES = ["implements", "constrained_by", "publishes", "verified_by"]
SETTINGS = {"paths": ["src/**"], "tests": ["tests/**"], "edgeNames": EDGES}


def links(text: str, path: str = "src/a.py"):
    found = EXTRACTOR.extract(SourceFile(path, text.encode()), SETTINGS).links
    return [(one.subject.removeprefix(path), one.type, one.target, one.line) for one in found]


@pytest.mark.parametrize(
    ("comment", "stated"),
    [
        ("kb: implements REQ-1", [("implements", "REQ-1")]),
        ("KB: implements: `REQ-1`, REQ-2. They are two.", [("implements", "REQ-1"), ("implements", "REQ-2")]),
        ("kb: constrained-by ADR-1", [("constrained_by", "ADR-1")]),
        ("kb: see the manual, or ask", []),
        ("kb: implements", []),
        ("[impl->dsn~pay~1]", [("implements", "dsn~pay~1")]),
        ("[impl~code~2 -> dsn~pay~1, req~other~12]", [("implements", "dsn~pay~1"), ("implements", "req~other~12")]),
        ("@relation(REQ-1, REQ-2, scope=function)", [("implements", "REQ-1"), ("implements", "REQ-2")]),
        ("@Pay by card, IMPL_1, impl, [REQ_1, REQ_2]", [("implements", "REQ_1"), ("implements", "REQ_2")]),
        ("Implements: REQ001, REQ002", [("implements", "REQ001"), ("implements", "REQ002")]),
        ("Implements the strategy of 2 words", []),
        ("mail me@example.org, or, not, [x]", []),
    ],
)
def test_marks_of_each_tool_are_read(comment, stated):
    assert links(f"# {comment}\ndef f(): pass\n") == [("#f", edge, key, 1) for edge, key in stated]


def wrong(text: str):
    found = EXTRACTOR.extract(SourceFile("src/a.py", text.encode()), SETTINGS).problems
    return [(one.code, one.line, one.values, one.severity) for one in found]


@pytest.mark.parametrize(
    ("comment", "values"),
    [
        ("kb: implments REQ-1", ("implments", "REQ-1")),
        ("kb: implments the whole", ("implments", "the")),
        ("kb: ^verified-bi REQ-1", ("verified-bi", "REQ-1")),
        ("kb: satisfies dsn~login~1", ("satisfies", "dsn~login~1")),
        ("kb: implements", ("implements", "")),
        ("kb: constrained_by, ,", ("constrained_by", "")),
    ],
)
def test_a_mark_that_states_no_link_is_reported_with_its_line(comment, values):
    text = f"def f():\n    # first\n    # {comment}\n    pass\n"
    assert wrong(text) == [("wrong_mark", 3, values, "warning")]
    assert links(text) == []


@pytest.mark.parametrize("comment", ["kb: see the manual", "kb: use 2 of them", "kb://head", "kb: in REQ", "the kb"])
def test_prose_after_kb_is_no_mark(comment):
    assert wrong(f"# {comment}\ndef f(): pass\n") == []


def test_the_nearest_edge_is_named_for_a_wrong_mark():
    [found] = EXTRACTOR.extract(SourceFile("src/a.py", b"# kb: implments REQ-1\n"), SETTINGS).problems
    assert "'implements'" in found.hint


@pytest.mark.parametrize("word", ["verifies", "tests", "validates"])
def test_the_edge_that_leads_to_a_test_is_named_for_a_mark_that_says_what_the_test_verifies(word):
    [found] = EXTRACTOR.extract(SourceFile("tests/test_a.py", f"# kb: {word} REQ-1\n".encode()), SETTINGS).problems
    assert "'^verified_by'" in found.hint


@pytest.mark.parametrize(
    ("comment", "edge", "kind", "target"),
    [
        ("kb: constrained_by:refines REQ-1", "constrained_by", "refines", "REQ-1"),
        ("kb: constrained_by:REQ-1 and more", "constrained_by", "", "REQ-1"),
        ("kb: implements:auth and more", "implements", "", "auth"),
    ],
)
def test_a_mark_may_have_a_kind(comment, edge, kind, target):
    [link] = EXTRACTOR.extract(SourceFile("src/a.py", f"# {comment}\n".encode()), SETTINGS).links
    assert (link.type, link.kind, link.target) == (edge, kind, target)


PLACES = '''"""kb: implements R-FILE"""
x = 1  # kb: implements R-FILE-2

# kb: implements R-ABOVE
# and a second line
@decorated
def above():
    """Text.

    kb: implements R-DOC
    """
    # kb: implements R-INSIDE
    return 1  # kb: implements R-ROW
    # kb: implements R-END


# kb: implements R-FILE-3

class Outer:
    """kb: implements R-CLASS"""
    # kb: implements R-METHOD
    def inner(self):  # kb: implements R-HEAD
        pass

    double = lambda self: 2  # kb: implements R-DOUBLE


# @relation(R-SCOPE, scope=file)
def last(): pass
'''


def test_a_mark_belongs_to_what_its_comment_is_about():
    assert links(PLACES) == [
        ("", "implements", "R-FILE", 1),
        ("", "implements", "R-FILE-2", 2),
        ("#above", "implements", "R-ABOVE", 4),
        ("#above", "implements", "R-DOC", 10),
        ("#above", "implements", "R-INSIDE", 12),
        ("#above", "implements", "R-ROW", 13),
        ("#above", "implements", "R-END", 14),
        ("", "implements", "R-FILE-3", 17),
        ("#Outer", "implements", "R-CLASS", 20),
        ("#Outer.inner", "implements", "R-METHOD", 21),
        ("#Outer.inner", "implements", "R-HEAD", 22),
        ("#Outer.double", "implements", "R-DOUBLE", 25),
        ("", "implements", "R-SCOPE", 28),
    ]


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        ("src/a.go", "package a\n\n// kb: implements R\nfunc (c *Cart) Total() {}\n", "#Cart.Total"),
        ("src/a.go", "package a\n\nfunc F() { // kb: implements R\n}\n", "#F"),
        ("src/a.rs", "/// kb: implements R\n#[inline]\npub fn f() {}\n", "#f"),
        ("src/a.rs", "mod m {\n    // kb: implements R\n    fn f() {}\n}\n", "#m.f"),
        ("src/a.ts", "/** kb: implements R */\nexport const f = () => 1;\n", "#f"),
        ("src/a.ts", "const f = () => 1; // kb: implements R\n", "#f"),
        ("src/A.java", "class A {\n  /* kb: implements R */\n  @Override\n  void f() {}\n}\n", "#A.f"),
        ("src/a.js", "// kb: implements R\n\nfunction f() {}\n", ""),
    ],
)
def test_each_language_has_its_comments(path, text, name):
    [(subject, edge, target, _)] = links(text, path)
    assert (subject, edge, target) == (name, "implements", "R")


@pytest.mark.slow
def test_hostile_comments_are_read_in_time_in_proportion_to_their_length():
    text = "def f():\n    pass\n" + "    # " + "# " * 50_000 + "\nx = 1\n    # kb: implements R\n"
    for many in (
        "@relation(" + " " * 50_000,
        "@" + " " * 50_000 + "x",
        "[" * 50_000,
        "[impl->" * 10_000,
        "Implements " + "A1" * 50_000,
        "[impl->" + "a" * 200_000 + "]",
    ):
        text += f"# {many}\n"
    assert [one[2] for one in links(text)] == ["R"]


@pytest.mark.slow
def test_a_long_comment_is_read_in_time_in_proportion_to_its_length():
    rows = "\n * - - - - - -" * 20_000
    assert [one[2] for one in links(f"/*{rows}\n * Implements: REQ7\n{rows}*/\nlet a = 1\n", "src/a.js")] == ["REQ7"]
    many = "@relation(R)\n" * 100_000
    assert len(links(f"/*{many}*/\nlet a = 1\n", "src/a.js")) == 100_000


def test_a_string_states_nothing():
    assert links('def f():\n    return "# kb: implements R"\n') == []


def test_marks_of_pytest_make_tests_of_what_they_are_at():
    text = """import pytest


@pytest.mark.requirement("REQ-1", 'REQ-2')
@pytest.mark.slow
def test_one(): pass


@pytest.mark.kb("REQ-3, REQ-4")
class TestAll:
    def test_two(self): pass

    def helper(self): pass
"""
    assert links(text) == [
        ("#test_one", None, "REQ-1", 4),
        ("#test_one", None, "REQ-2", 4),
        ("#TestAll.test_two", None, "REQ-3", 9),
        ("#TestAll.test_two", None, "REQ-4", 9),
    ]
    facts = EXTRACTOR.extract(SourceFile("src/a.py", text.encode()), SETTINGS)
    assert [one.type for one in facts.entities] == ["test", "symbol", "test", "symbol"]
    without = text.replace("@pytest.mark.requirement(\"REQ-1\", 'REQ-2')\n", "")
    [one, *_] = EXTRACTOR.extract(SourceFile("src/a.py", without.encode()), SETTINGS).entities
    assert one.fields["attributes.signature_hash"] == facts.entities[0].fields["attributes.signature_hash"]


def test_marks_become_edges_and_what_is_not_there_is_reported(tmp_path):
    project = Project(tmp_path)
    config = '{"extractors": {"code": {"paths": ["src/*"], "tests": ["tests/*"]}}}'
    project.sync({".kb/config.json": config, "docs/requirements/REQ-1.md": "---\nid: REQ-1\ntitle: Pay\n---\n"})
    code = "# kb: implements REQ-1, REQ-9\ndef pay(): pass\n"
    test = 'import pytest\n\n\n@pytest.mark.requirement("REQ-1")\ndef test_pay(): pass\n'
    answer = project.sync({"src/pay.py": code, "tests/test_pay.py": test})
    assert [(one.source, one.target) for one in answer.unresolved] == [("src/pay.py", "REQ-9")]
    assert project.edges("REQ-1") == {
        ("src/pay.py#pay", "implements", "REQ-1", True),
        ("REQ-1", "verified_by", "tests/test_pay.py#test_pay", True),
    }
    project.sync({"src/pay.py": "def pay(): pass\n"})
    assert project.edges("REQ-1") == {("REQ-1", "verified_by", "tests/test_pay.py#test_pay", True)}


def test_a_mark_that_does_not_fit_is_reported_with_the_mark_that_does(tmp_path):
    project = Project(tmp_path)
    config = '{"extractors": {"code": {"paths": ["src/*"]}}}'
    project.sync({".kb/config.json": config, "docs/requirements/REQ-1.md": "---\nid: REQ-1\ntitle: Pay\n---\n"})
    code = "# kb: verified_by REQ-1\ndef pay(): pass\n"
    answer = project.sync({"src/pay.py": code})
    found = {(one.code, one.line): one.hint for _, one in answer.problems}
    assert "`kb: implements REQ-1`" in found["endpoint_type", 1]
    assert "links: [" not in found["endpoint_type", 1]


def test_a_kind_of_an_edge_that_has_none_is_reported(tmp_path):
    project = Project(tmp_path)
    document = "---\nid: REQ-{}\ntitle: Pay\nlinks:\n  - {{type: depends_on, target: REQ-2, kind: odd}}\n---\n"
    answer = project.sync({f"docs/requirements/REQ-{n}.md": document.format(n) for n in (1, 2)})
    found = [(path, one.code) for path, one in answer.problems if one.severity == "warning"]
    assert found == [(f"docs/requirements/REQ-{n}.md", "no_kind") for n in (1, 2)]


def test_a_file_is_a_symbol_only_while_something_is_said_of_it(tmp_path):
    project = Project(tmp_path)
    config = '{"extractors": {"code": {"paths": ["src/*"]}}}'
    project.sync({".kb/config.json": config, "src/a.py": '"""kb: implements REQ-1"""\n\ndef f(): pass\n'})
    node = project.node("src/a.py")
    assert (node.type, node.fields["attributes.kind"], node.fields["title"]) == ("symbol", "module", "src/a.py")
    project.sync({"src/a.py": "def f(): pass\n"})
    assert project.node("src/a.py") is None
