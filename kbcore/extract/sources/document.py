"""The facts of a file of one entry of ``sources``, by the settings of the entry. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import Final

import msgspec

from kbcore.extract.facts import Facts, SourceFile, StatedEntity, StatedLink, unreadable
from kbcore.extract.sources import patterns
from kbcore.extract.sources.entry import FileEntries
from kbcore.extract.sources.source import DATA, ENDINGS, Items, Source, texts
from kbcore.extract.sources.statement import (
    NO_ID,
    StatedFacts,
    StatementContext,
    companion_statement,
    fields_of_companion,
    statement,
)
from kbcore.text import globs
from kbcore.text.decoding import decode
from kbcore.text.problems import REPEATED_ID, FileProblem, at_most
from kbcore.text.wording import pluralize

INDEX: Final = re.compile(
    r"(?:readme|_?index|_?(?:[\w-]*[-_])?template|changelog|contributing|license)\b.*", re.IGNORECASE
)
"""Names of files that belong to a folder of documents and state none themselves."""
_NO_TEXTS: Final = frozenset({"xlsx", "reqif"})
_LISTS: Final = frozenset({"csv", "xlsx", "strictdoc", "reqif"})
"""Formats of files that are no text of one entity."""


def read(source: SourceFile, rules: Source, edge_names: frozenset[str]) -> Facts:
    """Return the entities and edges that a file states by the rules of an entry."""
    if globs.matches(source.path, [patterns.plain_glob(glob) for glob in texts(rules.ignore)]):
        return _passed_over("the settings ignore it", "It matches `ignore` of the source.")
    if _is_companion(source.path, rules):
        return _of_companion(source, rules, edge_names)
    beside = posixpath.join(posixpath.dirname(source.path), rules.with_) if rules.with_ else ""
    return msgspec.structs.replace(_facts(source, rules, edge_names), joined=beside)


def _is_companion(path: str, source: Source) -> bool:
    own = [patterns.plain_glob(glob) for glob in texts(source.glob)]
    return bool(source.with_) and posixpath.basename(path) == source.with_ and not globs.matches(path, own)


def path_values(path: str, source_globs: Sequence[str]) -> dict[str, str]:
    """Return what names of templates mean that are about the path: ``file.stem`` and the parts that globs name."""
    folder, name = posixpath.split(path)
    return {
        "file.path": path,
        "file.name": name,
        "file.stem": posixpath.splitext(name)[0],
        "file.folder": posixpath.basename(folder),
        "file.below": posixpath.splitext(path)[0],
        **patterns.path_parts(source_globs, path),
    }


class _Text(msgspec.Struct, frozen=True):
    """The text of a file and its format."""

    text: str
    format: str
    problems: Sequence[FileProblem] = ()

    def entries(self, items: str | Items) -> FileEntries:
        """Return the file as an entry, or its items. What reads a format is imported with the first file of it."""
        if self.format == "csv":
            from kbcore.extract.sources import tables  # noqa: PLC0415 - as the docstring says

            return tables.of_csv(self.text)
        if self.format == "strictdoc":
            from kbcore.extract.sources import strictdoc  # noqa: PLC0415 - likewise

            return strictdoc.entries(self.text)
        if self.format in DATA:
            from kbcore.extract.sources import trees  # noqa: PLC0415 - likewise

            return trees.entries(self.text, self.format, items if isinstance(items, str) else "")
        from kbcore.extract.sources import texts as reading  # noqa: PLC0415 - likewise

        return reading.entries(self.text, self.format, items if isinstance(items, Items) else None)


def _text_of(source: SourceFile, format_: str) -> _Text | None:
    """Return the text of a file, None where its bytes are none; the problem then is that of ``decode``."""
    decoded = decode(source.data)
    return None if decoded.text is None else _Text(decoded.text, format_, decoded.problems)


def _facts(source: SourceFile, rules: Source, edge_names: frozenset[str]) -> Facts:
    format_ = _format_of(source.path, rules)
    values = path_values(source.path, texts(rules.glob))
    is_text = not rules.items and format_ not in _LISTS
    place = StatementContext(source.path, edge_names, values, fields_of_companion(rules), has_text=is_text)
    if format_ in _NO_TEXTS:
        found = _of_bytes(source.data, format_, rules)
        return _all_of([statement(one, rules, place) for one in found.entries], found)
    text = _text_of(source, format_)
    if text is None:
        return unreadable(decode(source.data).problems)
    found = text.entries(rules.items)
    found.problems[:0] = text.problems
    stated = [statement(entry, rules, place) for entry in found.entries]
    if is_text and len(stated) == 1 and stated[0].entity is None and _is_index(source.path, stated[0], rules):
        return _passed_over("an index, a template or a readme without an id", "Give it an id to have it read.")
    whole = next((one.entity.id for one in stated if one.entity), "") if is_text else ""
    inner = StatementContext(source.path, edge_names, {**values, "whole": whole}, has_text=False)
    stated += [statement(entry, part, inner) for part in rules.parts for entry in text.entries(part.items).entries]
    return _all_of(stated, found)


def _all_of(stated: Sequence[StatedFacts], found: FileEntries) -> Facts:
    """Return the facts of all entries of a file, a note where there is none."""
    if not stated and not found.problems:
        return _passed_over("nothing in it is an item of the source", "`items` of the source says what is one.")
    return _collected(stated, found)


def entries_of(source: SourceFile, rules: Source) -> FileEntries:
    """Return the entries of a file as an entry of ``sources`` reads it; none where its bytes are no text."""
    format_ = _format_of(source.path, rules)
    if format_ in _NO_TEXTS:
        return _of_bytes(source.data, format_, rules)
    text = _text_of(source, format_)
    if text is None:
        return FileEntries([], [*decode(source.data).problems], is_complete=False)
    return text.entries(rules.items)


def _of_bytes(data: bytes, format_: str, rules: Source) -> FileEntries:
    """Return the entries of a file that is no text, or one that says itself how its text is encoded."""
    if format_ == "reqif":
        from kbcore.extract.sources import reqif  # noqa: PLC0415 - few projects have such files

        return reqif.entries(data)
    from kbcore.extract.sources import tables  # noqa: PLC0415 - few projects have workbooks

    return tables.of_xlsx(data, rules.sheet)


def _format_of(path: str, rules: Source) -> str:
    return rules.format or ENDINGS.get(posixpath.splitext(path)[1].lower(), "markdown")


def _collected(stated: Sequence[StatedFacts], found: FileEntries) -> Facts:
    """Return the facts of all entries of a file; of entries with one id the first one counts."""
    entities: dict[str, StatedEntity] = {}
    links: list[StatedLink] = []
    noted = list(found.problems)
    unidentified = list[str]()
    for one in stated:
        noted += one.problems
        if one.entity is None:
            unidentified.append("")
        elif one.entity.id in entities:
            message = f"the id `{one.entity.id}` is in this file twice: in line {entities[one.entity.id].line} too"
            hint = "Give each its own id; the first one counts."
            noted.append(FileProblem(one.entity.line, REPEATED_ID, message, hint, "warning", id=one.entity.id))
        else:
            entities[one.entity.id] = one.entity
            links += one.links
    is_complete = found.is_complete and all(entry.is_whole for entry in found.entries)
    return Facts(
        tuple(entities.values()),
        tuple(links),
        at_most(_joined(noted)),
        is_complete=is_complete,
        unidentified=tuple(unidentified) if is_complete else (),
    )


def _joined(noted: Sequence[FileProblem]) -> list[FileProblem]:
    """Return problems without those that say the same of a further entry: the first one says how many there are."""
    alike: dict[tuple[str, str, str], list[FileProblem]] = {}
    for one in noted:
        alike.setdefault((one.code, one.message, one.id), []).append(one)
    return [_with_count(found[0], len(found) - 1) for found in alike.values()]


def _with_count(first: FileProblem, further: int) -> FileProblem:
    if not further:
        return first
    message = f"{first.message}; likewise {pluralize(further, 'further entry')} of this file"
    return msgspec.structs.replace(first, message=message)


def _of_companion(source: SourceFile, rules: Source, edge_names: frozenset[str]) -> Facts:
    """Return what the file beside the one of an entity states of it; its id is made of the path alone."""
    values = path_values(source.path, [_beside(glob, rules.with_) for glob in texts(rules.glob)])
    key = next((found.text for found in (patterns.fill(one, values.get) for one in texts(rules.id)) if found.text), "")
    if not key:
        return _passed_over("its path lacks what the id is made of", "It belongs to no entity of the source.")
    text = _text_of(source, ENDINGS.get(posixpath.splitext(source.path)[1].lower(), "markdown"))
    if text is None:
        return unreadable(decode(source.data).problems)
    found = text.entries("")
    if not found.entries:
        return unreadable(found.problems)
    stated = companion_statement(found.entries[0], key, rules, StatementContext(source.path, edge_names, values))
    return _collected([stated], found)


def _beside(glob: str, name: str) -> str:
    folder = glob.rpartition("/")[0]
    return f"{folder}/{name}" if folder else name


def _is_index(path: str, stated: StatedFacts, rules: Source) -> bool:
    """Tell whether a file without an id is one that belongs to a folder of documents, and no document."""
    name = posixpath.basename(path)
    is_named = any(posixpath.basename(glob) == name for glob in texts(rules.glob))
    return not is_named and bool(INDEX.fullmatch(name)) and any(one.code == NO_ID for one in stated.problems)


def _passed_over(reason: str, hint: str) -> Facts:
    return Facts(problems=(FileProblem(0, "passed_over", f"the file states no entity: {reason}", hint, "note"),))
