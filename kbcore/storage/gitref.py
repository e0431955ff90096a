"""The last state of a store's branch in git: it shows whether git deleted the branch since and made it again.

git begins a reflog with each branch that it makes, and removes the reflog with the branch. The first line of the reflog
therefore names one life of a branch: a rename takes it along, and a reset, a rebase or a merge leaves it as it is. The
file of a store notes this line. Where git keeps no reflogs, it notes what KB itself saw when it listed the branches:
that git had none of this name. It is not synced: one that is absent or damaged states nothing, and proves nothing.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

import msgspec

from kbcore.errors import KBError
from kbcore.storage import files, layout
from kbcore.storage.fs import Fs

FORMAT: Final = 1
_MAX_BYTES: Final = 4096


class Birth(msgspec.Struct, frozen=True):
    """The creation of a branch by git: the digest of the first line of its reflog, and the time in that line.

    ``is_created`` tells that the line says so itself (`branch: Created from`): where a reflog is cut by `git reflog
    expire --rewrite`, a later line comes first, and looks as if the branch began with it.
    """

    mark: str
    at_s: int
    is_created: bool


class RefSeen(msgspec.Struct, frozen=True, omit_defaults=True):
    """The last state of a store's branch. ``birth`` is "" where git kept no reflog, or where its first line was gone.

    ``is_doubted`` tells that the store may be of an earlier branch of this name, and that this is not decided.
    ``is_gone`` tells that git had no such branch at a later look, and no worktree had it checked out;
    ``may_be_renamed`` that there was a branch then which may have been this one under another name. A member that is
    not known here is left out of account: it was added later.
    """

    format: int
    birth: str
    had_ref: bool
    is_doubted: bool = False
    is_gone: bool = False
    may_be_renamed: bool = False


Presence = Literal["ref", "checked_out", "none"]
"""A branch in git: a ref, only a HEAD that names it, or nothing."""

Verdict = Literal["same", "unseen", "doubtful", "made_again"]
"""``unseen``: nothing contradicts the branch as git has it, and the store has not noted it yet."""


def judge(
    seen: RefSeen | None,
    birth: Birth | None,
    *,
    find_presence: Callable[[], Presence],
    has_other_names: Callable[[], bool],
    is_older: Callable[[int], bool],
    has_reflog: Callable[[], bool],
) -> Verdict:
    """Return whether the branch that git has now is the one that a store was used for last.

    Args:
        seen: what the store saw last.
        birth: how git made the branch that it has now, None where git does not say.
        find_presence: tells what git has of the branch now.
        has_other_names: tells whether the branch was renamed or copied from another: then it may have replaced a
            branch that existed until that moment.
        is_older: tells whether all records of the store itself were written before a time, in seconds.
        has_reflog: tells whether git has a reflog of the branch, which may have lost its first lines.
    """
    if seen is None:
        if birth is None:
            return "unseen"
        return "doubtful" if birth.is_created and is_older(birth.at_s) else "unseen"
    is_same_life = birth is not None and birth.mark == seen.birth
    if seen.is_gone and not is_same_life:
        return _judge_gone(seen, birth, find_presence, has_other_names)
    had_none = not seen.birth and not seen.had_ref
    if birth is None and seen.birth and not has_reflog() and find_presence() == "ref":
        return "doubtful"  # git deletes a reflog with its branch alone
    if birth is None or is_same_life:
        is_news = seen.is_gone or (had_none and find_presence() == "ref")
        return "doubtful" if seen.is_doubted else "unseen" if is_news else "same"
    if had_none:
        return "unseen"
    return "made_again" if birth.is_created and not has_other_names() else "doubtful"


def _judge_gone(
    seen: RefSeen, birth: Birth | None, find_presence: Callable[[], Presence], has_other_names: Callable[[], bool]
) -> Verdict:
    """Return the same of a branch that git did not have at the last look, and of whose reflog that says nothing else.

    A branch that git has again is another one, unless it was only called otherwise at that look.
    """
    presence = find_presence()
    if presence == "none":
        return "doubtful" if seen.is_doubted else "same"
    is_proven = seen.had_ref and not seen.may_be_renamed and not seen.is_doubted
    is_created = birth is not None and birth.is_created
    if presence == "ref" and (is_proven or (is_created and (seen.birth or seen.had_ref))) and not has_other_names():
        return "made_again"
    return "doubtful"


def read(fs: Fs, directory: Path) -> RefSeen | None:
    """Return what a store saw last; None where it states nothing that can be used."""
    with contextlib.suppress(KBError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        data = files.read_file(fs, files.below(directory, layout.GIT_REF), _MAX_BYTES)
        found = msgspec.json.decode(data, type=RefSeen) if data else None
        return found if found and found.format == FORMAT else None
    return None


def write(fs: Fs, directory: Path, seen: RefSeen) -> None:
    """Note what a store saw. What cannot be written is noted at the next use.

    Renamed into place, so that no reader finds half of it. No lock is held: each writer has a file of its own until
    then.
    """
    path = directory / layout.GIT_REF
    new = layout.own_tmp_path(path)
    try:
        with files.opened(fs, new, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as fd:
            files.write_all(fs, fd, msgspec.json.encode(seen) + b"\n")
        fs.replace(new, path)
    except OSError:
        files.remove_quietly(fs, new)


def forget(fs: Fs, directory: Path) -> None:
    """Remove the note of a store that is about to be another branch's, or the same branch's once more."""
    files.remove_quietly(fs, directory / layout.GIT_REF)
