"""SQL over the parts of many branches at once: the relations of rules, each with the repository and the branch.

It runs in a database of its own, which reads the folders of the parts and can change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Final

import msgspec

from kbcore.ids import OTHER_REPO
from kbcore.model.proposals import ANY, OF_LINK, of_node
from kbcore.model.schema import CORE, Schema
from kbcore.view import database
from kbcore.view.database import Room, quoted
from kbcore.view.parquet import ENDED, TABLES
from kbcore.view.relations import RELATIONS
from kbcore.view.tables import ELEMENTS, IS_HIDDEN, MAY_LACK_AN_END, RECORD, Columns

NAMES: Final = (*RELATIONS, "across")
"""The relations that a statement reads. Each has ``repo`` and ``branch``."""
_OWN: Final = "repo, branch"
_SCHEMA: Final = "part"
"""The schema of the tables that relations are made of: both have a table `record`."""
_PART: Final[Columns] = {"path": "VARCHAR", "repo": "VARCHAR", "branch": "VARCHAR", "is_last": "BOOLEAN"}
_ASKED: Final[Columns] = {"repo": "VARCHAR", "branch": "VARCHAR", "schema": "BIGINT"}
_MEANT: Final[Columns] = {
    "schema": "BIGINT",
    "from_type": "VARCHAR",
    "to_type": "VARCHAR",
    "type": "VARCHAR",
    "kind": "VARCHAR",
    "is_reversed": "BOOLEAN",
}
"""The edge that a link without a type means, by the schema and by the types of what it leads from and to.

Where several or none fit, there is no row: then it is ``_USUAL``.
"""
_USUAL: Final = dict(zip(("type", "kind"), CORE.bare_edge("", ""), strict=False))
_IS_MEANT: Final = """left join asked a on e.type = '' and a.repo = e.repo and a.branch = e.branch
  left join meant m on m.schema = a.schema and m.from_type = f.type and m.to_type = t.type"""
_PROPOSED: Final = f"""
create view proposed as select {_OWN}, id from {_SCHEMA}.node n where {ANY} and {of_node("n")}
"""
"""Entities that nobody has accepted."""


def _other(end: str) -> str:
    """Return the repository that an end of a link names, null where it names none: as ``ids.in_other_repo``.

    A name without a slash counts where such a repository is asked.
    """
    name = f"split_part({end}, ':', 1)"
    is_asked = f"length({end}) > length({name}) + 1 and {name} in (select repo from asked)"
    return f"case when regexp_full_match({end}, '{OTHER_REPO}') or {is_asked} then {name} end"


def _own_id(end: str) -> str:
    return f"substr({end}, length({_other(end)}) + 2)"


_ENDS: Final = f"""
select repo, branch, type, kind, coalesce({_other("from_id")}, repo) as from_repo,
  coalesce({_own_id("from_id")}, from_id) as from_id, coalesce({_other("to_id")}, repo) as to_repo,
  coalesce({_own_id("to_id")}, to_id) as to_id, files, {ANY} and {OF_LINK} as is_proposed
from {_SCHEMA}.link where not is_resolved and not {MAY_LACK_AN_END}
"""


def _decided(name: str) -> str:
    """Return a column of an edge ``e``; one without a type is the edge that the types of its ends mean."""
    meant = f"coalesce(m.{name}, '{_USUAL[name]}')"
    return f"case when e.type = '' and f.id is not null and t.id is not null then {meant} else e.{name} end as {name}"


def _directed(name: str) -> str:
    """Return a column of the one end of an edge ``e``, which is that of the other where it is meant the other way."""
    other = name.replace("from_", "to_") if name.startswith("from_") else name.replace("to_", "from_")
    return f"case when m.is_reversed then e.{other} else e.{name} end as {name}"


_ACROSS: Final = f"""
create view across as
with ends as ({_ENDS}), entities as (select repo, id, min(type) as type from {_SCHEMA}.node group by all)
select e.repo, e.branch, {_decided("type")}, nullif({_decided("kind").removesuffix(" as kind")}, '') as kind,
  {_directed("from_repo")}, {_directed("from_id")}, {_directed("to_repo")}, {_directed("to_id")},
  f.id is not null and t.id is not null as is_resolved, e.is_proposed, e.files
from ends e left join entities f on f.repo = e.from_repo and f.id = e.from_id
  left join entities t on t.repo = e.to_repo and t.id = e.to_id {_IS_MEANT}
where e.from_repo <> e.repo or e.to_repo <> e.repo
"""
"""Edges of which an end is in another repository. ``is_resolved``: both ends are there, in any branch that is asked."""


def _in_graph(end: str) -> str:
    """Return the id in the graph of an end of a link. What a repository says of itself by its name leads nowhere."""
    return f"case when coalesce({_other(end)}, repo) = repo or is_resolved then repo || ':' || {end} else {end} end"


_GRAPH: Final = f"""
create view node as select {_OWN}, repo || ':' || id as id, n.* exclude ({_OWN}, id)
from {_SCHEMA}.node n where not ({IS_HIDDEN});
create view link as
with ends as (select l.* exclude (from_id, to_id),
    {_in_graph("from_id")} as from_id, {_in_graph("to_id")} as to_id
  from {_SCHEMA}.link l)
select {_decided("type")}, {_decided("kind")}, {_directed("from_id")}, {_directed("to_id")},
  e.repo || ':' || e.id as id, e.is_resolved or (f.id is not null and t.id is not null) as is_resolved,
  e.* exclude (type, kind, from_id, to_id, id, is_resolved)
from ends e left join node f on f.id = e.from_id left join node t on t.id = e.to_id {_IS_MEANT};
"""
"""The graph of all repositories, in the columns of a view: an id begins with its repository, and edges across are
resolved where both their ends are there. One branch of each repository is expected."""


class BranchParts(msgspec.Struct, frozen=True):
    """The parts of a branch, on this machine, by kind; ``at`` is the seq as of which it is read, None for the head.

    ``schema`` says what its links without a type mean.
    """

    repo: str
    branch: str
    paths: Mapping[str, Sequence[str]]
    at: int | None = None
    schema: Schema = CORE


def open_branches(
    branches: Sequence[BranchParts], folders: Sequence[str], *, is_graph: bool = False
) -> database.Connection:
    """Return a database with the relations of ``relations.py`` over the parts of all these branches.

    With ``is_graph`` it has the tables ``node`` and ``link`` as well, with the entities and edges of all.

    Raises: ``ViewDamaged`` where a part cannot be read.
    """
    connection = database.connect(Room(folders=tuple(folders)))
    try:
        with database.explained_all():
            rows = (
                {"path": path, "repo": one.repo, "branch": one.branch, "is_last": len(paths) == 1}
                for one in branches
                for paths in one.paths.values()
                for path in paths
            )
            connection.execute(f"create schema {_SCHEMA}")
            connection.hold("part_of", _PART, None, rows)
            past = ({"repo": one.repo, "branch": one.branch, "seq": one.at} for one in branches if one.at is not None)
            schemas = {id(one.schema): one.schema for one in branches}
            numbers = {key: number for number, key in enumerate(schemas)}
            asked = ({"repo": one.repo, "branch": one.branch, "schema": numbers[id(one.schema)]} for one in branches)
            connection.hold("asked", _ASKED, None, asked)
            connection.hold("meant", _MEANT, None, _meant(schemas.values()))
            connection.hold("as_of", {"repo": "VARCHAR", "branch": "VARCHAR", "seq": "BIGINT"}, None, past)
            for kind, table in TABLES.items():
                _create(connection, table, [path for one in branches for path in one.paths.get(kind, ())])
            for relation in RELATIONS.values():
                cells = relation.select.removeprefix("select ").removesuffix(relation.origin)
                connection.execute(f"create view {relation.name} as select {_OWN}, {cells}{_SCHEMA}.{relation.origin}")
            connection.execute(_ACROSS)
            connection.execute(_PROPOSED)
            if is_graph:
                connection.execute(_GRAPH)
    except BaseException:
        connection.close()
        raise
    return connection


def _meant(schemas: Iterable[Schema]) -> Iterator[dict[str, str | int | bool]]:
    for number, schema in enumerate(schemas):
        for ends in product(schema.entities, repeat=2):
            if (edge := schema.bare_edge(*ends)) != CORE.bare_edge("", ""):
                yield dict(zip(_MEANT, (number, *ends, *edge), strict=True))


def _create(connection: database.Connection, table: str, paths: Sequence[str]) -> None:
    """Create the view of a table, and of its superseded rows, with repository and branch."""
    columns: dict[str, str] = dict(RECORD) if table not in ELEMENTS else {**ELEMENTS[table][1], ENDED: "BIGINT"}
    listed = ", ".join(columns)
    if not paths:
        nothing = ", ".join(
            f"null::{kind} as {name}" for name, kind in {"repo": "VARCHAR", "branch": "VARCHAR"}.items()
        )
        empty = ", ".join(f"null::{kind} as {name}" for name, kind in columns.items())
        connection.execute(f"create view {_SCHEMA}.{table}_all as select {nothing}, {empty} where false")
    else:
        named = ", ".join(f"'{quoted(one)}'" for one in paths)
        cells = ", ".join(
            f"r.{name}" if name in _kept(table, columns) else f"null::{kind} as {name}"
            for name, kind in columns.items()
        )
        files = f"read_parquet([{named}], filename = true, hive_partitioning = false)"
        rows = f"from {files} r join part_of p on p.path = r.filename"
        sql = f"select p.repo, p.branch, {cells} {rows}"
        if table in ELEMENTS:
            key = ELEMENTS[table][0]
            ranked = (
                f"row_number() over (partition by p.repo, p.branch, r.{key}, r.version order by r.{ENDED} nulls last)"
            )
            sql = f"{sql} where p.is_last union all {sql} where not p.is_last qualify {ranked} = 1"
        connection.execute(f"create view {_SCHEMA}.{table}_all as {sql}")
    version = "seq" if table not in ELEMENTS else "version"
    known = (
        f"select a.* exclude (seq_at) from (select t.*, s.seq as seq_at from {_SCHEMA}.{table}_all t "
        f"left join as_of s on s.repo = t.repo and s.branch = t.branch) a where (seq_at is null or {version} <= seq_at)"
    )
    if table not in ELEMENTS:
        connection.execute(f"create view {_SCHEMA}.{table} as {known}")
        return
    is_past = f"{ENDED} is not null and (seq_at is null or {ENDED} <= seq_at)"
    connection.execute(f"create view {_SCHEMA}.{table} as select {_OWN}, {listed} from ({known} and not ({is_past}))")
    connection.execute(
        f"create view {_SCHEMA}.{table}_history as select {_OWN}, {listed} from ({known} and ({is_past}))"
    )


def _kept(table: str, columns: Columns) -> frozenset[str]:
    return frozenset(columns) - (frozenset() if table in ELEMENTS else {"file", "offset_bytes", "length_bytes"})
