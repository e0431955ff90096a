"""The text of documents as search has it: without front matter, of files whose content is what a branch knows.

Every file is read as a sync reads it, with the same checks: nothing outside of the repository, nothing too large. What
the worktree does not hold so is looked for in what git keeps of the branch.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kbcore import limits
from kbcore.errors import GitUnusable
from kbcore.extract import frontmatter
from kbcore.git import blobs, worktree_content
from kbcore.git.repository import Repository
from kbcore.text.decoding import decode


def read_bodies(root: Path, wanted: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield hash and text of the documents below ``root`` that still have the SHA-256 given with their paths.

    A file that is gone, changed, or must not be read is left out: whoever asks counts what is missing.
    """
    inside: dict[str, bool] = {}
    for path, digest in wanted:
        data = _read(root, path, inside)
        if data is not None and hashlib.sha256(data).hexdigest() == digest:
            yield digest, _body(data)


def committed_bodies(
    repo: Repository, env: Mapping[str, str], branch: str, wanted: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """Yield hash and text of the documents that the last commit of a branch holds with the SHA-256 given.

    Nothing is fetched. What git cannot give is left out, as with ``read_bodies``.
    """
    here = {**env, "GIT_NO_LAZY_FETCH": "1"}
    with contextlib.suppress(GitUnusable):  # a search goes on with the fields, and counts what is missing
        commit = blobs.tip_of(repo, here, branch) if wanted else None
        tree = blobs.tree_of(repo, here, commit) if commit else {}
        hashes: dict[str, set[str]] = {}
        for path, digest in wanted:
            if path in tree and tree[path].mode not in {blobs.LINK, blobs.SUBMODULE}:
                hashes.setdefault(tree[path].id, set()).add(digest)
        for name, data in blobs.contents(repo, here, hashes):
            if data is not None and (digest := hashlib.sha256(data).hexdigest()) in hashes[name]:
                yield digest, _body(data)


def _read(root: Path, path: str, inside: dict[str, bool]) -> bytes | None:
    """Return the content of a file, None where it cannot or must not be read.

    ``inside`` remembers which folders are in the repository: following the links of every path takes longer than
    reading what is there.
    """
    place = os.path.join(root, path)  # noqa: PTH118 - as a scan names it
    try:
        about, folder = os.lstat(place), os.path.dirname(place)  # noqa: PTH120 - likewise
        is_link = stat.S_ISLNK(about.st_mode)
        if folder not in inside:
            inside[folder] = Path(os.path.realpath(folder)).is_relative_to(root)
        about = os.stat(place) if is_link else about  # noqa: PTH116 - likewise
        worktree_content.check(place, about, root, is_direct=inside[folder] and not is_link)
        return worktree_content.read(place)[0]
    except (OSError, ValueError, worktree_content.Unfit):
        return None


def _body(data: bytes) -> str:
    text = decode(data).text
    return frontmatter.split(text).body[: limits.MAX_SEARCHED_CHARS] if text else ""
