"""The grammar of ids and branch names, the directory name of each branch, and paths as they are known everywhere.

Everything here is pure. Two different branch names never share a directory, not even on a file system that
ignores case.
"""

from __future__ import annotations

import hashlib
import json.encoder
import posixpath
import re
import unicodedata
from functools import lru_cache
from typing import Final

from kbcore.limits import MAX_ID_CHARS

LINK_ID_PREFIX: Final = "link:"
"""Ids of edges are this and 32 hex digits; no entity may have such an id."""

DETACHED_PREFIX: Final = "detached:"
"""Store names of a detached HEAD are this and the commit; git allows no colon in a branch name."""

MAX_DIRECTORY_CHARS: Final = 200
"""Longest directory name of a branch; file systems stop at 255 bytes, and temporary names add to it."""

OTHER_REPO: Final = r"([^ :#/.][^ :#]*/[^ :#]+):([^ :/].*)"
"""A reference to an entity of another repository: OWNER/NAME, a colon, and its id there; also as DuckDB takes it."""

NUMBER_MARK: Final = "{n}"
"""The end of an id whose number is to be allocated: ``REQ-{n}``, and ``REQ-{n2}`` for one more in the same request."""

_REMEMBERED_IDS: Final = 16_384
"""Ids of edges that are remembered: reading, checking and folding a record each ask for those of its edges.

A merge of thousands of changes is one record."""

_REMEMBERED_NAMES: Final = 256
"""Names of branches whose directories are remembered: each request asks for that of its branch many times."""

REPOSITORY_ID: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)
"""The id that a clone has in its git configuration, and by which its notes are found in the user's state folder."""

_ESCAPED = re.compile(r"\\udc[89a-f][0-9a-f]")
_quoted = json.encoder.encode_basestring_ascii
_LINK_ID = re.compile(r"link:[0-9a-f]{32}")
_DETACHED = re.compile(r"detached:(?:[0-9a-f]{40}|[0-9a-f]{64})")
_CONTROL_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})

_READABLE = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-_")
_ESCAPE = re.compile(r"%([0-9a-f]{2})")
_HASHED_MARK = "%~"
_HASH_CHARS = 32
_RESERVED_ON_WINDOWS = frozenset(
    {"con", "prn", "aux", "nul"} | {f"{port}{digit}" for port in ("com", "lpt") for digit in range(10)}
)

_OTHER_REPO = re.compile(OTHER_REPO)
_RAW_BYTE = re.compile(r"\\x[89a-f][0-9a-f]")
_FORBIDDEN_IN_BRANCH = frozenset(" ~^:?*[\\\x7f") | frozenset(map(chr, range(0x20)))


def check_id(text: str) -> str | None:
    """Return why ``text`` cannot be the id of an entity, or None when it can."""
    if not text:
        return "an id has at least one character"
    if len(text) > MAX_ID_CHARS:
        return f"an id has at most {MAX_ID_CHARS} characters; this one has {len(text)}"
    if text != text.strip():
        return "an id has no leading or trailing space"
    if not text.isprintable():
        for position, character in enumerate(text):
            if unicodedata.category(character) in _CONTROL_CATEGORIES:
                return f"an id has no control characters; U+{ord(character):04X} is at position {position}"
    if is_link_id(text):
        return f"'{LINK_ID_PREFIX}' and 32 hex digits is how edges are named"
    return None


def is_link_id(text: str) -> bool:
    """Tell whether ``text`` has the shape that only ids of edges have."""
    return text.startswith(LINK_ID_PREFIX) and _LINK_ID.fullmatch(text) is not None


def in_other_repo(text: str) -> tuple[str, str] | None:
    """Return the repository and the id there that the end of a link names, None where it has not this form."""
    found = _OTHER_REPO.fullmatch(text)
    return (found[1], found[2]) if found else None


@lru_cache(maxsize=_REMEMBERED_IDS)
def link_id(edge_type: str, kind: str | None, source_end: str, target_end: str) -> str:
    """Return the id of an edge: the same four values always give the same id, others another one.

    No kind and an empty kind are the same. The values are hashed as a JSON list, so that no two different
    quadruples read alike; 128 bits of SHA-256 remain.
    """
    # What ``json.dumps`` of the list gives, for a third of the time: a replay asks for every edge.
    text = f'["kb-link-1", {_quoted(edge_type)}, {_quoted(kind or "")}, {_quoted(source_end)}, {_quoted(target_end)}]'
    return LINK_ID_PREFIX + hashlib.sha256(text.encode("ascii")).hexdigest()[:32]


def detached_name(commit: str) -> str:
    """Return the store name of a HEAD that is detached at ``commit`` (40 or 64 hex digits)."""
    return DETACHED_PREFIX + commit


def is_detached_name(name: str) -> bool:
    """Tell whether ``name`` is the store name of a detached HEAD."""
    return _DETACHED.fullmatch(name) is not None


@lru_cache(maxsize=_REMEMBERED_NAMES)
def check_branch_name(name: str) -> str | None:
    r"""Return why git would never make a branch of this name, or None when it might.

    These are the rules of ``git check-ref-format``. A leading ``-`` passes, because a ref file may hold it.
    Names are not always UTF-8 in git: a byte that is not is written as ``\xe9`` here, which no real name can
    contain.
    """
    if not name:
        return "a branch name has at least one character"
    plain = _RAW_BYTE.sub("", name)
    for character in plain:
        if character in _FORBIDDEN_IN_BRANCH or unicodedata.category(character) == "Cs":
            return f"git allows no {character!a} in a branch name"
    for sequence in ("..", "@{", "//"):
        if sequence in plain:
            return f"git allows no '{sequence}' in a branch name"
    if name.startswith("/") or name.endswith(("/", ".")):
        return "git allows no branch name that starts with '/' or ends with '/' or a dot"
    if any(part.startswith(".") or part.endswith(".lock") for part in name.split("/")):
        return "git allows no part of a branch name to start with '.' or end with '.lock'"
    return None


@lru_cache(maxsize=_REMEMBERED_NAMES)
def encode_branch(name: str) -> str:
    """Return the directory name of a branch or of any other store name.

    Small letters, digits, ``-``, ``_`` and dots inside stay; every other byte of the UTF-8 form becomes
    ``%xx``. So does a leading ``-`` (which commands take for an option) and the first letter of a name that
    Windows reserves. Longer results than MAX_DIRECTORY_CHARS keep their beginning and end in ``%~`` and a
    hash. An empty name, which no branch has, is a lone ``%``.
    """
    data = name.encode("utf-8", "surrogatepass")
    if not data:
        return "%"
    pieces = [
        chr(byte) if byte in _READABLE or (byte == ord(".") and 0 < at < len(data) - 1) else f"%{byte:02x}"
        for at, byte in enumerate(data)
    ]
    if pieces[0] == "-" or "".join(pieces).partition(".")[0] in _RESERVED_ON_WINDOWS:
        pieces[0] = f"%{data[0]:02x}"
    encoded = "".join(pieces)
    if len(encoded) <= MAX_DIRECTORY_CHARS:
        return encoded
    ending = _HASHED_MARK + hashlib.sha256(data).hexdigest()[:_HASH_CHARS]
    beginning = re.sub(r"%[0-9a-f]?$", "", encoded[: MAX_DIRECTORY_CHARS - len(ending)])
    return beginning + ending


def decode_branch(dirname: str) -> str | None:
    """Return the name that ``encode_branch`` turned into ``dirname``.

    None means that no name is encoded so, or that it was too long to keep: then the store's head file has it.
    """
    if not dirname.isascii():
        return None
    data = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), dirname).encode("latin-1")
    if dirname == "%":
        data = b""
    try:
        name = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None
    return name if encode_branch(name) == dirname else None


def path_text(path: str | bytes) -> str:
    """Return a path as the text by which it is known everywhere; ``path`` is as the system or git gives it.

    Bytes of a name that are no UTF-8 are written out as escapes.
    """
    text = path.decode("utf-8", "surrogateescape") if isinstance(path, bytes) else path
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def worktree_path(text: str, root: str, start: str = "") -> str:
    """Return a path as files are known by it: from the top of the worktree ``root``, without ``.`` and ``..``.

    A relative one is taken from ``start``, a folder from that top. What leads out of the worktree stays as it is.
    """
    path = text.removeprefix(f"{root.rstrip('/')}/") if root else text
    path = posixpath.join(start, path) if path == text else path
    plain = posixpath.normpath(path) if "/" in path else path
    return text if plain.startswith(("/", "../")) or plain in {".", ".."} else plain


def is_misspelled(text: str) -> bool:
    """Tell whether ``path_text`` had to escape bytes, or another name looks as if: two files may have this text."""
    return _ESCAPED.search(text) is not None
