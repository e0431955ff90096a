"""Reads from a branch's reflog how the branch was made, which names it had before, and whether git is renaming it.

git tells the first two nowhere else; where no reflog is kept, nothing is known, and nothing is guessed.

To rename a branch, git moves the reflog of the old name aside, deletes the old ref, gives the reflog the new name,
writes the rename into it, makes the new ref, and last updates each HEAD that names the old one. ``is_renaming`` and
``is_given_up`` look in this order, so a rename that one of them came too early for is seen by a later one.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from kbcore.git.commands import run_git
from kbcore.git.files import BRANCH_PREFIX, decode_name, encode_name, find_lines, is_fresh, read_first_line
from kbcore.git.head import tables_stamp, uses_reftable
from kbcore.git.refs import is_branch, local_branches
from kbcore.git.repository import Repository
from kbcore.ids import check_branch_name
from kbcore.storage.files import below
from kbcore.storage.gitref import Birth

_ENTRY = re.compile(rb"(?:0{40}|0{64}) [0-9a-f]{40,64} [^\t]* (\d{1,15}) [+-]\d{4}(?:\t(.*))?")
"""A line of a reflog that says that the ref was not there before."""
_SHOWN = "%H%x00%gn%x00%ge%x00%gd%x00%gs"
"""The format of an entry where only git can read it; the time is in ``%gd``."""
_TIME = re.compile(rb"@\{(\d{1,15}) [+-]\d{4}\}$")
_CREATED = b"branch: Created from"
_MOVED = re.compile(rb"(?:^|\t)Branch: (?:renamed|copied) refs/heads/", re.MULTILINE)
_RENAMED = re.compile(rb"(?:^|\t)Branch: renamed refs/heads/(\S+) to refs/heads/(\S+)$", re.MULTILINE)
_LOGS: Final = "logs/refs/heads"
_ASIDE: Final = "logs/refs/.tmp-renamed-log"
_FRESH_NS: Final = 2_000_000_000
"""An older one was left by a git that was killed."""


BirthCache = dict[tuple[Path, str], tuple[object, Birth | None]]
"""Answers of git about reflogs that only git can read, by git directory and branch, each with the stamp of the tables
that it is of."""


def former_names(repo: Repository, env: Mapping[str, str], branch: str) -> list[str]:
    """Return the names that a branch had before it was renamed to this one, the latest first.

    Empty for a name that git has no reflog of. The names may be in use again, by other branches.

    Raises:
        GitUnusable: the reflog is there and cannot be read.
    """
    if check_branch_name(branch) is not None:
        return []
    ref = BRANCH_PREFIX + encode_name(branch)
    found = _find(repo, env, ref, _RENAMED)
    names, current = list[str](), encode_name(branch)
    for renamed in found:
        old, new = renamed.groups()
        name = decode_name(old)
        if new == current and check_branch_name(name) is None and b"\\" not in old:
            names.append(name)
            current = old
    return names


def birth_of(repo: Repository, env: Mapping[str, str], branch: str, cache: BirthCache) -> Birth | None:
    """Return how git made a branch, None where no reflog says that.

    Where refs are reftables git is asked, and asked again after each change of its tables.

    Raises:
        GitUnusable: the reflog is there and cannot be read.
    """
    if check_branch_name(branch) is not None:
        return None
    ref = BRANCH_PREFIX + encode_name(branch)
    if not uses_reftable(repo.git_dir):
        return _birth_in(read_first_line(below(repo.common_dir, f"logs/{os.fsdecode(ref)}")))
    key, stamp = (repo.common_dir, branch), tables_stamp((repo.common_dir,))
    known = cache.get(key)
    if known is not None and stamp is not None and known[0] == stamp:
        return known[1]
    oldest = _show(repo, env, ref, _SHOWN, "--date=raw").rstrip(b"\n").rpartition(b"\n")[2]
    birth = _birth_shown(oldest)
    if stamp is not None:
        cache[key] = (stamp, birth)
    return birth


def has_reflog(repo: Repository, env: Mapping[str, str], branch: str) -> bool:
    """Tell whether git has a reflog of a branch, if only an empty one. Raises: ``GitUnusable``."""
    ref = BRANCH_PREFIX + encode_name(branch)
    if not uses_reftable(repo.git_dir):
        return os.path.lexists(repo.common_dir / "logs" / os.fsdecode(ref))
    return run_git(repo, env, ["reflog", "exists", os.fsdecode(ref)], allowed=(0, 1, 128)).status == 0


def was_moved(repo: Repository, env: Mapping[str, str], branch: str) -> bool:
    """Tell whether a branch was renamed to this name, or copied, as far as its reflog says. Raises: ``GitUnusable``."""
    return bool(_find(repo, env, BRANCH_PREFIX + encode_name(branch), _MOVED))


def keeps_reflogs(repo: Repository, env: Mapping[str, str]) -> bool:
    """Tell whether git begins a reflog with each branch that it makes here. Raises: ``GitUnusable``."""
    answer = run_git(repo, env, ["config", "--get", "core.logAllRefUpdates"], allowed=(0, 1))
    if answer.status:
        return repo.has_worktree
    return answer.output.strip().lower() not in {b"false", b"no", b"off", b"0", b""}


def _birth_in(line: bytes) -> Birth | None:
    """Return what the first line of a reflog says, if the branch began with it."""
    found = _ENTRY.fullmatch(line)
    if found is None:
        return None
    return Birth(hashlib.sha256(line).hexdigest(), int(found[1]), (found[2] or b"").startswith(_CREATED))


def _birth_shown(entry: bytes) -> Birth | None:
    """Return the same of what git shows of the oldest entry: its message alone tells that the branch began with it."""
    *about, message = entry.split(b"\0")
    found = _TIME.search(about[-1]) if about else None
    if found is None or not message.startswith(_CREATED):
        return None
    return Birth(hashlib.sha256(entry).hexdigest(), int(found[1]), is_created=True)


def _find(repo: Repository, env: Mapping[str, str], ref: bytes, pattern: re.Pattern[bytes]) -> list[re.Match[bytes]]:
    """Return what a pattern finds in the messages of a reflog, the latest first."""
    if uses_reftable(repo.git_dir):
        return list(pattern.finditer(_show(repo, env, ref, "%gs")))
    return find_lines(repo.common_dir / "logs" / os.fsdecode(ref), pattern)[::-1]


def _show(repo: Repository, env: Mapping[str, str], ref: bytes, form: str, *options: str) -> bytes:
    """Return what git shows of each entry of a reflog, the latest first; nothing where there is none."""
    # Looking for signatures would run the program that the repository names for that.
    shown = ["reflog", "show", "--no-show-signature", f"--format={form}", *options, os.fsdecode(ref), "--"]
    return run_git(repo, env, shown, allowed=(0, 128)).output


def is_renaming(repo: Repository, env: Mapping[str, str], now_ns: int) -> bool:
    """Tell whether a branch is between two names, as far as its reflog and its ref go.

    ``now_ns`` is the wall-clock time. Where no reflog is kept, git leaves no trace of a rename anyway. No process is
    started for it.

    Raises: ``GitUnusable`` when a ref cannot be read.
    """
    if uses_reftable(repo.git_dir):
        return False
    if is_fresh(repo.common_dir / _ASIDE, now_ns, _FRESH_NS):
        return True
    logs = _logs(repo.common_dir / _LOGS)
    return any(is_fresh(path, now_ns, _FRESH_NS) and not is_branch(repo, env, name) for name, path in logs)


def is_given_up(repo: Repository, env: Mapping[str, str], branch: str) -> bool:
    """Tell whether a name is that of no branch, and was the name of one that is called otherwise now.

    A HEAD that still names it is about to follow, unless an orphan branch is begun under that very name.

    Raises: ``GitUnusable`` when refs or reflogs cannot be read.
    """
    return not is_branch(repo, env, branch) and any(
        branch in former_names(repo, env, name) for name in local_branches(repo, env)
    )


def _logs(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the branches that have a reflog, and where it is; a folder that goes meanwhile has none."""
    for directory, _, names in os.walk(folder):
        for name in names:
            path = Path(directory) / name
            yield decode_name(os.fsencode(path.relative_to(folder).as_posix())), path
