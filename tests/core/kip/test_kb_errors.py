from __future__ import annotations

import pytest

from kbcore import errors
from kbcore.errors import KBError, KipRefused, Problem
from kbcore.kip.errors import CODES, SYNTAX, envelope, refused
from kbcore.kip.kb_errors import KIP_CODES, bug, in_batch, in_kip


def raised(parent=KBError):
    for child in parent.__subclasses__():
        yield from ([child] if child.code else [])
        yield from raised(child)


def test_every_error_of_kb_is_reported_in_kip():
    assert {error.code for error in raised()} - {KipRefused.code} == set(KIP_CODES)
    assert all(reported.code in CODES for reported in KIP_CODES.values())


@pytest.mark.parametrize("error", [one for one in raised() if one is not KipRefused], ids=lambda one: one.code)
def test_an_error_keeps_what_kb_knows_of_it(error):
    reported = envelope(in_kip(error("It failed.", details=[Problem("$.x", "c", "m")]), writes=True))["error"]
    assert set(reported) == {"code", "message", "hint", "name", "data"}
    assert reported["hint"]
    assert reported["data"]["kb_code"] == error.code
    assert reported["data"]["applied"] == error.applied
    assert reported["data"]["problems"] == [{"path": "$.x", "code": "c", "message": "m", "hint": ""}]
    is_uncertain = error is errors.CommitUncertain  # its message says what is not known
    assert reported["message"] == ("It failed." if is_uncertain else "It failed. Nothing was written.")


def test_an_error_of_a_command_that_reads_does_not_say_what_was_written():
    assert in_kip(errors.LockTimeout("Busy."), writes=False).message == "Busy."
    assert in_kip(errors.BranchMoved("Moved."), writes=True).message == "Moved. Nothing was written."


def test_the_hint_of_the_very_error_goes_before_that_of_its_kind():
    assert in_kip(errors.DerivedFact("x", hint="Edit a.md:3."), writes=True).hint == "Edit a.md:3."


def test_what_kip_refuses_stays_as_it_is():
    error = refused(SYNTAX, "No.")
    assert in_kip(error, writes=True) is error


@pytest.mark.parametrize(
    ("at", "count", "said"),
    [
        (0, 2, "This is command 1 of 2. The commands after it were not run."),
        (1, 3, "This is command 2 of 3. The commands before it were run. The commands after it were not run."),
        (2, 3, "This is command 3 of 3. The commands before it were run."),
        (0, 1, "This is command 1 of 1."),
    ],
)
def test_an_error_in_a_batch_says_what_became_of_the_others(at, count, said):
    error = in_batch(refused(SYNTAX, "No."), at, count, dry_run=False)
    assert error.message == f"No. {said}"
    assert error.data["command"] == at


def test_a_bug_is_reported_as_one():
    assert envelope(bug("ValueError"))["error"]["code"] == "KIP_4003"


def test_an_interruption_is_reported_as_one_and_not_as_a_bug():
    reported = envelope(in_kip(errors.Interrupted("The command was interrupted."), writes=True))["error"]
    assert (reported["code"], reported["name"], reported["data"]["kb_code"]) == (
        "KIP_4001",
        "ExecutionTimeout",
        "interrupted",
    )
    assert reported["message"] == "The command was interrupted. Nothing was written."
    assert "changeset_id" not in reported["hint"], "a command of KIP has none"
    unknown = errors.Interrupted("The command was interrupted.")
    unknown.applied = "unknown"
    reported = envelope(in_kip(unknown, writes=True))["error"]
    assert reported["message"] == "The command was interrupted. It is not known whether all of it was written."
    assert "FIND" in reported["hint"]
