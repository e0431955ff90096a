"""The documentation shows of a terminal what a terminal shows."""

from __future__ import annotations

import pytest

from tests.support.docs.console import ROOT, Ended, Step, blocks, run_page, steps

PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    if path.name != "logic.md"
    and any(block.language == "console" or block.tool for block in blocks(path.read_text(encoding="utf-8")))
)


@pytest.mark.parametrize("page", PAGES)
def test_every_console_block_comes_back_as_shown(page, tmp_path):
    for block, ended in run_page((ROOT / page).read_text(encoding="utf-8"), tmp_path):
        for one in ended:
            assert not one.fault(), f"{page}:{block.line}: {one.fault()}"


def test_the_examples_of_prolog_come_back_as_shown_on_each_engine(engine, tmp_path, monkeypatch):
    monkeypatch.setenv("KB_LOGIC_ENGINE", engine["KB_LOGIC_ENGINE"])
    test_every_console_block_comes_back_as_shown("docs/logic.md", tmp_path)


def test_the_pages_for_beginners_are_among_them():
    assert {"README.md", "docs/first-ten-minutes.md", "docs/facts.md", "docs/people.md", "docs/agents.md"} <= set(PAGES)


def test_a_block_that_shows_something_else_is_seen(tmp_path):
    page = "```console\n$ echo one\ntwo\n$ false\n```\n"
    [(_, ended)] = run_page(page, tmp_path)
    assert all(one.fault() for one in ended)


def test_a_file_is_written_where_the_page_says(tmp_path):
    page = "<!-- file: a/b.txt -->\n```text\nhello\n```\n\n```console\n$ cat a/b.txt\nhello\n```\n"
    [(_, [one])] = run_page(page, tmp_path)
    assert not one.fault()


@pytest.mark.parametrize(
    ("shown", "output", "is_same"),
    [
        ("a … c", "a b c\n", True),
        ("a\n…\nd", "a\nb\nc\nd\n", True),
        ("a\n…\nd", "a\nd\n", True),
        ("…\nd", "b\nc\nd\n", True),
        ("a\n…", "a\nb\n", True),
        ("a\n…\nd", "a\nb\nc\n", False),
        ("at 2026-11-20T09:30:00Z", "at 2027-01-01T00:00:00.123456Z\n", True),
        ("head 0123456789ab", "head ffffffffffff\n", True),
        ("seq 1", "seq 2\n", False),
        ("a.c", "abc\n", False),
        ("", "\n", True),
    ],
)
def test_what_varies_is_not_compared_and_all_else_is(shown, output, is_same):
    assert (Ended(Step("x", 0, shown), 0, output).fault() == "") is is_same


def test_a_status_is_written_after_the_command():
    [block] = blocks("```console\n$ kb check  # status 1\n$ kb log\nnothing\n```\n")
    assert steps(block) == [Step("kb check", 1, ""), Step("kb log", 0, "nothing")]


def test_a_call_over_mcp_is_made_for_real(tmp_path):
    page = (
        "```console\n$ kb init --no-hooks\n…\n```\n"
        '<!-- tool: kb_query -->\n```json\n{"type": "req"}\n```\n<!-- tool: kb_query -->\n```json\n{"tpye": 1}\n```\n'
    )
    _, (_, [good]), (_, [bad]) = run_page(page, tmp_path)
    assert not good.fault()
    assert '"total": 0' in good.output
    assert bad.fault()
