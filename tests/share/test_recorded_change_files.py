"""Change files of a tree whose changes the records have: they state the same as when they are read."""

from __future__ import annotations

from kbcore.git import blobs
from kbcore.sync.scan import FoundFile
from kbcore.sync.tree_documents import TreeDocuments
from kbcore.view.claim_index import ClaimIndex
from kbcore.view.view import View
from tests.support.repository.clones import Clone


def change_files(clone: Clone) -> tuple[list[FoundFile], list[FoundFile], int]:
    """Return the change files of HEAD as they are read, as the records have them, and how often these were asked."""
    workspace = clone.workspace()
    store, asked = workspace.store("main"), list[View]()
    tree = blobs.tree_of(workspace.repo, workspace.machine.env, clone.git("rev-parse", "HEAD"))
    files = {path: blob for path, blob in tree.items() if path.startswith(".kb/changes/")}

    def claims(view: View) -> ClaimIndex:
        asked.append(view)
        return store.claims(view)

    def stated(view: View) -> tuple[list[FoundFile], list[FoundFile]]:
        read = list(TreeDocuments(workspace, view).stated(files, tree, {}))
        return read, list(TreeDocuments(workspace, view, claims).stated(files, tree, {}))

    read, known = store.read(stated)
    assert any(one.facts and one.facts.changes for one in read)
    return read, known, len(asked)


def test_a_file_that_was_taken_in_states_what_its_records_have(ann: Clone) -> None:
    ann.sync()

    read, known, asked = change_files(ann)

    assert known == read
    assert asked == len([one for one in read if one.facts and one.facts.changes])


def test_a_file_that_no_record_has_is_read(ann: Clone) -> None:
    ann.sync()
    taken_in = change_files(ann)[2]
    ann.fact("FACT-2")
    ann.share()
    ann.git("commit", "--quiet", "-m", "one more")

    read, known, asked = change_files(ann)

    assert known == read
    assert len(read) == taken_in + 1
    assert asked == taken_in


def test_a_file_is_read_of_which_a_change_was_redacted_here(ann: Clone) -> None:
    ann.sync()
    ann.redact("as agreed")

    read, known, _ = change_files(ann)

    assert known == read
    values = [getattr(claim, "now", "") for one in known for change in one.facts.changes for claim in change.claims]
    assert "as agreed" in values
