"""Find the files that extractors want, and the hash of each, reading only what may have changed.

A stamp stands for a hash as long as size, mtime and inode are the same. Stamps of files that were changed within
the last two seconds are not kept: a second change in the same tick of the clock would go unseen.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.extract.facts import Extractor, Facts, FileProblem, Source
from kbcore.extract.globs import compiled
from kbcore.extract.registry import run

_RACY_NS: Final = 2_000_000_000
_SKIPPED_FOLDERS: Final = frozenset({".git", ".kb"})
_encode = msgspec.json.Encoder(order="sorted").encode


class Wanted(msgspec.Struct, frozen=True):
    """An extractor with the settings in force; ``mark`` names it, its version and its settings in a source's row."""

    extractor: Extractor
    settings: Mapping[str, Any]
    globs: tuple[tuple[str, str | None], ...]
    mark: str


class FileStamp(msgspec.Struct, frozen=True, array_like=True):
    """What a file looked like from outside when its content had this SHA-256."""

    size: int
    mtime_ns: int
    inode: int
    hash: str


class Found(msgspec.Struct, frozen=True):
    """A file that an extractor wants. ``facts`` are there when it was read; ``hash`` is empty when it cannot be."""

    path: str
    wanted: Wanted
    type: str | None
    hash: str
    facts: Facts | None = None


class Scan(msgspec.Struct):
    """All files found, by path.

    ``stamps`` is what to keep for the next scan; ``read`` counts files opened; ``blind`` are folders that could not
    be listed, so that nothing is known of what lies below them; ``notes`` pairs a path with what was passed over.
    """

    files: dict[str, Found]
    stamps: dict[str, FileStamp]
    read: int = 0
    blind: dict[str, FileProblem] = {}
    notes: dict[str, FileProblem] = {}

    def is_blind_to(self, path: str) -> bool:
        """Tell whether a file may be there although it was not found."""
        return any(not folder or path.startswith(folder + "/") for folder in self.blind)


def wanted(
    extractors: Iterable[Extractor],
    settings: Mapping[str, Mapping[str, Any]],
    extra: Mapping[str, Any],
    meaning: bytes,
) -> list[Wanted]:
    """Return what to look for. ``extra`` is added to every extractor's settings.

    ``meaning`` is what the same facts are read by (the schema): when it changes, every file is read again.

    Raises: ``InvalidConfig`` for settings that an extractor cannot use.
    """
    found = []
    for extractor in extractors:
        own = {**settings.get(extractor.name, {}), **extra}
        globs = tuple((rule.glob, rule.type) for rule in extractor.path_rules(own))
        digest = hashlib.sha256(_encode([own, globs]) + meaning).hexdigest()[:12]
        found.append(Wanted(extractor, own, globs, f"{extractor.name}/{extractor.version}+{digest}"))
    return found


class Known(msgspec.Struct, frozen=True):
    """What spares work: stamps of an earlier scan, and the hash and mark that the state has for each path."""

    stamps: Mapping[str, FileStamp]
    taken_in: Mapping[str, tuple[str, str]]
    now_ns: int


def scan(root: Path, wants: Sequence[Wanted], known: Known) -> Scan:
    """Return every wanted file below ``root`` with the hash of its content.

    A file whose content is not what the state knows is extracted while it is at hand.
    """
    result = Scan({}, {})
    folders: dict[str, list[tuple[Wanted, str, str | None]]] = {}
    for want in wants:
        for glob, entity_type in want.globs:
            folders.setdefault(_fixed_part(glob), []).append((want, glob, entity_type))
    for folder, rules in sorted(folders.items()):
        matchers = [(want, compiled(glob), entity_type) for want, glob, entity_type in rules]
        depth = max((_depth(glob) for _, glob, _ in rules), default=0)
        for path, entry in _walk(result, root, folder, depth):
            shown = _shown(path)
            if shown in result.files:
                continue
            for want, pattern, entity_type in matchers:
                if pattern.fullmatch(path):
                    blank = Found(shown, want, entity_type, "")
                    result.files[shown] = (
                        _found(result, root, blank, entry, known) if shown == path else _misnamed(blank)
                    )
                    break
    return result


def _fixed_part(glob: str) -> str:
    """Return the folder that every match of a glob lies below, "" for the root."""
    parts = glob.removeprefix("./").split("/")
    fixed = []
    for part in parts[:-1]:
        if any(character in part for character in "*?["):
            break
        fixed.append(part)
    return "/".join(fixed)


def _depth(glob: str) -> int:
    """Return how many folders below its fixed part a glob reaches."""
    if "**" in glob.split("/"):
        return 64
    fixed = _fixed_part(glob)
    return glob.count("/") - (fixed.count("/") + 1 if fixed else 0)


def _shown(path: str) -> str:
    """Return a path as text: bytes of a name that are no UTF-8 are written out as escapes."""
    return path.encode("utf-8", "backslashreplace").decode()


def _walk(result: Scan, root: Path, folder: str, depth: int) -> Iterable[tuple[str, os.DirEntry[str]]]:
    """Yield the files below a folder, in order of path. Links to folders are not followed."""
    try:
        with os.scandir(root / folder if folder else root) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        message = f"The folder cannot be listed: {error.strerror}. What was known of its files is kept."
        result.blind[_shown(folder)] = FileProblem(0, "unreadable", message, "Give yourself permission to read it.")
        return
    for entry in listed:
        path = f"{folder}/{entry.name}" if folder else entry.name
        if entry.is_dir(follow_symlinks=False):
            if depth > 0 and entry.name not in _SKIPPED_FOLDERS:
                yield from _walk(result, root, path, depth - 1)
        elif entry.is_symlink() and entry.is_dir():
            message = "It is a link to a folder, which is not followed."
            result.notes[_shown(path)] = FileProblem(
                0, "passed_over", message, "Name the folder itself in .kb/config.json.", "note"
            )
        else:
            yield path, entry


def _misnamed(blank: Found) -> Found:
    return _with_facts(blank, "", _unreadable(f"The name {blank.path!r} is not UTF-8.", "Rename the file."))


def _found(result: Scan, root: Path, blank: Found, entry: os.DirEntry[str], known: Known) -> Found:
    """Return what is known of one directory entry, reading it only when its stamp does not hold."""
    path = blank.path
    try:
        about = entry.stat(follow_symlinks=True)
        fault = _fault(entry, about, root)
        if fault:
            return _with_facts(blank, "", _unreadable(*fault))
        stamp = known.stamps.get(path)
        if stamp and (stamp.size, stamp.mtime_ns, stamp.inode) == (about.st_size, about.st_mtime_ns, about.st_ino):
            result.stamps[path] = stamp
            return msgspec.structs.replace(blank, hash=stamp.hash)
        with open(entry.path, "rb") as file:  # noqa: PTH123 - making a Path takes longer than reading most files
            data = file.read()
    except FileNotFoundError:
        message = "It is a link to nothing, or went away while it was read."
        return _with_facts(blank, "", _unreadable(message, "Remove the link, or sync again."))
    except OSError as error:
        message = f"It cannot be read: {error.strerror}."
        return _with_facts(blank, "", _unreadable(message, "Give yourself permission to read it."))
    result.read += 1
    digest = hashlib.sha256(data).hexdigest()
    if len(data) == about.st_size and about.st_mtime_ns < known.now_ns - _RACY_NS:
        result.stamps[path] = FileStamp(about.st_size, about.st_mtime_ns, about.st_ino, digest)
    if known.taken_in.get(path) == (digest, blank.wanted.mark):
        return msgspec.structs.replace(blank, hash=digest)
    return _with_facts(blank, digest, _extract(blank, data))


def _fault(entry: os.DirEntry[str], about: os.stat_result, root: Path) -> tuple[str, str] | None:
    """Return why an entry must not be read, and the remedy."""
    if entry.is_symlink() and not Path(os.path.realpath(entry.path)).is_relative_to(root):
        return "It is a link that leads out of the repository.", "Put the file itself here."
    if not stat.S_ISREG(about.st_mode):
        return "It is no regular file.", "Remove it, or choose other paths in .kb/config.json."
    if about.st_size > limits.MAX_SOURCE_FILE_BYTES:
        message = f"It has {about.st_size} bytes; the limit is {limits.MAX_SOURCE_FILE_BYTES}."
        return message, "Split the document."
    return None


def read_facts(root: Path, found: Found) -> Found:
    """Return a found file with what it states, read now unless it was read before."""
    if found.facts is not None:
        return found
    try:
        data = (root / found.path).read_bytes()
    except OSError as error:
        return _with_facts(found, "", _unreadable(f"It cannot be read: {error.strerror}.", "Sync again."))
    return _with_facts(found, hashlib.sha256(data).hexdigest(), _extract(found, data))


def read_named(root: Path, wants: Sequence[Wanted], path: str) -> Facts:
    """Return what the file at one path states now; nothing when no extractor wants it."""
    for want in wants:
        for glob, entity_type in want.globs:
            if compiled(glob).fullmatch(path):
                return read_facts(root, Found(path, want, entity_type, "")).facts or Facts()
    return Facts()


def _extract(found: Found, data: bytes) -> Facts:
    return run(found.wanted.extractor, Source(found.path, data, found.type), found.wanted.settings)


def _with_facts(found: Found, digest: str, facts: Facts) -> Found:
    return msgspec.structs.replace(found, hash=digest, facts=facts)


def _unreadable(message: str, hint: str) -> Facts:
    return Facts(problems=(FileProblem(0, "unreadable", message, hint),), is_complete=False)
