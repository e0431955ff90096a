"""A redaction reaches what is shared: change files, packs and index of each worktree, and every clone says the same."""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kbcore.errors import NotFound, StorageError
from kbcore.errors.remedies import for_shell
from kbcore.maintenance import redacted_files, redaction
from kbcore.maintenance.doctor import diagnose
from kbcore.maintenance.findings import DoctorFinding
from kbcore.maintenance.redaction import RedactAnswer, Wanted
from kbcore.model.claims.change import CONFIRMED, AddMember
from kbcore.model.claims.change_file import ReadChanges
from kbcore.model.redaction.target import Target, pattern_of
from kbcore.share import backup_ref
from kbcore.share.backup_ref import Fetched, Pushed
from kbcore.share.health import sharing_findings
from kbcore.share.state import find_state, find_whole_copies
from kbcore.storage.lock import held
from kbcore.store import backup_refs
from kbcore.store.change_files import LOCK
from kbcore.view import redacted_changes
from tests.support.disk.secrets import files_with
from tests.support.processes.cli import environment, path_with_kb, run_kb
from tests.support.repository.clones import Clone, hold
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.repos import git, run_git

SECRET = "hunter2-Pa55word"
WANTED = Wanted("pattern", SECRET)
REF = "refs/kb/main"


def redact(clone: Clone, wanted: Wanted = WANTED) -> RedactAnswer:
    return redaction.redact(clone.workspace(), clone.branch, wanted, clone.author())


def staged(root: Path) -> str:
    """Return all that the index holds."""
    names = [line.split()[1] for line in git(root, "ls-files", "--stage").splitlines()]
    return "".join(git(root, "cat-file", "blob", name) for name in names)


def holds(clone: Clone) -> list[Path]:
    """Return the files of a clone that hold the secret."""
    return files_with(SECRET, stores_at(clone.root), caches_at(clone.root), clone.root / ".kb")


# The index of git


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
    assert redaction.preview(ann.workspace(), "main", WANTED).change_files
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
    found = redaction.preview(ann.workspace(), "main", WANTED)
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
    found = redaction.preview(ann.workspace(), "main", WANTED)
    [path] = found.change_files
    assert Path(path).name not in " ".join(found.elsewhere)


def test_what_a_killed_process_left_beside_change_files_is_removed(ann: Clone) -> None:
    left = [ann.root / ".kb/..gitattributes.kb-0123abcd", ann.root / ".kb/changes/.pack.jsonl.kb-0123abcd"]
    for path in left:
        path.write_text(SECRET)
    redact(ann, Wanted("entity", "FACT-1"))
    assert not [path for path in left if path.exists()]


# Every clone says the same


def test_clones_show_the_same_for_a_redacted_value_wherever_it_was_redacted(
    ann: Clone, bob: Clone, clone: Callable[..., Clone]
) -> None:
    ann.fact("FACT-2", f"Use {SECRET} to log in", tags=["a", SECRET], attributes={"list": [1, SECRET], "n": 7})
    ann.add("FACT-1", title=f"By ann {SECRET}")
    bob.add("FACT-1", title=f"By bob {SECRET}")
    ann.commit()
    ann.push()
    bob.commit()
    bob.pull()
    hold(bob)
    assert bob.conflicts() == {("FACT-1", "title")}
    bob.push()
    ann.pull()
    hold(ann)
    ann.redact(SECRET)
    ann.commit("redact")
    ann.push()
    bob.pull()
    eve = clone("eve")
    hold(ann, bob, eve)
    assert ann.facts() == bob.facts() == eve.facts()
    shown = eve.state().nodes["FACT-2"].fields
    assert (shown["title"], shown["attributes.list"], shown["attributes.n"]) == ("[redacted]", "[redacted]", 7)
    assert sorted(shown["tags"]) == ["[redacted]", "a"]
    assert not eve.conflicts()
    eve.add("FACT-2", tags=["a"])
    hold(eve)
    assert eve.state().nodes["FACT-2"].fields["tags"] == ["a"]


def test_a_sync_that_reads_a_redacted_file_names_what_redacts_the_earlier_records(ann: Clone, bob: Clone) -> None:
    ann.add("FACT-1", title=f"Use {SECRET}")
    ann.commit()
    ann.push()
    bob.pull()
    bob.sync()
    ann.redact(SECRET)
    ann.commit()
    ann.push()
    bob.pull()
    [warning] = bob.sync().outcome.warnings
    [change] = [one for changes in ann.committed().values() for one in changes if one.is_redacted]
    assert f'"redact",["{change.id}","--field=title"]' in warning
    assert bob.titles()["FACT-1"] == "[redacted]"
    assert holds(bob) != []
    state = find_state(bob.workspace(), "main", bob.view())
    assert state is not None
    assert state.as_json()["redactions"] == (
        {"change": change.id, "actor": "ann", "ids": ("FACT-1",), "fields": ("title",), "by": "Test"},
    )
    [said] = [one for one in state.sentences() if "redacted" in one]
    assert said.startswith("1 change of FACT-1 was redacted by Test, and records of this clone have the values: ")
    assert "a secret among them is to be revoked and replaced" in said
    redact(bob, Wanted("change", change.id))
    state = find_state(bob.workspace(), "main", bob.view())
    assert state is not None
    assert (state.redacted, state.redactions) == (0, ())
    assert holds(bob) == []
    assert not bob.sync().outcome.warnings
    hold(bob)
    assert not ann.sync().outcome.warnings


def packs_of(clone: Clone) -> dict[str, bytes]:
    return {path: (clone.root / path).read_bytes() for path in clone.changes() if "/pack-" in path}


@pytest.mark.parametrize("is_redacted", [True, False])
def test_a_change_that_two_packs_hold_is_warned_of_once(ann: Clone, bob: Clone, is_redacted: bool) -> None:
    ann.add("FACT-1", title=f"Use {SECRET}")
    ann.commit()
    ann.push()
    bob.pull()
    bob.sync()
    ann.pack()
    packs = packs_of(ann)
    ann.git("reset", "--quiet", "--hard")
    ann.fact("FACT-9")
    ann.commit()
    ann.pack()
    packs |= packs_of(ann)
    assert len(packs) == 2
    ann.write(dict(packs))
    ann.commit()
    ann.redact(SECRET)
    reading, files = (bob, packs_of(ann)) if is_redacted else (ann, packs)
    assert len(files) == 2
    ann.commit()
    [warning] = reading.sync(dict(files)).outcome.warnings
    if not is_redacted:
        assert warning.startswith(f"{', '.join(sorted(files))} have a change of ann whole")


def test_a_clone_takes_out_no_more_of_a_change_than_the_other_one_did(ann: Clone, bob: Clone) -> None:
    fields = {"title": "Kept", "attributes": {"title": "Kept too", "message": "And this", "k": "Gone"}}
    ann.apply(message=f"as {SECRET} says", entities=[{"id": "FACT-1", **fields}])
    ann.commit()
    ann.push()
    bob.pull()
    bob.sync()
    before = bob.facts()
    ann.redact(SECRET)
    ann.commit()
    ann.push()
    bob.pull()
    [warning] = bob.sync().outcome.warnings
    [[change, places]] = bob.workspace().changes("main").read(lambda index, _: index.redacted_since())
    assert places == ("message",)
    assert f'"redact",["{change.id}","--field=message"]' in warning
    redact(bob, Wanted("change", change.id, fields=places))
    assert holds(bob) == []
    assert bob.facts() == before
    redact(bob, Wanted("change", change.id, fields=("title",)))
    shown = bob.state().nodes["FACT-1"].fields
    assert (shown["title"], shown["attributes.title"]) == ("[redacted]", "Kept too")
    redact(bob, Wanted("change", change.id, fields=("k",)))
    assert bob.state().nodes["FACT-1"].fields["attributes.k"] == "[redacted]"


def test_the_name_of_a_field_goes_from_change_files_and_other_clones_name_what_takes_it_out(
    ann: Clone, bob: Clone
) -> None:
    ann.fact("FACT-1", attributes={SECRET: "gone", "k": "kept"})
    ann.link("FACT-1", "REQ-1", attributes={SECRET: "gone"})
    ann.add("FACT-1", attributes={SECRET: "gone too"})
    ann.commit()
    ann.push()
    bob.pull()
    bob.sync()
    before = {one.id for changes in ann.committed().values() for one in changes}
    redact(ann, Wanted("pattern", SECRET, takes_names=True))
    ann.commit()
    assert holds(ann) == []
    assert {one.id for changes in ann.committed().values() for one in changes} == before
    ann.push()
    bob.pull()
    warnings = bob.sync().outcome.warnings
    assert len(warnings) == 3
    [[change, fields], *_] = bob.workspace().changes("main").read(lambda index, _: index.redacted_since())
    assert fields == ("[redacted]",)
    assert any(f'"redact",["{change.id}","--field=[redacted]"]' in one for one in warnings)
    assert SECRET not in " ".join(warnings)
    for clone in (ann, bob):
        fields = clone.state().nodes["FACT-1"].fields
        assert [name for name in fields if name.startswith("attributes.")] == ["attributes.k"]
        assert [name for one in clone.state().links.values() for name in one.fields if "." in name] == []
    wanted = redaction.meant(
        bob.workspace(), "main", change.id, is_pattern=False, is_regex=False, fields=["[redacted]"]
    )
    redact(bob, wanted)
    assert holds(bob) == []
    assert not bob.sync().outcome.warnings
    with pytest.raises(NotFound, match="no field whose name"):
        redaction.meant(bob.workspace(), "main", change.id, is_pattern=False, is_regex=False, fields=["[redacted]"])
    assert diagnose(bob.workspace()).is_sound


def commands_in(text: str) -> list[list[str]]:
    """Return the words of each `kb redact` that a sentence names."""
    return [shlex.split(one) for one in re.findall(r"`kb (redact [^`]+)`", text)]


@pytest.mark.parametrize("where", ["other clone", "whole copy"])
def test_a_name_and_other_fields_of_a_change_have_a_command_each_and_both_work(
    ann: Clone, bob: Clone, where: str
) -> None:
    ann.apply(message=f"about {SECRET}", entities=[{"id": "FACT-1", "attributes": {SECRET: "gone", "k": "kept"}}])
    ann.commit()
    ann.push()
    bob.pull()
    bob.sync()
    ann.git("branch", "whole")
    redact(ann, Wanted("pattern", SECRET, takes_names=True))
    ann.commit("redact")
    ann.push()
    if where == "other clone":
        clone, code = bob, "redacted_by_others"
        bob.pull()
    else:
        clone, code = ann, "redacted_in_store_alone"
        ann.git("rm", "--quiet", "-r", ".kb/changes")
        ann.git("checkout", "--quiet", "whole", "--", ".kb/changes")
    [warning] = [one for one in clone.sync().outcome.warnings if "redact" in one]
    [found] = [one for one in sharing_findings(clone.workspace(), "main") if one.code == code]
    given = commands_in(for_shell(found.remedy))
    assert [[one for one in words if one.startswith("--field")] for words in given] == [
        ["--field=[redacted]"],
        ["--field=message"],
    ]
    assert given == commands_in(for_shell(warning))
    clone.close()
    env = environment({"KB_ACTOR": clone.actor})
    together = [*given[0], *(word for word in given[1] if word.startswith("--field"))]
    refused = run_kb(clone.root, *together, env=env)
    assert refused.status != 0
    assert commands_in(refused.err) == [words[:3] for words in given]
    for words in given:
        ran = run_kb(clone.root, *words, *(() if "--yes" in words else ("--yes",)), env=env)
        assert ran.status == 0, ran.err
    assert holds(clone) == []
    assert [one for one in sharing_findings(clone.workspace(), "main") if one.code == code] == []


def test_a_merge_of_a_branch_does_not_bring_back_the_name_of_a_field(ann: Clone) -> None:
    ann.begin("feat")
    ann.fact("FACT-1", attributes={SECRET: "gone", "k": "kept"})
    ann.commit()
    ann.switch("main")
    ann.git("merge", "--quiet", "--no-edit", "--no-ff", "feat")
    ann.sync()
    redact(ann, Wanted("pattern", SECRET, takes_names=True))
    ann.commit()
    ann.git("checkout", "--quiet", "feat", "--", ".kb/changes")
    ann.sync()
    assert not files_with(SECRET, stores_at(ann.root), caches_at(ann.root))
    assert "attributes.k" in ann.state().nodes["FACT-1"].fields


def test_the_message_of_a_record_is_redacted_by_its_name_alone(ann: Clone) -> None:
    ann.apply(message=SECRET, entities=[{"id": "FACT-1", "title": "Kept"}])
    ann.commit()
    redact(ann, Wanted("record", seq=ann.view().seq - 1, fields=("message",)))
    assert holds(ann) == []
    assert ann.titles()["FACT-1"] == "Kept"


def test_changes_that_others_redacted_are_counted_by_the_sync_and_all_named_by_the_doctor(
    ann: Clone, bob: Clone
) -> None:
    for number in range(12):
        ann.fact(f"FACT-{number + 10}", f"Use {SECRET}")
    ann.commit()
    ann.push()
    bob.pull()
    bob.sync()
    ann.redact(SECRET)
    ann.commit()
    ann.push()
    bob.pull()
    warnings = bob.sync().outcome.warnings
    assert len(warnings) == 11
    assert "2 more changes" in warnings[-1]

    def listed() -> list[DoctorFinding]:
        return [one for one in sharing_findings(bob.workspace(), "main") if one.code == "redacted_by_others"]

    assert not bob.sync().outcome.warnings
    assert len(listed()) == 12
    assert all("--field=title" in one.remedy for one in listed())
    redact(bob)
    assert listed() == []
    assert holds(bob) == []


def test_a_conflict_keeps_its_form_where_an_entity_or_a_record_is_redacted(ann: Clone, bob: Clone) -> None:
    ann.add("FACT-1", title="By ann")
    bob.add("FACT-1", title="By bob")
    ann.commit()
    ann.push()
    bob.commit()
    bob.pull()
    hold(bob)
    redact(bob, Wanted("entity", "FACT-1", fields=("title",)))
    assert bob.state().nodes["FACT-1"].fields["contested.title"][0]["value"] == "[redacted]"
    bob.commit("redact")
    hold(bob)


@pytest.mark.parametrize("field", ["confidence", "created_at"])
def test_a_field_that_holds_no_text_is_not_redacted(ann: Clone, field: str) -> None:
    ann.link("FACT-1", "REQ-2", confidence=0.5)
    with pytest.raises(NotFound):
        redact(ann, Wanted("record", seq=ann.view().seq, fields=(field,)))
    hold(ann)


def test_a_number_among_texts_is_redacted_in_a_change_file_too(ann: Clone) -> None:
    ann.add("FACT-1", attributes={"pins": [48151623, "other"]})
    ann.commit()
    redact(ann, Wanted("pattern", "48151623"))
    assert not files_with('"now":[48151623', ann.root / ".kb")


# All names, all places


def test_an_entity_loses_its_values_under_an_old_id_in_a_branch_that_has_not_renamed_it(ann: Clone) -> None:
    ann.fact("OLD-1", attributes={"note": SECRET})
    ann.git("branch", "topic")
    ann.git("switch", "--quiet", "topic")
    ann.add("OLD-1", title="On topic")
    ann.git("switch", "--quiet", "main")
    ann.rename("OLD-1", "NEW-1")
    redact(ann, Wanted("entity", "NEW-1", fields=("note",)))
    assert files_with(SECRET, stores_at(ann.root)) == []


@pytest.mark.parametrize("is_packed", [False, True])
def test_old_values_and_messages_go_from_change_files_and_packs(ann: Clone, is_packed: bool) -> None:
    ann.add("FACT-1", title=SECRET)
    ann.apply(message=f"instead of {SECRET}", entities=[{"id": "FACT-1", "title": "Plain"}])
    ann.apply(entities=[{"id": "FACT-1", "attributes": {"k": SECRET}}])
    ann.apply(entities=[{"id": "FACT-1", "attributes": {"k": None}}])
    ann.commit()
    if is_packed:
        ann.pack()
        ann.commit("pack")
    text = "".join(path.read_text() for path in (ann.root / ".kb/changes").rglob("*.jsonl"))
    assert all(f'{member}":"{SECRET}' in text for member in ("now", "was"))
    assert f"instead of {SECRET}" in text
    before = {one.id for changes in ann.committed().values() for one in changes}
    ann.redact(SECRET)
    assert holds(ann) == []
    ann.commit("redact")
    hold(ann)
    assert {one.id for changes in ann.committed().values() for one in changes} == before
    assert ann.titles()["FACT-1"] == "Plain"


def test_a_whole_copy_that_a_merge_brings_back_is_found_and_removed_by_packing(ann: Clone) -> None:
    ann.add("FACT-1", title=SECRET)
    ann.commit()
    ann.git("branch", "old")
    ann.redact(SECRET)
    ann.commit("redact")
    ann.git("switch", "--quiet", "old")
    ann.git("commit", "--quiet", "--allow-empty", "-m", "goes on")
    ann.git("switch", "--quiet", "main")
    ann.git("checkout", "--quiet", "old", "--", ".kb/changes")
    hold(ann)
    assert ann.titles()["FACT-1"] == "[redacted]"
    ann.git("commit", "--quiet", "-m", "whole again")
    ann.pack("")
    ann.git("commit", "--quiet", "-m", "and gone")
    assert not files_with(SECRET, ann.root / ".kb")
    hold(ann)


def test_a_redacted_file_is_none_that_git_takes_for_renamed(ann: Clone) -> None:
    """Another branch may have packed it, or redacted something else in it."""
    ann.add("FACT-1", title=SECRET, attributes={"note": "another-secret"})
    ann.fact("FACT-2", "A long text that stays. " * 20)
    ann.commit()
    ann.git("branch", "other")
    ann.redact(SECRET)
    ann.commit("redact")
    ann.git("switch", "--quiet", "other")
    ann.pack()
    ann.commit("pack")
    assert run_git(ann.root, "merge", "--quiet", "--no-edit", "main", env=ann.machine.env).returncode == 0
    hold(ann)
    assert ann.titles()["FACT-1"] == "[redacted]"


OTHER = "correct-horse-Battery9"


def redact_two_of_one_pack(ann: Clone, bob: Clone) -> None:
    """Have two clones redact different things in one pack, so that git finds a file with two new names in a pull."""
    for key, title in (("FACT-2", f"Use {SECRET}"), ("FACT-3", f"Use {OTHER}")):
        ann.fact(key, title)
    ann.commit()
    ann.pack()
    ann.commit("pack")
    ann.push()
    bob.pull()
    bob.redact(SECRET)
    bob.commit("redact")
    bob.push()
    ann.redact(OTHER)
    ann.commit("redact")


def packs(clone: Clone) -> list[Path]:
    return sorted((clone.root / ".kb/changes").glob("pack-*.jsonl"))


def test_of_two_packs_that_redact_different_things_in_one_git_keeps_both(ann: Clone, bob: Clone) -> None:
    redact_two_of_one_pack(ann, bob)
    assert run_git(ann.root, "pull", "--quiet", "--no-rebase", "--no-edit", env=ann.machine.env).returncode != 0
    contents = [path.read_text() for path in packs(ann)]
    assert sorted((SECRET in one, OTHER in one) for one in contents) == [(False, True), (True, False)]
    ann.git("add", "--all", ".kb/changes")
    ann.git("commit", "--quiet", "--no-edit")
    ann.sync()
    hold(ann)
    assert [ann.titles()[key] for key in ("FACT-2", "FACT-3")] == ["[redacted]", "[redacted]"]
    found = [one for one in sharing_findings(ann.workspace(), ann.branch) if one.code == "redacted_in_store_alone"]
    assert len(found) == 2
    ann.close()
    for words in [words for one in found for words in commands_in(for_shell(one.remedy))]:
        ran = run_kb(ann.root, *words, env=environment({"KB_ACTOR": "ann"}))
        assert ran.status == 0, ran.err
    assert [path for text in (SECRET, OTHER) for path in files_with(text, ann.root / ".kb")] == []
    ann.commit("as the doctor said")
    hold(ann)


@pytest.mark.parametrize("is_committed", [True, False])
def test_of_packs_that_git_merged_as_text_the_doctor_names_the_commit_of_each(
    ann: Clone, bob: Clone, is_committed: bool
) -> None:
    redact_two_of_one_pack(ann, bob)
    (ann.root / ".git/info").mkdir(exist_ok=True)
    (ann.root / ".git/info/attributes").write_text(".kb/changes/** merge\n")
    assert run_git(ann.root, "pull", "--quiet", "--no-rebase", "--no-edit", env=ann.machine.env).returncode != 0
    assert all("<<<<<<<< " in path.read_text() for path in packs(ann))
    if is_committed:
        ann.git("add", "--all", ".kb/changes")
        ann.git("commit", "--quiet", "--no-edit")
    refused = [one for one in sharing_findings(ann.workspace(), ann.branch) if one.code == "merge_conflict"]
    assert len(refused) == 2
    for one in refused:
        command = re.search(r"`git (checkout \w+ -- \S+)`", one.remedy)
        assert command, one.remedy
        ann.git(*command[1].split())
    contents = [path.read_text() for path in packs(ann)]
    assert sorted((SECRET in one, OTHER in one) for one in contents) == [(False, True), (True, False)]
    ann.git("commit", "--quiet", "--all", "--no-edit", "-m", "both packs")
    ann.sync()
    hold(ann)


def test_attributes_of_an_earlier_kb_get_the_line_with_the_next_file(ann: Clone) -> None:
    attributes = ann.root / ".kb/.gitattributes"
    attributes.write_bytes(b"*.md text\nchanges/** -text -filter\nmore -diff\n")
    ann.commit("as an earlier KB")
    ann.fact("FACT-2")
    ann.share()
    assert attributes.read_bytes() == b"*.md text\nchanges/** -text -filter -merge\nmore -diff\n"
    assert git(ann.root, "diff", "--name-only") == ""


# The ref of a remote


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
    wanted = redaction.meant(workspace, "main", one.change, is_pattern=False, is_regex=False, fields=one.fields)
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


# Digests of what held it


def confirmations(clone: Clone) -> list[AddMember]:
    """Return the confirmations in the committed change files."""
    changes = [change for changes in clone.committed().values() for change in changes]
    return [
        claim
        for change in changes
        for claim in change.claims
        if isinstance(claim, AddMember) and claim.field == CONFIRMED
    ]


def test_a_confirmation_loses_the_digest_of_an_entity_that_held_it(ann: Clone, bob: Clone) -> None:
    ann.fact("FACT-2")
    ann.fact("FACT-3")
    for key in ("FACT-2", "FACT-3"):
        ann.link("FACT-1", key)
    ann.add("FACT-2", title=f"Use {SECRET}")
    ann.add("FACT-3", title="Use none")
    for key in ("FACT-2", "FACT-3"):
        ann.link("FACT-1", key)
    ann.commit("confirmed")
    gone, kept = [str(claim.now) for claim in confirmations(ann)]
    ids = {change.id for changes in ann.committed().values() for change in changes}
    assert all(files_with(digest, stores_at(ann.root), ann.root / ".kb") for digest in (gone, kept))

    assert redact(ann).is_whole

    assert files_with(gone, stores_at(ann.root), caches_at(ann.root), ann.root / ".kb") == []
    assert files_with(kept, stores_at(ann.root), ann.root / ".kb")
    ann.commit("redacted")
    assert {change.id for changes in ann.committed().values() for change in changes} == ids
    assert [claim.now for claim in confirmations(ann) if not claim.is_redacted] == [kept]
    ann.push()
    bob.pull()
    hold(ann, bob)


def test_a_confirmation_of_another_branch_loses_the_digest_too(ann: Clone) -> None:
    ann.fact("FACT-2")
    ann.link("FACT-1", "FACT-2")
    ann.add("FACT-2", owner="ann")
    ann.link("FACT-1", "FACT-2")
    ann.begin("topic")
    ann.add("FACT-2", title=f"Use {SECRET}")
    [claim] = [
        claim
        for change in ann.own["topic"].values()
        for claim in change.claims
        if isinstance(claim, AddMember) and claim.field == CONFIRMED
    ]
    assert files_with(str(claim.now), stores_at(ann.root))

    redact(ann)

    assert files_with(str(claim.now), stores_at(ann.root)) == []


def test_a_change_file_of_worktree_and_index_is_decoded_once(ann: Clone) -> None:
    ann.add("FACT-1", title=f"Use {SECRET}")
    ann.commit()
    target, decoded = Target(matches=pattern_of(SECRET)), redacted_files.Decoded()
    assert redacted_files.find_holders(ann.workspace(), target, decoded) == {"FACT-1"}
    assert [path for path, _ in decoded] == ann.changes()
    decoded |= dict.fromkeys(decoded, ReadChanges())
    assert redacted_files.redact_change_files(ann.workspace(), target, decoded).paths == (), "it was not decoded again"
    assert redacted_files.redact_change_files(ann.workspace(), target, redacted_files.Decoded()).paths


# Other branches of the clone


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


# What the hooks of git say


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
