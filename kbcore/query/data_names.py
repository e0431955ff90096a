"""Attributes, metadata and files of a branch's data: queried only for a name that the schema does not define."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from kbcore.errors.remedies import EdgeWords
from kbcore.model.graph import OBJECT_FIELDS
from kbcore.text.code_owners import NONE, CodeOwners
from kbcore.text.globs import glob_set, has_signs
from kbcore.view.contested import CONTESTED_ROWS, choices
from kbcore.view.likeness import without_zeros
from kbcore.view.tables import Rows

_MAX_NAMES: Final = 1000
_SHOWN: Final = 3
_DECIDED: Final = 3
_LEAST_ALIKE: Final = 0.85
_MARGIN: Final = 0.04
"""The most that a listed name may be less like the word than the nearest."""


_IS_ID: Final = """
select exists (from node where id = $1) or exists (from node where contains(attributes, '"former_ids"')
  and (list_contains(json_extract_string(attributes, '$.former_ids[*]'), $1)
    or json_extract_string(attributes, '$.former_ids') = $1))
"""
PRESENT_PATHS: Final = """
select path from node where path <> '' union select text_ref from node
  where json_extract_string(owners, '$.text_ref') = text_ref
union select json_extract_string(attributes, '$.file') from node where type = 'symbol'
  and json_type(attributes, '$.file') = 'VARCHAR'
union select path from source
"""
"""The files that are read, or that entities are of."""
_PATHS: Final = f"""
{PRESENT_PATHS} union select path from node_history where path <> ''
union select json_extract_string(attributes, '$.file') from node_history where type = 'symbol'
  and json_type(attributes, '$.file') = 'VARCHAR'
"""  # noqa: S608 - fixed


_CONFLICTS: Final = f"select * from ({CONTESTED_ROWS}) order by all limit {_DECIDED}"  # noqa: S608 - fixed


class OwnedFiles(msgspec.Struct, frozen=True):
    """The owners of files: the owner of the path at the same place, a path with several owners several times.

    ``mark`` is that of the file which gives them.
    """

    mark: str = ""
    paths: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()


NO_FILES: Final = OwnedFiles()


class DataNames:
    """The names that entities, or edges, have or once had, by the full name of a field such as ``attributes.kind``.

    ``owners`` returns the owners of the files of the branch. It is called for a condition on them.
    """

    def __init__(self, rows: Rows, *, is_edge: bool, owners: Callable[[], CodeOwners] = lambda: NONE) -> None:
        self._rows = rows
        self._owners = owners
        self._tables = ("link", "link_history") if is_edge else ("node", "node_history")

    def is_empty(self) -> bool:
        """Return whether there is nothing yet that could have a name."""
        return not any(self._rows(f"select 1 from {table} limit 1", []) for table in self._tables)  # noqa: S608 - fixed

    def is_id(self, word: str) -> bool:
        """Return whether a word is the id of an entity, or a former one."""
        return self._rows(_IS_ID, [word]) == [(True,)]

    def is_type(self, word: str) -> bool:
        """Return whether any element is of this type."""
        return bool(self._rows(f"select 1 from {self._tables[0]} where type = ? limit 1", [word]))  # noqa: S608 - fixed

    def decisions(self) -> list[str]:
        """Return what decides the first conflicts, a sentence each, with the commands as marks."""
        found = []
        for key, name, type_, from_id, to_id, kind, contested in self._rows(_CONFLICTS, []):
            edge = EdgeWords(type_, from_id, to_id, kind) if type_ else None
            found += [
                f"`{field}` of {name}: {choices(key, field, values, edge)}"
                for field, values in sorted(json.loads(contested).items())
            ]
        return found[:_DECIDED]

    def has(self, field: str) -> bool:
        """Return whether any element has this attribute or member of ``metadata``, or once had it."""
        column, _, member = field.partition(".")
        return any(
            self._rows(f"select 1 from {table} where json_exists({column}, ?) limit 1", [pointer(member)])  # noqa: S608
            for table in self._tables
        )

    def is_path(self, path: str) -> bool:
        """Return whether any element is of this file, or once was."""
        now, before = self._tables
        of_one = "source = $1 or list_contains(files, $1)"
        if now == "node":
            of_one += " or path = $1 or text_ref = $1 or json_extract_string(attributes, '$.file') = $1"
        sql = " or ".join(f"exists (from {table} where {of_one})" for table in (now, before))
        return self._rows(f"select {sql}", [path]) == [(True,)]

    def paths_like(self, globs: Sequence[str]) -> tuple[str, ...]:
        """Return the files that globs mean, of those that entities are of, or once were.

        A glob without signs means a file, or all below a folder.
        """
        wanted = [one for glob in globs for one in _with_folders(glob)]
        found = glob_set(tuple(wanted))
        return tuple(path for path in known_paths(self._rows) if found.first(path) is not None)

    def owned_files(self) -> OwnedFiles:
        """Return the owners of the files that entities are of, or once were."""
        of_files = self._owners()
        if not of_files.file:
            return NO_FILES
        given = [(path, found.owners) for path in known_paths(self._rows) if (found := of_files.of(path))]
        pairs = [(path, owner) for path, owners in given for owner in owners]
        return OwnedFiles(of_files.mark, tuple(path for path, _ in pairs), tuple(owner for _, owner in pairs))

    def names(self) -> list[str]:
        """Return the full names that there are now, in order, to find the nearest one."""
        found: set[str] = set()
        for column in OBJECT_FIELDS:
            rows = self._rows(
                f"select distinct unnest(json_keys({column})) as name from {self._tables[0]} "  # noqa: S608 - fixed
                f"order by name limit {_MAX_NAMES}",
                [],
            )
            found.update(f"{column}.{name}" for (name,) in rows)
        return sorted(found)


def known_paths(rows: Rows) -> list[str]:
    """Return the files that entities are of or were of, in order."""
    return sorted(path for (path,) in rows(_PATHS, []))


def _with_folders(glob: str) -> list[str]:
    plain = glob.removeprefix("./").rstrip("/")
    if glob.startswith("/") and not plain:
        return []  # the root of the file system is not below the worktree
    if not plain or plain == ".":
        return ["**"]
    return [plain] if has_signs(plain) else [plain, f"{plain}/**"]


def near_ids(rows: Rows, word: str, limit: int = _SHOWN, *, entities: str = "node") -> tuple[str, ...]:
    """Return the ids of entities that are most like a mistyped one, the nearest first; none when none is alike.

    Zeros in front of a number do not count: REQ-1 is as near to REQ-001 as can be. For a path they are those of the
    entities that its file states, or that are said to be in it. ``entities`` is the relation to look in, as SQL.
    """
    if "/" in word:
        of_file = rows(
            f"select id from {entities} where path = ? or json_extract_string(attributes, '$.file') = ? "  # noqa: S608 - constants
            "order by id limit ?",
            [word, word, limit],
        )
        if of_file:
            return tuple(str(row[0]) for row in of_file)
    found = rows(
        f"with word as (select lower(?) as text, {without_zeros('lower(?)')} as bare), "  # noqa: S608 - constants
        f"likeness as (select id, case when {without_zeros('lower(id)')} = bare then 1.0 "
        "else jaro_winkler_similarity(lower(id), text) end as alike "
        f"from {entities}, word) "
        "select id from likeness where alike > ? and alike >= (select max(alike) from likeness) - ? "
        "order by alike desc, id limit ?",
        [word, word, _LEAST_ALIKE, _MARGIN, limit],
    )
    return tuple(str(row[0]) for row in found)


def nearest_id(rows: Rows, word: str) -> str:
    """Return the id that is most like a mistyped one, or the empty text."""
    return next(iter(near_ids(rows, word, 1)), "")


def pointer(member: str) -> str:
    """Return the JSON pointer of a member, RFC 6901."""
    return "/" + member.replace("~", "~0").replace("/", "~1")
