"""Names inside one branch's directory. Pure: nothing here touches the disk.

Invariant: a name that ``head.json`` may use is what these functions make, so no stored text becomes a path.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

from kbcore import ids
from kbcore.errors.remedies import shell

HEAD: Final = "head.json"
LOCK: Final = "lock"
QUARANTINE: Final = "quarantine"
GIT_REF: Final = "git-ref.json"
"""The last state of the store's branch in git; nothing depends on it but whether the branch was made again."""
TMP_SUFFIX: Final = ".tmp"
BUILDING_PREFIX: Final = ".tmp-"
"""A branch directory under construction, next to the finished ones."""

_SEGMENT: Final = re.compile(r"journal-([0-9]{10,18})(?:-r([0-9]{1,9}))?\.jsonl", re.ASCII)
_OWN_TMP: Final = re.compile(r"\.[0-9a-f]{8}$", re.ASCII)
_SNAPSHOT: Final = re.compile(r"snapshot-([0-9]{10,18})(?:-r([0-9]{1,9}))?\.jsonl", re.ASCII)

Kind = Literal["head", "lock", "quarantine", "git_ref", "segment", "snapshot", "unfinished", "strange"]


def segment_name(first_seq: int, generation: int = 0) -> str:
    """Return the name of the segment whose first record is ``first_seq``; a redaction writes the next generation."""
    return f"journal-{first_seq:010d}{_of_generation(generation)}.jsonl"


def snapshot_name(seq: int, generation: int = 0) -> str:
    """Return the name of the snapshot of the state at ``seq``."""
    return f"snapshot-{seq:010d}{_of_generation(generation)}.jsonl"


def segment_first_seq(name: str) -> int | None:
    """Return the first seq that a segment's name states, or None if it is not a segment's name."""
    return _number(_SEGMENT, name, segment_name)


def snapshot_seq(name: str) -> int | None:
    """Return the seq that a snapshot's name states, or None if it is not a snapshot's name."""
    return _number(_SNAPSHOT, name, snapshot_name)


def generation_of(name: str) -> int:
    """Return the number of the redaction that wrote a segment or a snapshot, by its name; 0 for any other file."""
    found = _SEGMENT.fullmatch(name) or _SNAPSHOT.fullmatch(name)
    return int(found[2] or 0) if found else 0


def kind_of(name: str) -> Kind:
    """Say what a name in a branch directory is; ``strange`` is nothing of KB's."""
    fixed: dict[str, Kind] = {HEAD: "head", LOCK: "lock", QUARANTINE: "quarantine", GIT_REF: "git_ref"}
    if name in fixed:
        return fixed[name]
    if segment_first_seq(name) is not None:
        return "segment"
    if snapshot_seq(name) is not None:
        return "snapshot"
    base = _OWN_TMP.sub("", name.removesuffix(TMP_SUFFIX))
    if name.endswith(TMP_SUFFIX) and kind_of(base) in {"head", "snapshot", "segment", "git_ref"}:
        return "unfinished"
    return "strange"


def branch_of(directory: Path, stated: str = "") -> str:
    """Return the branch whose store is in a directory, for a command.

    Where the name of the directory does not say it, it is ``stated``, or "BRANCH", which a person replaces.
    """
    return ids.decode_branch(directory.name) or stated or "BRANCH"


def restore_command(directory: Path, branch: str = "") -> str:
    """Return the command that brings only this store back from a backup; without ``--only`` all in it are put back.

    ``branch`` is needed only where the name of the directory does not say it.
    """
    return shell("restore", "FILE", "--only", branch or branch_of(directory), "--replace")


def salvage_command(branch: str, *options: str) -> str:
    """Return the command that salvages a branch, with more options."""
    return shell("doctor", "--salvage", "--branch", branch, *options)


def tmp_path(path: Path) -> Path:
    """Return where a file is written before it is renamed to ``path``."""
    return path.with_name(path.name + TMP_SUFFIX)


def own_tmp_path(path: Path) -> Path:
    """Return the same as ``tmp_path`` for a file that several may write at once: each has a name of its own."""
    return path.with_name(f"{path.name}.{secrets.token_hex(4)}{TMP_SUFFIX}")


def _of_generation(generation: int) -> str:
    return f"-r{generation}" if generation else ""


def _number(pattern: re.Pattern[str], name: str, spell: Callable[[int, int], str]) -> int | None:
    found = pattern.fullmatch(name)
    # Leading zeros only up to ten digits: one number has one name.
    return int(found[1]) if found and spell(int(found[1]), int(found[2] or 0)) == name else None
