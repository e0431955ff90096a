"""Failure modes of sharing: change files are packed on one side or on both, and git merges them without a conflict."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kbcore.checks.against.findings import check_against
from kbcore.errors import InvalidQuery, StorageError
from kbcore.extract.changes import FOLDER
from kbcore.query.conflicts import find_conflicts
from kbcore.share.packing import find_doubled, pack
from kbcore.store.history.undo import revert
from tests.support.effort.scale import tries
from tests.support.processes.cli import environment, run_kb
from tests.support.repository.clones import Clone, hold
from tests.support.repository.repos import run_git

TEXT = "A sentence of some length that says what was learnt. "


def packs(clone: Clone) -> list[str]:
    return [path for path in clone.changes() if "/pack-" in path]


def committed_with_git(clone: Clone, message: str = "pack") -> None:
    """Commit what is staged, and nothing else."""
    clone.git("commit", "--quiet", "-m", message)


def merge(clone: Clone, other: str) -> None:
    """Merge with the most that git detects of renames; text must never conflict, and nothing is left over."""
    options = ["-c", "merge.directoryRenames=true", "-c", "merge.renames=true", "-c", "merge.renameLimit=0"]
    done = run_git(clone.root, *options, "merge", "--quiet", "--no-edit", other, env=clone.machine.env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not clone.git("status", "--porcelain")


def renamed(clone: Clone, *commits: str) -> list[str]:
    """Return what git takes for renamed or copied between commits."""
    found = clone.git("diff", "--name-status", "-M", "-C", "-l0", *commits).splitlines()
    return [line for line in found if line[0] in "RC"]


@pytest.fixture
def long(ann: Clone) -> Clone:
    """The clone of ann with several change files, some of one long text."""
    for number in range(4):
        ann.actor = f"ann{number % 2}"
        ann.fact(f"LONG-{number}", attributes={"text": TEXT * 40 * number})
        ann.commit(f"{number}")
    ann.actor = "ann"
    ann.push()
    return ann


def test_packing_keeps_the_state_while_it_is_staged_committed_and_pulled(long: Clone, bob: Clone) -> None:
    before, was = long.facts(), long.changes()
    packed = long.pack()
    assert [*packed.removed] == was
    assert long.changes() == [*packed.packs] == packs(long)
    assert sum(packed.packs.values()) == len([one for file in long.committed().values() for one in file])
    hold(long)
    assert long.facts() == before
    committed_with_git(long)
    hold(long)
    assert long.facts() == before
    assert not renamed(long, "HEAD~1", "HEAD")
    assert not long.git("status", "--porcelain")
    long.push()
    bob.pull()
    hold(bob)
    assert bob.facts() == before
    assert [one.relative_to(long.root).name for one in long.root.glob(f"{FOLDER}/*/.keep")]


def named_in_conflicts(clone: Clone) -> set[str]:
    """Return the files that the rule names, and those of the values that `kb resolve` lists."""
    values = [value for one in find_conflicts(clone.view()) for value in one.values]
    clone.close()
    checked = run_kb(clone.root, "check", "--rule", "conflict", env=environment({"KB_ACTOR": clone.actor}))
    files = {change["file"] for value in values for change in value.get("changes", [value])}
    return files | {*re.findall(rf"{FOLDER}/\S+\.jsonl", checked.out)}


@pytest.mark.parametrize(("what", "how"), [("field", "pack"), ("deletion", "pack"), ("field", "redaction")])
def test_conflicts_name_the_pack_that_has_the_change_now(ann: Clone, bob: Clone, what: str, how: str) -> None:
    ann.add("FACT-1", title="Use hunter2-Pa55word")
    if what == "field":
        bob.add("FACT-1", title="By bob")
    else:
        bob.remove("FACT-1")
    ann.commit()
    bob.commit()
    ann.push()
    bob.pull()
    bob.commit("merged")
    assert len(bob.conflicts()) == 1
    before = named_in_conflicts(bob)
    assert all((bob.root / path).is_file() for path in before)
    if how == "pack":
        bob.pack()
    else:
        bob.redact("hunter2-Pa55word")
    bob.commit(how)
    after = named_in_conflicts(bob)
    assert all((bob.root / path).is_file() for path in after), after
    assert after != before
    hold(bob)
    assert not bob.sync().outcome.applied


def test_what_is_not_committed_or_not_old_stays_and_a_second_call_packs_nothing(long: Clone) -> None:
    long.add("FACT-1", title="Later")
    long.share()
    [new] = set(long.changes()) - long.committed().keys()
    assert long.pack("2000").removed == ()
    assert set(long.pack(dry_run=True).removed) == {*long.committed()}
    assert packs(long) == []
    long.pack()
    assert long.changes() == sorted([new, *packs(long)])
    assert long.pack().removed == ()
    committed_with_git(long)
    hold(long)
    long.commit()
    again = long.pack()
    assert again.removed == (new,)
    assert set(packs(long)) > {*again.packs}, "packs are not packed again"
    hold(long)


def test_ten_branches_that_add_merge_with_a_packed_main(long: Clone) -> None:
    start = long.git("rev-parse", "HEAD")
    names = [f"branch-{number}" for number in range(10)]
    for number, name in enumerate(names):
        long.git("switch", "--quiet", "-c", name, start)
        long.follow("main")
        long.actor = f"ann{number % 3}"
        long.fact(f"FACT-{name}", attributes={"text": TEXT * number * 5})
        long.add("FACT-1", attributes={"k": number})
        long.commit(name)
    long.switch("main")
    long.pack()
    committed_with_git(long)
    for name in names:
        merge(long, name)
    hold(long)
    assert {f"FACT-{name}" for name in names} < long.titles().keys()
    for name in names[:2]:
        long.switch(name)
        merge(long, "main")
        hold(long)
        long.switch("main")
        assert long.facts() == whole(long)


def whole(clone: Clone) -> object:
    clone.sync()
    return clone.facts()


def test_both_sides_pack_the_same_or_more(long: Clone, bob: Clone) -> None:
    """Also a pack here and files that were added there: all changes hold once, however many packs hold them."""
    bob.pull()
    bob.sync()
    bob.fact("FACT-2", attributes={"text": TEXT * 9})
    bob.commit()
    for clone in (long, bob):
        clone.pack()
        committed_with_git(clone)
        hold(clone)
    long.git("fetch", "--quiet", "../bob", "main")
    merge(long, "FETCH_HEAD")
    hold(long)
    bob.git("fetch", "--quiet", "../ann", "main")
    merge(bob, "FETCH_HEAD")
    hold(bob)
    assert len(packs(long)) == 2
    assert bob.facts() == long.facts()
    assert bob.titles()["FACT-2"]


def test_two_clones_that_pack_the_same_files_make_the_same_pack(long: Clone, bob: Clone) -> None:
    bob.pull()
    for clone in (long, bob):
        clone.pack()
        committed_with_git(clone)
    bob.git("fetch", "--quiet", "../ann", "main")
    merge(bob, "FETCH_HEAD")
    assert packs(bob) == packs(long)
    hold(bob)


def test_a_file_that_comes_back_after_it_was_packed_is_nothing_and_can_be_removed(long: Clone) -> None:
    long.begin("feature")
    long.fact("FACT-2")
    long.commit("feature")
    [file] = set(long.changes()) - {*long.git("ls-tree", "-r", "--name-only", "main").splitlines()}
    long.switch("main")
    long.git("merge", "--quiet", "--squash", "feature")
    long.git("commit", "--quiet", "-m", "squashed")
    hold(long)
    long.pack()
    committed_with_git(long)
    before = whole(long)
    long.switch("feature")
    long.sync()
    long.add("FACT-2", title="Later")
    long.commit("later")
    long.switch("main")
    merge(long, "feature")
    hold(long)
    assert long.titles()["FACT-2"] == "Later"
    assert find_doubled(long.workspace()) == [file]
    assert long.pack("").removed == (file,)
    committed_with_git(long, "clean")
    hold(long)
    assert find_doubled(long.workspace()) == []
    assert before != long.facts()


def against(clone: Clone, ref: str) -> list[tuple[str, tuple[str, ...]]]:
    found = check_against(clone.workspace(), clone.view(), clone.branch, ref, only=["against-pack"])
    return [(one.id, one.values) for one in found.report.violations]


def test_a_revert_on_one_side_of_what_the_other_packs_is_reported_by_both(long: Clone) -> None:
    long.begin("feature")
    file = max(path for path, changes in long.committed().items() if "LONG-3" in str(changes))
    ids = tuple(change.id for change in long.committed()[file])
    long.git("rm", "--quiet", file)
    committed_with_git(long, "revert")
    hold(long)
    assert "LONG-3" not in long.titles()
    long.switch("main")
    long.pack()
    committed_with_git(long)
    hold(long)
    assert against(long, "feature") == [(file, ids)]
    merge(long, "feature")
    hold(long)
    assert "LONG-3" in long.titles(), "what is in a pack holds"


def test_a_side_that_only_packs_is_not_reported(long: Clone) -> None:
    long.begin("feature")
    long.pack()
    committed_with_git(long)
    long.sync()
    assert against(long, "main") == []
    long.switch("main")
    long.sync()
    assert against(long, "feature") == []


def test_the_deleting_side_hears_of_the_pack_of_the_other_one(long: Clone) -> None:
    long.begin("feature")
    long.pack()
    committed_with_git(long)
    long.switch("main")
    file = long.changes()[0]
    long.git("rm", "--quiet", file)
    committed_with_git(long, "revert")
    long.sync()
    assert [key for key, _ in against(long, "feature")] == [file]


def test_what_is_packed_is_taken_back_by_a_revert_of_its_record(long: Clone, bob: Clone) -> None:
    seq = long.add("LONG-1", title="Wrong").seq
    long.commit()
    long.pack()
    committed_with_git(long)
    hold(long)
    revert(long.workspace(), "main", long.author(), [seq], follows_head=True)
    long.note_own()
    long.commit("taken back")
    hold(long)
    assert long.titles()["LONG-1"] == "Title of LONG-1"
    long.push()
    bob.pull()
    hold(bob)
    assert bob.titles()["LONG-1"] == "Title of LONG-1"


def test_files_with_staged_or_unstaged_changes_are_refused_and_nothing_is_packed(long: Clone) -> None:
    file = long.changes()[1]
    long.git("rm", "--quiet", "--cached", file)
    with pytest.raises(InvalidQuery, match="is not as HEAD has it"):
        long.pack()
    long.git("reset", "--quiet")
    (long.root / file).unlink()
    with pytest.raises(InvalidQuery, match=file):
        long.pack()
    long.git("checkout", "--quiet", file)
    (long.root / file).write_text("edited")
    with pytest.raises(InvalidQuery, match=file):
        long.pack()
    assert packs(long) == []
    assert long.git("status", "--porcelain") == f" M {file}"


def test_a_pack_that_was_taken_out_of_the_index_is_staged_again_before_a_file_goes(long: Clone) -> None:
    ids = {change.id for changes in long.committed().values() for change in changes}
    long.pack()
    [pack_file] = packs(long)
    long.git("rm", "--quiet", "--cached", pack_file)
    long.pack()
    committed_with_git(long)
    assert {change.id for changes in long.committed().values() for change in changes} == ids
    file = long.git("diff", "--name-only", "--no-renames", "--diff-filter=D", "HEAD~1", "HEAD").splitlines()[0]
    long.git("checkout", "--quiet", "HEAD~1", "--", file)
    committed_with_git(long, "it comes back")
    long.git("rm", "--quiet", "--cached", pack_file)
    assert long.pack().removed == (file,)
    long.git("commit", "--quiet", "--allow-empty", "-m", "after it")
    assert {change.id for changes in long.committed().values() for change in changes} == ids
    hold(long)


def test_in_the_middle_of_a_merge_and_on_another_branch_nothing_is_packed(long: Clone) -> None:
    long.begin("feature")
    long.fact("FACT-2")
    long.commit()
    long.switch("main")
    long.fact("FACT-3")
    long.commit()
    long.git("merge", "--quiet", "--no-commit", "feature")
    with pytest.raises(InvalidQuery, match="A merge of git is not finished here"):
        long.pack()
    long.git("merge", "--abort")
    with pytest.raises(InvalidQuery, match="feature is not checked out"):
        pack(long.workspace(), "feature", "2100")
    assert packs(long) == []


def test_a_checkout_with_carriage_returns_is_packed_as_git_has_it(long: Clone) -> None:
    for file in long.changes():
        path = long.root / file
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert long.pack().removed
    committed_with_git(long)
    hold(long)


@pytest.mark.parametrize("seed", range(tries(4, 60)))
def test_git_takes_no_file_for_one_that_was_renamed_to_a_pack(clone: Callable[..., Clone], seed: int) -> None:
    """Files of one change with a long message or text are most like a pack of it alone."""
    ann, chance = clone("ann"), random.Random(seed)
    for number in range(chance.choice([1, 1, 2, 5])):
        text = "".join(chance.choice("abcdefgh ") for _ in range(chance.choice([0, 60, 300, 3000, 20_000])))
        ann.actor = f"ann{chance.randrange(3)}"
        message = text[: chance.choice([0, 200, 2000])]
        ann.apply(
            entities=[
                {"id": f"F-{number}", "type": "symbol", "status": "active", "title": "T", "attributes": {"k": text}}
            ],
            message=message,
        )
        ann.commit()
    ann.begin("other")
    ann.pack()
    committed_with_git(ann)
    assert not renamed(ann, "HEAD~1", "HEAD")
    before = whole(ann)
    ann.switch("main")
    ann.fact("FACT-2")
    ann.commit()
    merge(ann, "other")
    hold(ann)
    assert len(ann.facts()) == len(before) + 1


def test_a_file_that_looks_like_its_pack_is_left(ann: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kbcore.share.packing._MOST_ALIKE", 0.0)
    packed = ann.pack()
    assert packed.left
    assert not packed.packs
    assert not packed.removed
    hold(ann)


def test_in_a_sparse_checkout_only_what_is_there_is_packed(long: Clone, tmp_path: Path) -> None:
    kept = long.changes()[0]
    long.git("update-index", "--skip-worktree", kept)
    (long.root / kept).unlink()
    assert kept not in long.pack().removed
    committed_with_git(long)
    assert kept in long.git("ls-tree", "-r", "--name-only", "HEAD").splitlines()


@pytest.mark.parametrize("there", [b"", b"edited\n"])
def test_a_damaged_pack_of_the_same_name_keeps_the_files_from_being_removed(long: Clone, there: bytes) -> None:
    [path] = long.pack(dry_run=True).packs
    (long.root / path).write_bytes(there)
    before = long.changes()
    with pytest.raises(StorageError, match="another content"):
        long.pack()
    assert long.changes() == before
    assert not long.git("diff", "--cached", "--name-only")
    (long.root / path).unlink()
    assert long.pack().removed
    hold(long)
