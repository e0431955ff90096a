"""The change files of the last commits of branches: a redaction names those that hold it, and does not change them.

A merge takes their changes in without what was redacted (``redacted_changes``), and leaves the files as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

import msgspec

from kbcore import git
from kbcore.errors import GitUnusable
from kbcore.errors.remedies import shell
from kbcore.extract.changes import FOLDER, is_change_file
from kbcore.git import blobs
from kbcore.git.commands import run_git
from kbcore.ids import path_text
from kbcore.model.claims import change_file
from kbcore.model.claims.change import Change
from kbcore.model.redaction.changes import without_claims
from kbcore.model.redaction.target import RedactionTarget
from kbcore.store.workspace import Workspace
from kbcore.text.wording import pluralize, some_of

_MOST_TIPS: Final = 1000
_SHOWN: Final = 10
_FILES: Final = 3
_HEADS: Final = "refs/heads/"
_REMOTES: Final = "refs/remotes/"
_SYMBOLIC: Final = "/HEAD"
"""Such a ref of a remote names another one."""


class Tips(msgspec.Struct, frozen=True):
    """The change files of branches: by the name of a ref its files, path and content; the changes of each content.

    ``refused`` has the text of each content that holds no changes. ``failed`` says what was not looked at. The branches
    of ``checked_out`` have their files in a worktree, and a push of one of these replaces the files of ``pushed``.
    """

    files: Mapping[str, Mapping[str, str]]
    contents: Mapping[str, tuple[Change, ...]]
    checked_out: frozenset[str]
    refused: Mapping[str, str] = {}
    failed: tuple[str, ...] = ()
    pushed: frozenset[str] = frozenset()

    @property
    def changes(self) -> Iterator[Change]:
        """Every change of every file."""
        return (change for changes in self.contents.values() for change in changes)

    def sentences(self, target: RedactionTarget) -> tuple[str, ...]:
        """Return, a sentence each, which branches that are in no worktree hold it."""
        holding = {
            name
            for name, changes in self.contents.items()
            if any(without_claims(change, target) != change for change in changes)
        }
        matches = target.matches
        unreadable = {name for name, text in self.refused.items() if matches is not None and matches.search(text)}
        found = list[str]()
        for ref, contents in self.files.items():
            if ref in self.checked_out:
                continue
            paths, refused = (
                [path for path, name in contents.items() if name in names] for names in (holding, unreadable)
            )
            if paths or refused:
                found.append(
                    " ".join([*([self._words(ref, paths)] if paths else []), *_unreadable_words(ref, refused)])
                )
        said = found[:_SHOWN]
        if left := len(found) - len(said):
            said.append(f"So do the last commits of {pluralize(left, 'more branch')}.")
        return tuple(said)

    def _words(self, ref: str, paths: list[str]) -> str:
        """Return what a branch holds, and what to do."""
        held = f"The last commit of {_name_of(ref)} has change files that hold it: {some_of(sorted(paths), _FILES)}."
        if ref in self.pushed:
            return f"{held} Commit what this command stages, and push: that takes them out there."
        clone = "a clone" if ref.startswith(_REMOTES) else "this clone"
        return (
            f"{held} A merge takes them in without it. To take it out there, check the branch out in {clone}, give"
            f" {shell('redact')} again, and commit."
        )


def find_tips(workspace: Workspace) -> Tips:
    """Return the change files of the last commits of local and remote-tracking branches, a thousand at most."""
    repo, env = workspace.repo, workspace.machine.env
    trees, files, failed = dict[str, dict[str, str]](), dict[str, dict[str, str]](), list[str]()
    contents, refused = dict[str, tuple[Change, ...]](), dict[str, str]()
    checked_out, pushed = frozenset[str](), frozenset[str]()
    try:
        checked_out = frozenset(f"{_HEADS}{one.head.branch}" for one in git.worktree_heads(repo, env))
        pushed = _pushed_from(repo, env, checked_out)
        tips = sorted(one for one in git.tips(repo, env).items() if not one[0].endswith(_SYMBOLIC))
        if len(tips) > _MOST_TIPS:
            failed.append(f"Of {len(tips)} branches, {_MOST_TIPS} were looked at for change files that hold it.")
        for ref, commit in tips[:_MOST_TIPS]:
            if commit not in trees:
                found = blobs.tree_below(repo, env, commit, f"{FOLDER}/")
                trees[commit] = {path: blob.id for path, blob in found.items() if is_change_file(path)}
            files[ref] = trees[commit]
        paths = {name: path for tree in trees.values() for path, name in tree.items()}
        for name, data in blobs.contents(repo, env, paths):
            read = change_file.decode(data or b"", paths[name].removeprefix(f"{FOLDER}/"))
            contents[name] = tuple(read.changes)
            if read.problem is not None and data is not None:
                refused[name] = data.decode(errors="replace")
    except GitUnusable as error:
        failed.append(f"Not all branches were looked at for change files that hold it: {error.message}")
    return Tips(files, contents, checked_out, refused, tuple(failed), pushed)


def _pushed_from(repo: git.Repository, env: Mapping[str, str], branches: Collection[str]) -> frozenset[str]:
    """Return the upstreams of which these branches have every commit."""
    form = "--format=%(refname) %(upstream) %(upstream:track,nobracket)"
    answer = run_git(repo, env, ["for-each-ref", form, *sorted(branches)]) if branches else None
    found = [line.split(" ", 2) for line in path_text(answer.output).splitlines()] if answer else []
    return frozenset(upstream for _, upstream, track in found if upstream and "behind" not in track)


def _name_of(ref: str) -> str:
    return ref.removeprefix(_HEADS).removeprefix(_REMOTES)


def _unreadable_words(ref: str, paths: list[str]) -> list[str]:
    """Return, where a branch has files that hold it and are refused, what to do about these."""
    if not paths:
        return []
    listed = some_of(sorted(paths), _FILES)
    begin = f"The last commit of {_name_of(ref)} has change files that hold it and are not readable"
    return [f"{begin}: {listed}. Remove them there, and commit."]
