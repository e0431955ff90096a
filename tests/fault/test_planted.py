"""H3: a cached file that somebody else made answers nothing, whatever is in it; it is named, and built again."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import time
from pathlib import Path

import duckdb
import pytest

from kbcore.view import database
from kbcore.view.cache_files import TEXT, VIEW
from kbcore.view.database import Room
from kbcore.view.text_index_cache import BODIES
from tests.support.effort.scale import SCALE, spread
from tests.support.processes.cli import environment, run_kb
from tests.support.processes.spoken import Spoken
from tests.support.repository.project import Project, req

TREASURE = "hidden treasure"
LONGEST_S = 60.0

RENAMED = "alter table node rename to hidden; "
FOREIGN = {
    "a view over a file": RENAMED + "create view node as select h.* replace (t.content as title) from hidden h, "
    "read_text('{secret}') t",
    "a view over a list of files": RENAMED + "create view node as select h.* replace (t.file as title) from hidden h, "
    "glob('{folder}/*') t",
    "a recursive view": RENAMED + "create view node as with recursive r(i) as (select 1 union all select i + 1 from r) "
    "select h.* from hidden h, r",
    "a recursive view of the stamp": "alter table stamp rename to hidden; create view stamp as with recursive r(i) as "
    "(select 1 union all select i from r) select h.* from hidden h, r",
    "a generated column": "alter table source rename to hidden; create table source (path VARCHAR, hash VARCHAR, "
    "extractor VARCHAR, is_ok BOOLEAN, problems JSON, version BIGINT generated always as (length(hash)))",
    "a default": "alter table source alter hash set default (getvariable('x'))",
    "a check": "create table other as from source; drop table source; create table source (path VARCHAR, hash VARCHAR, "
    "extractor VARCHAR, is_ok BOOLEAN, problems JSON, version BIGINT, check (length(hash) > 0)); drop table other",
    "a column that must not be null": "alter table source alter hash set not null",
    "a key": "alter table stamp add primary key (seq)",
    "a sequence": "create sequence following",
    "a type": "create type mood as enum ('good', 'bad')",
    "a type with the name of one of DuckDB's": "create type json as varchar; alter table source rename to hidden; "
    "create table source (path VARCHAR, hash VARCHAR, extractor VARCHAR, is_ok BOOLEAN, problems main.json, "
    "version BIGINT)",
    "a schema": "create schema other; create table other.node as from node",
    "an index of an expression": "create index node_by_id on node ((id || 'x'))",
    "an index of another name": "create index mine on node (id)",
    "a trigger": "create table t (i integer); create trigger mine after insert on node for each "
    "statement insert into t values (1)",
    "a macro": "create macro lower(x) as 'stolen'",
    "a macro that returns a table": "create macro mine() as table select 1 as i",
    "rows without end": "insert into record (seq) select 1 from range(20000000)",
}
"""Contents of a file that KB never writes; a notice reports each."""

OTHER = {
    "a table more": "create table other (i integer)",
    "a table less": "drop table link_src",
    "a column more": "alter table node add column other varchar",
    "a column less": "alter table node drop column owner",
    "a column of another type": "alter table record alter message type blob",
    "a column whose name holds others": "alter table node_src rename to hidden; create table node_src "
    '("src VARCHAR, id" VARCHAR)',
}
"""Contents that another version of KB may have made: they are built again without a message."""


@pytest.fixture
def base(tmp_path: Path) -> Project:
    """A project with a published view, an index of text and kept documents; a secret lies beside it."""
    (tmp_path / "secret").write_text(TREASURE)
    project = Project(tmp_path / "p")
    project.sync({"docs/requirements/a.md": req("A"), "docs/requirements/b.md": req("B")})
    for words in (("query",), ("query", "--text", "title")):
        assert run_kb(project.root, *words).status == 0
    project.close()
    return project


def cache_of(project: Project) -> Path:
    return project.workspace().folders.cache_of("main")


def plant(path: Path, statements: str, project: Project) -> None:
    """Change a cached file as a program does that knows the store."""
    text = statements.replace("{secret}", str(project.root.parent / "secret"))
    if path.name == TEXT:
        with contextlib.closing(sqlite3.connect(path)) as index:
            index.executescript(text)
        return
    with duckdb.connect(str(path)) as connection:
        for statement in text.replace("{folder}", str(project.root.parent)).split("; "):
            connection.execute(statement)


def read(project: Project) -> tuple[list[str], list[str]]:
    """Return the titles that a fresh process would see, and what it says besides; what is cached is made again."""
    begun = time.monotonic()
    store = project.workspace().store("main")
    titles = store.read(lambda view: [title for (title,) in view.rows("select title from node order by id")])
    notices = [*store.notices]
    project.close()
    assert time.monotonic() - begun < LONGEST_S
    return titles, notices


@pytest.mark.sliced
@pytest.mark.fault("H3")
def test_a_planted_view_answers_nothing_and_is_named_and_built_again(base, tally) -> None:
    path = cache_of(base) / VIEW
    genuine = path.read_bytes()
    expected, _ = read(base)
    for what, statements in spread([*{**FOREIGN, **OTHER}.items()], 8):
        path.write_bytes(genuine)
        plant(path, statements, base)
        titles, notices = read(base)
        tally.tried()
        if titles != expected:
            tally.violated(what, titles)
        if (f"{path} was not made by KB" in " ".join(notices)) != (what in FOREIGN):
            tally.violated(what, notices)
        if read(base) != (expected, []):
            tally.violated(what, "it was not built again")
        with duckdb.connect(str(path), read_only=True) as connection:
            if connection.execute("select count(*) from duckdb_tables() where table_name = 'hidden'").fetchone() != (
                0,
            ):
                tally.violated(what, "it is still there")
    tally.done(at_least=6)


@pytest.mark.sliced
@pytest.mark.fault("H3")
def test_no_command_and_no_tool_answers_from_a_planted_file(base, tally) -> None:
    path = cache_of(base) / VIEW
    genuine = path.read_bytes()
    commands = (["query"], ["status"], ["check"], ["show", "A"], ["log"], ["doctor"], ["verify"])
    # Every day each command has one of the three views, in ``make fault`` all of them.
    for shown, what in enumerate(("a view over a file", "a recursive view", "a recursive view of the stamp")):
        for words in commands if SCALE != "slice" else commands[shown::3]:
            path.write_bytes(genuine)
            plant(path, FOREIGN[what], base)
            begun = time.monotonic()
            ran = run_kb(base.root, *words, "--json", env=environment())
            tally.tried()
            if TREASURE in ran.out + ran.err or time.monotonic() - begun > LONGEST_S:
                tally.violated((what, words), ran)
            if ran.status and words[0] not in {"doctor", "verify"}:
                tally.violated((what, words), ran)
            if words in (["query"], ["status"], ["show", "A"]) and "was not made by KB" not in ran.err:
                tally.violated((what, words), ran.err)
        path.write_bytes(genuine)
        plant(path, FOREIGN[what], base)
        with Spoken(base.root) as server:
            server.greet()
            found = server.call(1, "kb_query", type="req", edges=True)
            server.call(2, "kb_check")
            tally.tried(2)
            if TREASURE.encode() in b"".join(server.lines) or found["total"] != 2:
                tally.violated((what, "kb_query"), server.lines)
            if "was not made by KB" not in str(found):
                tally.violated((what, "kb_query"), found)
    tally.done(at_least=13)


@pytest.mark.sliced
@pytest.mark.fault("H3")
def test_a_planted_index_of_text_and_planted_documents_answer_nothing(base, tally) -> None:
    folder = cache_of(base)
    attacks = {
        folder / TEXT: "alter table entity rename to hidden; create view entity as select doc, '{secret}' as id, "
        "folded, lacks_body, is_symbol from hidden",
        folder.parent
        / BODIES: "alter table body rename to hidden; create view body as select h.hash, t.content as text "
        "from hidden h, read_text('{secret}') t",
    }
    for path, statements in attacks.items():
        genuine = path.read_bytes()
        for words in (["query", "--text", "title"], ["query", "--text", "treasure"], ["doctor"], ["gc"]):
            path.write_bytes(genuine)
            plant(path, statements, base)
            ran = run_kb(base.root, *words, "--json")
            tally.tried()
            if TREASURE in ran.out + ran.err:
                tally.violated((path.name, words), ran)
            if words[0] == "query" and f"{path} was not made by KB" not in ran.err:
                tally.violated((path.name, words), ran.err)
            if words[-1] == "title" and ran.json["total"] != 2:
                tally.violated((path.name, words), ran.out)
            path.unlink(missing_ok=True)
    tally.done(at_least=8)


@pytest.mark.sliced
@pytest.mark.fault("H3")
def test_macros_with_the_names_of_all_functions_are_refused_and_none_is_called(base, tally) -> None:
    path = cache_of(base) / VIEW
    expected, _ = read(base)
    with duckdb.connect(str(path)) as connection:
        names = [
            name
            for (name,) in connection.execute(
                "select distinct function_name from duckdb_functions() where function_type in ('scalar', 'aggregate') "
                "and regexp_full_match(function_name, '[a-z_0-9]+') order by all"
            ).fetchall()
        ]
        made = 0
        for name in names:
            try:
                connection.execute(f"create macro {name}(x) as 'stolen'")
            except duckdb.Error:  # some names are words of the grammar
                continue
            made += 1
    assert made > 500
    tally.tried(made)
    planted = path.read_bytes()
    titles, notices = read(base)
    if titles != expected or f"{path} was not made by KB" not in " ".join(notices):
        tally.violated("macros", (titles, notices))
    for words in (["query"], ["query", "--text", "title"], ["check"], ["log"], ["doctor"]):
        path.write_bytes(planted)
        ran = run_kb(base.root, *words, "--json")
        if "'stolen'" in ran.out + ran.err:
            tally.violated(words, ran)
    if "view_damaged" not in {one["code"] for one in ran.json["findings"]}:
        tally.violated("doctor", ran.out)
    tally.done(at_least=500)


@pytest.mark.sliced
@pytest.mark.fault("H3")
def test_no_link_in_the_way_of_a_cache_is_followed(base, tally, tmp_path) -> None:
    folder = cache_of(base)
    expected, _ = read(base)
    elsewhere = tmp_path / "elsewhere"
    for linked in (folder / VIEW, folder / "spill", folder, folder.parent):
        shutil.rmtree(elsewhere, ignore_errors=True)
        elsewhere.mkdir()
        kept = linked.with_name("kept")
        if linked.exists():
            linked.rename(kept)
        (elsewhere / "main").mkdir()
        for place in (elsewhere, elsewhere / "main"):
            (place / VIEW).write_text("mine")
            (place / ".view-1-0.duckdb").write_text("mine")
        linked.symlink_to(elsewhere / VIEW if linked.name == VIEW else elsewhere)
        before = sorted((path, path.stat().st_mtime_ns) for path in elsewhere.rglob("*"))
        titles, _ = read(base)
        ran = run_kb(base.root, "query", "--text", "title", "--json")
        ran_gc = run_kb(base.root, "gc", "--json")
        tally.tried()
        if titles != expected or ran.json["total"] != 2:
            tally.violated(linked, (titles, ran))
        if sorted((path, path.stat().st_mtime_ns) for path in elsewhere.rglob("*")) != before:
            tally.violated(linked, (sorted(elsewhere.rglob("*")), ran_gc))
        if linked.is_symlink():
            linked.unlink()
        if kept.exists():
            shutil.rmtree(linked, ignore_errors=True)
            linked.unlink(missing_ok=True)
            kept.rename(linked)
    tally.done(at_least=4)


@pytest.mark.fault("H3")
def test_a_database_of_kb_reaches_its_folders_alone_and_keeps_its_settings(tally, tmp_path) -> None:
    (tmp_path / "secret").write_text(TREASURE)
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "own.csv").write_text("a\n1\n")
    connection = database.connect(Room(str(inside / "spill"), (str(inside),)))
    assert connection.execute(f"from read_csv('{inside}/own.csv')").fetchall() == [(1,)]
    for sql in (
        f"from read_text('{tmp_path}/secret')",
        f"from read_text('{inside}/../secret')",
        "from read_text('/etc/hostname')",
        "from read_csv('/proc/self/environ')",
        f"from glob('{tmp_path}/*')",
        f"attach '{tmp_path}/x.duckdb' as x",
        f"copy (select 1) to '{tmp_path}/x.csv'",
        f"export database '{tmp_path}/x'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "set allowed_directories = ['/']",
        "set lock_configuration = false",
        "reset lock_configuration",
        "set memory_limit = '1TB'",
        "set threads = 64",
        "set temp_directory = '/tmp'",
        "pragma memory_limit = '1TB'",
        f"create persistent secret s (type http, bearer_token '{TREASURE}')",
    ):
        tally.tried()
        try:
            answer = connection.execute(sql).fetchall()
        except duckdb.Error as error:
            answer = []
            if TREASURE in str(error) and "secret s" not in sql:
                tally.violated(sql, error)
            continue
        if answer or "glob" not in sql:
            tally.violated(sql, answer)
    connection.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inside", "secret"]
    tally.done(at_least=15)
