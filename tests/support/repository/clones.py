"""Clones of one repository whose people and agents share what they add in change files, beside the model's answer.

The model knows of each branch which changes were written there and which of them a sync has found committed. What it
answers is the pure fold of these and of the change files that git has.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from kbcore.checks import run_checks
from kbcore.editing.documents import WriteTarget
from kbcore.editing.renaming import rename
from kbcore.errors import NotFound
from kbcore.extract.changes import FOLDER
from kbcore.maintenance.proof import verify_branch
from kbcore.maintenance.redaction import redact
from kbcore.maintenance.redaction_preview import Wanted
from kbcore.model.changeset import Changeset
from kbcore.model.claims import change_file
from kbcore.model.claims.change import SUFFIX, Change
from kbcore.model.claims.fold import DocumentFacts, fold
from kbcore.model.graph import CLIENT
from kbcore.model.redaction.changes import without, without_claims
from kbcore.model.redaction.target import RedactionTarget, pattern_of
from kbcore.model.state import State
from kbcore.query.conflicts import find_conflicts
from kbcore.rules.conflict import UNREAD
from kbcore.share.packing import Packed, pack
from kbcore.share.sharing import Shared, share
from kbcore.store import branches
from kbcore.store.answers import Outcome
from kbcore.store.history import log
from kbcore.store.pool import Machine
from kbcore.store.write_request import Author
from kbcore.sync.overlay import WorktreeFiles
from kbcore.sync.run import SyncAnswer
from kbcore.view import redacted_changes
from kbcore.view.view import View
from tests.support.effort.scale import SCALE
from tests.support.generators.sharing_clones import facts_expected, facts_of
from tests.support.repository.project import Project
from tests.support.repository.repos import commit_files, git

DOCUMENTS: Final = "docs/requirements"


class Clone(Project):
    """One worktree, and what the model knows of its branches. ``actor`` writes in it."""

    def __init__(self, root: Path, actor: str, machine: Machine | None = None) -> None:
        super().__init__(root, is_new=False)
        self.machine = machine or self.machine
        self.actor = actor
        self.own: dict[str, dict[str, Change]] = {}
        self.once_committed: dict[str, set[str]] = {}
        self._committed: dict[str, dict[str, tuple[Change, ...]]] = {}
        self.is_sparse = False
        """Files that are not in the worktree are in the commit all the same."""

    @property
    def branch(self) -> str:
        """Return the branch that is checked out, as the store is called."""
        return self.workspace().head().branch

    def git(self, *arguments: str | Path, env: Mapping[str, str] | None = None) -> str:
        """Run git, which must succeed."""
        return git(self.root, *arguments, env={**self.machine.env, **(env or {})})

    def begin(self, name: str) -> None:
        """Make a branch here, with a store of its own, and switch to it."""
        origin = self.branch
        self.git("switch", "--quiet", "-c", name)
        self.follow(origin)

    def switch(self, branch: str, *, create: bool = False) -> None:
        """Switch to a branch that is there."""
        assert not create
        self.git("switch", "--quiet", branch)

    def follow(self, origin: str) -> None:
        """Note that the branch which is checked out goes on with the records of another one."""
        self.own[self.branch] = dict(self.own.get(origin, {}))
        self.once_committed[self.branch] = set(self.once_committed.get(origin, ()))

    def add(self, key: str, *, expected_seq: int | None = None, **fields: Any) -> Outcome:
        """Write an entity, or fields of one; with ``expected_seq`` a conflict was seen."""
        frame = {} if expected_seq is None else {"expected_seq": expected_seq}
        return self.apply(entities=[{"id": key, **fields}], **frame)

    def fact(self, key: str, title: str = "", **fields: Any) -> Outcome:
        """Create an entity of a client."""
        return self.add(key, type="symbol", status="active", title=title or f"Title of {key}", **fields)

    def link(self, from_id: str, to_id: str, **fields: Any) -> Outcome:
        """State an edge."""
        return self.apply(edges=[{"type": "relates_to", "kind": "see_also", "from": from_id, "to": to_id, **fields}])

    def remove(self, key: str) -> Outcome:
        """Delete an entity with its edges."""
        return self.delete(entities=[{"id": key}], cascade=True)

    def resolve(self, key: str, field: str, choice: int | str) -> Outcome:
        """Decide a conflict."""
        return self.apply(entities=[{"id": key, "resolve": {field: choice}}])

    def rename(self, old: str, new: str) -> None:
        """Give an entity another id."""
        workspace = self.workspace()
        store, choice, _ = branches.open_branch(workspace, None)
        target = WriteTarget(workspace, choice.branch, self.author(), store.read, choice.follows_head)
        rename(target, old, new)
        self.note_own()

    def author(self) -> Author:
        """Return who writes here."""
        return Author(self.actor, "cli", "kb/test")

    def _carry_out(self, parsed: Changeset, branch: str | None, author: Author) -> Outcome:
        done = super()._carry_out(parsed, branch, self.author())
        self.note_own()
        return done

    def note_own(self) -> None:
        """Note what was written. The index tells the change of a record; which of them hold is the model's to say."""
        store, choice, _ = branches.open_branch(self.workspace(), None)
        own = self.own.setdefault(choice.branch, {})
        own |= {one.change.id: one.change for one in store.claims().unshared(store.head().seq)}

    def share(self, *, again: Collection[str] = (), dry_run: bool = False) -> Shared:
        """Write and stage what no file holds."""
        workspace = self.workspace()
        _, choice, _ = branches.open_branch(workspace, None)
        return share(workspace, choice.branch, again=again, dry_run=dry_run)

    def pack(self, before: str = "2100", *, dry_run: bool = False) -> Packed:
        """Replace the change files that HEAD has, and whose changes are older than a time, by packs, and stage that."""
        return pack(self.workspace(), self.branch, before, dry_run=dry_run)

    def redact(self, pattern: str) -> None:
        """Take what matches a regular expression out of all that the clone has, where anything does."""
        wanted = Wanted("pattern", pattern, is_regex=True)
        with contextlib.suppress(NotFound):
            assert redact(self.workspace(), self.branch, wanted, self.author()).is_whole
        target = RedactionTarget(matches=pattern_of(pattern, is_regex=True))
        for own in self.own.values():
            own |= {key: without_claims(one, target) for key, one in own.items()}

    def commit(self, message: str = "change") -> str:
        """Share what no file holds, commit all files, sync, and return the commit."""
        self.share()
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        self.sync()
        return self.git("rev-parse", "HEAD")

    def sync(self, files: Mapping[str, str | bytes | None] | None = None, **options: Any) -> SyncAnswer:
        """Write files, then sync the branch that is checked out."""
        answer = super().sync(files, **options)
        committed = {change.id for changes in self.committed().values() for change in changes}
        own = self.own.setdefault(self.branch, {})
        self.once_committed.setdefault(self.branch, set()).update(own.keys() & committed)
        return answer

    def push(self, *options: str) -> None:
        """Push the branch that is checked out."""
        self.git("push", "--quiet", "--set-upstream", *options, "origin", "HEAD")

    def pull(self, *options: str) -> None:
        """Pull by a merge, unless options say otherwise."""
        self.git("pull", "--quiet", "--no-edit", *(options or ("--no-rebase",)))

    def changes(self) -> list[str]:
        """Return the paths of the change files in the worktree."""
        return sorted(str(path.relative_to(self.root)) for path in (self.root / FOLDER).rglob(f"*{SUFFIX}"))

    def committed(self) -> dict[str, tuple[Change, ...]]:
        """Return the changes of each whole change file that HEAD has."""
        commit = self.workspace().head().commit
        if commit and commit not in self._committed:
            self._committed[commit] = {
                path: _changes(path, data) for path, data in self._blobs(commit) if path.endswith(SUFFIX)
            }
        return self._committed[commit] if commit else {}

    def _blobs(self, commit: str) -> Iterator[tuple[str, bytes]]:
        listed = self.git("ls-tree", "-r", "--full-tree", commit, "--", f"{FOLDER}/").splitlines()
        names = {line.partition("\t")[2]: line.split(None, 3)[2] for line in listed}
        asked = "".join(f"{name}\n" for name in names.values()).encode()
        command = ["git", "-C", str(self.root), "cat-file", "--batch"]
        output = subprocess.run(command, input=asked, env=self.machine.env, capture_output=True, check=True).stdout
        for path in names:
            header, _, rest = output.partition(b"\n")
            length_bytes = int(header.split()[2])
            yield path, rest[:length_bytes]
            output = rest[length_bytes + 1 :]

    def present(self, *, is_synced: bool = False) -> list[Change]:
        """Return the changes that are to hold: those that files have, and the own ones that no commit ever had.

        They are without what the clone notes that it has redacted. With ``is_synced`` a sync has found what is
        committed now.
        """
        files = self.committed()
        there = {str(path.relative_to(self.root)): path for path in (self.root / FOLDER).rglob("*.jsonl")}
        if not self.is_sparse:
            files = {path: changes for path, changes in files.items() if path in there}
        files |= {path: _changes(path, there[path].read_bytes()) for path in there.keys() - files.keys()}
        own, once_committed = self.own.get(self.branch, {}), {*self.once_committed.get(self.branch, ())}
        if is_synced:
            once_committed |= {change.id for changes in self.committed().values() for change in changes}
        kept = [change for key, change in own.items() if key not in once_committed]
        noted = redacted_changes.noted(self.machine.fs, self.workspace().folders.branches_dir)
        shared = (change for changes in files.values() for change in changes)
        return [without(one, noted.get(one.id)) for one in (*kept, *shared)]

    def state(self) -> State:
        """Return all that the view holds."""
        return whole_state(self.view())

    def facts(self) -> dict[str, Any]:
        """Return what clients state, as ``facts_expected``."""
        return facts_of(self.state())

    def conflicts(self) -> set[tuple[str, str]]:
        """Return what is contested: the id and the field."""
        return {(one.id, one.field) for one in find_conflicts(self.view())}

    def titles(self) -> dict[str, str]:
        """Return the title of each entity."""
        return {key: node.fields.get("title", "") for key, node in self.state().nodes.items()}


def hold(*clones: Clone, stale: Iterable[Change] = (), is_damaged: bool = False) -> None:
    """Sync clones, and insist that each has what the model says, that it is sound, and that its log can be read.

    ``stale`` are changes of files that are refused now and were not before; with ``is_damaged`` some file is refused.
    """
    for clone in clones:
        _hold_for_readers(clone, stale)
        answer = clone.sync()
        assert (answer.bad > 0) == is_damaged, answer.problems
        _hold(clone, [*clone.present(), *stale], is_damaged=is_damaged)


def _hold_for_readers(clone: Clone, stale: Iterable[Change]) -> None:
    """Insist that who reads before a sync gets what a sync would record."""
    workspace = clone.workspace()
    _, choice, _ = branches.open_branch(workspace, None)
    files = WorktreeFiles()
    state, relation = files.read(workspace, choice.branch, lambda view, found: (whole_state(view), found), time_s=60)
    files.close()
    if relation.freshness != "unknown":
        present = clone.present(is_synced=True)
        assert not _differing(facts_of(state), facts_expected([*present, *stale], documents_in(state))), clone.actor


def _hold(clone: Clone, present: list[Change], *, is_damaged: bool) -> None:
    state = clone.state()
    documents = documents_in(state)
    assert not _differing(facts_of(state), facts_expected(present, documents)), clone.actor
    stated = {key: fields for key, fields in documents.fields.items() if fields}
    assert {key: fields.get("title") for key, fields in stated.items()} == _titles_in_files(clone.root)
    contested = _contested(present, documents)
    assert clone.conflicts() == contested
    workspace, view = clone.workspace(), clone.view()
    report = run_checks(workspace, view, branch=clone.branch, only=["conflict"])
    assert len([one for one in report.violations if one.code != UNREAD]) == len(contested)
    assert report.ok == (not contested and not is_damaged)
    assert [one["seq"] for one in log.log(view)] == [*range(view.seq, 0, -1)]
    for key in [*state.nodes][:3]:
        assert log.log(view, id=key)
    assert verify_branch(workspace, clone.branch, with_view=SCALE != "slice").is_sound


def _differing(found: Mapping[str, Any], expected: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return what is found and what is expected of each entity and edge that is not as it is expected."""
    keys = sorted(found.keys() | expected.keys())
    return {key: (found.get(key), expected.get(key)) for key in keys if found.get(key) != expected.get(key)}


def whole_state(view: View) -> State:
    """Return all entities and edges of a view."""
    nodes = [row[0] for row in view.rows("select id from node")]
    links = [row[0] for row in view.rows("select id from link")]
    return State(view.nodes(nodes), view.links(links))


def documents_in(state: State) -> DocumentFacts:
    """Return what documents state in a state."""
    fields = {
        key: {name: node.fields[name] for name in node.owners if name in node.fields}
        for key, node in state.nodes.items()
        if node.owners
    }
    edges = {
        key: (link.type, link.kind, link.from_id, link.to_id)
        for key, link in state.links.items()
        if any(one.src != CLIENT for one in link.statements)
    }
    return DocumentFacts(fields, {}, edges)


def upstream(folder: Path, files: Mapping[str, str], *, object_format: str = "sha1") -> Path:
    """Make a bare repository with one commit of these files on main, and return it."""
    first = folder / "first"
    git(folder, "init", "--quiet", "--initial-branch=main", f"--object-format={object_format}", first)
    commit_files(first, files)
    git(folder, "clone", "--quiet", "--bare", first, "up.git")
    return folder / "up.git"


def clone_of(up: Path, actor: str, *arguments: str, machine: Machine | None = None) -> Clone:
    """Clone a repository beside it, and sync."""
    root = up.parent / actor
    git(up.parent, "clone", "--quiet", *arguments, up.as_uri(), root)
    made = Clone(root, actor, machine)
    made.sync()
    return made


def _changes(path: str, data: bytes) -> tuple[Change, ...]:
    return change_file.decode(data, path.removeprefix(f"{FOLDER}/")).changes


def _titles_in_files(root: Path) -> dict[str, str]:
    """Return the title in each document that is in the worktree, read by lines."""
    found = {}
    for path in (root / DOCUMENTS).rglob("*.md"):
        lines = dict(line.partition(": ")[::2] for line in path.read_text().splitlines() if ": " in line)
        found[lines["id"]] = lines.get("title")
    return found


def _contested(present: Iterable[Change], documents: DocumentFacts) -> set[tuple[str, str]]:
    state = fold(present, documents)
    found = {
        (key, name) for key, one in state.entities.items() for name, field in one.fields.items() if field.is_contested
    }
    found |= {(key, "id") for key, one in state.entities.items() if one.names.is_contested}
    found |= {(key, "deleted") for key, one in state.entities.items() if one.deletions}
    found |= {
        (key, name)
        for key, one in state.edges.items()
        if one.additions
        for name, field in one.fields.items()
        if field.is_contested
    }
    return found


def forked(machine: Machine, **parts: Any) -> Machine:
    """Return a machine with other parts."""
    return msgspec.structs.replace(machine, **parts)
