"""An extractor's answer about one file: plain data, with the line of every statement.

Field names are flat: ``title``, ``tags``, ``attributes.kind``, ``metadata.author`` (the first dot ends
the word ``attributes`` or ``metadata``; everything after it is the key, dots included).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from kbcore.model.claims.change import Change
from kbcore.text.problems import FileProblem

__all__ = [
    "SYNTAX_FAULTS",
    "Extractor",
    "Facts",
    "FileProblem",
    "PathRule",
    "SourceFile",
    "StatedEntity",
    "StatedLink",
    "ends_of",
    "mark_of",
    "unreadable",
]


_encode = msgspec.json.Encoder(order="sorted").encode

SYNTAX_FAULTS: Final = frozenset(
    {
        "merge_conflict",
        "invalid_yaml",
        "invalid_json",
        "invalid_gherkin",
        "partly_parsed",
        "too_nested",
        *("invalid_csv", "invalid_toml", "invalid_xlsx", "invalid_strictdoc", "invalid_reqif"),
        "duplicate_key",
        "unclosed_front_matter",
        "too_long",
        "wrong_encoding",
        "nul_character",
    }
)
"""Codes of problems with which the text of a file is not what its kind of file has: what is read of it is a part.

Other problems are those of a text that was read whole and states something wrong.
"""


class StatedEntity(msgspec.Struct, frozen=True):
    """An entity as one file states it.

    ``fields`` holds only what the file states, and ``text_ref``, which is the document itself unless it
    states another one; never ``id`` and ``type``. ``lines`` maps a field name to the line that states it, also one
    that could not be read, of which a problem is reported.

    ``is_part`` is of a file that states only some fields of an entity which another file defines: its type is "", and
    without that other file it states nothing.
    """

    id: str
    type: str
    fields: dict[str, Any]
    line: int
    lines: dict[str, int] = {}
    is_part: bool = False


class StatedLink(msgspec.Struct, frozen=True):
    """A link as one file states it.

    ``type`` is None for a bare target: sync then takes the one edge type that fits the two entity types, in
    whichever direction fits. ``target`` is an entity id, or, with ``is_path``, a path relative to the root of
    the repository whose document is meant. ``reverse`` means that the target is the ``from`` end. ``in_text`` is a link
    of running text, which may well lead to what is no entity: that is no problem, and where the file states another
    link between the two entities, or the schema does not allow this one, it is left out. ``is_of_others`` is a link
    between entities that other files state.
    """

    subject: str
    target: str
    type: str | None = None
    kind: str = ""
    fields: dict[str, Any] = {}
    line: int = 0
    is_path: bool = False
    reverse: bool = False
    in_text: bool = False
    is_of_others: bool = False


def ends_of(link: StatedLink) -> tuple[str, ...]:
    """Return the ends of a link that other files may state."""
    return (link.subject, link.target) if link.is_of_others else (link.target,)


class Facts(msgspec.Struct, frozen=True):
    """Everything that one file states.

    ``is_complete`` is False when the file could be read only in part, or not at all: what is listed here is
    then taken in, and whatever else was known from the file is kept and marked stale.

    An extractor that knows which entries of a file are affected leaves ``is_complete`` True and names only these.
    ``held_back`` are the ids of entities of which a part could not be read: what was known of them, and of their
    links, is kept. ``unidentified`` has the title of each entry whose id could not be read, "" where it has none: it
    may be any entity of this title that the file no longer states, or any at all without a title; those are kept.

    ``changes`` are those of a change file, which no other file has. ``joined`` is the file that states a part of the
    entity of this one, "" without such a file: it is read together with this one.
    """

    entities: tuple[StatedEntity, ...] = ()
    links: tuple[StatedLink, ...] = ()
    problems: tuple[FileProblem, ...] = ()
    is_complete: bool = True
    held_back: tuple[str, ...] = ()
    unidentified: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    joined: str = ""


class SourceFile(msgspec.Struct, frozen=True):
    """One file to read: its path relative to the repository's root (``/`` between parts) and its bytes.

    ``type`` is the entity type that the configuration gives to the file's folder, or None.
    """

    path: str
    data: bytes
    type: str | None = None


class PathRule(msgspec.Struct, frozen=True):
    """Files that an extractor wants: a glob relative to the root (``**`` spans folders), and their type."""

    glob: str
    type: str | None = None


class Extractor(Protocol):
    """A reader of one kind of file. Third parties register one in the entry-point group ``kb.extractors``."""

    name: str
    """The key of its settings under ``extractors`` in ``.kb/config.json``, stored with what it reads."""

    version: int
    """Raised whenever the same bytes give other facts, so that sync reads the files again."""

    def path_rules(self, settings: Mapping[str, Any]) -> Sequence[PathRule]:
        """Return the files to read under these settings.

        Raises:
            InvalidConfig: the settings cannot be used.
        """
        ...

    def extract(self, source: SourceFile, settings: Mapping[str, Any]) -> Facts:
        """Return what the file states. Must not raise for bad content: that is a ``FileProblem``."""
        ...


def mark_of(
    extractor: Extractor,
    settings: Mapping[str, Any],
    globs: Sequence[tuple[str, str | None]],
    meaning: bytes = b"",
) -> str:
    """Return what names an extractor, its version, its settings and its globs in the row of a source.

    ``meaning`` is what the same facts are read by (the schema).
    """
    digest = hashlib.sha256(_encode([settings, globs]) + meaning).hexdigest()[:12]
    return f"{extractor.name}/{extractor.version}+{digest}"


def unreadable(problems: Sequence[FileProblem]) -> Facts:
    """Return the facts of a file that cannot be read: none, and why."""
    return Facts(problems=tuple(problems), is_complete=False)
