"""One entry of ``sources`` as plain data, and the settings that a profile gives to it. Pure.

The members are documented in ``docs/sources.md``; their names there are in camelCase.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec

__all__ = [
    "FORMATS",
    "Items",
    "LinkRule",
    "LinkRules",
    "Part",
    "Source",
    "StatusRule",
    "TitleRule",
    "TypeRule",
    "merged",
    "source_of",
]

Format = Literal["markdown", "rst", "asciidoc", "yaml", "json", "toml", "csv", "xlsx", "strictdoc", "reqif"]
FORMATS: Final[tuple[Format, ...]] = (
    *("markdown", "rst", "asciidoc", "yaml", "json", "toml"),
    *("csv", "xlsx", "strictdoc", "reqif"),
)

ENDINGS: Final[Mapping[str, Format]] = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".mdx": "markdown",
    ".rst": "rst",
    ".txt": "rst",
    ".adoc": "asciidoc",
    ".asciidoc": "asciidoc",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".json": "json",
    ".toml": "toml",
    ".csv": "csv",
    ".tsv": "csv",
    ".xlsx": "xlsx",
    ".sdoc": "strictdoc",
    ".reqif": "reqif",
}
"""The format of a file by its ending, where an entry names none."""
DATA: Final = frozenset({"yaml", "json", "toml"})
"""Formats whose lists may be items."""
TEXTS: Final = frozenset({"markdown", "rst", "asciidoc"})
"""Formats of running text, in which headings, lines and directives may be items."""

Texts = Annotated[str | list[str], msgspec.Meta(description="One text, or a list of them.")]
_MERGED: Final = frozenset({"fields", "links", "edges", "withFields"})
"""Objects whose members are merged one by one with those of the profile; everything else is replaced."""


class _Plain(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    pass


class TypeRule(_Plain, frozen=True):
    """The entity type out of the first field that has a value: by ``map``, whatever its capitals, else ``default``.

    ``default`` is a template, such as ``{type}`` for a field that has names of types, or several of which the first
    that can be filled counts.
    """

    field: Texts
    map: dict[str, str]
    default: Texts


class StatusRule(_Plain, frozen=True):
    """The status out of a field: by ``map`` where the value is, or begins with, one of its keys, else as it is."""

    field: Texts = "status"
    map: dict[str, str] = {}
    default: str = ""


class TitleRule(_Plain, frozen=True):
    """The title out of the first key that has a value: its part ``title`` where a pattern of ``match`` fits."""

    field: Texts = []
    match: Texts = []


class LinkRule(_Plain, frozen=True):
    """The rule by which the value of a field becomes edges.

    The value, or each item of a list, is cut at ``split``; each piece is compared with the patterns of ``match``, which
    name parts of it, and ``id`` makes the id of the target of these, ``value`` being the whole piece. Without ``id``
    the piece is an id, a path or a link. A piece that no pattern fits states no edge. ``^`` before the name of the edge
    turns it round: it then leads from the target to the entity. ``edge`` and ``kind`` may be templates too; a name that
    is no edge then makes a ``relates_to`` of that kind.
    """

    edge: str
    kind: Texts = ""
    id: Texts = []
    split: str = ""
    match: Texts = []
    member: str = ""
    """Of items that are objects: the key of the target. ``*`` takes the keys themselves, none all members."""
    where: dict[str, str] = {}
    """Of items that are objects: what members must be."""


LinkRules = LinkRule | str | list[LinkRule | str]
"""One rule, the name of its edge alone, or several, of which the first that fits a piece counts."""


class Items(_Plain, frozen=True):
    """Several entities in one file, found by their headings, lines or directives.

    ``heading``, ``line`` and ``directive`` are patterns, of which one kind is given: a heading or a line of text that
    fits one of them begins an item. ``under`` are patterns of the nearest heading above that fits one: the item then
    has what they name too, and without such a heading there is none. What belongs to a line are the lines that are
    indented below it, or, with the extent ``section``, all up to the next item or heading.
    """

    heading: Texts = []
    line: Texts = []
    directive: Texts = []
    under: Texts = []
    extent: Literal["indented", "section"] = "indented"


class _Statements(_Plain, frozen=True):
    """The rules for the facts of an entry.

    ``fields`` has keys of documents and the fields that they give, None for a key that states nothing, which may be a
    pattern. Of several keys of a field the first that has a value counts, and a value that is the id counts for none.
    """

    id: Texts = []
    type: str | TypeRule = ""
    title: str | list[str] | TitleRule = []
    status: str | StatusRule = ""
    fields: dict[str, str | None] = {}
    links: dict[str, LinkRules] = {}
    edges: dict[str, str] = {}
    tags: Texts = []
    other_fields: bool = True


class Part(_Statements, frozen=True):
    """Entities within the file of another one, ``{whole}``."""

    items: str | Items = ""


class Source(_Statements, frozen=True):
    """One entry of ``sources``."""

    glob: Texts = []
    profile: str = ""
    name: str = ""
    ignore: Texts = []
    format: Format | Literal[""] = ""
    items: str | Items = ""
    sheet: str = ""
    with_: str = msgspec.field(default="", name="with")
    with_fields: dict[str, str] = {}
    mentions: bool = True
    mention_ids: Texts = []
    parts: list[Part] = []


def texts(value: str | list[str]) -> tuple[str, ...]:
    """Return one text or several as a tuple; an empty text is none."""
    return ((value,) if value else ()) if isinstance(value, str) else tuple(value)


def merged(profile: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an entry on top of those of its profile, as the settings file has them."""
    result = {**profile, **own}
    for key in _MERGED:
        if isinstance(profile.get(key), dict) and isinstance(own.get(key), dict):
            result[key] = {**profile[key], **own[key]}
    was, now = profile.get("status"), own.get("status")
    if isinstance(was, dict) and isinstance(now, dict):
        result["status"] = {**was, **now, "map": {**was.get("map", {}), **now.get("map", {})}}
    return result


def source_of(settings: Mapping[str, Any]) -> Source:
    """Return checked settings as a source. Raises: ``msgspec.ValidationError`` for settings that were not checked."""
    return msgspec.convert(dict(settings), Source)
