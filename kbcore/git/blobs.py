"""Files as git keeps them: the tree of a commit, what is staged, and the content of both. Nothing is checked out.

Paths are text, with ``/`` between parts; bytes of a name that are no UTF-8 are written out as escapes.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from kbcore import limits
from kbcore.errors import GitUnusable, InvalidQuery
from kbcore.git.commands import run_git
from kbcore.git.files import BRANCH_PREFIX, encode_name, is_true, read_settings
from kbcore.git.repository import Repository
from kbcore.ids import path_text

LINK: Final = "120000"
"""The mode of a symbolic link: its content is where it leads."""

SUBMODULE: Final = "160000"
"""The mode of a submodule: it names a commit of another repository."""

_FILES: Final = frozenset({"100644", "100755", "100664", LINK, SUBMODULE})
_EMPTY_BLOBS: Final = frozenset(
    {"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"}
)
_AT_ONCE: Final = 2_000
_BYTES_AT_ONCE: Final = 64 * limits.MIB
_MOST_BYTES: Final = max(limits.MAX_SOURCE_FILE_BYTES, limits.MAX_CHANGE_FILE_BYTES)
_TIMEOUT_S: Final = 120.0
_SHOWN: Final = 3
_FEW: Final = 1_000
_MOST: Final = 1_000_000
_NO_HEAD: Final = 128
"""The status of git where HEAD names no commit yet."""


class Blob(msgspec.Struct, frozen=True):
    """A file as git keeps it: its mode and the name of its content; with the mode of a submodule, of its commit."""

    mode: str
    id: str


Tree = dict[str, Blob]
"""Files by path, in order."""


def once_added(repo: Repository, env: Mapping[str, str], paths: Sequence[str]) -> set[str]:
    """Return those of these paths at which a commit of the history of HEAD added a file, there still or not.

    Raises: ``GitUnusable``.
    """
    look = ["--literal-pathspecs", "log", "--format=", "--name-only", "-z", "--no-renames", "--diff-filter=A", "HEAD"]
    answer = run_git(repo, env, [*look, "--", *paths], allowed=(0, 128), timeout_s=_TIMEOUT_S)  # 128: no commit yet
    return {path_text(name) for name in answer.output.split(b"\0") if name} & {*paths}


def commit_of(repo: Repository, env: Mapping[str, str], rev: str) -> str | None:
    """Return the commit that a revision means, None when it means none. Raises: ``GitUnusable``."""
    if rev.startswith("-"):
        return None
    named = ["rev-parse", "--verify", "--quiet", f"{rev}^{{commit}}"]
    answer = run_git(repo, env, named, allowed=(0, 1, 128))
    return answer.output.decode("ascii", "replace").strip() if answer.status == 0 else None


def ancestors(repo: Repository, env: Mapping[str, str], commit: str) -> Iterator[str]:
    """Yield a commit and its ancestors in this clone, the newest first, at most a million. Raises: ``GitUnusable``."""
    seen = 0
    for count in (_FEW, _MOST):  # what is looked for is near the top as a rule
        listed = ["rev-list", f"--max-count={count}", f"--skip={seen}", "--end-of-options", commit]
        names = run_git(repo, env, listed, timeout_s=_TIMEOUT_S).output.decode("ascii", "replace").split()
        yield from names
        seen += len(names)
        if len(names) < count:
            return


def tip_of(repo: Repository, env: Mapping[str, str], branch: str) -> str | None:
    """Return the last commit of a branch, None where git has no such branch. Raises: ``GitUnusable``."""
    return commit_of(repo, env, os.fsdecode(BRANCH_PREFIX + encode_name(branch)))


def shared_commit(repo: Repository, env: Mapping[str, str], a: str, b: str) -> str | None:
    """Return the last commit that the histories of two commits share, None when there is none here.

    Raises: ``GitUnusable``.
    """
    answer = run_git(repo, env, ["merge-base", a, b], allowed=(0, 1))
    return answer.output.decode("ascii", "replace").split("\n")[0] if answer.status == 0 else None


def merge_bases(repo: Repository, env: Mapping[str, str], a: str, b: str) -> list[str]:
    """Return the best common ancestors of two commits: none, one, or several where branches were merged crosswise.

    Raises: ``GitUnusable``.
    """
    answer = run_git(repo, env, ["merge-base", "--all", a, b], allowed=(0, 1), timeout_s=_TIMEOUT_S)
    return answer.output.decode("ascii", "replace").split()


def is_cut_off(repo: Repository, env: Mapping[str, str], tips: Sequence[str], bases: Sequence[str]) -> bool:
    """Tell whether the history of a shallow clone ends between these commits and their common ancestors.

    A later common ancestor may then be missing. Raises: ``GitUnusable``.
    """
    try:
        ends = {line.strip() for line in (repo.common_dir / "shallow").read_text("ascii").splitlines()}
    except FileNotFoundError:
        return False
    except (OSError, UnicodeDecodeError) as error:
        raise GitUnusable(f"the file {repo.common_dir / 'shallow'} cannot be read: {error}") from error
    asked = "".join(f"{name}\n" for name in (*tips, *(f"^{base}" for base in bases))).encode("ascii")
    listed = run_git(repo, env, ["rev-list", "--stdin"], asked=asked, timeout_s=_TIMEOUT_S).output
    return not ends.isdisjoint(listed.decode("ascii", "replace").split())


def differing_files(
    repo: Repository, env: Mapping[str, str], commit: str, others: Sequence[str]
) -> Iterator[tuple[str, Tree]]:
    """Yield other commits, each with its files that are not the same in the first one; what it lacks is left out.

    Raises: ``GitUnusable``.
    """
    if not others:
        return
    asked = "".join(f"{other} {commit}\n" for other in others).encode("ascii")
    look = ["diff-tree", "--stdin", "-r", "-z", "--no-renames", "--no-ext-diff"]
    words = run_git(repo, env, look, asked=asked, timeout_s=_TIMEOUT_S).output.split(b"\0")
    found: dict[str, Tree] = {other: {} for other in others}
    of: Tree = {}
    at = 0
    while at < len(words):
        word = words[at]
        if word.startswith(b":"):
            _, mode, _, name, _ = word[1:].decode("ascii").split(" ")
            if mode in _FILES:
                of[path_text(words[at + 1])] = Blob(mode, name)
            at += 2
        else:
            of = found.get(word.decode("ascii", "replace").strip(), {})
            at += 1
    yield from found.items()


def absent(repo: Repository, env: Mapping[str, str], names: Collection[str]) -> set[str]:
    """Return those of these objects that are not in this clone; nothing is fetched. Raises: ``GitUnusable``."""
    if not names:
        return set()
    if not _is_partial(repo, env):
        asked = "".join(f"{name}\n" for name in names).encode("ascii")
        lines = run_git(repo, env, ["cat-file", "--batch-check"], asked=asked, timeout_s=_TIMEOUT_S).output.splitlines()
        return {line.split(b" ")[0].decode("ascii") for line in lines if line.endswith(b" missing")}
    # To be asked for an object that it lacks, git ends where it may not fetch it.
    listed = ["cat-file", "--batch-all-objects", "--unordered", "--buffer", "--batch-check=%(objectname)"]
    here = run_git(repo, env, listed, timeout_s=_TIMEOUT_S).output.decode("ascii", "replace").split()
    return {*names}.difference(here)


def _is_partial(repo: Repository, env: Mapping[str, str]) -> bool:
    """Tell whether objects of this clone are left with a remote until they are needed. Raises: ``GitUnusable``."""
    asked = ["config", "-z", "--get-regexp", r"^remote\..*\.promisor$"]
    return run_git(repo, env, asked, allowed=(0, 1)).status == 0


def commit_time(repo: Repository, env: Mapping[str, str], commit: str) -> str:
    """Return when a commit was made, as RFC 3339 text in UTC; it sorts as the times of records do.

    Raises: ``GitUnusable``.
    """
    header, _, _ = run_git(repo, env, ["cat-file", "commit", commit]).output.partition(b"\n\n")
    for line in header.split(b"\n"):
        words = line.split(b" ")
        if words[0] == b"committer" and words[-2].isdigit():
            try:
                return datetime.fromtimestamp(int(words[-2]), UTC).strftime("%Y-%m-%dT%H:%M:%S.999999Z")
            except (ValueError, OverflowError, OSError):
                break
    raise GitUnusable(f"the commit {commit} does not say when it was made", hint="Run `git fsck`, or give a seq.")


def tree_of(repo: Repository, env: Mapping[str, str], commit: str) -> Tree:
    """Return the files of a commit. Raises: ``GitUnusable``."""
    answer = run_git(repo, env, ["ls-tree", "-r", "-z", "--full-tree", commit], timeout_s=_TIMEOUT_S)
    found = ((path, mode, name) for path, (mode, _, name) in _entries(answer.output))
    return {path: Blob(mode, name) for path, mode, name in found if mode in _FILES}


def paths_below(repo: Repository, env: Mapping[str, str], commit: str, folder: str) -> set[str]:
    """Return the paths of the files of a commit below a folder. Raises: ``GitUnusable``."""
    return set(tree_below(repo, env, commit, folder))


def tree_below(repo: Repository, env: Mapping[str, str], commit: str, folder: str) -> Tree:
    """Return the files of a commit below a folder. Raises: ``GitUnusable``."""
    answer = run_git(repo, env, ["ls-tree", "-r", "-z", "--full-tree", commit, "--", folder], timeout_s=_TIMEOUT_S)
    return {path: Blob(mode, name) for path, (mode, _, name) in _entries(answer.output)}


def staged_below(repo: Repository, env: Mapping[str, str], folder: str) -> dict[str, str]:
    """Return the names of the contents that the index has below a folder, by path; of no file with a conflict.

    The index is that of ``staged_tree``. Raises: ``GitUnusable``.
    """
    return in_index(repo, env, [folder], named_index(repo, env))


def in_index(
    repo: Repository, env: Mapping[str, str], paths: Sequence[str], index: Path | None = None
) -> dict[str, str]:
    """Return the names of the contents that an index has at or below paths, by path; of no file with a conflict.

    Without ``index`` it is the worktree's own. Raises: ``GitUnusable``.
    """
    asked = ["ls-files", "--stage", "-z", "--full-name", "--", *(f":(top,literal){path}" for path in paths)]
    answer = run_git(repo, env, asked, timeout_s=_TIMEOUT_S, index=index)
    return {path: name for path, (_, name, stage) in _entries(answer.output) if stage == "0"}


def stage(repo: Repository, env: Mapping[str, str], paths: Collection[str]) -> None:
    """Have the index say of these paths what the worktree says: new content, or that there is no file.

    Files that git ignores are taken in. The index is that of ``staged_tree``. Raises: ``GitUnusable``.
    """
    asked = b"".join(os.fsencode(path) + b"\0" for path in sorted(paths))
    words = ["update-index", "--add", "--remove", "-z", "--stdin"]
    if paths:
        run_git(repo, env, words, asked=asked, timeout_s=_TIMEOUT_S, index=named_index(repo, env))


def replace_staged(repo: Repository, env: Mapping[str, str], new: Mapping[str, bytes], gone: Collection[str]) -> None:
    """Have the index hold these contents, and these paths no more, in one step, whatever the worktree has.

    The index is that of ``staged_tree``. Raises: ``GitUnusable``.
    """
    names = {path: write_blob(repo, env, data) for path, data in new.items()}
    listed = [b"100644 %b\t%b\0" % (name.encode(), os.fsencode(path)) for path, name in names.items()]
    none = b"0" * max(map(len, names.values()), default=0)
    listed += [b"0 %b\t%b\0" % (none, os.fsencode(path)) for path in sorted(gone)]
    words = ["update-index", "-z", "--index-info"]
    run_git(repo, env, words, asked=b"".join(listed), timeout_s=_TIMEOUT_S, index=named_index(repo, env))


def write_blob(repo: Repository, env: Mapping[str, str], data: bytes) -> str:
    """Have git keep a content as it is, and return its name. Raises: ``GitUnusable``."""
    words = ["hash-object", "-w", "--no-filters", "--stdin"]
    return run_git(repo, env, words, asked=data, timeout_s=_TIMEOUT_S).output.decode("ascii", "replace").strip()


def not_checked_out(repo: Repository, env: Mapping[str, str], folder: str) -> set[str]:
    """Return the paths below a folder that the index has and that git is set to leave out of the worktree.

    That is so in a sparse checkout, and for what a user marks (``update-index --skip-worktree``).

    Raises: ``GitUnusable``.
    """
    asked = ["ls-files", "-t", "-z", "--full-name", "--", f":(top){folder}"]
    listed = run_git(repo, env, asked, timeout_s=_TIMEOUT_S).output.split(b"\0")
    return {path_text(entry[2:]) for entry in listed if entry.startswith(b"S ")}


def is_sparse(repo: Repository) -> bool:
    """Tell whether git is set to leave files of the index out of the worktree. No process is started for it.

    Raises: ``GitUnusable``.
    """
    return is_true(read_settings(repo.common_dir, repo.git_dir).get("core.sparsecheckout", "false"))


def staged_tree(repo: Repository, env: Mapping[str, str], before: Tree) -> Tree:
    """Return the files that a commit of the index would hold; ``before`` is what HEAD holds.

    The index is the one that git names to its hooks, else the worktree's own.

    Raises: ``GitUnusable``; ``InvalidQuery`` while a merge is not resolved.
    """
    index = named_index(repo, env)
    answer = run_git(repo, env, ["ls-files", "--stage", "-z"], timeout_s=_TIMEOUT_S, index=index)
    found: Tree = {}
    unmerged: list[str] = []
    for path, (mode, name, stage) in _entries(answer.output):
        if stage != "0":
            unmerged.append(path)
        elif mode in _FILES:
            found[path] = Blob(mode, name)
    if unmerged:
        names = ", ".join(dict.fromkeys(unmerged[: 3 * _SHOWN]))
        raise InvalidQuery(
            f"The index holds conflicts that are not resolved: {names}.", hint="Resolve and `git add` them."
        )
    doubtful = [path for path, blob in found.items() if blob.id in _EMPTY_BLOBS and path not in before]
    if doubtful:
        # `git add -N` leaves an empty entry that no commit takes in.
        named = ["diff", "--cached", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv"]
        staged = run_git(repo, env, named, index=index).output.split(b"\0")
        for path in set(doubtful) - {path_text(name) for name in staged}:
            del found[path]
    return found


def is_anything_staged(repo: Repository, env: Mapping[str, str], commit: str) -> bool:
    """Tell whether the index may hold anything else than a commit; an unresolved merge and ``git add -N`` count.

    The index is that of ``staged_tree``. Raises: ``GitUnusable``.
    """
    asked = ["diff-index", "--cached", "--quiet", "--ignore-submodules=none", commit, "--"]
    return run_git(repo, env, asked, allowed=(0, 1), timeout_s=_TIMEOUT_S, index=named_index(repo, env)).status == 1


def would_commit_differ(repo: Repository, env: Mapping[str, str]) -> bool:
    """Return whether a commit of the index would differ from HEAD; before the first commit, whether it has files.

    An entry of ``git add -N`` is none that a commit takes in.

    The index is that of ``staged_tree``. Raises: ``GitUnusable``.
    """
    index = named_index(repo, env)
    asked = ["diff-index", "--cached", "--quiet", "--ita-invisible-in-index", "HEAD", "--"]
    answer = run_git(repo, env, asked, allowed=(0, 1, _NO_HEAD), timeout_s=_TIMEOUT_S, index=index)
    if answer.status != _NO_HEAD:
        return answer.status == 1
    return bool(run_git(repo, env, ["ls-files", "-z"], timeout_s=_TIMEOUT_S, index=index).output)


def staged_with(repo: Repository, env: Mapping[str, str], pattern: str) -> set[str]:
    """Return the text files of the index of which a line matches a pattern (``grep -iE``). Raises: ``GitUnusable``."""
    asked = ["grep", "--cached", "-I", "-l", "-z", "-i", "-E", "--full-name", "-e", pattern, "--", ":/"]
    answer = run_git(repo, env, asked, allowed=(0, 1), timeout_s=_TIMEOUT_S, index=named_index(repo, env))
    return {path_text(name) for name in answer.output.split(b"\0") if name}


def ignored(repo: Repository, env: Mapping[str, str], paths: Collection[str]) -> set[str]:
    """Return those of these paths that git ignores: it is set to, and does not keep them. Raises: ``GitUnusable``."""
    if not paths or not repo.has_worktree:
        return set()
    asked = b"".join(os.fsencode(path) + b"\0" for path in sorted(paths))
    answer = run_git(repo, env, ["check-ignore", "-z", "--stdin"], allowed=(0, 1), asked=asked)
    return {path_text(name) for name in answer.output.split(b"\0") if name}


def contents(repo: Repository, env: Mapping[str, str], names: Collection[str]) -> Iterator[tuple[str, bytes | None]]:
    """Yield the content of blobs by their names, each once; None for one that is larger than any file may be.

    Raises: ``GitUnusable`` when one is not in this clone.
    """
    listed = list(dict.fromkeys(names))
    for start in range(0, len(listed), _AT_ONCE):
        chunk = listed[start : start + _AT_ONCE]
        group: list[str] = []
        left_bytes = _BYTES_AT_ONCE
        for name, size_bytes in zip(chunk, _sizes(repo, env, chunk), strict=True):
            if size_bytes > _MOST_BYTES:
                yield name, None
                continue
            if size_bytes > left_bytes:
                yield from _read(repo, env, group)
                group, left_bytes = [], _BYTES_AT_ONCE
            group.append(name)
            left_bytes -= size_bytes
        yield from _read(repo, env, group)


def content_at(
    repo: Repository, env: Mapping[str, str], commits: Collection[str], path: str
) -> dict[str, bytes | None]:
    """Return the content of a file at commits, by commit, None where that is not in this clone.

    Commits that lack the file, or are not in this clone themselves, are left out. Raises: ``GitUnusable``.
    """
    found = _objects_at(repo, env, commits, path)
    folder, _, name = path.rpartition("/")
    trees = _objects_at(repo, env, {*commits} - found.keys(), folder)
    entry = f" {name}\0".encode()
    return found | {commit: None for commit, tree in trees.items() if tree is None or entry in tree}


def _objects_at(
    repo: Repository, env: Mapping[str, str], commits: Collection[str], path: str
) -> dict[str, bytes | None]:
    """Return the file or tree that commits have at a path, None where git ends, having left it with a remote."""
    left = sorted(commits)
    found: dict[str, bytes | None] = {}
    while left:
        asked = "".join(f"{commit}:{path}\n" for commit in left).encode()
        answer = run_git(repo, env, ["cat-file", "--batch"], allowed=(0, 128), asked=asked, timeout_s=_TIMEOUT_S)
        answered = [*_answers(answer.output)]
        found |= {commit: data for commit, data in zip(left, answered, strict=False) if data is not None}
        left = left[len(answered) :]
        if left:
            found[left.pop(0)] = None
    return found


def _answers(output: bytes) -> Iterator[bytes | None]:
    """Yield the contents that ``cat-file --batch`` writes, None for an object that is missing."""
    at = 0
    while (end := output.find(b"\n", at)) >= 0:
        words = output[at:end].rsplit(b" ", 2)
        at = end + 1
        if len(words) > 2 and words[2].isdigit():  # noqa: PLR2004 - name, kind, length
            length_bytes = int(words[2])
            yield output[at : at + length_bytes]
            at += length_bytes + 1
        else:
            yield None


def commits_changing(repo: Repository, env: Mapping[str, str], path: str) -> list[str] | None:
    """Return the commits at which a file was changed, of all that refs and reflogs lead to in this clone.

    None where git cannot tell, since a part of the history is not in this clone. Raises: ``GitUnusable``.
    """
    asked = ["rev-list", "--all", "--reflog", "--full-history", "--", path]
    answer = run_git(repo, env, asked, allowed=(0, 128), timeout_s=_TIMEOUT_S)
    return None if answer.status else answer.output.decode("ascii", "replace").split()


def authors_of_addition(repo: Repository, env: Mapping[str, str], paths: Collection[str]) -> dict[str, str]:
    """Return the author of the last commit of HEAD that added each file, by path; files of no commit are left out.

    Raises: ``GitUnusable``.
    """
    if not paths:
        return {}
    form = ["--format=%x01%an", "--no-show-signature", "--diff-filter=A", "--no-renames", "--name-only", "-z"]
    words = ["--literal-pathspecs", "log", *form, "HEAD", "--", *paths]
    answer = run_git(repo, env, words, allowed=(0, 128), timeout_s=_TIMEOUT_S)  # 128: no commit yet
    found, author = dict[str, str](), ""
    for part in answer.output.split(b"\0"):
        text = part.lstrip(b"\n")
        if text.startswith(b"\x01"):
            author = text[1:].decode("utf-8", "replace").strip()
        elif text:
            found.setdefault(path_text(text), author)
    return found


def hashes(repo: Repository, env: Mapping[str, str], commit: str, paths: Collection[str]) -> dict[str, str]:
    """Return the SHA-256 of the content of those of these files that a commit has, by path.

    Raises: ``GitUnusable`` when one is not in this clone.
    """
    tree = tree_of(repo, env, commit)
    names = {path: tree[path].id for path in paths if path in tree and tree[path].mode != SUBMODULE}
    found = contents(repo, env, names.values())
    sums = {name: sha256(data or b"").hexdigest() for name, data in found}
    return {path: sums[name] for path, name in names.items()}


def _sizes(repo: Repository, env: Mapping[str, str], names: Sequence[str]) -> list[int]:
    asked = "".join(f"{name}\n" for name in names).encode("ascii")
    answer = run_git(repo, env, ["cat-file", "--batch-check=%(objectname) %(objectsize)"], asked=asked)
    sizes = []
    for line in answer.output.decode("ascii", "replace").splitlines():
        name, _, size = line.partition(" ")
        if not size.isdecimal():
            hint = "Fetch all of it (`git fetch --refetch`, without a filter), and try again."
            raise GitUnusable(f"the object {name} is not in this clone", hint=hint)
        sizes.append(int(size))
    return sizes


def _read(repo: Repository, env: Mapping[str, str], names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    if not names:
        return
    asked = "".join(f"{name}\n" for name in names).encode("ascii")
    output = run_git(repo, env, ["cat-file", "--batch"], asked=asked, timeout_s=_TIMEOUT_S).output
    at = 0
    for name in names:
        end = output.index(b"\n", at)
        length = int(output[at:end].rpartition(b" ")[2])
        yield name, output[end + 1 : end + 1 + length]
        at = end + length + 2


def _entries(output: bytes) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """Yield the path of each entry of a listing, and the three words before it."""
    for entry in output.split(b"\0"):
        words, tab, name = entry.partition(b"\t")
        if tab:
            first, second, third = words.decode("ascii").split(" ")
            yield path_text(name), (first, second, third)


def named_index(repo: Repository, env: Mapping[str, str]) -> Path | None:
    """Return the index that git, or a user, means by GIT_INDEX_FILE; None for the worktree's own.

    That of another repository, whose hook asks about this one, is not meant.
    """
    named = env.get("GIT_INDEX_FILE")
    if not named:
        return None
    index = repo.worktree / named
    folder = Path(os.path.realpath(index.parent))
    marks = (folder / name for name in ("objects", "commondir"))
    is_foreign = folder != repo.git_dir and (folder / "HEAD").exists() and any(mark.exists() for mark in marks)
    return None if is_foreign else index
