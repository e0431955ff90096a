"""Extractors are found with and without an installation, and foreign ones are not trusted."""

import sys
from importlib.metadata import DistributionFinder, MetadataPathFinder
from zipfile import ZipFile

import pytest

from kbcore import limits
from kbcore.errors import InvalidConfig
from kbcore.extract import markdown, registry
from kbcore.extract.facts import SourceFile

GOOD = """
from kbcore.extract.facts import Facts, PathRule, StatedEntity, StatedLink
from kbcore.text.problems import FileProblem


class Todos:
    name = "todos"
    version = 3

    def path_rules(self, settings):
        return [PathRule("TODO")]

    def extract(self, source, settings):
        if source.data == b"boom":
            raise RuntimeError("no idea")
        if source.data == b"end":
            raise SystemExit("no more")
        if source.data == b"nothing":
            return None
        if source.data == b"number":
            return Facts((StatedEntity("T", "req", {}, "1"),))
        if source.data == b"object":
            return Facts((StatedEntity("T", "req", {"attributes.at": object()}, 1),))
        if source.data == b"many":
            return Facts(problems=(FileProblem(1, "odd", "It is odd.", "Mend it."),) * 100_000)
        if source.data == b"half":
            return Facts((StatedEntity("T", "req", {"title": "\\udcff"}, 1),))
        if source.data[:1] == b"\\xff":
            text = source.data.decode("utf-8", "surrogateescape")
            places = {
                "id": {"entities": (StatedEntity(text, "req", {}, 1),)},
                "field": {"entities": (StatedEntity("T", "req", {text: 1}, 1),)},
                "target": {"links": (StatedLink("T", text),)},
                "message": {"problems": (FileProblem(1, "odd", text, "Mend it."),)},
            }
            return Facts(**places[text[1:]])
        return Facts((StatedEntity("T", "req", {"title": source.data.decode()}, 1),))


EXTRACTOR = Todos()
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return a function that puts a package with entry points on the path."""

    def put(name, code, points):
        (tmp_path / f"{name}.py").write_text(code)
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = "".join(f"{point} = {value}\n" for point, value in points.items())
        (info / "entry_points.txt").write_text(f"[kb.extractors]\n{lines}")

    monkeypatch.syspath_prepend(tmp_path)
    known = set(sys.modules)
    yield put
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def test_the_built_in_extractors_need_no_installation():
    assert list(registry.load().usable) == ["markdown", "manifest", "gherkin", "code", "scip"]
    assert registry.names() == ("markdown", "manifest", "gherkin", "code", "scip")


def test_an_extractor_of_another_package_is_found(install):
    install("kb_todos_good", GOOD, {"todos": "kb_todos_good:EXTRACTOR"})

    assert registry.names() == (*registry.BUILT_IN, "todos")
    assert "kb_todos_good" not in sys.modules
    loaded = registry.load().usable
    assert list(loaded) == [*registry.BUILT_IN, "todos"]
    assert loaded["todos"].version == 3


def test_an_extractor_in_an_archive_on_the_path_is_found(tmp_path, monkeypatch):
    archive = tmp_path / "kb_zipped.zip"
    with ZipFile(archive, "w") as packed:
        packed.writestr("kb_zipped.py", GOOD)
        packed.writestr("kb_zipped-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: kb_zipped\nVersion: 1.0\n")
        packed.writestr("kb_zipped-1.0.dist-info/entry_points.txt", "[kb.extractors]\ntodos = kb_zipped:EXTRACTOR\n")
    monkeypatch.syspath_prepend(archive)
    assert registry.names()[-1] == "todos"


def test_an_extractor_that_is_found_in_another_way_than_by_the_path_is_found(install, tmp_path, monkeypatch):
    install("kb_elsewhere", GOOD, {"todos": "kb_elsewhere:EXTRACTOR"})
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one != str(tmp_path)])
    assert "todos" not in registry.names()

    class Elsewhere(MetadataPathFinder):
        @classmethod
        def find_spec(cls, name, path=None, target=None):
            return None

        @classmethod
        def find_distributions(cls, context):
            return super().find_distributions(DistributionFinder.Context(path=[str(tmp_path)]))

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Elsewhere])
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "nothing")])
    assert registry.names()[-1] == "todos"


def test_an_extractor_may_be_switched_off(install):
    install("kb_todos_off", "raise ImportError", {"todos": "kb_todos_off:EXTRACTOR"})

    assert list(registry.load(disabled=["todos", "manifest"]).usable) == [
        name for name in registry.BUILT_IN if name != "manifest"
    ]


@pytest.mark.parametrize(
    ("code", "value", "word"),
    [
        ("raise ImportError('no such thing')", "EXTRACTOR", "no such thing"),
        ("1 / 0", "EXTRACTOR", "ZeroDivisionError"),
        ("raise SystemExit('no more')", "EXTRACTOR", "no more"),
        ("", ":EXTRACTOR", "module:object"),
        ("", "EXTRACTOR", "EXTRACTOR"),
        (GOOD, "Todos", "class"),
        (GOOD.replace("version = 3", ""), "EXTRACTOR", "version"),
        (GOOD.replace('"todos"', '"other"'), "EXTRACTOR", "'other'"),
        (GOOD.replace("def extract", "def run"), "EXTRACTOR", "extract"),
    ],
)
def test_an_extractor_that_cannot_be_used_is_named(install, code, value, word):
    install("kb_todos_bad", code, {"todos": value if value[0] == ":" else f"kb_todos_bad:{value}"})

    loaded = registry.load()
    assert list(loaded.usable) == [*registry.BUILT_IN]
    for text in ("'todos'", "kb_todos_bad", word):
        assert text in loaded.problems[0].message
    assert loaded.problems[0].code == "broken_extractor"


@pytest.mark.parametrize("damage", [b"todos\n", b"\xff\xfe = a:b\n"])
def test_a_package_whose_entry_points_cannot_be_read_is_named(install, tmp_path, damage):
    install("kb_todos_good", GOOD, {"todos": "kb_todos_good:EXTRACTOR"})
    install("kb_damaged", "", {})
    with (tmp_path / "kb_damaged-1.0.dist-info" / "entry_points.txt").open("ab") as points:
        points.write(damage)

    with pytest.raises(InvalidConfig, match="The entry points of kb_damaged cannot be read") as caught:
        registry.names()
    loaded = registry.load()
    assert list(loaded.usable) == [*registry.BUILT_IN]
    assert [problem.code for problem in (*caught.value.details, *loaded.problems)] == ["broken_extractor"] * 2


def test_a_package_without_a_name_may_bring_an_extractor(install, tmp_path):
    install("kb_todos_good", GOOD, {"todos": "kb_todos_good:EXTRACTOR"})
    install("kb_todos_nameless", GOOD, {"todos": "kb_todos_nameless:EXTRACTOR"})
    (tmp_path / "kb_todos_nameless-1.0.dist-info" / "METADATA").unlink()

    assert "unknown package: kb_todos_nameless:EXTRACTOR" in "".join(one.message for one in registry.load().problems)


def test_what_a_foreign_extractor_prints_is_not_in_the_answer(install, capsys):
    loud = GOOD.replace("        if source", "        print('loud')\n        if source", 1)
    install("kb_todos_loud", f"print('I am here')\n{loud}", {"todos": "kb_todos_loud:EXTRACTOR"})
    registry.run(registry.load().usable["todos"], SourceFile("TODO", b"fine"), {})
    assert capsys.readouterr() == ("", "I am here\nloud\n")


def test_every_broken_extractor_is_reported(install):
    install("kb_broken_one", "1 / 0", {"one": "kb_broken_one:X"})
    install("kb_broken_two", "1 / 0", {"two": "kb_broken_two:X"})

    assert [problem.path for problem in registry.load().problems] == ["extractors.one", "extractors.two"]


@pytest.mark.parametrize("name", ["markdown", "todos"])
def test_a_name_that_is_taken_is_refused(install, name):
    install("kb_todos_a", GOOD, {"todos": "kb_todos_a:EXTRACTOR"})
    install("kb_todos_b", GOOD, {name: "kb_todos_b:EXTRACTOR"})

    loaded = registry.load()
    assert {"the name is in use" in problem.message for problem in loaded.problems} == {True}
    assert list(loaded.usable) == [*registry.BUILT_IN, *(["todos"] if name == "markdown" else [])]


def test_a_failure_of_a_foreign_extractor_is_a_problem_of_the_file(install):
    install("kb_todos_run", GOOD, {"todos": "kb_todos_run:EXTRACTOR"})
    extractor = registry.load().usable["todos"]

    assert registry.run(extractor, SourceFile("TODO", b"fine"), {}).entities[0].fields == {"title": "fine"}
    for data, word in (
        (b"boom", "RuntimeError: no idea"),
        (b"end", "no more"),
        (b"nothing", "NoneType"),
        (b"number", "Expected `int`, got `str` - at `$.entities[0].line`"),
        (b"object", "unsupported"),
        (b"\xffid", "surrogates not allowed"),
        (b"\xfffield", "surrogates not allowed"),
        (b"\xfftarget", "surrogates not allowed"),
        (b"\xffmessage", "surrogates not allowed"),
    ):
        facts = registry.run(extractor, SourceFile("TODO", data), {})
        assert not facts.is_complete
        assert [problem.code for problem in facts.problems] == ["extractor_failed"]
        assert "'todos'" in facts.problems[0].message
        assert word in facts.problems[0].message


@pytest.mark.parametrize(
    ("does", "word"),
    [
        ("raise ValueError('boom')", "ValueError: boom"),
        ("raise SystemExit('no more')", "no more"),
        ("return None", "NoneType"),
        ("return ['TODO']", "PathRule"),
        ("return [PathRule(None)]", "Expected `str`"),
        ("return [PathRule('TODO', 5)]", "Expected `str | null`"),
        ("return [PathRule('../**')]", "must not leave the repository"),
        ("return [PathRule('\\udcff')]", "surrogates not allowed"),
    ],
)
def test_a_foreign_extractor_that_cannot_say_what_it_reads_is_named(install, does, word):
    install("kb_todos_lost", GOOD.replace('return [PathRule("TODO")]', does), {"todos": "kb_todos_lost:EXTRACTOR"})
    with pytest.raises(InvalidConfig) as caught:
        registry.path_rules(registry.load().usable["todos"], {})
    assert "'todos'" in caught.value.message
    assert word in caught.value.message


def test_a_value_that_is_no_text_is_left_to_the_check_of_its_field(install):
    install("kb_todos_half", GOOD, {"todos": "kb_todos_half:EXTRACTOR"})
    facts = registry.run(registry.load().usable["todos"], SourceFile("TODO", b"half"), {})
    assert facts.is_complete
    assert facts.entities[0].fields == {"title": "\udcff"}


def test_a_foreign_extractor_may_list_so_many_problems_and_no_more(install):
    install("kb_todos_many", GOOD, {"todos": "kb_todos_many:EXTRACTOR"})
    facts = registry.run(registry.load().usable["todos"], SourceFile("TODO", b"many"), {})
    assert len(facts.problems) == limits.MAX_PROBLEMS + 1
    assert facts.problems[-1].code == "more_problems"


def test_a_built_in_extractor_is_run_as_it_is():
    facts = registry.run(markdown.EXTRACTOR, SourceFile("a.md", b"---\nid: A\ntitle: T\n---\n", "req"), {})

    assert facts.entities[0].id == "A"
    with pytest.raises(AttributeError):
        registry.run(markdown.EXTRACTOR, SourceFile("a.md", None, "req"), {})
