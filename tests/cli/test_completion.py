"""Completion in a shell offers what is stored and in force, without a message and without a write."""

from __future__ import annotations

import pytest

from kbcli.invocation import command_tree, completion
from kbcli.invocation.options import is_global
from tests.support.processes.cli import write
from tests.support.repository.places import stores_at
from tests.support.repository.repos import git

MORE = """
entities:
  - {id: PAY-1, type: req, title: Pay, status: agreed, tags: [money]}
  - {id: PAY-2, type: test, title: Pays, status: flaky}
  - {id: "$(touch owned)", type: req, title: T, status: "it's; done"}
edges:
  - {type: verified_by, from: PAY-1, to: PAY-2}
"""
RULE = """
rules:
  - id: paid-by-somebody
    description: Somebody pays.
    severity: warning
    sql: select id as subject, 'Nobody pays.' as message from entities where false
"""


@pytest.fixture
def typed(kb, synced, user):
    """Return what bash is offered for a line: every word after the last space is being typed."""
    assert kb("apply", "-", stdin=MORE).status == 0

    def offered(line: str) -> list[str]:
        user.setenv("_KB_COMPLETE", "complete_bash")
        user.setenv("COMP_WORDS", line)
        user.setenv("COMP_CWORD", str(line.count(" ")))
        ran = kb()
        user.delenv("_KB_COMPLETE")
        assert (ran.status, ran.err) == (0, "")
        return ran.out.split()

    return offered


@pytest.mark.sliced(15)
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("kb show PAY", ["PAY-1", "PAY-2"]),
        ("kb show pay-2", ["PAY-2"]),
        ("kb impact PAY", ["PAY-1", "PAY-2"]),
        ("kb check PAY-1", ["PAY-1"]),
        ("kb query --id PAY-1 --id PAY", ["PAY-1", "PAY-2"]),
        ("kb query --from PAY-1", ["PAY-1"]),
        ("kb delete PAY-1 PAY-", ["PAY-1", "PAY-2"]),
        ("kb query r", ["req"]),
        ("kb query ed", ["edge"]),
        ("kb graph --type ev", ["event", "Event"]),
        ("kb schema verif", ["verified_by"]),
        ("kb query --has ^verif", ["^verified_by"]),
        ("kb query --lacks verified_by:PAY", ["verified_by:PAY-1", "verified_by:PAY-2"]),
        ("kb query --follow depends_on,verif", ["depends_on,verified_by"]),
        ("kb delete --edge PAY-1 verif", ["verified_by"]),
        ("kb query test --status f", ["flaky"]),
        ("kb query test --status a", ["active"]),
        ("kb query --status a", ["active", "agreed"]),
        ("kb query --where prio", ["priority="]),
        ("kb query --where status=fl", ["status=flaky"]),
        ("kb query --sort upd", ["updated_at"]),
        ("kb query --fields id,prio", ["id,priority"]),
        ("kb new ev", ["event", "Event"]),
        ("kb id next tes", ["test"]),
        ("kb set PAY-1 own", ["owner="]),
        ("kb link PAY-1 verif", ["verified_by"]),
        ("kb link PAY-1 verified_by PAY-2", ["PAY-2"]),
        ("kb unlink PAY", ["PAY-1", "PAY-2"]),
        ("kb confirm PAY-1", ["PAY-1"]),
        ("kb rename PAY-2", ["PAY-2"]),
        ("kb config get kip.row", ["kip.rowLimit"]),
        ("kb diff ma", ["main"]),
        ("kb check --since ma", ["main"]),
        ("kb query --tag mon", ["money"]),
        ("kb check --rule must", ["must-coverage"]),
        ("kb check --explain dup", ["duplicate-title"]),
        ("kb log --actor nobody", []),
        ("kb --branch ma", ["main"]),
        ("kb query --branch ma", ["main"]),
        ("kb branch diff ma", ["main"]),
        ("kb revert ", ["2", "1"]),
        ("kb review REQ-", ["REQ-1", "REQ-2"]),
        ("kb --branch gone show PAY", []),
        ("kb -C /nowhere/at/all show PAY", []),
    ],
)
def test_a_shell_is_offered_what_there_is(typed, line, offered):
    assert typed(line) == offered


def test_nothing_is_offered_that_a_shell_could_take_for_more_than_a_word(typed):
    assert not [one for line in ("kb show ", "kb query --status ") for one in typed(line) if set(one) & set("$();' ")]


def test_rules_of_the_project_and_what_files_say_now_are_offered(typed, synced):
    write(synced, {".kb/rules/own.yaml": RULE, "docs/requirements/new.md": "---\nid: NEW-1\ntitle: T\n---\n"})
    assert typed("kb check --rule paid") == ["paid-by-somebody"]
    assert typed("kb show NEW") == ["NEW-1"]


def test_a_branch_without_a_store_is_completed_from_what_it_would_be_copied_from_and_gets_none(typed, synced):
    git(synced, "switch", "-q", "-c", "feature/x")
    assert typed("kb show PAY") == ["PAY-1", "PAY-2"]
    assert typed("kb branch ensure feat") == ["feature/x"]
    assert [one.name for one in stores_at(synced).iterdir() if not one.name.startswith(".")] == ["main"]


def test_a_store_in_the_trash_is_offered_to_be_restored(typed, kb, synced):
    git(synced, "branch", "gone")
    kb("branch", "ensure", "gone")
    git(synced, "branch", "-D", "gone")
    kb("gc")
    assert typed("kb branch restore ") == ["gone"]


def test_outside_of_a_repository_nothing_is_offered_and_nothing_is_said(kb, user, tmp_path):
    user.setenv("_KB_COMPLETE", "complete_bash")
    user.setenv("COMP_WORDS", f"kb -C {tmp_path} show ")
    user.setenv("COMP_CWORD", "4")
    ran = kb()
    assert (ran.status, ran.out.strip(), ran.err) == (0, "", "")


def test_a_damaged_store_gives_no_message_during_completion(typed, synced):
    journal = next(stores_at(synced).rglob("*.jsonl"))
    journal.write_bytes(b"nonsense\n")
    assert typed("kb show PAY") == []


def commands(group=None, path="kb"):
    group = group or command_tree.root()
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        below = getattr(command, "commands", None)
        yield from commands(command, f"{path} {name}") if below else [(f"{path} {name}", command)]


def test_every_metavar_that_is_completed_is_one_of_a_command():
    found = {(path, one.metavar) for path, command in commands() for one in command.params}
    assert completion._BY_COMMAND.keys() <= found
    assert completion._BY_METAVAR.keys() <= {metavar for _, metavar in found}
    opts = {name for _, command in commands() for one in command.params for name in one.opts}
    assert completion._BY_OPTION.keys() <= opts


def test_every_parameter_that_names_something_stored_is_completed():
    named = {"ID", "TYPE", "EDGE", "BRANCH", "RULE", "STATUS"}
    missed = [
        (path, one.metavar)
        for path, command in commands()
        for one in command.params
        if not is_global(one)
        and set((one.metavar or "").split("|")) & named
        and one.metavar not in completion.METAVARS
        and completion.OPTIONS.isdisjoint(one.opts)
    ]
    assert missed == []
