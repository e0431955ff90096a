"""H2: what a repository brings along reaches nothing: no file, no network, no setting, and no more time or memory."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from kbcore import checks, query
from kbcore.errors import KBError
from kbcore.limits import MAX_RULE_MEMORY_BYTES
from kbcore.model.schema import CORE
from kbcore.query import Condition, Query
from kbcore.query.paging import page_of
from kbcore.rules import RuleContext, check
from kbcore.rules.project import Parameter, TextPlace, sql_rule
from kbcore.storage.fs import RealFs
from kbcore.store.history.moment import seq_at
from kbcore.view.relations import RELATIONS, SqlRefused
from kbcore.view.sandbox import Sandbox, Times
from tests.support.effort.scale import SCALE, tries
from tests.support.fuzz.hostile_sql import ENDLESS, FILES, GREEDY, INJECTED, SMUGGLED, STATEMENTS, WITH_PARAMETER
from tests.support.processes.spoken import ROOT, Spoken, is_there, use_every_tool
from tests.support.repository.project import Project, document, req
from tests.support.views.graph import Texts, graph_of, node

TEMPORARY = tempfile.gettempdir()
SYSTEM = (
    *("/lib", "/usr/lib", "/usr/local/lib", "/usr/share/locale", "/usr/share/zoneinfo", "/etc/localtime", "/etc/ld.so"),
    *("/dev/null", "/dev/urandom", "/proc/self/", "/proc/sys", "/proc/stat", "/proc/meminfo", "/proc/cpuinfo"),
    *("/sys/fs/cgroup", "/sys/devices/system/cpu", "/etc/ssl/openssl.cnf", "/usr/local/ssl", f"{TEMPORARY}/kb-"),
)
"""Files that the loader, the C library and DuckDB read, and the folders that KB makes for itself."""

PLACE = TextPlace(".kb/rules/a.yaml", 4, has_lines=True)
TIME_S = 60.0
"""More than any SQL that ends needs on a busy machine."""
SHORT_S = 0.3
"""Enough for what does not end."""
LATE_S = 30.0
"""So much later than its limit SQL may be ended there."""
GRAPH = graph_of([node(f"A{number}", path="docs/a.md") for number in range(3000)])


def lend(table: str, path: str) -> None:
    GRAPH.connection.execute(f"attach '{path}' as lent")
    GRAPH.connection.execute(f"create table lent.{table} as {RELATIONS[table].select}")
    GRAPH.connection.execute("detach lent")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(lend, Times(TIME_S)) as made:
        yield made


def reason(sandbox: Sandbox, sql: str) -> str:
    """Run a rule and return why it did not run; "" when it ran."""
    rule = sql_rule("mine", "error", "d", sql, PLACE)
    report = check(RuleContext(GRAPH.rows, CORE, None, sandbox), {}, only=["mine"], project=[rule])
    return report.rules[0].reason


@pytest.mark.fault("H2")
def test_sql_of_a_rule_that_reaches_out_is_refused_with_file_and_line(sandbox, tally, tmp_path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("id,message\nhidden treasure,x\n")
    before = sorted(tmp_path.iterdir())
    texts = [f"select 'a' as id,\n * from {one}" for one in FILES]
    for text in [*texts, *(f"select 'a' as id, 'b' as message from\n{one}" for one in FILES), *STATEMENTS, *SMUGGLED]:
        sql = text.replace("{f}", str(secret)).replace("{d}", str(tmp_path))
        said = reason(sandbox, sql)
        tally.tried()
        if not re.match(r"\.kb/rules/a\.yaml:[4-7]: the SQL .*[.?!…`]$", said, re.DOTALL) or "treasure" in said:
            tally.violated(sql, said)
        if any(word in said for word in ("Traceback", "Exception", "\n", "LINE ")):
            tally.violated(sql, said)
    assert sorted(tmp_path.iterdir()) == before
    assert GRAPH.rows("select count(*) from node") == [(3000,)]
    assert reason(sandbox, "select id, 'm' as message from entity where false") == ""
    tally.done(at_least=140)


@pytest.mark.fault("H2")
def test_a_parameter_opens_no_way_either(sandbox, tally, tmp_path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("hidden treasure\n")
    params = (Parameter("p", str(secret), str(secret), ".kb/rules/a.yaml:3"),)
    for sql in WITH_PARAMETER:
        rule = sql_rule("mine", "error", "d", sql, PLACE, params=params)
        report = check(RuleContext(GRAPH.rows, CORE, None, sandbox), {}, only=["mine"], project=[rule])
        tally.tried()
        reported = f"{report.rules[0].reason} {report.violations}"
        if "treasure" in reported or report.rules[0].status == "ran":
            tally.violated(sql, reported)
    for sql in INJECTED:
        value = sql.replace("{f}", str(secret))
        params = (Parameter("p", "", value, ".kb/rules/a.yaml:3"),)
        rule = sql_rule("mine", "error", "d", "select 'a' as id, $p as message", PLACE, params=params)
        report = check(RuleContext(GRAPH.rows, CORE, None, sandbox), {}, only=["mine"], project=[rule])
        tally.tried()
        if [one.message for one in report.violations] != [value]:
            tally.violated(sql, report)
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]
    tally.done(at_least=30)


@pytest.mark.fault("H2")
def test_what_passed_a_look_at_the_sql_would_still_reach_nothing(sandbox, tally, tmp_path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("id\nhidden treasure\n")
    harmless = {"create", "drop", "begin", "use", "describe", "show", "comment", "explain", "detach", "checkpoint"}
    harmless |= {
        "delete",
        "insert",
        "update",
        "alter",
        "truncate",
        "merge",
        "prepare",
        "execute",
        "vacuum",
        "call",
        "pivot",
    }
    for text in (*STATEMENTS, *(f"from {one}" for one in FILES[:19])):
        sql = text.replace("{f}", str(secret)).replace("{d}", str(tmp_path))
        if sql.split(maxsplit=1)[0] in harmless or ":memory:" in sql or "variable" in sql:
            continue  # it may do as it likes to its own copy
        tally.tried()
        with pytest.raises(SqlRefused, match=r"(?s)^((?!treasure).)*$"):
            sandbox.rows(sql.replace("\n", " "), tables=["entity"])
    locks = "select current_setting('enable_external_access'), current_setting('lock_configuration')"
    assert sandbox.rows(locks) == [(False, True)]
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]
    tally.done(at_least=30)


@pytest.mark.sliced
@pytest.mark.fault("H2")
def test_sql_that_does_not_end_is_ended_at_its_limit(tally) -> None:
    with Sandbox(lend, Times(SHORT_S)) as hasty:
        for sql in ENDLESS[: tries(2, len(ENDLESS))]:
            begun = time.monotonic()
            said = reason(hasty, sql)
            took_s = time.monotonic() - begun
            tally.tried()
            if not said.startswith(".kb/rules/a.yaml:4: the SQL was ended: it "):
                tally.violated(sql, said)
            if took_s > 3 * SHORT_S + LATE_S:  # three statements, each with its time
                tally.violated(sql, f"{took_s:.1f} s")
        assert "ruleTimeLimitSeconds" in reason(hasty, ENDLESS[0])
    tally.done()


@pytest.mark.sliced
@pytest.mark.fault("H2")
def test_sql_gets_no_more_memory_than_its_limit_and_the_next_rule_does_not_suffer(tally) -> None:
    with Sandbox(lend, Times(TIME_S)) as roomy:
        for sql in GREEDY[: tries(1, len(GREEDY))]:
            said = reason(roomy, sql)
            tally.tried()
            if "1024 MiB of memory" not in said:
                tally.violated(sql, said)
            if reason(roomy, "select id, repeat('y', 1000) as message from entity where id < 'A1'"):
                tally.violated(sql, "the rule after it could not run")
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    assert largest < 1.5 * MAX_RULE_MEMORY_BYTES, largest
    tally.done()


@pytest.mark.fault("H2")
def test_sql_may_give_only_so_many_and_so_long_messages(sandbox, tally) -> None:
    assert "more than 10000 rows" in reason(sandbox, "select i as id, '' as message from range(10001) t(i)")
    rule = sql_rule("mine", "error", "d", "select 'A1' as id, repeat('y', 100000) as message", PLACE)
    [found] = check(RuleContext(GRAPH.rows, CORE, None, sandbox), {}, only=["mine"], project=[rule]).violations
    assert (len(found.message), found.source) == (2000, "docs/a.md")
    assert "longer than" in reason(sandbox, "select " + "1+" * 40_000 + "1")
    for deep in ("select " + "(" * 20_000 + "1" + ")" * 20_000, "select " + "not " * 15_000 + "true"):
        assert reason(sandbox, deep).startswith(".kb/rules/a.yaml:4: the SQL ")
    tally.tried(4)
    tally.done()


@pytest.mark.fault("H2")
def test_a_limit_of_the_settings_holds_in_a_check_of_a_branch(tally, tmp_path) -> None:
    project = Project(tmp_path / "p")
    late = "- id: late\n  sql: |\n    select id, 'late' as message\n    from entity\n"
    rules = f"rules:\n- id: slow\n  sql: {ENDLESS[1]}\n{late}"
    project.sync({"docs/requirements/a.md": req("A"), ".kb/rules/a.yaml": rules})
    project.write({".kb/config.json": '{"ruleTimeLimitSeconds": 1}'})
    with project.view() as view:
        report = checks.run_checks(project.workspace(), view, branch="main", only=["slow", "late"])
    slow, after = report.rules
    assert slow.reason == (
        ".kb/rules/a.yaml:3: the SQL was ended: it did not end within 1 s; "
        "`ruleTimeLimitSeconds` in .kb/config.json is the limit."
    )
    assert after.status == "ran"
    assert [(one.id, one.source) for one in report.violations] == [("A", "docs/requirements/a.md")]
    tally.done(at_least=0)


@pytest.mark.sliced
@pytest.mark.fault("H2")
def test_what_a_user_types_into_a_query_is_data(tally, tmp_path) -> None:
    project = Project(tmp_path / "p")
    entities = [{"id": "A", "type": "req", "title": "plain", "status": "open", "attributes": {"kind": "unit"}}]
    entities += [{"id": f"I{at}", "type": "req", "title": text, "status": "open"} for at, text in enumerate(INJECTED)]
    project.apply(entities=entities)
    view = project.view()
    count = len(entities)
    for at, text in enumerate(INJECTED):
        own = f"I{at}"
        for asked, expected in (
            (Query(where=((Condition("title", text),),)), {own}),
            (Query(ids=(text,)), set()),
            (Query(status=text), set()),
            (Query(tags=(text,)), set()),
            (Query(where=((Condition(f"attributes.{text}", text),),)), set()),
            (Query(where=((Condition(text, "x"),),)), set()),
            (Query(text=text), None),
            (Query(sort=text), None),
            (Query(fields=(text,)), None),
            (Query(type=text), None),
            (Query(has=(query.Pattern(text, text),)), None),
            (Query(follow=(text,), from_id=text), None),
            (Query(cursor=text), None),
        ):
            tally.tried()
            found = _answer(view, asked)
            if expected is not None and found is not None and found != expected:
                tally.violated(asked, found)
            if found is not None and not found <= {one["id"] for one in entities}:
                tally.violated(asked, found)
        with contextlib.suppress(KBError):
            seq_at(view, text)
    assert view.rows("select count(*) from node") == [(count,)]
    tally.done(at_least=300)


def _answer(view, asked: Query) -> set[str] | None:
    """Return the ids of a page, None when the query is refused in so many words."""
    try:
        return {one.id for one in page_of(view, query.check(asked, CORE), "main", Texts(view)).entities}
    except KBError:
        return None


@pytest.fixture
def base(tmp_path: Path) -> Project:
    """A repository that names files outside of itself wherever it can, and a secret beside it."""
    (tmp_path / "secret.md").write_text(req("SECRET"))
    project = Project(tmp_path / "p", fs=RealFs())
    project.sync(
        {
            "docs/requirements/a.md": req("A", links="[../../../secret.md, /etc/passwd]"),
            "docs/requirements/b.md": document(
                "B", "[x](../../../secret.md)", title="T", text_ref="../../../secret.md"
            ),
            ".kb/rules/a.yaml": "rules:\n- id: mine\n  sql: select id, 'm' as message from entity\n",
        }
    )
    (project.root / "docs/requirements/c.md").symlink_to(tmp_path / "secret.md")
    project.close()
    return project


def permitted(project: Project) -> tuple[str, ...]:
    """Return where the server may read: the repository, Python with its packages, KB itself, and what it makes."""
    python = {sys.prefix, sys.base_prefix, *sys.path[1:], str(Path(duckdb.__file__).parents[1])}
    return (
        str(project.root),
        *filter(None, python),
        f"{os.environ['HOME']}/.local/state/kb/witness",
        *(str(ROOT / name) for name in ("kbcore", "kbmcp", "tests/support")),
    )


@pytest.mark.sliced
@pytest.mark.fault("H2")
def test_the_server_opens_nothing_outside_of_the_repository_and_no_connection(base, tally, tmp_path) -> None:
    log = tmp_path / "log"
    with Spoken(base.root, command=("-m", "tests.support.processes.audited", str(log))) as server:
        use_every_tool(server)
        assert b"SECRET" not in b"".join(server.lines)
    may_read = permitted(base)
    own = re.compile(rf"owner$|{re.escape(TEMPORARY)}/(kb-\w+|\w{{8}})(/|$)|/dev/(null|urandom)$|\d+$")
    for event, what in map(json.loads, log.read_text().splitlines()):
        tally.tried()
        if event.startswith("socket."):  # the event loop wakes itself through a pair of sockets without an address
            is_well = event == "socket.__new__" and what[0] == "1"
        elif event in {"os.listdir", "os.scandir"} and what == TEMPORARY:
            is_well = True  # names alone are read there, to find the folders of processes that were killed
        elif event in {"open", "os.listdir", "os.scandir"}:
            is_well = str(what).startswith(may_read) or own.match(str(what)) is not None or what == str(ROOT)
        else:
            is_well = event == "subprocess.Popen" and (what.startswith(may_read) or Path(what).name == "git")
        if not is_well:
            tally.violated(event, what)
    tally.done(at_least=100)


@pytest.mark.fault("H2")
@pytest.mark.skipif(SCALE == "slice", reason="the audit hook says it in a tenth of the time")
def test_no_system_call_of_the_server_or_what_it_starts_reaches_out(base, tally, tmp_path) -> None:
    if not is_there("strace"):
        pytest.skip("there is no strace; the audit hook has seen what Python opens")
    log = tmp_path / "log"
    trace = ("strace", "-f", "-o", str(log), "-e", "trace=network,openat,open,execve")
    with Spoken(base.root, prefix=trace) as server:
        use_every_tool(server)
    may_read = (*permitted(base), *SYSTEM)
    for line in log.read_text().splitlines():
        opened = re.search(r"(?:openat|open|execve)\((?:AT_FDCWD, |\d+, )?\"([^\"]*)\".* = \d+", line)
        if opened:
            tally.tried()
            path = opened[1]
            is_below = not path.startswith("/") and ".." not in path.split("/")
            is_own = is_below or re.fullmatch(rf"{re.escape(TEMPORARY)}/\w{{8}}", path) or Path(path).name == "git"
            # Names alone are read there, to find the folders of processes that were killed.
            is_own = is_own or (path == TEMPORARY and re.search(r", O_RDONLY\|[A-Z_|]*O_DIRECTORY\) = ", line))
            if not is_own and not path.startswith(may_read):
                tally.violated("open", line)
        elif re.search(r"\b(?:socket|connect|bind|listen|accept4?|sendto)\(", line) and not _is_own_pipe(line):
            tally.violated("network", line)
    tally.done(at_least=100)


def _is_own_pipe(line: str) -> bool:
    """Tell whether a call is about the pair of sockets without an address by which the event loop wakes itself."""
    return "AF_UNIX" in line or ("sendto(" in line and "NULL, 0" in line)
