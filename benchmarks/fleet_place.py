"""Makes a fleet of distinct repositories: the rows of each are made by SQL in a view, and exported as any view is.

``python -m benchmarks.fleet_place PLACE FACTS EACH`` writes repositories of ``EACH`` facts until there are ``FACTS``,
and prints what exporting them took as JSON. No journal is written: only the view differs from that of a store.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import generate, stores
from kbcore.clock import SystemClock
from kbcore.fleet.exporting import ExportRequest, export
from kbcore.fleet.place import FolderPlace
from kbcore.store.workspace import Workspace
from kbcore.view import database, table_creation
from kbcore.view.base_stamp import BaseStamp, write_stamp
from kbcore.view.tables import LINK, NODE, RECORD, SOURCE, Columns
from kbcore.view.view import View
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.repos import use_empty_home

_RECORDS = 10
_AT = "2026-01-01T00:00:00.000000Z"
_OWNED = ("owner", "priority", "status", "tags", "title", "type")
_ENTITIES_OF = 0.5
_WORDS = sorted(set(generate.WORDS))


def _word(place: int) -> str:
    return f"words[1 + (hash(repo, n, {place}) % {len(_WORDS)})::int]"


_OWNERS_JSON = "'{' || " + " || ',' || ".join(f"""'"{name}":"' || path || '"'""" for name in _OWNED) + " || '}'"
_ENTITIES = f"""
create table made as
select n, case when n % 20 < 9 then 'req' when n % 20 < 16 then 'test' when n % 20 < 19 then 'scenario' else 'adr' end
    as type,
  case when n % 20 < 9 then 'REQ' when n % 20 < 16 then 'TEST' when n % 20 < 19 then 'SCN' else 'ADR' end
    || '-' || lpad(n::varchar, 6, '0') as id,
  'docs/' || type || '/' || lower(id) || '.md' as path, 1 + n % {_RECORDS} as version,
  {" || ' ' || ".join(_word(at) for at in range(4))} as title,
  ['ana', 'ben', 'chidi', 'dora', 'emre', 'fatou'][1 + (hash(repo, n, 9) % 6)::int] as owner,
  if(n % 20 < 3, 'must', ['should', 'could'][1 + (hash(repo, n, 8) % 2)::int]) as priority,
  ['api', 'billing', 'ui', 'security', 'mobile', 'data'][1 + (hash(repo, n, 7) % 6)::int] as tag
from range(?::bigint) rows(n), (select ?::bigint as repo, ?::varchar[] as words)
"""
"""``n`` counts the entities of a repository: of twenty 9 are requirements, 7 tests, 3 scenarios, 1 is a decision."""
_EDGES = """
create table drawn as
select from_id, path, to_id, type, kind from (
  select e.id as from_id, e.path, t.id as to_id, 'verified_by' as type, '' as kind
  from made e join made t on t.n = e.n + 9 where e.n % 20 < 7 and e.n % 19 <> 0
  union all select e.id, e.path, t.id, 'specified_by', '' from made e join made t on t.n = e.n + 16 where e.n % 20 < 3
  union all select e.id, e.path, t.id, 'depends_on', ''
  from made e join made t on t.n = (e.n * 7 + $repo) % greatest(e.n, 1) // 20 * 20 where e.n % 20 < 9 and t.id <> e.id
  union all select e.id, e.path, t.id, 'relates_to', 'link'
  from made e join made t on t.n = e.n - 19 where e.n % 20 = 19
)
"""
"""Edges of requirements to tests, scenarios and earlier requirements, and of decisions to requirements."""


def _row(columns: Columns, **cells: str) -> str:
    usual = {"JSON": "'{}'", "VARCHAR[]": "null", "BIGINT": "0", "BOOLEAN": "true", "DOUBLE": "null"}
    return ", ".join(cells.get(name, usual.get(kind, "null")) for name, kind in columns.items())


_NODE = _row(
    NODE, id="id", type="type", name="id", title="title", status="if(type = 'adr', 'accepted', 'open')",
    created_at=f"'{_AT}'", updated_at=f"'{_AT}'", source="path", tags="[tag]", owner="owner", priority="priority",
    owners=_OWNERS_JSON, path="path", files="[path]", created_seq="version", version="version",
)  # fmt: skip
_LINK = _row(
    LINK, id="'link:' || md5(type || kind || from_id || to_id)", type="type", kind="kind", from_id="from_id",
    to_id="to_id", created_at=f"'{_AT}'", created_by="'ana'", source="path",
    statements="""'[{"said":"' || from_id || '","src":"' || path || '","via":""}]'""", files="[path]",
    created_seq=str(_RECORDS), version=str(_RECORDS),
)  # fmt: skip
_SOURCE = _row(
    SOURCE, path="path", hash="sha256(path || title)", extractor="'markdown/4'", problems="'[]'", version="version"
)
_RECORD = _row(
    RECORD, seq="n", changeset_id="md5(n::varchar || ?::varchar)", digest="sha256(n::varchar)", written_at=f"'{_AT}'",
    clock="''", actor="'ana'", source="'sync'", tool="'kb'", message="'sync'", repair="''", commit="''", session="''",
    epoch="''", holes="''", sum="sha256(n::varchar)", file="''", moved="''",
)  # fmt: skip


def view_of(repo: int, facts: int) -> View:
    """Return a view of a repository with so many facts, half of them entities, each of a document of its own."""
    connection = database.connect(database.Room())
    connection.execute(database.attaching_new(":memory:", "base"))
    table_creation.create_base(connection, "base")
    connection.execute(_ENTITIES, [round(facts * _ENTITIES_OF), repo, _WORDS])
    connection.execute(_EDGES.replace("$repo", str(repo)))
    connection.execute(f"insert into base.node select {_NODE} from made order by id")
    connection.execute(f"insert into base.link select {_LINK} from drawn order by all")
    connection.execute(f"insert into base.source select {_SOURCE} from made order by path")
    connection.execute(f"insert into base.record select {_RECORD} from range(1, {_RECORDS + 1}) rows(n)", [repo])
    table_creation.finish_base(connection, "base")
    basis = BaseStamp(f"store-{repo}", f"lineage-{repo}", _RECORDS, "", _AT, "", 0)
    write_stamp(connection, "base", basis)
    return View(connection, basis)


def make(place: Path, facts: int, each: int) -> dict[str, float]:
    """Export repositories to a folder, and return how many there are, and what it took: seconds, and bytes of parts."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "project").resolve()
        stores.lay_out_at(root)
        workspace = stores.workspace_of(root)
        total = {"repositories": 0.0, "facts": 0.0, "bytes": 0.0, "wall_s": 0.0, "cpu_s": 0.0}
        for repo in range(-(-facts // each)):
            _one(workspace, FolderPlace(NoSyncFs(), SystemClock(), place), repo, each, total)
        return total


def _one(workspace: Workspace, place: FolderPlace, repo: int, each: int, total: dict[str, float]) -> None:
    with view_of(repo, each) as view:
        [(facts,)] = view.rows("select (select count(*) from node) + (select count(*) from link)")
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        asked = ExportRequest(f"org{repo % 20}/r{repo:05d}", stores.BRANCH, is_default=True)
        found = export(workspace, stores.BRANCH, view, place, asked)
        total["wall_s"] += time.perf_counter() - wall_s
        total["cpu_s"] += time.process_time() - cpu_s
    total["repositories"] += 1
    total["facts"] += facts
    total["bytes"] += found.bytes


if __name__ == "__main__":
    use_empty_home()
    print(json.dumps(make(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
