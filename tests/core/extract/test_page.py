"""The page about extractors says what the extractors do."""

import ast
import re
from pathlib import Path

from kbcore.extract import manifest, markdown, settings
from kbcore.extract.facts import SourceFile
from kbcore.model.graph import SECRET_VALUE
from kbcore.text import conflict_markers, json_reader, problems, yaml_faults, yaml_text

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "extractors.md").read_text(encoding="utf-8")
OF_AUTHORS = (ROOT / "docs" / "writing-an-extractor.md").read_text(encoding="utf-8")
CODE = re.compile(r"[a-z]+(?:_[a-z]+)+")


def block(language, start, page=PAGE):
    found = re.findall(rf"```{language}\n(.*?)```", page[page.index(start) :], re.DOTALL)
    return found[0]


def codes_in_source():
    """Return the texts that stand where a problem is made, and look like a code."""
    makers = {"FileProblem", "fault", "_fault", "_passed_over"}
    found = {yaml_faults.CODE, json_reader.CODE, conflict_markers.CODE, problems.MORE, problems.REPEATED_ID}
    found |= {yaml_text.CUT_VALUE, SECRET_VALUE}
    for path in [*(ROOT / "kbcore" / "extract").rglob("*.py"), *(ROOT / "kbcore" / "text").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                texts = [one.value for one in node.args[:3] if isinstance(one, ast.Constant)] if name in makers else []
                found |= {text for text in texts if isinstance(text, str) and CODE.fullmatch(text)}
    return found


def test_every_code_is_in_the_table():
    table = set(re.findall(r"^\| `([a-z_]+)` \| (?:error|warning|note) \|", PAGE, re.MULTILINE))
    of_values = {"bad_name", "bad_path", "bad_text", "too_deep", "too_long"}

    assert codes_in_source() - table == set()
    assert table - codes_in_source() - of_values == set()


def test_every_setting_is_on_the_page():
    assert set(re.findall(r"^\| `(\w+)` \|.*\|.*\|$", PAGE.split("### What the keys mean")[0], re.MULTILINE)) == set(
        settings.BUILT_IN["markdown"]
    )


def test_the_document_on_the_page_is_read_without_a_problem():
    text = block("markdown", "## Markdown documents")
    facts = markdown.EXTRACTOR.extract(SourceFile("docs/requirements/7.md", text.encode(), "req"), {})

    assert facts.problems == ()
    (found,) = facts.entities
    assert found.id == "REQ-7"
    assert found.fields["attributes.estimate"] == "5"
    assert [link.target for link in facts.links] == ["REQ-2", "REQ-3", "TEST-12", "docs/adr/0004-passkeys.md"]


def test_the_manifest_on_the_page_is_read_without_a_problem():
    text = block("yaml", "## Manifests of symbols")
    facts = manifest.EXTRACTOR.extract(SourceFile("symbols.yaml", text.encode()), {})

    assert facts.problems == ()
    assert [one.id for one in facts.entities] == ["shop.cart:Cart", "billing"]
    assert len(facts.links) == 2


def test_the_extractor_on_the_page_works():
    space = {"__name__": "todo"}
    exec(compile(block("python", "# Writing an extractor", OF_AUTHORS), "writing-an-extractor.md", "exec"), space)
    extractor = space["EXTRACTOR"]
    facts = extractor.extract(SourceFile("TODO.txt", b"T-1 Write it #REQ-1\nT-2\n", "req"), {})

    assert extractor.path_rules({})[0].type == "req"
    assert [(one.id, one.fields["title"]) for one in facts.entities] == [("T-1", "Write it #REQ-1")]
    assert [link.target for link in facts.links] == ["REQ-1"]
    assert [problem.line for problem in facts.problems] == [2]
    assert not facts.is_complete
