"""Reads the small files of a git directory in this process.

What they say is untrusted: a name is checked before it becomes part of a path, sizes are bounded, and only
regular files are read, so that a planted pipe cannot hang KB.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from kbcore.errors import GitUnusable
from kbcore.errors.remedies import by_front_end
from kbcore.ids import check_branch_name
from kbcore.limits import MAX_CONFIG_BYTES
from kbcore.storage.files import below, refusal

BRANCH_PREFIX = b"refs/heads/"
COMMIT = re.compile(rb"[0-9a-f]{40}|[0-9a-f]{64}")

_MAX_POINTER_BYTES = 64 * 1024
_MAX_SYMREF_DEPTH = 5
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_ABSENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
_RAW_BYTE = re.compile(rb"\\x([0-9a-f]{2})")
_SECTION = re.compile(r'\s*\[\s*([^\]"\s]+)\s*("(?:[^"\\]|\\.)*")?\s*\]')
_CONTINUED = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")
_CONFIG_ESCAPES = {"n": "\n", "t": "\t", "b": "\b"}


def read_small(path: Path, *, limit_bytes: int = _MAX_POINTER_BYTES) -> bytes | None:
    """Return the content of a regular file, or None when there is no file of that name.

    Raises:
        GitUnusable: it cannot be read, is larger than ``limit_bytes``, or is a pipe or a device.
    """
    with _opened(path) as descriptor:
        if descriptor is None:
            return None
        content = os.read(descriptor, limit_bytes + 1)
        while len(content) <= limit_bytes and (more := os.read(descriptor, limit_bytes)):
            content += more
    if len(content) > limit_bytes:
        raise GitUnusable(f"{path} is larger than git ever makes it", hint="Run `git fsck`.")
    return content


def _read_whole(path: Path) -> bytes:
    """Return the content of a regular file of any length; nothing when there is none. Raises: as ``find_lines``."""
    with _opened(path) as descriptor:
        if descriptor is None:
            return b""
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()


def read_end(path: Path, length_bytes: int) -> bytes:
    """Return the last bytes of a regular file; nothing where there is no such file, or a shorter one.

    Raises:
        GitUnusable: it cannot be read, or is a pipe or a device.
    """
    with _opened(path) as descriptor:
        if descriptor is None:
            return b""
        start = os.fstat(descriptor).st_size - length_bytes
        return os.pread(descriptor, length_bytes, start) if start >= 0 else b""


def find_lines(path: Path, pattern: re.Pattern[bytes]) -> list[re.Match[bytes]]:
    """Return what a pattern finds in the lines of a regular file of any length; nothing where there is no such file.

    Raises:
        GitUnusable: it cannot be read, or is a pipe or a device.
    """
    with _opened(path) as descriptor:
        if descriptor is None:
            return []
        with open(descriptor, "rb", closefd=False) as lines:
            return [found for line in lines if (found := pattern.search(line))]


def read_first_line(path: Path) -> bytes:
    """Return the first line of a regular file without its end; nothing where there is no such file, or a longer line.

    Raises:
        GitUnusable: it cannot be read, or is a pipe or a device.
    """
    with _opened(path) as descriptor:
        line, end, _ = (os.read(descriptor, _MAX_POINTER_BYTES) if descriptor is not None else b"").partition(b"\n")
    return line if end else b""


def refused(doing: str, path: Path, error: OSError) -> GitUnusable:
    """Return the error about a file of git's that the system refused, with its owner where that is another user."""
    reason, hint = refusal(error, path)
    return GitUnusable(f"cannot {doing} {path}: {reason}", hint=hint or "Check its permissions.")


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int | None]:
    """Open a regular file for the length of the block; None when there is no file of that name."""
    try:
        descriptor = os.open(path, _OPEN_FLAGS)
    except _ABSENT:
        yield None
        return
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise refused("read", path, error) from error
        yield None
        return
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise GitUnusable(f"{path} is not a regular file", hint="Something other than git made it.")
        yield descriptor if stat.S_ISREG(mode) else None
    finally:
        os.close(descriptor)


def branch_of_ref(ref: bytes, place: Path) -> str:
    r"""Return the branch that a full ref name such as ``refs/heads/main`` means.

    Bytes that are not UTF-8 become ``\xe9``; see ``ids.check_branch_name``. ``place`` is named in the error.

    Raises:
        GitUnusable: it is not a branch, or not a name that git would make.
    """
    name = decode_name(ref.removeprefix(BRANCH_PREFIX))
    named = by_front_end("name one with --branch", "have the server started with --branch NAME")
    hint = f"Switch to a branch with `git switch`, or {named}."
    if not ref.startswith(BRANCH_PREFIX):
        raise GitUnusable(f"{place} points at {name!a}, which is not a branch", hint=hint)
    reason = "git allows no backslash in a branch name" if b"\\" in ref else check_branch_name(name)
    if reason is not None:
        raise GitUnusable(f"{place} names the branch {name!a}: {reason}", hint=hint)
    return name


def decode_name(raw: bytes) -> str:
    """Return the text for the bytes of a ref name, whatever they are."""
    return raw.decode("utf-8", "backslashreplace")


def encode_name(name: str) -> bytes:
    """Return the bytes that ``decode_name`` made a checked name of; git allows no backslash in them."""
    return _RAW_BYTE.sub(lambda found: bytes([int(found[1], 16)]), name.encode("utf-8"))


def read_commit(common_dir: Path, ref: bytes, *, depth: int = 0) -> str | None:
    """Return the object id of a checked ref name, or None when there is no such ref.

    Looks at the loose file first, as git does, then at ``packed-refs``.
    """
    content = read_small(below(common_dir, os.fsdecode(ref)))
    if content is not None:
        value = content.strip()
        if COMMIT.fullmatch(value):
            return value.decode("ascii")
        target = value.removeprefix(b"ref:").strip()
        if value.startswith(b"ref:") and depth < _MAX_SYMREF_DEPTH and target.startswith(BRANCH_PREFIX):
            branch_of_ref(target, common_dir / os.fsdecode(ref))
            return read_commit(common_dir, target, depth=depth + 1)
        return None
    packed = _read_whole(below(common_dir, "packed-refs"))
    end = packed.find(b" " + ref + b"\n")
    if end < 0:
        return None
    commit = packed[packed.rfind(b"\n", 0, end) + 1 : end]
    return commit.decode("ascii") if COMMIT.fullmatch(commit) else None


def read_settings(common_dir: Path, git_dir: Path | None = None) -> dict[str, str]:
    """Return the settings of a repository's own configuration, such as ``core.bare``, keys in lower case.

    As git does when it looks for the working tree, this follows no include. Keys of subsections are left out.
    ``config.worktree`` counts where the repository says so: that of the main worktree, or of the one of ``git_dir``.
    """
    settings = _parse_config(read_small(common_dir / "config", limit_bytes=MAX_CONFIG_BYTES) or b"")
    if is_true(settings.get("extensions.worktreeconfig", "false")):
        own = read_small((git_dir or common_dir) / "config.worktree", limit_bytes=MAX_CONFIG_BYTES)
        settings.update(_parse_config(own or b""))
    return settings


def is_true(value: str) -> bool:
    """Tell whether git takes a setting for true."""
    return value.lower() in {"true", "yes", "on", "1"}


def _parse_config(content: bytes) -> dict[str, str]:
    settings: dict[str, str] = {}
    section: str | None = None
    text = _CONTINUED.sub(r"\1", os.fsdecode(content).replace("\r\n", "\n"))
    for line in text.split("\n"):
        rest = line
        if header := _SECTION.match(line):
            section = None if header[2] else header[1].lower()
            rest = line[header.end() :]
        key, equals, value = rest.strip().partition("=")
        if section is not None and key and key[0] not in "#;":
            settings[f"{section}.{key.strip().lower()}"] = _unquote(value) if equals else "true"
    return settings


def _unquote(value: str) -> str:
    """Return a value without its quotes, escapes and comment, as ``git config`` describes them."""
    text, kept_length, is_quoted = "", 0, False
    characters = iter(value.strip())
    for character in characters:
        if character == '"':
            is_quoted = not is_quoted
            kept_length = len(text)
            continue
        if character in "#;" and not is_quoted:
            break
        escaped = next(characters, "") if character == "\\" else None
        text += character if escaped is None else _CONFIG_ESCAPES.get(escaped, escaped)
        if is_quoted or not character.isspace():
            kept_length = len(text)
    return text[:kept_length]


def is_fresh(path: Path, now_ns: int, within_ns: int) -> bool:
    """Tell whether a file was made, written or renamed so short a time ago; of a folder, any entry of it."""
    try:
        changed_ns = path.lstat().st_ctime_ns
    except (FileNotFoundError, NotADirectoryError):
        return False
    return abs(now_ns - changed_ns) < within_ns
