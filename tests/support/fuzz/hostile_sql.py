"""SQL that nobody should be able to have run: it reads, writes, changes settings, or never ends.

``{f}`` stands for a file that is there and ``{d}`` for its folder.
"""

from __future__ import annotations

FILES = (
    *("read_csv('{f}')", "read_csv_auto('{f}')", "read_text('{f}')", "read_blob('{f}')", "read_json('{f}')"),
    *("read_json_auto('{f}')", "read_ndjson('{f}')", "read_parquet('{f}')", "parquet_scan('{f}')", "glob('{d}/*')"),
    *("sniff_csv('{f}')", "parquet_schema('{f}')", "parquet_metadata('{f}')", "read_duckdb('{f}')", "'{f}'", '"{f}"'),
    *("'{d}/*.csv'", "'https://localhost/x.csv'", "'s3://x/y.parquet'", "query('from x')", "query_table('{f}')"),
    *("duckdb_settings()", "duckdb_secrets()", "duckdb_extensions()", "duckdb_databases()", "duckdb_logs()"),
    *("pragma_database_size()", "which_secret('{f}', 's3')", "pandas_scan(1)", "arrow_scan(1, 2, 3)", "seq_scan(1)"),
    *("json_execute_serialized_sql(json_serialize_sql('select 1'))", "checkpoint()", "enable_logging()", "stamp"),
    *("force_checkpoint()", "create_external_resource('a')", "test_all_types()", "base.entity", "lent_node.entity"),
    *(
        "information_schema.tables",
        "sqlite_master",
        "pg_catalog.pg_class",
        "node_tail",
        "node",
        "link",
        "source",
        "lent_node.node",
        "lent_node.main.entity",
    ),
)
STATEMENTS = (
    *(
        "copy entity to '{d}/out.csv'",
        "copy (select 1) to '{d}/out.parquet'",
        "copy entity from '{f}'",
        "export database '{d}/x'",
    ),
    *("import database '{d}'", "attach '{d}/x.db' as x", "attach ':memory:' as x", "detach base", "install httpfs"),
    *(
        "force install httpfs from 'http://localhost'",
        "load httpfs",
        "load '{d}/x.duckdb_extension'",
        "set threads = 1",
    ),
    *("set enable_external_access = true", "reset enable_external_access", "set lock_configuration = false"),
    *(
        "set allowed_directories = ['/']",
        "set memory_limit = '9GB'",
        "set max_execution_time = 0",
        "reset max_execution_time",
    ),
    *("pragma enable_profiling", "pragma profiling_output = '{d}/out'", "set variable x = 1", "set session x = 1"),
    *("create table x as select 1", "create view x as select 1", "create secret (type s3)", "create macro x() as 1"),
    *(
        "drop table entity",
        "delete from entity",
        "insert into entity select * from entity",
        "update entity set id = 'x'",
    ),
    *(
        "alter table entity add column x int",
        "truncate entity",
        "call pragma_version()",
        "vacuum",
        "checkpoint",
        "begin",
    ),
    *("use memory", "prepare x as select 1", "execute x", "explain analyze select 1", "describe entity", "show tables"),
    *(
        "comment on table entity is 'x'",
        "merge into entity using entity on true when matched then delete",
        "pivot entity on id",
    ),
    "create or replace table entity as from read_text('{f}')",
)
SMUGGLED = (
    *(
        "select 1 as id, 'x' as message) r; copy entity to '{d}/out.csv'; select * from (select 1",
        "select 1; drop table entity",
    ),
    "select id, (select content from read_text('{f}')) as message from entity",
    "select 'a' as id, getenv('HOME') as message",
    "with x as (from read_text('{f}')) select filename as id, content as message from x",
    "with \"{f}\" as (select 1) select 'a' as id, 'b' as message from '{f}' y, (from '{d}/other.csv')",
    "select 'a' as id, string_agg(content) as message from entity, lateral (from read_text('{f}'))",
    "select id, '' as message from entity where id in (select content from read_text('{f}'))",
    "select 'a' as id, 'b' as message union all select filename, content from read_text('{f}')",
    "select unnest((select list(x) from glob('{d}/*') x)) as id, '' as message",
    "from (from (from (from read_blob('{f}'))))",
    "select columns(*) from read_text('{f}')",
    "select 'a' as id, 'b' as message from entity tablesample 10 rows, '{f}'",
    "select 'a' as id, 'b' as message order by (select count(*) from read_text('{f}'))",
    "select 'a' as id, 'b' as message limit (select count(*) from read_text('{f}'))",
    "select id, '' as message from entity semi join read_text('{f}') r on true",
    "with recursive r(id) as (select 'a' union select content from read_text('{f}'), r) from r",
    "select a.\"b\".c('{f}') as id, '' as message",
    "select main.read_text('{f}') as id, '' as message",
    "/* \n */ -- x\n copy (select 1) to '{d}/out.csv'",
)

WITH_PARAMETER = (
    "select 'a' as id, content as message from read_text($p)",
    "from query($p)",
    "from query_table($p)",
    "from $p",
    "select 'a' as id, b as message from read_csv($p) t(b)",
    "with x as (from glob($p)) select file as id, '' as message from x",
    "select 'a' as id, 'b' as message from entity where id in (select content from read_blob($p))",
    "select 'a' as id, 'b' as message; attach $p as x",
    "copy entity to $p",
    "execute x($p)",
    "set temp_directory = $p",
)
"""``$p`` is a parameter of the rule, and holds the file that is there."""

_DOUBLED = ", ".join(["title || title a0", *(f"a{at} || a{at} a{at + 1}" for at in range(30))])
ENDLESS = (
    "select count(*) as id, '' as message from entity a, entity b, entity c, entity d",
    "select sleep_ms(100000)::varchar as id, '' as message",
    "select levenshtein(repeat('x', 1000000), repeat('y', 1000000)) as id, '' as message",
    "with recursive r(i) as (select 1 union all select i + 1 from r) select count(*) as id, '' as message from r",
    "select max(i) as id, '' as message from range(9000000000000) t(i)",
    f"select 'a' as id, a30 as message from (select {_DOUBLED} from entity)",
    "select len(list_distinct(range(30000000))) as id, '' as message",
    "select lpad('x', 1000000000, 'y') as id, '' as message",
)
GREEDY = (
    "select string_agg(repeat('x', 100000) || i, ',') as id, '' as message from range(1000000) t(i)",
    "select len(list(i)) as id, '' as message from range(1000000000) t(i)",
    "select len(list_resize([1], 1000000000)) as id, '' as message",
    "select 'a' as id, repeat('y', 3000000000) as message",
    "select histogram(i)::varchar as id, '' as message from range(100000000) t(i)",
    "select 'a' as id, array_to_string(range(100000000), ',') as message",
)

INJECTED = (
    *(
        "' or 1=1 --",
        "'; drop table entity; --",
        "x') union select * from read_text('/etc/passwd') --",
        "$1",
        "?",
        "%",
        "_",
    ),
    *(
        "\\",
        '"',
        "''",
        "$$a$$",
        "/*",
        "--",
        "a\u2028b",
        "*",
        "(select 1)",
        "1; attach 'x'",
        "${HOME}",
        "{f}",
        "\x1b[31m",
    ),
    *(
        "'||(select content from read_text('/etc/passwd'))||'",
        "A' and sleep_ms(100000) = '0",
        "E'\\x27'",
        "N''",
        "0x41",
    ),
)
