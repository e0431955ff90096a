"""At a terminal: colours, width, the pager, the question before a deletion. Off it: none of them."""

from __future__ import annotations

import json
import os
import pty
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from kbcli.terminal.cells import width_of
from tests.support.processes.cli import DOCUMENTS, environment, run_kb, write
from tests.support.processes.forked import Forked
from tests.support.repository.repos import make_repository


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    root = make_repository(tmp_path_factory.mktemp("terminal") / "repo")
    assert run_kb(root, "init", "--no-hooks").status == 0
    long = "---\nid: LONG\ntitle: " + "very " * 40 + "long\nstatus: open\npriority: must\n---\n"
    write(root, DOCUMENTS | {"docs/requirements/long.md": long})
    assert run_kb(root, "sync").status == 0
    return root


def at_terminal(
    cwd: Path, words: Sequence[str], *, typed: str = "", env: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Run ``kb`` at a pseudo-terminal of 70 columns and return its status and all that the terminal got."""
    child_env = environment({"TERM": "xterm", "COLUMNS": "70", "PAGER": "cat", **(env or {})})
    screen, its = pty.openpty()
    running = Forked("kb", words, child_env, cwd, (its, its, its))
    os.close(its)
    if typed:
        os.write(screen, typed.encode())
    parts = []
    while part := read_some(screen):
        parts.append(part)
    os.close(screen)
    return running.wait(), b"".join(parts).decode().replace("\r\n", "\n")


def read_some(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # Linux says so when the other end is closed
        return b""


def plain(shown: str) -> str:
    """Return what a terminal shows without its colours."""
    return re.sub(r"\x1b\[\d*m", "", shown)


def test_a_snippet_fits_the_terminal_with_its_hit_in_sight(tmp_path):
    project = make_repository(tmp_path / "repo")
    run_kb(project, "init", "--no-hooks")
    text = "very " * 20 + "odd passkey " + "and more " * 20
    write(project, {"docs/requirements/key.md": f"---\nid: KEY\ntitle: Keys\nstatus: open\n---\n{text}\n"})
    run_kb(project, "sync")
    _, shown = at_terminal(project, ["query", "--text", "passkey", "--no-color"])
    assert "odd «passkey» and more" in shown
    assert all(width_of(line) <= 70 for line in shown.splitlines())
    assert "\x1b[1mpasskey\x1b[0m" in at_terminal(project, ["query", "--text", "passkey"])[1]


def test_a_table_fits_the_terminal(project):
    status, shown = at_terminal(project, ["query"])
    assert status == 0
    assert "…" in shown
    assert all(width_of(line) <= 70 for line in plain(shown).splitlines())
    assert "…" not in run_kb(project, "query").out


def test_groups_of_coverage_keep_their_shares_where_there_is_no_room_for_the_counts(project):
    _, shown = at_terminal(project, ["coverage", "--by", "priority", "--no-color"], env={"COLUMNS": "40"})
    assert shown.splitlines()[-1].split() == ["TOTAL", "0%", "33.3%", "0%"]
    assert shown.splitlines()[0].split() == ["PRIORITY", "SPEC", "VERIF", "IMPL"]
    _, shown = at_terminal(project, ["coverage", "--by", "priority", "--no-color"])
    assert shown.splitlines()[-1].split() == ["TOTAL", "3", "0/3", "0%", "1/3", "33.3%", "0/3", "0%"]


@pytest.mark.sliced(1)
@pytest.mark.parametrize("by", ["requirement", "tag", "priority", "component"])
def test_coverage_at_40_columns_is_not_cut(project, by):
    _, shown = at_terminal(project, ["coverage", "--by", by, "--no-color"], env={"COLUMNS": "40"})
    assert "…" not in shown
    assert all(width_of(line) <= 40 for line in shown.splitlines())
    assert shown.splitlines()[0].split()[-3:] in (["SPEC", "VERIF", "IMPL"], ["SPECIFIED", "VERIFIED", "IMPLEMENTED"])


@pytest.mark.sliced
def test_a_terminal_gets_a_page_and_hears_that_there_is_more_also_in_quiet(tmp_path):
    project = make_repository(tmp_path / "repo")
    run_kb(project, "init", "--no-hooks")
    nodes = [{"id": f"M-{at:03}", "type": "req", "title": "T", "status": "open"} for at in range(51)]
    run_kb(project, "apply", "-", stdin=json.dumps({"entities": nodes}))
    seen = tmp_path / "seen"
    for words in (["query"], ["query", "-q"], ["query", "--format", "jsonl", "-q"]):
        _, shown = at_terminal(project, [*words, "--no-color"])
        assert "M-050" not in shown
        assert "50 of 51; for more: --limit 51" in shown
    at_terminal(project, ["query", "--no-color"], env={"PAGER": f"cat > {seen}"})
    lines = seen.read_text().splitlines()
    assert (lines[0].split(), len(lines)) == (["ID", "TYPE", "STATUS", "TITLE"], 51)
    assert "\t" not in lines[1]


@pytest.mark.sliced
def test_what_is_said_is_broken_between_words(project):
    for words in (["check", "--no-color"], ["impact", "REQ-1"], ["check", "--rule", "nothing-of-the-kind"]):
        _, shown = at_terminal(project, words, env={"COLUMNS": "40", "TERM": "dumb"})  # which has no progress bar
        said = plain(shown).splitlines()
        assert len(said) > 2
        assert [one for one in said if width_of(one) > 40 and "`" not in one and " " in one.strip()] == []


@pytest.mark.sliced
def test_changes_and_the_state_are_broken_between_words(project):
    for words in (["diff", "0"], ["show", "1"], ["log"], ["status"], ["sync"], ["schema", "req"]):
        _, shown = at_terminal(project, [*words, "--no-color"], env={"COLUMNS": "20", "TERM": "dumb"})
        said = plain(shown).splitlines()
        assert [one for one in said if width_of(one) > 20 and " " in one.strip()] == [], words
        assert any(len(line) > 20 for line in run_kb(project, *words).out.splitlines()), words


def test_the_history_of_an_entity_is_broken_between_words(project):
    _, shown = at_terminal(project, ["show", "LONG", "--no-color"], env={"COLUMNS": "40"})
    history = plain(shown).split("History (1)")[1].splitlines()
    assert [one for one in history if width_of(one) > 40] == []
    assert history[2].startswith("    ")


def test_the_page_of_an_entity_keeps_the_command_of_a_remedy_in_one_piece(project):
    _, shown = at_terminal(project, ["show", "LONG", "--no-color"], env={"COLUMNS": "40"})
    assert "`links: [{specified_by: [ID]}]`" in shown


@pytest.mark.sliced
def test_colours_are_there_unless_unwanted(project):
    assert "\x1b[3" in at_terminal(project, ["diff", "0"])[1]
    assert "\x1b[3" in at_terminal(project, ["sinc"])[1]
    for words, env in (
        (["diff", "0", "--no-color"], {}),
        (["diff", "0"], {"NO_COLOR": "1"}),
        (["diff", "0"], {"TERM": "dumb"}),
    ):
        assert "\x1b[" not in at_terminal(project, words, env=env)[1]
    assert "\x1b[" not in run_kb(project, "diff", "0").out
    assert "\x1b[32m" in run_kb(project, "diff", "0", "--color=always").out
    assert "\x1b[32m" in run_kb(project, "diff", "0", env=environment({"CLICOLOR_FORCE": "1"})).out


def test_notes_on_a_paged_answer_come_after_it(project, tmp_path):
    _, shown = at_terminal(project, ["query", "--limit", "1"], env={"PAGER": "cat -A"})
    *_, more, cursor = plain(shown).splitlines()
    assert (more, cursor.startswith("  --cursor ")) == ("1 of 4; for more: --limit 4, or", True)


def test_how_long_ago_a_record_was_written_is_for_people_at_terminals(project):
    assert re.search(
        r"Date:   \d{4}\S+Z \((?:less than a|\d+) (?:minute|hour)s? ago\)", at_terminal(project, ["log"])[1]
    )


@pytest.mark.sliced
def test_long_answers_go_to_the_pager_and_documents_do_not(project, tmp_path):
    seen = tmp_path / "seen"
    pager = {"PAGER": f"cat > '{seen}'; echo paged"}
    assert at_terminal(project, ["log"], env=pager) == (0, "paged\n")
    assert plain(seen.read_text()).startswith("record 1 (head)\n")
    seen.unlink()
    for words in (["log", "--json"], ["query", "--format", "csv"], ["status"]):
        assert "paged" not in at_terminal(project, words, env=pager)[1]
    assert not seen.exists()


def test_json_is_indented_for_a_person(project):
    assert at_terminal(project, ["query", "--json"])[1].startswith('{\n  "branch"')


@pytest.mark.sliced
def test_a_deletion_is_asked_for(project):
    changeset = '{"entities": [{"id": "X", "type": "req", "title": "X", "status": "open"}]}'
    assert run_kb(project, "apply", "-", stdin=changeset).status == 0
    status, shown = at_terminal(project, ["delete", "X"], typed="n\n")
    assert status == 130
    assert "Remove 1 entity and 0 edges from main?" in shown
    status, shown = at_terminal(project, ["delete", "X"], typed="y\n")
    assert status == 0
    assert "1 deleted" in shown


@pytest.mark.sliced(1)
@pytest.mark.parametrize("words", [["query", "req"], ["coverage"]])
def test_a_terminal_shows_numbers_in_their_order(tmp_path, words):
    project = make_repository(tmp_path / "repo")
    run_kb(project, "init", "--no-hooks")
    entities = [{"id": f"N-{n}", "type": "req", "title": "T", "status": "open"} for n in (1, 2, 10)]
    run_kb(project, "apply", "-", stdin=json.dumps({"entities": entities}))
    _, shown = at_terminal(project, [*words, "--no-color"])
    assert re.findall(r"^N-[0-9]+", plain(shown), re.MULTILINE) == ["N-1", "N-2", "N-10"], shown
