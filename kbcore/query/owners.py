"""The owners of entities: what their field ``owner`` says, else the owners of their file.

The owners of files are applied to an answer, and are no facts of the branch: a line for `*` would be a fact of every
entity, and each change of it a change of all of them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from kbcore.query import sql
from kbcore.text.code_owners import CodeOwners
from kbcore.view.tables import FILE_OF, Rows


class EntityOwners(msgspec.Struct, frozen=True):
    """The owners of an entity, and the lines that give them, as ``file:line``; none where its field ``owner`` does."""

    owners: tuple[str, ...]
    given_by: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the owners and where they are from as JSON."""
        return {"owners": list(self.owners), "given_by": list(self.given_by)}


def owners_of_file(path: str, of_files: CodeOwners) -> EntityOwners | None:
    """Return the owners of what is in a file and has no field ``owner``; None where there are none."""
    found = of_files.of(path) if path else None
    if found is None or not found.owners:
        return None
    return EntityOwners(found.owners, tuple(f"{of_files.file}:{line}" for line in found.lines))


def read_owners(rows: Rows, at: int | None, ids: Collection[str], of_files: CodeOwners) -> dict[str, EntityOwners]:
    """Return the owners of each of these entities that has some, as of a seq (None: the head).

    One statement; each file is looked up once.
    """
    if not ids:
        return {}
    statement = sql.statement(at)
    bound = f"{statement.bind(list(ids))}::varchar[]"
    asked = (
        f"select n.id, coalesce(n.owner, ''), {FILE_OF} from {statement.node} n "  # noqa: S608 - fixed names
        f"where n.id in (select unnest({bound})) order by n.id"
    )
    found: dict[str, EntityOwners] = {}
    files: dict[str, EntityOwners | None] = {}
    for id_, owner, file in rows(asked, statement.params):
        if owner:
            found[id_] = EntityOwners((owner,))
            continue
        if file not in files:
            files[file] = owners_of_file(file, of_files)
        if (given := files[file]) is not None:
            found[id_] = given
    return found
