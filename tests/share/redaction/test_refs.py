"""A redaction reaches the ref of a remote, and what was pushed before does not come back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kbcore.maintenance import redaction_preview
from kbcore.share import backup_ref
from kbcore.share.backup_ref import Fetched, Pushed
from kbcore.store import backup_refs
from tests.share.redaction.redacting import REF, SECRET, holds, redact
from tests.support.repository.clones import Clone, hold
from tests.support.repository.places import stores_at
from tests.support.repository.repos import git


def refs_only(up: Path) -> str:
    """Return the content of all objects that the refs of KB lead to."""
    names = [line.split()[0] for line in git(up, "rev-list", "--objects", "--glob=refs/kb/*").splitlines()]
    return "".join(git(up, "cat-file", "-p", name) for name in names)


def push(clone: Clone) -> Pushed:
    return backup_ref.push(clone.workspace(), clone.branch, "origin")


def fetch(clone: Clone) -> Fetched:
    found = backup_ref.fetch(clone.workspace(), clone.branch, "origin", clone.author())
    clone.note_own()
    return found


@pytest.mark.parametrize("is_shared", [True, False])
def test_a_push_after_a_redaction_takes_it_out_of_the_ref_and_its_history(
    ann: Clone, up: Path, is_shared: bool
) -> None:
    ann.add("FACT-1", title=f"Use {SECRET}")
    ann.add("FACT-1", title="Plain", attributes={"k": 1})
    push(ann)
    ann.add("FACT-1", attributes={"k": 2})
    before = push(ann)
    if is_shared:
        ann.commit()
    assert SECRET in refs_only(up)
    answer = redact(ann)
    assert "refs/kb/main of origin may hold it: `kb push origin --branch main`" in " ".join(answer.elsewhere)
    pushed = push(ann)
    assert len(pushed.redacted) == 2, "the value, and what a later change showed of it"
    assert (pushed.total, pushed.added, pushed.keeps_history) == (before.total, (), False)
    assert SECRET not in refs_only(up)
    assert git(up, "rev-list", "--count", REF) == "1"
    again = push(ann)
    assert (again.commit, again.redacted) == (pushed.commit, ())
    ann.add("FACT-1", attributes={"k": 3})
    push(ann)
    assert git(up, "rev-list", "--count", REF) == "2"
    hold(ann)


def test_a_remote_that_lets_no_commit_be_replaced_gets_the_redaction_and_keeps_its_history(
    ann: Clone, up: Path
) -> None:
    ann.add("FACT-1", title=f"Use {SECRET}")
    push(ann)
    redact(ann)
    hook = up / "hooks/update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\ngit merge-base --is-ancestor "$2" "$3"\n')
    hook.chmod(0o755)
    pushed = push(ann)
    assert pushed.keeps_history
    assert SECRET not in "".join(
        git(up, "show", f"{REF}:{path}") for path in git(up, "ls-tree", "--name-only", REF).split()
    )
    assert SECRET in refs_only(up)


def test_a_push_that_redacts_drops_nothing_that_another_clone_pushed(ann: Clone, bob: Clone, up: Path) -> None:
    ann.add("FACT-1", title=f"Use {SECRET}")
    push(ann)
    redact(ann)
    bob.fact("FACT-9")
    assert push(bob).total == 2
    theirs = git(up, "rev-parse", REF)
    script = up.with_name("receive.sh")
    git(up, "update-ref", REF, f"{theirs}~1")
    once = f"touch {up}/once; git -C {up} update-ref {REF} {theirs}"
    script.write_text(f'test -e {up}/once || {{ {once}; }}\nexec git-receive-pack "$@"\n')
    ann.git("config", "remote.origin.receivepack", f"sh {script}")
    pushed = push(ann)
    assert (up / "once").exists()
    assert (pushed.total, len(pushed.redacted)) == (2, 1)
    assert SECRET not in refs_only(up)
    assert "FACT-9" in refs_only(up)


def test_a_fetch_names_what_is_redacted_in_the_ref_and_whole_here_with_the_command(
    ann: Clone, bob: Clone, clone: Callable[..., Clone]
) -> None:
    ann.add("FACT-1", title=f"Use {SECRET}", attributes={"k": "stays"})
    push(ann)
    fetch(bob)
    ann.add("FACT-1", attributes={"k": "later"})
    redact(ann)
    push(ann)
    fetched = fetch(bob)
    assert [(one.actor, one.fields) for one in fetched.redacted] == [("ann", ("title",))]
    assert len(fetched.merged.changes) == 1
    [one] = fetched.redacted
    workspace = bob.workspace()
    wanted = redaction_preview.meant(workspace, "main", one.change, is_pattern=False, is_regex=False, fields=one.fields)
    assert wanted.kind == "change"
    redact(bob, wanted)
    assert holds(bob) == []
    assert fetch(bob).redacted == ()
    eve = clone("eve")
    fetch(eve)
    hold(eve)
    assert bob.facts() == ann.facts() == eve.facts()
    assert push(bob).redacted == ()


def test_a_clone_that_has_not_redacted_does_not_bring_it_back(ann: Clone, bob: Clone, up: Path) -> None:
    ann.add("FACT-1", title=f"Use {SECRET}")
    push(ann)
    fetch(bob)
    redact(ann)
    push(ann)
    bob.fact("FACT-9")
    push(bob)
    assert SECRET not in refs_only(up)


def test_no_address_of_a_remote_is_noted(ann: Clone, up: Path) -> None:
    ann.add("FACT-1", title=f"Use {SECRET}")
    backup_ref.push(ann.workspace(), "main", up.as_uri())
    answer = redact(ann)
    assert "refs/kb/main of a remote that was named by its address may hold it" in " ".join(answer.elsewhere)
    assert up.name not in "".join(path.read_text() for path in stores_at(ann.root).parent.glob("*.json"))


def test_a_damaged_note_of_refs_keeps_the_ids_of_changes_and_is_named(ann: Clone, up: Path) -> None:
    ann.add("FACT-1", title=f"Use {SECRET}")
    push(ann)
    (ann.workspace().folders.data_dir / backup_refs.NOTED).write_text("{")
    answer = redact(ann)
    assert "which ones is not known" in " ".join(answer.elsewhere)
    assert push(ann).redacted
    assert SECRET not in refs_only(up)
