"""The project's own rules: how their files are read, and what their SQL may do."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from kbcore import rules
from kbcore.errors import InvalidConfig
from kbcore.model.schema import CORE
from kbcore.rules import RuleContext, load_rules, rules_file
from kbcore.rules.project import TextPlace, sql_rule
from kbcore.view.relations import RELATIONS
from kbcore.view.sandbox import Sandbox, Times
from tests.support.views.graph import graph_of, link, node

GOOD = """\
rules:
  - id: req-has-owner
    severity: warning
    description: Somebody answers for every requirement.
    sql: |
      select id, id || ' has no owner' as message
      from entity where type = 'req' and owner is null -- nobody
  - id: second
    sql: "select 'X' as id, 'never' as message where false;"
"""


PLACE = TextPlace(".kb/rules/a.yaml", 4, has_lines=True)


@contextmanager
def context_of(graph):
    """Give what rules look at, with a place for SQL of the project's own."""

    def lend(table, path):
        graph.connection.execute(f"attach '{path}' as lent")
        graph.connection.execute(f"create table lent.{table} as {RELATIONS[table].select}")
        graph.connection.execute("detach lent")

    with Sandbox(lend, Times(10)) as sandbox:
        yield RuleContext(graph.rows, CORE, None, sandbox)


@pytest.fixture(scope="module")
def context():
    """The graph of one document, for the tests that need no other."""
    with context_of(graph_of([node("A", path="docs/a.md")])) as found:
        yield found


def outcome(sql, context):
    report = rules.check(context, {}, only=["mine"], project=[sql_rule("mine", "error", "d", sql, PLACE)])
    return report.rules[0], report.violations


def problems(text):
    with pytest.raises(InvalidConfig) as caught:
        load_rules({".kb/rules/a.yaml": text})
    return [(str(one.line), one.message) for one in caught.value.details]


def test_the_rules_of_a_file_run_beside_those_of_kb():
    loaded = load_rules({".kb/rules/a.yaml": GOOD})
    assert [(rule.id, rule.severity) for rule in loaded] == [("req-has-owner", "warning"), ("second", "error")]
    graph = graph_of([node("A", path="docs/a.md"), node("B", owner="ann")], [link("A", "depends_on", "B")])
    with context_of(graph) as context:
        report = rules.check(context, {}, project=loaded)
    [found] = report.violations
    assert (found.rule, found.severity, found.id) == ("req-has-owner", "warning", "A")
    assert (found.message, found.source) == ("A has no owner", "docs/a.md")
    assert found.hint == "Somebody answers for every requirement."
    assert [run.id for run in report.rules][-2:] == ["req-has-owner", "second"]


@pytest.mark.parametrize(
    ("message", "names_id"),
    [
        ("is wrong, see A0", False),
        ("is wrong, see A.2", False),
        ("is wrong, see OLD-A", False),
        ("Nothing implements A.", True),
        ("''A'': wrong", True),
        ("", False),
    ],
)
def test_a_finding_knows_whether_the_message_of_its_row_names_the_entity(context, message, names_id):
    _, [found] = outcome(f"select id, '{message}' as message from entity", context)
    assert found.names_id is names_id


def test_the_column_value_distinguishes_findings_of_one_entity(context):
    _, found = outcome("select id, 'odd' as message, v as value from entity, (values (2), (10)) t(v)", context)
    assert [(one.id, one.values) for one in found] == [("A", ("2",)), ("A", ("10",))]


@pytest.mark.parametrize("text", ["", "# nothing\n", "rules: []\n"])
def test_a_file_may_be_empty(text):
    assert load_rules({".kb/rules/a.yaml": text}) == []


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("rule: []\n", "1", "'rule'"),
        ("rules: text\n", "1", "a list"),
        ("rules:\n  - id: a\n", "2", "`sql`"),
        ("rules:\n  - sql: select 1\n", "2", "`id`"),
        ("rules:\n  - id: Bad Name\n    sql: select 1\n", "2", "'Bad Name'"),
        ("rules:\n  - id: a\n    sql: ''\n", "3", "text"),
        ("rules:\n  - id: a\n    severity: eror\n    sql: x\n", "3", "'eror'"),
        ("rules:\n  - id: a\n    sqll: x\n    sql: x\n", "3", "'sqll'"),
        ("rules:\n  - id: a\n    sql: x\n  - id: a\n    sql: y\n", "4", "a.yaml has a rule 'a' already"),
        ("rules:\n  - sql: select 1\n    id: acyclic\n", "3", "KB has a rule 'acyclic' already"),
        ("rules:\n  - id: [a\n", "2", "not closed"),
    ],
)
def test_what_is_wrong_with_a_file_is_named_with_its_line(text, line, said):
    found = problems(text)
    assert any(at == line and said in message for at, message in found), found


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- id: a\n  sql: select 1\n", "a.yaml:1: The file must be an object with the member `rules`, not a list."),
        ("select 1\n", "a.yaml:1: The file must be an object with the member `rules`, not 'select 1'."),
        ("\nrules: {id: a}\n", "a.yaml:2: `rules` must be a list, not an object."),
        ("rules:\n", "a.yaml:1: `rules` must be a list, and it is empty."),
        ("rules:\n\n- select 1\n", "a.yaml:3: `rules[0]` must be an object, not 'select 1'."),
    ],
)
def test_a_file_of_another_shape_gets_one_error_with_an_example_that_works(text, said):
    with pytest.raises(InvalidConfig) as refused:
        load_rules({"a.yaml": text})
    assert (refused.value.message, refused.value.hint) == (said, rules_file.EXAMPLE)
    [rule] = load_rules({"a.yaml": rules_file.EXAMPLE.split("`")[1]})
    with context_of(graph_of([node("A"), node("B", owner="ann")])) as context:
        assert [one.id for one in rules.check(context, {}, only=[rule.id], project=[rule]).violations] == ["A"]


def test_a_tab_that_indents_is_named_with_its_line():
    with pytest.raises(InvalidConfig) as refused:
        load_rules({"a.yaml": "rules:\n\t- id: a\n"})
    assert (refused.value.message, refused.value.hint) == (
        "a.yaml:2: Not valid YAML: a tab is used to indent (column 1).",
        "Indent with spaces.",
    )


def test_one_name_in_two_files_is_refused():
    text = "rules:\n  - id: a\n    sql: select 1\n"
    with pytest.raises(InvalidConfig, match=r"b\.yaml:2: a\.yaml has a rule 'a' already"):
        load_rules({"a.yaml": text, "b.yaml": text})


@pytest.mark.parametrize(
    "sql",
    [
        "select id, title as message from entity",
        "with r as (from entity) select id, 'm' as message from r",
        "with recursive r(id) as (select 'A' union select to_id from edge, r) select id, '' as message from r",
        "select id, 'm' as message, 7 as more from entity, unnest(['x']) where id not in (select source from record)",
        "select 'A' as id, null as message",
        "select id, 'm' as message from ENTITY;  ",
        "select id, 'm' as message from entity; -- ; the end\n/* of it; */ ;",
        "select id, ';-- it''s' as message /* ; */, $$;$$ as \";\", e'\\';' as x -- ;\nfrom entity",
        "select id, 'm' as message from entity where (select count(*) from entity_history) = 0",
    ],
)
def test_a_select_over_the_view_can_run(sql, context):
    run, found = outcome(sql, context)
    assert (run.status, [one.id for one in found]) == ("ran", ["A"])


@pytest.mark.parametrize("message", ["null", "''", "' '", "e' \\n'"])
def test_a_row_without_a_message_says_the_description_once(context, message):
    _, [found] = outcome(f"select 'A' as id, {message} as message", context)
    assert found.message.strip()
    assert found.hint != found.message


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("selct", "syntax error"),
        ("", "0 statements"),
        ("select 1; select 2", "2 statements"),
        ("drop table entity", "must be one SELECT, and nothing else"),
        ("select 1 as id) r; drop table entity; select (1", "syntax error"),
        ("select id from entity", "no column `message`, but 'id'"),
        ("select 1 as ident", "no column `id` and `message`, but 'ident'"),
        ("select id, message from entitys", "'entitys', which a rule may not. Did you mean 'entity'?"),
        ("select id, message from read_text('/etc/passwd')", "read_text()"),
        ("select 'a' as id, (select content from read_text('/etc/passwd')) as message", "read_text()"),
        ("from '/etc/passwd.csv'", "passwd"),
        ("select * from (with \"x.csv\" as (select 1) select 1), 'x.csv'", "'x.csv'"),
        ("from query('from entity')", "query()"),
        ("from duckdb_settings()", "duckdb_settings()"),
        ("from information_schema.tables", "'tables'"),
        ("select id, error('stop') as message from entity", "stop"),
    ],
)
def test_other_sql_is_reported_as_not_run_and_does_nothing(sql, said, context):
    run, found = outcome(sql, context)
    assert run.status == "not_run"
    assert said in run.reason
    assert found == []
    assert context.rows("select count(*) from node", []) == [(1,)]


def test_an_id_that_is_no_entity_is_reported_without_a_file(context):
    run, [found] = outcome("select 7 as id, 'seven' as message", context)
    assert run.status == "ran"
    assert (found.id, found.source) == ("7", "")


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (
            "select id,\n  titel as message\nfrom entity",
            '.kb/rules/a.yaml:5: the SQL cannot be used. DuckDB reports: Referenced column "titel" not found',
        ),
        ("select id,\nfrom where node", ".kb/rules/a.yaml:5: the SQL cannot be used. DuckDB reports: syntax error"),
        ("select id, '' as message\nfrom entitys", ".kb/rules/a.yaml:5: the SQL reads 'entitys'"),
        ("select id, '' as message\nfrom other.entity", ".kb/rules/a.yaml:5: the SQL reads 'entity'"),
        (
            "select id, 'a' + 1 as message from entity",
            ".kb/rules/a.yaml:4: the SQL cannot be used. DuckDB reports: Could not choose a best candidate function",
        ),
        (
            "select id, cast(id as int) as message from entity",
            ".kb/rules/a.yaml:4: the SQL cannot be used. DuckDB reports: Could not convert string",
        ),
    ],
)
def test_what_the_database_refuses_is_reported_by_file_and_line_without_its_internals(sql, reason, context):
    run, _ = outcome(sql, context)
    assert run.reason.startswith(reason)
    assert not any(word in run.reason for word in ("LINE", "^", "Exception", "Error:", "r.id", "\n", "\t"))


@pytest.mark.parametrize(
    ("stated", "line"),
    [("sql: |\n      select id,\n      x", 5), ("sql: |-  # why\n      select id,\n      x", 5), ("sql: select x", 3)],
)
def test_a_line_of_the_sql_is_a_line_of_the_file_where_it_is_written_so(stated, line, context):
    [rule] = load_rules({"a.yaml": f"rules:\n  - id: mine\n    {stated} from entity\n"})
    report = rules.check(context, {}, only=["mine"], project=[rule])
    assert report.rules[0].reason.startswith(f"a.yaml:{line}: ")


def test_a_rule_may_join_a_large_common_table_expression_with_itself(context):
    sql = (
        "with m as materialized (select e.id, i from entity e, range(70000) t(i)) "
        "select a.id, 'found ' || a.i as message from m a join m b on a.i = b.i where a.i + b.i < 3"
    )
    rule, violations = outcome(sql, context)
    assert rule.status == "ran", rule
    assert sorted(one.message for one in violations) == ["found 0", "found 1"]
