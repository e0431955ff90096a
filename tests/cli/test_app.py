"""The entry point: options, usage errors, every failure as a status, and no traceback."""

from __future__ import annotations

import errno
import json
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kbcli import app
from kbcli.invocation import bug_report, command_tree, examples, exits
from kbcli.invocation.context import Session
from kbcli.terminal.output import Output
from kbcore.errors import LockTimeout, Problem
from tests.support.docs.help_pages import commands, help_of
from tests.support.processes.cli import LOGIN, environment, program, write
from tests.support.repository.places import caches_at
from tests.support.repository.repos import add_worktree, git, make_repository


@pytest.mark.parametrize("words", [["--json", "status"], ["status", "--json"], ["branch", "--json", "list"]])
def test_global_options_are_taken_before_and_after_the_command(kb, synced, words):
    assert "main" in json.dumps(kb(*words).json)


@pytest.mark.parametrize(
    "place",
    [
        ["-C", "repo", "status", "--json"],
        ["status", "--json", "-C", "repo"],
        ["-C", ".", "status", "--json", "-C", "repo"],
    ],
)
def test_the_option_for_the_folder_can_be_anywhere(kb, synced, place):
    assert kb(*place, cwd=synced.parent).json["branch"] == "main"


def test_a_folder_that_does_not_exist_is_refused(kb, synced):
    ran = kb("status", "-C", "nowhere")
    assert (ran.status, ran.out) == (2, "")
    assert "nowhere" in ran.err


def test_the_branch_comes_from_the_option_then_the_variable_then_head(kb, synced, user):
    git(synced, "branch", "one")
    git(synced, "branch", "two")
    assert kb("status", "--json").json["branch"] == "main"
    user.setenv("KB_BRANCH", "one")
    assert kb("status", "--json").json["branch"] == "one"
    assert kb("--branch", "two", "status", "--json").json["branch"] == "two"
    assert kb("status", "--json", "--branch", "two").json["branch"] == "two"


def test_git_dir_and_git_work_tree_are_honoured(kb, synced, user, tmp_path):
    outside = make_repository(tmp_path / "outside")
    user.setenv("GIT_DIR", str(synced / ".git"))
    user.setenv("GIT_WORK_TREE", str(synced))
    assert kb("status", "--json", cwd=outside).json["files"]["scanned"] == 3


def test_a_linked_worktree_shares_the_kb_of_the_main_one(kb, synced, tmp_path):
    linked = add_worktree(synced, tmp_path / "linked", "feature")
    assert kb("status", "--json", cwd=linked).json["branch"] == "feature"
    kb("branch", "ensure", cwd=linked)
    assert kb("query", "--json", cwd=linked).json["branch"] == "feature"
    assert not (linked / ".kb").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sycn"], "Did you mean 'sync'"),
        (["query", "--limt", "3"], "--limit"),
        (["query", "--limit", "many"], "whole number"),
        (["sleep", "--phase", "two"], "not a whole number"),
        (["sleep", "--phase", "9" * 19], "too large a number"),
        (["check", "--format", "xml"], "text, short, json, sarif"),
        (["delete", "--edge", "A", "depends_on"], "Write `--edge FROM"),
        (["status", "surplus"], "`kb status` takes no argument. Leave out 'surplus'."),
        (["show", "A", "B"], "takes ID|SEQ|POINT|PATH[:LINE] and no more. Leave out 'B', or put"),
        (["config", "set", "a"], "`kb config set` lacks VALUE. Write `kb config set SETTING VALUE`."),
        (["query", "--limit"], "--limit lacks its value. Write `--limit N`."),
        (["-C"], "-C lacks its value. Write `-C PATH`."),
        (["sync", "--dry-run=3"], "--dry-run takes no value. Write `--dry-run` alone."),
        (["review", "--all", "x"], "error: --all means all that is proposed"),
        (["--branch", "", "status"], "empty"),
        (["query", "--status", "open", "--status", "done"], "--status: it is given more than once"),
        (["query", "--limit", "5", "--limit=5"], "--limit: it is given more than once"),
        (["--branch", "a", "--branch", "b", "status"], "--branch: it is given more than once"),
        (["--branch", "a", "status", "--branch", "b"], "before and after the command"),
        (["mcp", "--toolsets", "core", "--toolsets", "kip"], "--toolsets: it is given more than once"),
    ],
)
def test_a_command_line_that_cannot_be_understood_ends_with_status_2(kb, ready, words, said):
    ran = kb(*words)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("error: ")
    assert said in ran.err
    assert "--help" in ran.err


def test_with_json_a_usage_error_is_a_document_too(kb, ready):
    ran = kb("query", "--limt", "3", "--json")
    assert ran.status == 2
    assert ran.error["code"] == "usage"
    assert set(ran.error) == {"code", "message", "hint", "retryable", "applied", "details"}
    assert ran.err == ""


def test_a_value_that_looks_like_an_option_changes_nothing_else(kb, synced):
    ran = kb("query", "--text", "--json")
    assert ran.status == 0
    assert not ran.out.startswith("{")


def test_outside_of_a_repository_the_error_says_what_to_do(kb, tmp_path):
    ran = kb("query", cwd=tmp_path)
    assert (ran.status, ran.out) == (60, "")
    assert "hint: " in ran.err
    assert kb("query", "--json", cwd=tmp_path).error["code"] == "not_a_repository"


def test_before_init_the_error_names_init(kb, root):
    ran = kb("query")
    assert ran.status == 61
    assert "kb init" in ran.err


def test_without_a_command_the_help_comes_with_status_2(kb):
    ran = kb()
    assert (ran.status, ran.out) == (2, "")
    assert "Find and show:" in ran.err


def test_the_version_is_one_line(kb):
    ran = kb("--version")
    assert ran.status == 0
    assert ran.out.startswith("kb ")
    assert ran.out.count("\n") == 1


@pytest.mark.parametrize("name", [name for name, listed in command_tree.COMMANDS.items() if listed.help])
def test_every_command_has_help_that_begins_as_the_list_says(kb, name):
    ran = kb(name, "--help")
    assert ran.status == 0
    assert command_tree.COMMANDS[name].help.rstrip(".") in " ".join(ran.out.split())
    assert f"kb {name}" in kb(name, "-h").out


def test_help_lists_every_command_but_the_hidden_one_by_what_it_is_for(kb):
    listed = kb("--help").out.partition("Begin:")[2]
    names = [line.split()[0] for line in listed.splitlines() if line.startswith("  ") and not line.startswith("  `")]
    assert sorted(names) == sorted(name for name in command_tree.COMMANDS if name != "hook")
    assert names[:2] == ["init", "demo"]


def test_help_is_a_command_as_well(kb):
    assert kb("help") == kb("--help")
    assert kb("help", "branch", "diff") == kb("branch", "diff", "--help")
    assert kb("help", "agents", "install") == kb("agents", "install", "--help")
    ran = kb("help", "quer")
    assert (ran.status, ran.out) == (2, "")
    assert "Did you mean 'query'?" in ran.err


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["qeury"], "Did you mean 'query'?"),
        (["rev"], "Did you mean 'review' or 'revert'?"),
        (["undo"], "Did you mean 'revert'?"),
        (["ls"], "Did you mean 'query'?"),
        (["lint"], "Did you mean 'check'?"),
        (["import"], "Did you mean 'apply' or 'restore'?"),
        (["serch"], "Did you mean 'query'?"),
        (["version"], "'version'. `kb --version` shows it.\n"),
        (["frobnicate"], "'frobnicate'.\nhint: `kb --help` lists the commands and options.\n"),
        (["branch", "lst"], "Did you mean 'list'?"),
        (["query", "--limt"], "`kb query` has no option '--limt'. Did you mean '--limit'?"),
        (["demo", "--keep", "x"], "`kb demo` has no option '--keep'. It has --into.\n"),
        (["--jsn", "query"], "Did you mean '--json'?"),
        (["query", "--type", "req"], "Give TYPE without it: `kb query TYPE`."),
        (["log", "--id", "REQ-1"], "Give ID without it: `kb log ID`."),
    ],
)
def test_mistyped_words_get_the_nearest_ones(kb, words, meant):
    ran = kb(*words)
    assert (ran.status, ran.out) == (2, "")
    assert meant in ran.err


@pytest.mark.parametrize("name", examples.EXAMPLES)
def test_every_example_in_the_help_can_be_understood(name):
    command = commands()[name]
    for line, _ in examples.EXAMPLES[name]:
        words = shlex.split(line.partition(" < ")[0])
        assert words[: 1 + len(name.split())] == ["kb", *name.split()]
        session = Session({}, Output({}))
        assert command.make_context(name, words[1 + len(name.split()) :], obj=session).params is not None
    assert line in help_of(name)


def test_flags_and_what_may_be_repeated_can_be_given_again(kb, synced):
    words = ["--quiet", "--quiet", "--json", "--json", "--id", "REQ-1", "--id", "REQ-2", "--tag", "web", "--tag", "web"]
    assert kb("query", *words).status == 0


@pytest.mark.parametrize("name", commands())
def test_the_help_of_what_may_be_repeated_says_so(name):
    several = [one for one in commands()[name].params if one.param_type_name == "option" and one.multiple]
    assert [one.opts for one in several if "repeated" not in one.help and "twice" not in one.help] == []


@pytest.mark.parametrize("word", ["move", "mv"])
def test_a_word_for_a_new_id_leads_to_rename(kb, word):
    assert "Did you mean 'rename'?" in kb(word, "a", "b").err


def test_every_synonym_leads_to_a_command():
    meant = {name for names in examples.SYNONYMS.values() for name in names.split()}
    assert meant <= command_tree.COMMANDS.keys()
    assert not (examples.SYNONYMS.keys() | examples.INSTEAD) & command_tree.COMMANDS.keys()
    assert not examples.SYNONYMS.keys() & examples.INSTEAD


@pytest.mark.parametrize(("group", "command"), [("branch", "list"), ("hooks", "status")])
def test_a_group_alone_shows_what_there_is(kb, synced, group, command):
    alone, named = kb(group), kb(group, command)
    assert (alone.status, alone.out) == (named.status, named.out)
    assert kb(group, "--json").json == kb(group, command, "--json").json
    assert alone.out


def test_completion_suggests_commands_and_options(kb, user):
    user.setenv("_KB_COMPLETE", "complete_bash")
    user.setenv("COMP_WORDS", "kb que")
    user.setenv("COMP_CWORD", "1")
    assert kb().out.split() == ["query"]
    user.setenv("COMP_WORDS", "kb query --tex")
    user.setenv("COMP_CWORD", "2")
    assert kb().out.split() == ["--text"]


def run_broken(error):
    """A command body that fails."""

    def run() -> None:
        raise error

    return run


@pytest.fixture
def broken(user):
    """Put a command in place of `kb gc` that raises what it is given."""

    def put(error: BaseException) -> None:
        command_tree.root.cache_clear()
        module = type(sys)("kbcli.commands.broken")
        module.run = run_broken(error)
        user.setitem(sys.modules, "kbcli.commands.broken", module)
        user.setitem(command_tree.COMMANDS, "gc", command_tree.Listed("broken", "Fail."))

    yield put
    command_tree.root.cache_clear()


def test_an_error_of_kb_shows_message_details_and_hint(kb, ready, broken):
    problem = Problem("$.entities[0]", "bad", "is\x1b[31m red", "Mend it.", "docs/a.md:3")
    broken(LockTimeout("Somebody \u202eholds it.", details=[problem]))
    ran = kb("gc")
    assert ran.status == 20
    assert ran.err.splitlines() == [
        "error: Somebody \\u202eholds it.",
        "  docs/a.md:3: is\\x1b[31m red",
        "hint: Mend it.",
    ]
    error = kb("gc", "--json").error
    assert (error["code"], error["retryable"], error["applied"]) == ("lock_timeout", True, "no")
    assert error["details"][0]["message"] == "is\x1b[31m red"


def test_a_bug_saves_a_report_next_to_the_store_and_shows_no_traceback(kb, ready, broken):
    broken(ValueError("what\x1b now"))
    ran = kb("gc", "-q")
    assert (ran.status, ran.out) == (70, "")
    assert "Traceback" not in ran.err
    (report,) = (caches_at(ready) / "bugs").iterdir()
    assert str(report) in ran.err
    text = report.read_text()
    assert "Traceback" in text
    assert "\nValueError\n" in text
    assert "command: gc -q\n" in text
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    error = kb("gc", "--json").error
    assert (error["code"], error["applied"]) == ("internal_error", "unknown")
    assert error["report"].startswith(str(ready))


CANARY = "canary-8c1f"


class Leak(Exception):
    """Holds a value wherever an error can hold one."""

    def __init__(self, text: str) -> None:
        super().__init__(text, {text: text})
        self.add_note(text)
        self.stored = text


def leak(text: str) -> None:
    """Fail as a bug does that met a stored text: in its message, its notes, its cause and its locals."""
    local = {"title": text}
    try:
        raise KeyError(local["title"])  # noqa: TRY301 - its frame is what is tested
    except KeyError as error:
        try:
            raise OSError(errno.ENOENT, text, f"/home/{text}/file")  # noqa: TRY301
        except OSError:
            raise Leak(text) from error


def test_a_report_of_a_bug_holds_nothing_that_was_stored_typed_or_set(kb, ready, broken, user, tmp_path):
    user.setenv("KB_ACTOR", CANARY)
    user.setattr("tempfile.tempdir", str(tmp_path))
    folder = tmp_path / CANARY
    folder.mkdir()
    (folder / "leaking.py").write_text("def leak(error):\n    raise error\n")
    user.syspath_prepend(str(folder))
    import leaking  # type: ignore[import-not-found]

    try:
        leak(CANARY)
    except Leak as error:
        failed = error
    try:
        leaking.leak(failed)
    except Leak as error:
        broken(error)
    words = ("gc", "--json", "--branch", CANARY, f"--branch={CANARY}", "-C", str(ready), "--", CANARY)
    text = bug_report.write_report(failed, [*words, f"--{CANARY}", CANARY], None).read_text()
    assert "command: gc --json --branch … --branch -C …\n" in text
    for kept in ("Leak", "KeyError", "leaking.py:2 leak\n    raise error", "    raise Leak(text) from error"):
        assert kept in text
    assert kb("gc", "--json", "--branch", CANARY).status == 70
    (saved,) = (ready / ".git/kb/cache/bugs").iterdir()
    for one in (text, saved.read_text()):
        assert CANARY not in one
        assert str(Path.home()) not in one


def test_a_report_of_endless_recursion_is_short_and_names_the_number_of_a_system_error(tmp_path, user):
    user.setattr("tempfile.tempdir", str(tmp_path))

    def deeper() -> None:
        deeper()

    try:
        deeper()
    except RecursionError as error:
        text = bug_report.write_report(error, ["query", "req", "--where", "a=b", "branch", "list"], None).read_text()
    assert "command: query … --where … … …\n" in text
    assert " more …" in text
    assert len(text) < 20_000
    text = bug_report.write_report(OSError(errno.EIO, CANARY), ["branch", "list", "--json"], None).read_text()
    assert "command: branch list --json\n" in text
    assert "OSError EIO" in text
    assert CANARY not in text


def test_a_bug_where_there_is_no_kb_is_reported_in_the_temporary_folder(kb, broken, user, tmp_path):
    user.setattr("tempfile.tempdir", str(tmp_path))
    broken(ZeroDivisionError())
    ran = kb("gc", cwd=tmp_path)
    assert ran.status == 70
    assert len(list(tmp_path.glob("kb-bug-*.txt"))) == 1


def test_an_interrupt_is_quiet(kb, ready, broken):
    broken(KeyboardInterrupt())
    assert kb("gc") == (130, "", "")


def test_every_error_code_has_one_status_that_is_no_other_meaning():
    statuses = exits.statuses()
    taken = {exits.DONE, exits.VIOLATIONS, exits.UNREADABLE, exits.BUG, exits.OUTPUT_FAILED, exits.INTERRUPTED}
    assert not taken & set(statuses.values())


def test_quiet_leaves_what_was_asked_for(kb, synced):
    write(synced, {"docs/requirements/login.md": LOGIN.replace("Log in", "Sign in")})
    assert kb("sync", "-q") == (0, "", "")
    assert "REQ-1" in kb("query", "-q").out


def test_the_command_line_can_be_given_by_the_program(monkeypatch, capfd):
    monkeypatch.setattr(sys, "argv", ["kb", "--version"])
    assert app.main() == 0
    assert capfd.readouterr().out.startswith("kb ")


@pytest.mark.sliced
def test_a_deleted_folder_is_named_and_another_one_works(synced: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
    for words, status in (((), 2), (("-C", str(synced)), 0)):
        gone.mkdir(exist_ok=True)
        command = ["sh", "-c", script, "sh", str(gone), *program(), "status", *words]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        assert status == 0 or "The current folder no longer exists." in done.stderr


@pytest.mark.parametrize(("words", "applied"), [(("query",), "no"), (("log",), "no"), (("compact",), "unknown")])
def test_a_command_that_only_reads_is_known_to_have_written_nothing(words, applied, kb, synced, user):
    def fail(*_, **__):
        raise MemoryError

    user.setattr("kbcore.view.pool.ViewPool.ask", fail)
    user.setattr("kbcore.view.pool.ViewPool.ask_overlaid", fail)
    user.setattr("kbcore.storage.compaction.compact", fail)
    ran = kb(*words, "--json")
    error = json.loads(ran.out)["error"]
    assert (ran.status, error["code"], error["applied"]) == (25, "resource_limit", applied)
    assert ("may be sent again" in error["hint"]) is (applied == "unknown")
