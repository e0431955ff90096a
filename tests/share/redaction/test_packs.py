"""A redaction reaches old ids, messages, digests and packs, also beside another redaction."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kbcore.errors.remedies import for_shell
from kbcore.maintenance import redacted_files
from kbcore.maintenance.redaction_preview import Wanted
from kbcore.maintenance.share_diagnosis import sharing_findings
from kbcore.model.claims.change import CONFIRMED, AddMember
from kbcore.model.claims.change_file import ReadChanges
from kbcore.model.redaction.target import RedactionTarget, pattern_of
from tests.share.redaction.redacting import SECRET, commands_in, holds, redact
from tests.support.disk.secrets import files_with
from tests.support.processes.cli import environment, run_kb
from tests.support.repository.clones import Clone, hold
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.repos import git, run_git


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
        ran = run_kb(ann.root, *words, "--yes", env=environment({"KB_ACTOR": "ann"}))
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
    target, decoded = RedactionTarget(matches=pattern_of(SECRET)), redacted_files.Decoded()
    assert redacted_files.find_holders(ann.workspace(), target, decoded) == {"FACT-1"}
    assert [path for path, _ in decoded] == ann.changes()
    decoded |= dict.fromkeys(decoded, ReadChanges())
    assert redacted_files.redact_change_files(ann.workspace(), target, decoded).paths == (), "it was not decoded again"
    assert redacted_files.redact_change_files(ann.workspace(), target, redacted_files.Decoded()).paths
