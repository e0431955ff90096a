"""A failure is reported once, with its place and its remedy."""

from __future__ import annotations

import resource
import threading
from pathlib import Path

import pytest

from kbcli.invocation import exits
from kbcli.terminal.output import Output
from kbcore.errors import DerivedFact, InvalidChangeset, KBError, NotFound, Problem, of_problems
from kbcore.errors.remedies import for_shell
from kbcore.process.system_limits import exhausted
from tests.support.processes.fenced import as_somebody

PAGE = Path(__file__).resolve().parents[2] / "docs" / "errors.md"
ONE = Problem("$.entities[0].type", "unknown_type", "There is no entity type 'rec'.", "Did you mean 'req'?")
TWO = Problem("$.entities[1].id", "bad_id", "`id` is empty.", "Name it.")
FILE = Problem("$.entities[0].title", "derived_fact", "`title` is stated by a.md:3.", "Edit a.md.", "a.md:3")


@pytest.mark.parametrize(
    ("error", "lines"),
    [
        (NotFound("Gone."), ["error: Gone.", f"hint: {for_shell(NotFound.default_hint)}"]),
        (NotFound("Gone.", hint="Look."), ["error: Gone.", "hint: Look."]),
        (
            of_problems(InvalidChangeset, "It cannot be taken", [ONE]),
            [f"error: It cannot be taken: {ONE.message}", "  at $.entities[0].type", "hint: Did you mean 'req'?"],
        ),
        (
            of_problems(DerivedFact, "A file states it", [FILE]),
            [f"error: A file states it: {FILE.message}", "  at $.entities[0].title", "hint: Edit a.md."],
        ),
        (
            InvalidChangeset("2 problems.", details=[ONE, TWO]),
            [
                "error: 2 problems.",
                "  $.entities[0].type: There is no entity type 'rec'. (Did you mean 'req'?)",
                "  $.entities[1].id: `id` is empty. (Name it.)",
                f"hint: {InvalidChangeset.default_hint}",
            ],
        ),
        (
            InvalidChangeset(f"{ONE.message} (and 1 more)", hint=ONE.hint, details=[ONE, TWO], says_first=True),
            [
                f"error: {ONE.message} (and 1 more)",
                "  at $.entities[0].type",
                "  $.entities[1].id: `id` is empty. (Name it.)",
                "hint: Did you mean 'req'?",
            ],
        ),
    ],
)
def test_each_problem_and_each_remedy_is_reported_once(
    capfd: pytest.CaptureFixture[str], error: KBError, lines: list[str]
) -> None:
    assert exits.show(Output({}), error) == error.exit_status
    assert capfd.readouterr().err.splitlines() == lines


def test_the_page_on_errors_has_every_code_that_the_command_line_answers_with() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for code in [*exits.statuses(), exits.USAGE_CODE, exits.BUG_CODE]:
        assert f"| `{code}` |" in page


HIDDEN = """
import os, sys; from pathlib import Path
from kbcli.app import main
from kbcli.invocation.context import Session
from kbcli.terminal.output import Output
root = Path(sys.argv[1])
for name in (".git", ".kb/schema", ".kb"):
    mode = (root / name).stat().st_mode
    (root / name).chmod(0)
    session = Session(os.environ, Output(os.environ))
    session.directories.append(str(root))
    print(main(["-C", str(root), "status"]), session.cache() is None, file=sys.stdout)
    (root / name).chmod(mode)
"""


def test_a_place_that_may_not_be_read_is_named_and_no_bug(synced: Path) -> None:
    (synced / ".kb/schema").mkdir(exist_ok=True)
    reported = as_somebody(HIDDEN, synced)
    assert reported.splitlines() == ["67 True", "63 False", "63 False"]


def too_much_memory():
    bytes(2**62)


def too_many_threads():
    before = threading.stack_size(2**46)
    try:
        threading.Thread(target=print).start()
    finally:
        threading.stack_size(before)


def too_many_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        PAGE.open()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    ("use", "what"), [(too_much_memory, "memory"), (too_many_threads, "threads"), (too_many_files, "open files")]
)
def test_what_the_system_gives_no_more_of_is_an_error_with_a_remedy_and_no_bug(use, what):
    with pytest.raises((MemoryError, RuntimeError, OSError)) as raised:
        use()
    found = exhausted(raised.value, may_be_written=True)
    assert found is not None
    assert found.message == f"The system gives KB no more {what}."
    assert (found.code, found.retryable, found.applied) == ("resource_limit", True, "unknown")
    assert "ulimit -a" in found.hint


@pytest.mark.parametrize(
    "error", [RuntimeError("other"), FileNotFoundError(2, "x"), ValueError("can't start new thread")]
)
def test_other_errors_stay_what_they_are(error):
    assert exhausted(error, may_be_written=True) is None
