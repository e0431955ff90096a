"""F4m, the heart: each guard is taken out in turn, and some test misses it; what no test misses is said and why.

The guards are all syncs, renames, locks, checks and refusals of the storage layer, and those elsewhere that a promise
rests on. ``tests.support.guards.detectors`` finds the tests by itself; nothing here can make a guard seem to be missed.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.support.effort.scale import SCALE
from tests.support.guards.detectors import Request, caught, wanted

STORAGE = (
    "tests/core/storage",
    "tests/fault/test_bytes.py",
    "tests/fault/test_failing.py",
    "tests/fault/test_storage_more.py",
    "tests/fault/test_damage_reported.py::test_damage_is_reported_with_its_place_and_a_way_out_that_works[old head]",
    "tests/fault/test_damage_reported.py::test_a_head_without_the_beginning_says_what_is_gone",
    "tests/core/maintenance/redaction/test_places.py::test_copies_in_quarantine_go",
    "tests/core/maintenance/redaction/test_unfinished.py::test_files_that_a_crash_left_are_removed_by_the_next_write_and_named_before",
    "tests/core/maintenance/redaction/test_unfinished.py::test_a_new_head_of_a_redacted_store_names_the_new_files",
    "tests/core/maintenance/redaction/test_unfinished.py::test_a_new_head_copies_nothing_that_a_crash_left",
)
ABOVE = (
    "tests/core/store/test_branch_store.py",
    "tests/core/store/test_commit.py",
    "tests/core/store/test_publishing.py",
    "tests/core/store/test_store_gone.py",
    "tests/core/view/test_opening.py",
    "tests/core/view/test_replay.py",
    "tests/core/store/test_branches.py::test_a_move_of_head_before_the_commit_refuses_it",
    "tests/core/store/test_concurrency.py::test_a_writer_that_waits_folds_many_records_before_it_holds_the_lock",
    "tests/core/store/test_concurrency.py::test_only_a_writer_that_plans_under_the_lock_reads_before_it_what_the_plan_asks_for",
    "tests/core/store/test_plans_ahead.py::test_a_quick_plan_that_cannot_be_used_is_made_under_the_lock_at_once",
    "tests/core/store/branches/test_gc_asks.py",
    "tests/core/store/branches/test_lost.py::test_a_store_that_was_put_back_is_named_with_the_seqs_and_refused",
    "tests/core/store/branches/test_lost.py::test_what_kb_puts_away_itself_is_no_loss",
    "tests/core/store/branches/test_slow_git.py",
    "tests/core/store/branches/test_trash.py",
    "tests/core/store/planning/test_changesets.py",
    "tests/core/store/planning/test_edges.py",
    "tests/core/store/planning/test_secrets.py",
    "tests/core/store/planning/test_upserts.py",
    "tests/core/store/planning/test_versions.py",
    "tests/core/storage/test_witness.py::test_a_commit_is_noted_once_and_before_the_lock_is_free",
    "tests/core/sync/test_checkout.py",
    "tests/core/sync/test_guard.py",
    "tests/core/maintenance/test_compacting.py::test_what_was_read_before_pruned_history_is_no_guard_for_what_is_absent_now",
    "tests/core/maintenance/test_compacting.py::test_a_changeset_takes_effect_at_most_once_even_after_its_record_was_pruned",
    "tests/core/maintenance/redaction/test_redaction.py::test_a_changeset_that_is_sent_again_is_refused_and_brings_nothing_back",
    "tests/core/maintenance/redaction/test_redaction.py::test_a_write_without_a_digest_is_answered_again_after_its_record_was_redacted",
    "tests/core/maintenance/redaction/test_places.py::test_pruned_history_is_redacted_in_the_snapshot_that_holds_it",
    "tests/core/maintenance/redaction/test_unfinished.py::test_another_process_with_an_open_view_follows_and_answers_without_it",
    "tests/core/maintenance/redaction/test_unfinished.py::test_a_new_head_of_a_redacted_store_names_the_new_files",
    "tests/share/redaction/test_branches.py::test_a_redaction_that_came_by_a_pull_holds_for_branches_that_have_a_whole_copy",
    "tests/fault/test_salvaged.py::test_writers_refuse_damage_that_was_found_and_go_on_when_it_is_gone",
)
"""Of both, only tests that miss some guard: all are run once before the first guard goes."""

LONG = (
    "tests/core/storage/test_crash.py",
    "tests/core/storage/test_processes.py",
    "tests/core/storage/test_scratch.py",
    "tests/core/store/test_publishing.py::test_a_commit_is_answered_although_there_is_no_memory_to_publish_the_view",
    "tests/core/store/test_branch_store.py::test_a_cut_cache_is_built_again",
    "tests/core/store/test_branch_store.py::test_a_flipped_bit_in_the_cache_never_gives_a_wrong_answer",
    "tests/core/store/test_branch_store.py::test_queries_and_commits_go_on_when_the_cache_finds_no_space",
)
"""Tests that are left out: they take long, and miss nothing that a shorter test does not."""


def storage(*modules: str) -> Request:
    return Request(tuple(f"kbcore.storage.{module}" for module in modules), STORAGE, LONG)


GROUPS = {
    # All of one layer at once: before the first guard goes, all its tests are run.
    "storage": storage(
        *(
            "frame",
            "head",
            "scan",
            "journal",
            "recovery",
            "quarantine",
            "lock",
            "files",
            "fs",
            "layout",
            "byte_diagnosis",
        ),
        *("damage", "snapshot", "compaction", "branchdir", "rebuild", "verify"),
    ),
    "above": Request(
        (
            "kbcore.store.branch_store:BranchStore.commit",
            "kbcore.store.branch_store:BranchStore._commit",
            "kbcore.store.branch_store:BranchStore._commit_to_new_store",
            "kbcore.store.commit:Commit.run",
            "kbcore.store.commit:Commit._locked",
            "kbcore.store.commit:Commit._refuse_loss",
            "kbcore.store.commit:Commit._find_duplicate",
            "kbcore.store.commit:Commit._append",
            "kbcore.store.commit:find_duplicate",
            "kbcore.store.commit:make_draft",
            "kbcore.store.commit:make_record",
            "kbcore.view.opening:is_usable",
            "kbcore.view.opening:is_ahead",
            "kbcore.view.base:_read_stamp",
            "kbcore.view.replay:folded",
            "kbcore.view.replay:_first_snapshot",
            "kbcore.store.planning.plan:plan",
            "kbcore.store.planning.plan:_check_stale",
            "kbcore.store.planning.plan:_check_version",
            "kbcore.store.branches.trash:_remove",
            "kbcore.sync.checkout:Checkout.guard",
            "kbcore.store.workspace:Workspace.guard",
        ),
        ABOVE,
        LONG,
    ),
}

SPARED = {
    "kbcore.storage.files.read_lines: no `and at < limit`": (
        "It saves a read of no bytes at the limit; that read ends the loop just so."
    ),
    "kbcore.storage.fs.RealFs.open: never `if not flags & os.O_CREAT`": (
        "It saves a second call for a file that is not there: without it the last call refuses just so."
    ),
    "kbcore.store.commit.Commit._find_duplicate: never `if not self._write.request.changeset_id`": (
        "It saves a look for the empty id, which no record has."
    ),
    "kbcore.store.commit.Commit.run: no `self._unpublished()`": (
        "It saves the next reader the reading of a large record: a view that lacks it takes it in from the journal."
    ),
    "kbcore.store.branches.trash._remove: no `discard_cache(workspace, name)`": (
        "It saves room: a view says by itself which store it is of."
    ),
}
"""Guards that may be left out without any difference to what is promised, and why. To see that no test misses one, all
tests are run, so only a soak takes them out."""

ALWAYS = (
    "kbcore.storage.frame.decode: no `and found.sum == checksum(FORMAT, seq, prev, rec)`",
    "kbcore.storage.head.decode: no `_damaged(path, 'its checksum does not match', byte_diagnosis.diagnose_bytes(dat…`",
    "kbcore.storage.files.publish: a copy for `fs.replace(layout.tmp_path(path), path)`",
    "kbcore.storage.lock._try: no `fs.flock(fd, LOCK_EXCLUSIVE)`",
)
"""Guards that even the slice takes out."""

MISSING = (
    "tests/core/storage/test_frame.py",
    "tests/core/storage/test_head.py",
    "tests/core/storage/test_lock.py",
    "tests/fault/test_dying.py",
)
"""The tests that miss these."""


def requests() -> dict[str, Request]:
    """Return what to take out: all there is, or in a slice a few of the storage layer that few tests have to miss."""
    if SCALE == "merge":
        return {name: msgspec.structs.replace(one, spared=_spared(one)) for name, one in GROUPS.items()}
    if SCALE == "soak":
        return GROUPS
    return {"a few": msgspec.structs.replace(storage("frame", "head", "files", "lock"), tests=MISSING, names=ALWAYS)}


def _spared(group: Request) -> tuple[str, ...]:
    return tuple(sorted(set(SPARED).intersection(map(str, wanted(group)))))


@pytest.mark.fault("F4m")
@pytest.mark.parametrize("group", GROUPS if SCALE != "slice" else ["a few"])
def test_no_guard_can_be_taken_out(group: str, tmp_path: Path, tally) -> None:
    request = requests()[group]
    for name, by in caught(request, tmp_path).items():
        tally.tried()
        if not by and name not in SPARED:
            tally.violated(name, "no test misses it")
        if by and name in SPARED:
            tally.violated(name, f"it is listed as spared, and {by} misses it")
    tally.done(at_least=len(request.names) or 30)


def test_what_is_spared_is_still_there() -> None:
    there = {str(one) for group in GROUPS.values() for one in wanted(group)}
    assert set(SPARED) <= there
    assert all(len(reason) > 30 for reason in SPARED.values())
