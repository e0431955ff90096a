"""Files as git keeps them: the tree of a commit, what is staged, and the content of both. Nothing is checked out.

Paths are text, with ``/`` between parts; bytes of a name that are no UTF-8 are written out as escapes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Final

import msgspec

from kbcore import limits
from kbcore.errors import GitUnusable
from kbcore.git.commands import LONG_TIMEOUT_S, run_git
from kbcore.git.repository import Repository
from kbcore.ids import path_text

LINK: Final = "120000"
"""The mode of a symbolic link: its content is where it leads."""

SUBMODULE: Final = "160000"
"""The mode of a submodule: it names a commit of another repository."""

FILES: Final = frozenset({"100644", "100755", "100664", LINK, SUBMODULE})
_AT_ONCE: Final = 2_000
_BYTES_AT_ONCE: Final = 64 * limits.MIB
_MOST_BYTES: Final = max(limits.MAX_SOURCE_FILE_BYTES, limits.MAX_CHANGE_FILE_BYTES)


class Blob(msgspec.Struct, frozen=True):
    """A file as git keeps it: its mode and the name of its content; with the mode of a submodule, of its commit."""

    mode: str
    id: str


Tree = dict[str, Blob]
"""Files by path, in order."""


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
    words = run_git(repo, env, look, asked=asked, timeout_s=LONG_TIMEOUT_S).output.split(b"\0")
    found: dict[str, Tree] = {other: {} for other in others}
    of: Tree = {}
    at = 0
    while at < len(words):
        word = words[at]
        if word.startswith(b":"):
            _, mode, _, name, _ = word[1:].decode("ascii").split(" ")
            if mode in FILES:
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
        lines = run_git(
            repo, env, ["cat-file", "--batch-check"], asked=asked, timeout_s=LONG_TIMEOUT_S
        ).output.splitlines()
        return {line.split(b" ")[0].decode("ascii") for line in lines if line.endswith(b" missing")}
    # To be asked for an object that it lacks, git ends where it may not fetch it.
    listed = ["cat-file", "--batch-all-objects", "--unordered", "--buffer", "--batch-check=%(objectname)"]
    here = run_git(repo, env, listed, timeout_s=LONG_TIMEOUT_S).output.decode("ascii", "replace").split()
    return {*names}.difference(here)


def _is_partial(repo: Repository, env: Mapping[str, str]) -> bool:
    """Tell whether objects of this clone are left with a remote until they are needed. Raises: ``GitUnusable``."""
    asked = ["config", "-z", "--get-regexp", r"^remote\..*\.promisor$"]
    return run_git(repo, env, asked, allowed=(0, 1)).status == 0


def tree_of(repo: Repository, env: Mapping[str, str], commit: str) -> Tree:
    """Return the files of a commit. Raises: ``GitUnusable``."""
    answer = run_git(repo, env, ["ls-tree", "-r", "-z", "--full-tree", commit], timeout_s=LONG_TIMEOUT_S)
    found = ((path, mode, name) for path, (mode, _, name) in entries(answer.output))
    return {path: Blob(mode, name) for path, mode, name in found if mode in FILES}


def paths_below(repo: Repository, env: Mapping[str, str], commit: str, folder: str) -> set[str]:
    """Return the paths of the files of a commit below a folder. Raises: ``GitUnusable``."""
    return set(tree_below(repo, env, commit, folder))


def tree_below(repo: Repository, env: Mapping[str, str], commit: str, folder: str) -> Tree:
    """Return the files of a commit below a folder. Raises: ``GitUnusable``."""
    answer = run_git(repo, env, ["ls-tree", "-r", "-z", "--full-tree", commit, "--", folder], timeout_s=LONG_TIMEOUT_S)
    return {path: Blob(mode, name) for path, (mode, _, name) in entries(answer.output)}


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
        answer = run_git(repo, env, ["cat-file", "--batch"], allowed=(0, 128), asked=asked, timeout_s=LONG_TIMEOUT_S)
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


def write_blob(repo: Repository, env: Mapping[str, str], data: bytes) -> str:
    """Have git keep a content as it is, and return its name. Raises: ``GitUnusable``."""
    words = ["hash-object", "-w", "--no-filters", "--stdin"]
    return run_git(repo, env, words, asked=data, timeout_s=LONG_TIMEOUT_S).output.decode("ascii", "replace").strip()


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
    output = run_git(repo, env, ["cat-file", "--batch"], asked=asked, timeout_s=LONG_TIMEOUT_S).output
    at = 0
    for name in names:
        end = output.index(b"\n", at)
        length = int(output[at:end].rpartition(b" ")[2])
        yield name, output[end + 1 : end + 1 + length]
        at = end + length + 2


def entries(output: bytes) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """Yield the path of each entry of a listing, and the three words before it."""
    for entry in output.split(b"\0"):
        words, tab, name = entry.partition(b"\t")
        if tab:
            first, second, third = words.decode("ascii").split(" ")
            yield path_text(name), (first, second, third)
