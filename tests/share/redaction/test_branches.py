"""A redaction holds for other branches of the clone, and the hooks name one that a pull brings."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kbcore.errors import StorageError
from kbcore.maintenance.redaction_preview import Wanted
from kbcore.maintenance.share_diagnosis import sharing_findings
from kbcore.share.state import find_state, find_whole_copies
from kbcore.view import redacted_changes
from tests.share.redaction.redacting import SECRET, holds, redact
from tests.support.disk.secrets import files_with
from tests.support.processes.cli import environment, path_with_kb, run_kb
from tests.support.repository.clones import Clone, hold
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.repos import run_git


@pytest.fixture
def leaked_on_feat(ann: Clone) -> Clone:
    """The last commit of feat has a change with the secret; main is checked out, without it."""
    ann.begin("feat")
    ann.add("FACT-1", attributes={"note": f"Use {SECRET}"})
    ann.commit("leak")
    ann.switch("main")
    ann.sync()
    return ann


def test_a_merge_of_a_branch_does_not_bring_back_what_was_redacted(leaked_on_feat: Clone) -> None:
    ann = leaked_on_feat
    sentences = " ".join(redact(ann).elsewhere)
    assert "The last commit of feat has change files that hold it: .kb/changes/" in sentences
    assert "The last commit of main " not in sentences
    assert not files_with(SECRET, stores_at(ann.root), caches_at(ann.root))

    ann.git("merge", "--quiet", "--no-edit", "feat")
    answer = ann.sync()

    [warning] = [one for one in answer.outcome.warnings if "is redacted in this clone" in one]
    hold(ann)
    assert ann.state().nodes["FACT-1"].fields["attributes.note"] == "[redacted]"
    assert not files_with(SECRET, stores_at(ann.root), caches_at(ann.root))
    workspace = ann.workspace()
    state = find_state(workspace, "main", ann.view())
    assert state is not None
    assert state.whole == 1
    [found] = [one for one in sharing_findings(workspace, "main") if one.code == "redacted_in_store_alone"]
    [whole] = find_whole_copies(workspace, "main")
    assert found.file == whole.path
    assert whole.change in warning
    assert SECRET in (ann.root / whole.path).read_text()

    redact(ann, Wanted("change", whole.change, fields=whole.fields))
    ann.git("commit", "--quiet", "-m", "redact")
    ann.sync()

    hold(ann)
    assert holds(ann) == []
    assert find_whole_copies(ann.workspace(), "main") == []


def test_a_redaction_that_came_by_a_pull_holds_for_branches_that_have_a_whole_copy(ann: Clone, bob: Clone) -> None:
    bob.begin("early")
    bob.sync()
    bob.switch("main")
    ann.add("FACT-1", attributes={"note": f"Use {SECRET}", SECRET: "x"})
    ann.add("FACT-1", attributes={"note": "Use none"})
    ann.commit("leak")
    ann.push()
    bob.pull()
    bob.sync()
    bob.git("branch", "old")
    redact(ann, Wanted("pattern", SECRET, takes_names=True))
    ann.commit("redact")
    ann.push()
    bob.pull()
    bob.sync()
    noted = redacted_changes.noted(bob.machine.fs, bob.workspace().folders.branches_dir)
    assert [(one.claims, one.was, one.names) for one in noted.values()] == [((0,), (), (1,)), ((), (0,), ())]
    bob.switch("early")
    bob.git("checkout", "--quiet", "old", "--", ".kb/changes")
    warnings = bob.sync().outcome.warnings
    assert [one for one in warnings if "is redacted in this clone" in one]
    assert not files_with(SECRET, bob.workspace().folders.directory_of("early"))
    assert bob.state().nodes["FACT-1"].fields["attributes.note"] == "Use none"


@pytest.mark.parametrize("is_behind", [False, True])
def test_a_push_is_named_for_the_upstream_of_a_branch_that_has_all_of_it(
    ann: Clone, bob: Clone, is_behind: bool
) -> None:
    ann.add("FACT-1", attributes={"note": f"Use {SECRET}"})
    ann.commit("leak")
    ann.git("push", "--quiet", "--set-upstream", "origin", "main")
    if is_behind:
        bob.pull()
        bob.fact("FACT-2")
        bob.commit("more")
        bob.push()
        ann.git("fetch", "--quiet")

    sentences = " ".join(redact(ann).elsewhere)

    assert "The last commit of origin/main has change files that hold it" in sentences
    assert ("Commit what this command stages, and push" in sentences) is not is_behind
    assert ("check the branch out in a clone" in sentences) is is_behind


def test_what_another_clone_pushed_whole_is_taken_in_without_what_was_redacted(
    leaked_on_feat: Clone, bob: Clone
) -> None:
    ann = leaked_on_feat
    ann.switch("feat")
    ann.push()
    ann.switch("main")
    ann.git("branch", "--quiet", "-D", "feat")
    sentences = " ".join(redact(ann).elsewhere)
    assert "The last commit of origin/feat has change files that hold it" in sentences
    bob.git("fetch", "--quiet")
    bob.git("merge", "--quiet", "--no-edit", "origin/feat")
    bob.sync()
    bob.push()

    ann.pull()
    ann.sync()

    assert ann.state().nodes["FACT-1"].fields["attributes.note"] == "[redacted]"
    assert not files_with(SECRET, stores_at(ann.root), caches_at(ann.root))


def test_a_value_before_a_claim_is_not_brought_back_either(ann: Clone) -> None:
    ann.begin("feat")
    ann.add("FACT-1", attributes={"note": f"Use {SECRET}"})
    ann.add("FACT-1", attributes={"note": "Use nothing"})
    ann.commit("leak")
    ann.switch("main")
    redact(ann)
    ann.git("merge", "--quiet", "--no-edit", "feat")
    ann.sync()
    assert not files_with(SECRET, stores_at(ann.root), caches_at(ann.root))


def test_a_damaged_note_of_redacted_changes_is_never_taken_for_none(leaked_on_feat: Clone) -> None:
    ann = leaked_on_feat
    redact(ann)
    noted = ann.workspace().folders.branches_dir / redacted_changes.NOTED
    noted.write_text("{")
    ann.git("merge", "--quiet", "--no-edit", "feat")
    with pytest.raises(StorageError, match="is damaged"):
        ann.sync()
    assert not files_with(SECRET, stores_at(ann.root), caches_at(ann.root))


@pytest.fixture
def pull(bob: Clone) -> Callable[[], list[str]]:
    """Pulls in the clone of bob with its hooks, and returns the lines that they write."""
    env = environment({"PATH": path_with_kb(), "KB_ACTOR": "bob"})
    assert run_kb(bob.root, "hooks", "install", env=env).status == 0

    def run() -> list[str]:
        pulled = run_git(bob.root, "pull", "--no-rebase", "--no-edit", env=env)
        assert pulled.returncode == 0, pulled
        return [line for line in pulled.stderr.splitlines() if line.startswith("kb: ")]

    return run


def test_a_pull_says_in_the_hook_that_a_redaction_came_in(
    ann: Clone, bob: Clone, pull: Callable[[], list[str]]
) -> None:
    numbers = range(7)
    for number in numbers:
        ann.add("FACT-1", attributes={f"note{number}": f"Use {SECRET}"})
    ann.commit()
    ann.push()
    pull()
    redact(ann)
    ann.commit()
    ann.push()
    said = pull()
    redacted = [line for line in said if "is redacted in its file" in line]
    assert len(redacted) == 5
    assert any("2 more warnings; `kb doctor`" in line for line in said)
    assert SECRET not in "".join(said)


def test_a_pull_says_in_the_hook_that_a_change_file_is_refused(
    ann: Clone, bob: Clone, pull: Callable[[], list[str]]
) -> None:
    ann.add("FACT-1", title="Another")
    ann.commit()
    [file] = [path for path in ann.changes() if path not in bob.changes()]
    (ann.root / file).write_text("{}\n")
    ann.git("commit", "--quiet", "--all", "-m", "damage")
    ann.push()
    said = pull()
    assert f"kb: 1 change file refused: {file}; `kb doctor` says why." in said
