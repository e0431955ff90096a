"""Files that are made to take long are read in time that grows with their size, not with its square."""

import time

import pytest

from kbcore.extract.facts import SourceFile
from kbcore.extract.manifest import EXTRACTOR as MANIFEST
from kbcore.extract.markdown import EXTRACTOR as MARKDOWN

N = 60_000
LIMIT_S = 5.0
"""The time of each is a fraction of a second; in quadratic time, it would be minutes."""

FRONTS = {
    "a key without a colon": "a" + " " * N + "x\n@: b",
    "a list key without a colon": "@x\na" + " " * N + "\n - b",
    "spaces without a comment": "a: @" + " " * N + "x",
    "an item of spaces": "a:\n- " + " " * N + "\n  @x",
    "an open Markdown link": "@x: y\nlinks: '[x](" + "a" * N + "'",
    "many open brackets": "status: 'superseded by " + "[" * N + "'",
    "many links": "status: 'superseded by " + "[x](" * (N // 4) + "'",
    "many keys": "@x: y\n" + "".join(f"k{n}: [\n" for n in range(N // 40)),
    "commas": "links: '" + "a," * (N // 2) + "'",
}
BODIES = {
    "a heading of spaces": "# " + " " * N + "x",
    "a heading of signs": "# x " + "#" * N + "y",
    "comments in one line": "<!---->" * N + "# x",
    "a bullet without an end": "# x\n\n- Status: a\n" + "  b\n" * N,
    "a bold key without an end": "# x\n\n- " + "*" * N + "\n- " + "a " * N,
    "backticks": "`" * N + "x`",
    "underlines": "x\n" + "=" * N + "y\n" + "- " * N,
    "comments before a rule": "<!-- -->\n" * N + "---\n" + "a" * N,
}


def took(extractor, path, text, **settings):
    start = time.perf_counter()
    facts = extractor.extract(SourceFile(path, text.encode(), "adr"), settings)
    assert facts.entities or facts.problems
    return time.perf_counter() - start


@pytest.mark.parametrize("name", FRONTS)
def test_hostile_front_matter_is_read_in_time(name):
    assert took(MARKDOWN, "docs/a.md", f"---\nid: A\n{FRONTS[name]}\n---\n# T\n") < LIMIT_S


@pytest.mark.parametrize("name", BODIES)
def test_a_hostile_body_is_read_in_time(name):
    body = BODIES[name] + "\n\n## Links\n\nupersede\n"

    assert took(MARKDOWN, "docs/a.md", body, idFromFilename=True) < LIMIT_S


@pytest.mark.parametrize("path", ["symbols.yaml", "symbols.json"])
@pytest.mark.parametrize("text", ['{"a":' * N, '["' + "\\\\" * N, "[" + "1," * N, "- @x\n" * (N // 10), '"' + "a" * N])
def test_a_hostile_manifest_is_read_in_time(path, text):
    assert took(MANIFEST, path, text) < LIMIT_S
