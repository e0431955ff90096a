"""A redaction writes change files again, and stages them in the index of each worktree."""

from __future__ import annotations

import errno
import os
import re
import shutil
from pathlib import Path

import pytest

from kbcore.errors import NotFound
from kbcore.maintenance import redaction, redaction_preview
from kbcore.maintenance.doctor import diagnose
from kbcore.maintenance.redaction_preview import Wanted
from kbcore.storage.lock import held
from kbcore.store.change_files import LOCK
from tests.share.redaction.redacting import SECRET, WANTED, holds, redact, staged
from tests.support.disk.secrets import files_with
from tests.support.repository.clones import Clone, hold
from tests.support.repository.places import caches_at
from tests.support.repository.repos import git


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_redacted_change_file_is_staged_with_the_removal_of_the_old_one(ann: Clone, is_committed: bool) -> None:
    ann.add("FACT-1", title=f"Use {SECRET}")
    ann.share()
    if is_committed:
        ann.commit()
    assert SECRET in staged(ann.root)
    answer = redact(ann)
    assert answer.is_whole
    assert [*answer.staged] == [*answer.change_files] != []
    assert SECRET not in staged(ann.root)
    assert holds(ann) == []
    ann.git("commit", "--quiet", "-m", "redact")
    assert not ann.git("status", "--porcelain")
    ann.sync()
    hold(ann)
    assert ann.titles()["FACT-1"] == "[redacted]"


def test_other_files_of_the_index_and_of_the_worktree_stay_as_they_are(ann: Clone) -> None:
    ann.add("FACT-1", title=f"Use {SECRET}")
    ann.commit()
    document = ann.root / "docs/requirements/REQ-1.md"
    document.write_text(document.read_text() + "\nstaged\n")
    ann.git("add", document)
    document.write_text(document.read_text() + "\nnot staged\n")
    before = [ann.git("diff", *words, "--", "docs") for words in (["--cached"], [])]
    redact(ann)
    assert [ann.git("diff", *words, "--", "docs") for words in (["--cached"], [])] == before


def test_a_redaction_while_another_process_has_the_index_says_what_stages_it(ann: Clone) -> None:
    ann.add("FACT-1", title=f"Use {SECRET}")
    ann.commit()
    lock = ann.root / ".git/index.lock"
    lock.touch()
    answer = redact(ann)
    assert not answer.is_whole
    assert not answer.staged
    assert re.search("index.*kb share pack", " ".join(answer.failed))
    assert redaction.unfinished(ann.workspace())
    assert holds(ann) == []
    lock.unlink()
    ann.pack("")
    assert SECRET not in staged(ann.root)
    ann.git("commit", "--quiet", "-m", "redact")
    hold(ann)


@pytest.mark.parametrize("is_packed", [False, True])
def test_the_same_redaction_again_stages_what_it_could_not_before(ann: Clone, is_packed: bool) -> None:
    ann.add("FACT-1", title=f"Use {SECRET}")
    ann.commit()
    if is_packed:
        ann.pack()
        ann.commit("pack")
    lock = ann.root / ".git/index.lock"
    lock.touch()
    redact(ann)
    [finding] = [one for one in diagnose(ann.workspace()).findings if one.code == "redaction_unfinished"]
    assert "index.lock" in finding.message
    assert not redact(ann).is_whole
    assert redaction.unfinished(ann.workspace())
    lock.unlink()
    assert redaction_preview.preview(ann.workspace(), "main", WANTED).change_files
    answer = redact(ann)
    assert answer.is_whole
    assert [*answer.staged] == [*answer.change_files] != []
    assert SECRET not in staged(ann.root)
    assert redaction.unfinished(ann.workspace()) is None
    ann.git("commit", "--quiet", "-m", "redact")
    assert not ann.git("status", "--porcelain")
    hold(ann)
    assert ann.titles()["FACT-1"] == "[redacted]"
    with pytest.raises(NotFound):
        redact(ann)


def test_a_change_that_only_the_index_holds_is_redacted_there_and_brought_back_nowhere(ann: Clone) -> None:
    ann.add("FACT-1", title=f"Use {SECRET}")
    ann.share()
    for path in ann.git("diff", "--cached", "--name-only").split():
        (ann.root / path).unlink()
    before = ann.changes()
    assert redact(ann).is_whole
    assert SECRET not in staged(ann.root)
    assert "FACT-1" in staged(ann.root)
    assert ann.changes() == before


def test_a_change_file_that_cannot_be_read_is_named_and_keeps_no_redaction_from_its_end(ann: Clone) -> None:
    path = ann.root / ".kb/changes/2026-01/large.jsonl"
    path.parent.mkdir()
    path.write_bytes(b"x" * (17 << 20))
    with pytest.raises(NotFound) as caught:
        redact(ann)
    assert str(path) in caught.value.hint
    ann.add("FACT-1", title=f"Use {SECRET}")
    answer = redact(ann)
    assert answer.is_whole
    assert str(path) in " ".join(answer.elsewhere)
    assert redaction.unfinished(ann.workspace()) is None


def test_change_files_of_another_worktree_are_staged_in_its_own_index(ann: Clone) -> None:
    ann.add("FACT-1", title=f"Use {SECRET}")
    ann.commit()
    other = ann.root.with_name("other")
    ann.git("worktree", "add", "--quiet", "-b", "other", other)
    answer = redact(ann)
    assert {Path(path).relative_to(ann.root.parent).parts[0] for path in answer.staged} == {"ann", "other"}
    for root in (ann.root, other):
        assert SECRET not in staged(root)
        assert not files_with(SECRET, root / ".kb")
        git(root, "commit", "--quiet", "-m", "redact")
        assert not git(root, "status", "--porcelain")
    git(ann.root, "merge", "--quiet", "--no-edit", "other")
    hold(ann)


def test_worktrees_of_a_bare_repository_are_redacted_and_one_that_is_gone_is_passed_over(ann: Clone) -> None:
    ann.add("FACT-1", title=f"Use {SECRET}")
    ann.commit()
    bare = ann.root.with_name("bare.git")
    ann.git("clone", "--quiet", "--bare", ann.root, bare)
    trees = [ann.root.with_name(name) for name in ("tree", "gone")]
    for root in trees:
        git(bare, "worktree", "add", "--quiet", "-b", root.name, root)
    shutil.rmtree(trees[1])
    tree = Clone(trees[0], "bob")
    tree.sync()
    answer = redact(tree)
    assert answer.failed == ()
    assert answer.is_whole
    assert answer.staged
    assert SECRET not in staged(tree.root)
    tree.close()


def test_files_that_git_does_not_know_are_not_staged(ann: Clone) -> None:
    ann.add("FACT-1", title=f"Use {SECRET}")
    ann.share()
    ann.git("reset", "--quiet")
    answer = redact(ann)
    assert answer.change_files
    assert not answer.staged
    assert holds(ann) == []
    ann.share()
    ann.git("commit", "--quiet", "-m", "share")
    hold(ann)


def test_a_damaged_pack_of_the_same_name_keeps_the_old_files_and_is_named(ann: Clone) -> None:
    ann.add("FACT-1", title=f"Use {SECRET}")
    ann.commit()
    [pack] = redact(ann).change_files
    Path(pack).write_bytes(b"")
    ann.git("checkout", "HEAD", "--", ".kb/changes")
    before = ann.changes()
    answer = redact(ann)
    assert not answer.is_whole
    assert Path(pack).name in " ".join(answer.failed)
    assert ann.changes() == before
    Path(pack).unlink()
    assert redact(ann).is_whole
    assert holds(ann) == []


def test_what_was_written_is_named_where_an_old_file_cannot_be_removed(
    ann: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann.add("FACT-1", title=f"Use {SECRET}")
    ann.commit()
    files = ann.changes()
    (ann.root / ".git/index.lock").touch()

    unlink = Path.unlink

    def refused(path: Path, **options: bool) -> None:
        if path.name in {Path(one).name for one in files}:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        unlink(path, **options)

    with monkeypatch.context() as system:
        system.setattr(Path, "unlink", refused)
        answer = redact(ann)
    (ann.root / ".git/index.lock").unlink()
    assert not answer.is_whole
    assert {str(ann.root / path) for path in set(ann.changes()) - set(files)} == {*answer.change_files} != set()
    assert "The index of" in answer.failed[0]
    assert "has change files that hold it" in answer.failed[1]
    assert redact(ann).is_whole
    assert holds(ann) == []


def test_a_change_file_of_another_branch_that_is_refused_and_holds_it_is_named(ann: Clone) -> None:
    ann.begin("feat")
    ann.add("FACT-1", title=f"Use {SECRET}")
    ann.commit()
    [path] = [one for one in ann.changes() if SECRET in (ann.root / one).read_text()]
    (ann.root / path).write_text((ann.root / path).read_text().replace('"op":"set"', '"op": "set"'))
    ann.git("commit", "--quiet", "--all", "-m", "edited by hand")
    ann.git("switch", "--quiet", "main")
    found = redaction_preview.preview(ann.workspace(), "main", WANTED)
    [said] = [one for one in found.elsewhere if "The last commit of feat" in one]
    assert f"hold it and are not readable: {path}" in said


def test_a_redaction_waits_for_who_writes_change_files(ann: Clone) -> None:
    ann.add("FACT-1", title=f"Use {SECRET}")
    ann.commit()
    (ann.root / ".kb/config.json").write_text('{"lockWaitSeconds": 0.2}')
    machine, path = ann.machine, ann.workspace().folders.lock_path(LOCK)
    with held(machine.fs, machine.clock, path, command="kb share"):
        answer = redact(ann)
        assert path.exists()
        assert not redact(ann).is_whole
        shutil.rmtree(caches_at(ann.root))
        assert not redact(ann).is_whole
    assert not answer.is_whole
    assert "kb share" in " ".join(answer.failed)
    assert holds(ann) != []
    assert redact(ann).is_whole
    assert holds(ann) == []


def test_a_preview_names_a_change_file_once_and_as_none_of_the_documents(ann: Clone) -> None:
    ann.add("FACT-1", title=f"Use {SECRET}")
    ann.commit()
    found = redaction_preview.preview(ann.workspace(), "main", WANTED)
    [path] = found.change_files
    assert Path(path).name not in " ".join(found.elsewhere)


def test_what_a_killed_process_left_beside_change_files_is_removed(ann: Clone) -> None:
    left = [ann.root / ".kb/..gitattributes.kb-0123abcd", ann.root / ".kb/changes/.pack.jsonl.kb-0123abcd"]
    for path in left:
        path.write_text(SECRET)
    redact(ann, Wanted("entity", "FACT-1"))
    assert not [path for path in left if path.exists()]
