"""The kept answers of ``kb prime``, each with what it depends on: read with what Python has loaded at its start.

An answer is a file in the git directory of the worktree. It is believed only while the call is the same, the commit
that is checked out, and how every file and folder looks from outside that it depends on. One that is lost, damaged or
old costs a whole run and nothing else, so anybody may delete the folder at any time.

The answer of a hook has the names that it is about. Records that were added since and that have none of these texts in
them leave it as it is.
"""

from __future__ import annotations

import os
from binascii import crc32

from kbcli.invocation.hook_note import checked_out, look_of, packages_look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

NAME = "kb-prime"
"""The folder in the git directory of a worktree."""

_FORMAT = "2"
_MAX_BYTES = 2**23
_MOST = 64
"""The number of answers that are kept."""
_SETTLED_NS = 20_000_000
"""The time before an answer in which a changed file may change again without looking different."""
_MAX_ADDED_BYTES = 2**18
"""The most bytes of records that are looked through for names."""
_HEAD = ',"head":{'
"""The part of a store's head in front of the last record; all before that stays while records are added."""
_NOT_BY_NAME = (b'"repair":', b'"holes":', b'"unproven":', b'"redacted":', b'"redaction":')
"""The members of records that change more than what they name."""
_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE")
_DEPENDS_ON = ("KB_", "GIT_", "XDG_")
_USERS = ("HOME", "USER", "LOGNAME")
_END = "\nend"
_CONTROLS = frozenset(map(chr, (*range(10), *range(11, 32), *range(127, 160))))


def kept(words: Sequence[str], env: Mapping[str, str]) -> str | None:
    """Return the answer that is kept for a call, None where there is none that still holds."""
    top, git_dir = place_of(os.getcwd(), env)  # noqa: PTH109 - pathlib takes as long to import as all else here
    if not git_dir:
        return None
    call = _call(words, env, top)
    found = _read(_path_of(git_dir, call))
    begin = f"{_FORMAT}\n{call}\n{_checked_out(git_dir)}\n"
    looks, _, text = found[len(begin) :].partition("\n\n")
    if not found.startswith(begin) or not text.endswith(_END) or _CONTROLS & {*text}:
        return None
    for line in looks.split("\n"):
        path, look, *known = line.split("\t")
        if look_of(path) != look and not (known and _adds_nothing(path, *known)):
            return None
    return text.removesuffix(_END)


def place_of(start: str, env: Mapping[str, str]) -> tuple[str, str]:
    """Return the top of the worktree around a folder and its git directory, "" where that takes more to find out."""
    if any(env.get(name) for name in _ELSEWHERE):
        return "", ""
    top = start
    while not os.path.lexists(f"{top}/.git"):
        if os.path.dirname(top) == top:  # noqa: PTH120 - as above
            return "", ""
        top = os.path.dirname(top)  # noqa: PTH120 - as above
    found = f"{top}/.git"
    if os.path.isfile(found):  # noqa: PTH113 - as above
        link = _read(found)
        found = os.path.join(top, link.removeprefix("gitdir: ").rstrip("\n"))  # noqa: PTH118 - as above
    return (top, found) if os.path.isfile(f"{found}/HEAD") else ("", "")  # noqa: PTH113 - as above


def keep(
    words: Sequence[str],
    env: Mapping[str, str],
    depends: Iterable[str],
    text: str,
    began_ns: int,
    *,
    names: tuple[str, Iterable[str]] | None = None,
) -> None:
    """Keep an answer that depends on these files and folders, unless one has changed since shortly before it was begun.

    ``depends`` are absolute paths; a file that is not there is one that must not come. Where a path has a line end or a
    tab in it, or the folder cannot be written, nothing is kept. ``names`` are one of these files, the head of a store,
    and the texts of which a record of that store has one where it changes the answer.
    """
    top, git_dir = place_of(os.getcwd(), env)  # noqa: PTH109 - as above
    paths = sorted({*depends})
    known = {names[0]: _known(*names)} if names else {}
    if not git_dir or not paths or any({"\n", "\t"} & {*path} for path in paths) or _CONTROLS & {*text}:
        return
    if any(_changed_ns(path) > began_ns - _SETTLED_NS for path in paths):
        return
    call = _call(words, env, top)
    looks = "\n".join(f"{path}\t{look_of(path)}{known.get(path, '')}" for path in paths)
    data = f"{_FORMAT}\n{call}\n{_checked_out(git_dir)}\n{looks}\n\n{text}{_END}".encode("utf-8", "surrogateescape")
    if len(data) <= _MAX_BYTES and "\n" not in call:
        _write(_path_of(git_dir, call), data)


def _known(head: str, names: Iterable[str]) -> str:
    """Return what is kept of a store beside the look of its head: what stays of it, where it ends, and the names."""
    from json import dumps

    before, last, after = _head_of(head)
    texts = dumps(sorted(names), ensure_ascii=False)
    # In records, which are JSON, a text with an escape may be written in more than one way.
    return f"\t{before}\t{after}\t{last['file']}\t{last['length']}\t{texts}" if last and "\\" not in texts else ""


def _adds_nothing(head: str, before: str, after: str, file: str, length: str, names: str) -> bool:
    """Return whether all that was done to a store since is to add records that have none of these texts in them."""
    from json import loads

    now_before, last, now_after = _head_of(head)
    if not last or (now_before, now_after, last["file"]) != (before, after, file):
        return False
    begin, end = int(length), last["length"]
    if not begin <= end <= begin + _MAX_ADDED_BYTES:
        return False
    try:
        with open(f"{os.path.dirname(head)}/{file}", "rb") as journal:  # noqa: PTH120, PTH123 - as above
            journal.seek(begin)
            added = journal.read(end - begin)
    except OSError:
        return False
    texts = (name.encode("utf-8", "surrogateescape") for name in loads(names))
    return len(added) == end - begin and not any(one in added for one in (*_NOT_BY_NAME, *texts))


def _head_of(path: str) -> tuple[str, dict[str, Any], str]:
    """Return what the head of a store has before its last record, the last record, and what it has after it."""
    from json import loads

    before, found, rest = _read(path).partition(_HEAD)
    last, end, after = rest.partition("}")
    try:
        return (before, loads(f"{{{last}}}"), after.partition('"sum":')[0]) if found and end else ("", {}, "")
    except ValueError:
        return "", {}, ""


def _call(words: Sequence[str], env: Mapping[str, str], top: str) -> str:
    """Return the call that an answer is of: the words, the folder, the user, and how the program looks."""
    named = [f"{name}={env[name]}" for name in sorted(env) if name.startswith(_DEPENDS_ON) or name in _USERS]
    return "\0".join([top, os.getcwd(), packages_look(), *words, _crc("\0".join(named))])  # noqa: PTH109 - as above


def _path_of(git_dir: str, call: str) -> str:
    """Return where the answer of a call is kept; two calls may have the same place, where the last one stays."""
    return f"{git_dir}/{NAME}/{_crc(call)}"


def _crc(text: str) -> str:
    """Return a checksum of a text: the environment may hold what is not to be written anywhere."""
    return f"{crc32(text.encode('utf-8', 'surrogateescape')):08x}"


def _checked_out(git_dir: str) -> str:
    return " ".join(checked_out(git_dir))


def _changed_ns(path: str) -> int:
    try:
        about = os.stat(path)  # noqa: PTH116 - as above
    except OSError:
        return 0
    return max(about.st_mtime_ns, about.st_ctime_ns)


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as above
            data = file.read(_MAX_BYTES + 1)
    except OSError:
        return ""
    return data.decode("utf-8", "surrogateescape") if len(data) <= _MAX_BYTES else ""


def _write(place: str, data: bytes) -> None:
    """Write a file in one step, and remove the oldest beyond those that are kept."""
    folder, temporary = os.path.dirname(place), f"{place}.{os.getpid()}.tmp"  # noqa: PTH120 - as above
    try:
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - as above
        with open(temporary, "wb") as file:  # noqa: PTH123 - as above
            file.write(data)
        os.replace(temporary, place)  # noqa: PTH105 - as above
        with os.scandir(folder) as entries:
            aged = sorted((-entry.stat().st_mtime_ns, entry.path) for entry in entries)
        for _, path in aged[_MOST:]:
            os.unlink(path)  # noqa: PTH108 - as above
    except OSError:  # it cannot be written there, or another process was quicker
        return
