"""``kb dml tools``, and files of tools."""

from __future__ import annotations

import pytest

from kbcore.dml.kb_tools import KB_TOOLS
from tests.support.processes.cli import write


def test_the_tools_of_kb_and_of_a_file_are_listed_with_their_schemas(kb, tmp_path):
    write(tmp_path, {"beside.py": "Count = int\n"})
    text = 'from beside import Count\ndef words(text: str, at_least: Count = 0) -> int:\n    """Count words."""\n'
    write(tmp_path, {"t.py": text + "    return len(text.split())\nTOOLS = [words]\n"})
    found = kb("dml", "tools", "--tools", "t.py", "--json", cwd=tmp_path).json["tools"]
    assert [one["name"] for one in found] == ["words", *KB_TOOLS]
    assert found[0]["parameters"]["required"] == ["text"]
    assert (found[0]["of"], found[1]["of"]) == ("file", "kb")
    assert {one["name"] for one in found if one["needs_allow"]} == {"kb_upsert", "kb_delete"}
    ran = kb("dml", "tools", "--tools", "t.py", cwd=tmp_path)
    assert ran.out.startswith("words(text: string, [at_least: integer])\n  Count words.\nkb_query([type: string], ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("TOOLS = 1\n", "t.py has no list TOOLS."),
        ("", "t.py has no list TOOLS."),
        ("TOOLS = [1]\n", "has a int, which is no function."),
        ("\nx = y\n", "t.py:2 cannot be run: NameError: name 'y' is not defined."),
        ("x = (\n", "cannot be run: SyntaxError: "),
        ("raise SystemExit(3)\n", "t.py:1 cannot be run: SystemExit: 3."),
        ("def f(*x): ...\nTOOLS = [f]\n", "the tool f has a parameter without a name of its own: *x."),
        ("def kb_query(): ...\nTOOLS = [kb_query]\n", "there are two tools with the name kb_query."),
        ("def f(): ...\nTOOLS = [f, f]\n", "there are two tools with the name f."),
    ],
)
def test_a_file_that_has_no_tools_is_refused_with_the_place(kb, tmp_path, text, said):
    write(tmp_path, {"t.py": text})
    ran = kb("dml", "tools", "--tools", "t.py", cwd=tmp_path)
    assert ran.status == 2
    assert said in ran.err
