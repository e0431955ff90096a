"""The pages of ``kb ui``: what they show, their filters and exports, and what they say of what cannot be shown."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import shutil
import signal
import socket
import time
from contextlib import closing
from html.parser import HTMLParser
from urllib.parse import quote

import pytest

from kbcore.errors import LimitExceeded
from kbcore.limits import MAX_PAGE_ROWS
from kbcore.view.cache_files import TEXT
from kbweb.links import ServerLinks
from kbweb.server import exports
from kbweb.server.pages.entities import entities
from kbweb.server.pages.page import ExportTable, HtmlPage, PageRequest
from kbweb.server.reading import Reader, ReadTarget
from kbweb.server.request_values import RequestValues
from tests.support.processes.cli import environment, run_kb, write
from tests.support.processes.explorer import Explorer
from tests.support.repository.places import STORES_NAME
from tests.support.repository.project import AUTHOR, req
from tests.support.repository.repos import git

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    "</title></main></form><h1>x",
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt; &#60;i&#62;",
    "<!-- --!> ]]> <![CDATA[",
    "שלום עולם",
    "😀👩‍👩‍👧‍👧",
    "x" * 5000,
]
PAGES = [
    "/",
    "/coverage",
    "/requirements",
    "/requirements?holes=1",
    "/matrix",
    "/matrix?type=req&edges=verified_by",
    "/violations",
    "/conflicts",
    "/review",
    "/entities",
    "/entity/REQ-1",
    "/records",
    "/record/1",
    "/record/2",
    "/record/3/revert",
    "/changes",
    "/changes?from=1&to=2",
    "/activity",
]
ALLOWED = {"data-base", "data-mark"}


def apply(root, *entities, edges=(), actor="tester"):
    """Apply a changeset by another process."""
    kb(root, "apply", "-", actor=actor, stdin=json.dumps({"entities": list(entities), "edges": list(edges)}))


def kb(root, *words, actor="tester", stdin=""):
    done = run_kb(root, *words, env=environment({"KB_ACTOR": actor}), stdin=stdin)
    assert done.status == 0, done.err
    return done.out


@pytest.fixture(scope="module")
def root(models, tmp_path_factory):
    made = shutil.copytree(models / "synced", tmp_path_factory.mktemp("pages") / "repo", symlinks=True)
    wanted = {"id": "REQ-9", "type": "req", "title": "Pay", "status": "open", "tags": ["money"], "priority": "must"}
    apply(made, wanted, {"id": "n/a b", "type": "component", "title": "A slash", "status": "active"}, actor="ann")
    apply(made, {"id": "REQ-9", "type": "req", "title": "Pay at once", "status": "open"}, actor="ben")
    return made


@pytest.fixture(scope="module")
def explorer(root):
    with Explorer(root) as running:
        yield running


class Markup(HTMLParser):
    """The elements of a page: their attributes, and the targets of links."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.targets, self.labelled = [], [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        self.targets += [value for name, value in attrs if name in {"href", "src", "action"}]


@pytest.mark.parametrize("path", PAGES)
def test_each_page_has_no_script_or_style_of_its_own_and_leads_nowhere_else(explorer, path):
    found = explorer.get(path)
    page = Markup(found.text)

    assert found.status == 200
    assert not [name for name in page.attributes if name.startswith("on") or name == "style"]
    assert {name for name in page.attributes if name.startswith("data-")} <= ALLOWED
    assert page.tags.count("script") == 1
    assert "<script>" not in found.text
    assert "style" not in page.tags
    assert [one for one in page.targets if not one.startswith((f"{explorer.base}/", "#"))] == []
    assert page.tags.count("h1") == 1
    assert page.tags.count("main") == 1


def test_every_link_of_every_page_leads_to_a_page(explorer):
    seen, waiting = set(), ["/"]
    while waiting:
        path = waiting.pop()
        if path in seen or len(seen) > 400:
            continue
        seen.add(path)
        found = explorer.get(path)
        # What later records changed again cannot be reverted, which the page says.
        assert found.status == 200 or (found.status == 400 and path.endswith("/revert")), (path, found.text)
        if not found.headers["content-type"].startswith("text/html"):
            continue
        links = re.findall(r'<a [^>]*href="([^"]+)"', found.text)
        waiting += [one.replace("&amp;", "&").removeprefix(explorer.base) for one in links if one[0] == "/"]

    assert {"/entity/REQ-1", "/entity/n%2Fa%20b", "/record/1/revert", "/activity"} <= seen


def test_the_overview_and_the_coverage_have_the_numbers_of_kb_coverage(explorer, root):
    total = json.loads(kb(root, "--json", "coverage"))["total"]

    assert f"{total['verified']['percent']:g} %" in explorer.get("/").main
    assert explorer.get("/requirements").main.count("REQ-") >= total["requirements"]


def test_requirements_are_filtered_by_holes_tag_and_priority(explorer):
    assert "2 of 3 requirements" in explorer.get("/requirements?holes=1&lacks=verified").main
    assert "1 of 3 requirements" in explorer.get("/requirements?tag=money").main
    assert "1 of 3 requirements" in explorer.get("/requirements?priority=must").main
    assert "No requirement matches." in explorer.get("/requirements?tag=money&priority=could").main
    assert explorer.get("/requirements?lacks=nothing").status == 400


def test_a_filter_that_leaves_no_violation_does_not_say_that_there_is_none(explorer):
    assert explorer.get("/violations").main.count("must-coverage") > 1
    assert "No violation matches." in explorer.get("/violations?rule=must-coverage&severity=warning").main


def test_a_matrix_has_the_rows_of_kb_matrix(explorer, root):
    for words, query in (
        (["req", "^tests"], "type=req&edges=%5Etests"),
        (["req", "verified_by", "--holes"], "type=req&edges=verified_by&holes=1"),
        (["req", "relates_to", "--to", "req", "--tag", "auth"], "type=req&edges=relates_to&to=req&tag=auth"),
    ):
        expected = run_kb(root, "--json", "matrix", *words).json
        found = explorer.get(f"/matrix?{query}&format=json")
        if "error" in expected:
            assert found.status == 400
            assert expected["error"]["hint"] in found.text or expected["error"]["details"]
            continue
        assert [row["id"] for row in json.loads(found.text)] == [row["id"] for row in expected["rows"]]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("type=req", ["REQ-1", "REQ-2", "REQ-9"]),
        ("type=req&status=open", ["REQ-1", "REQ-9"]),
        ("tag=money", ["REQ-9"]),
        ("text=pay", ["REQ-9"]),
        ("where=priority%3Dmust", ["REQ-9"]),
        ("path=docs/requirements", ["REQ-1", "REQ-2"]),
        ("type=req&sort=-id", ["REQ-9", "REQ-2", "REQ-1"]),
    ],
)
def test_entities_are_those_of_kb_query(explorer, query, ids):
    assert [one["id"] for one in json.loads(explorer.get(f"/entities?{query}&format=json").text)] == ids
    shown = explorer.get(f"/entities?{query}").text
    assert re.findall(r'<th scope="row"><a href="[^"]*/entity/([^"]+)"', shown) == ids


def test_owners_of_files_are_seen_by_conditions_and_the_summary_is_read_once_for_the_same_file(project):
    project.sync({"CODEOWNERS": "* @all\n", "docs/requirements/a.md": req("REQ-1")})
    reader = Reader(ReadTarget(project.root, None, project.machine, AUTHOR))
    with closing(reader):
        first = reader.read("", reader.summary)
        assert [group.name for group in reader.read("", reader.groups)["owner"]] == ["@all"]
        assert reader.read("", reader.summary) is first
        project.write({"CODEOWNERS": "* @now\n"})
        assert [group.name for group in reader.read("", reader.groups)["owner"]] == ["@now"]
    with Explorer(project.root) as running:
        for page in ("/entities?", "/matrix?type=req&edges=verified_by&"):
            found = [
                json.loads(running.get(f"{page}where=owner%3D%40{name}&format=json").text) for name in ("now", "all")
            ]
            assert [[row["id"] for row in rows] for rows in found] == [["REQ-1"], []]


def test_the_text_index_is_made_before_anybody_searches(project):
    project.sync({"docs/requirements/a.md": req("REQ-1")})
    file = project.workspace().folders.cache_of("main") / TEXT
    reader = Reader(ReadTarget(project.root, None, project.machine, AUTHOR))
    with closing(reader):
        assert not file.exists()
        reader.warm()
        reader.threads.shutdown()
        made = file.stat()
        found = reader.read(
            "", lambda state: entities(PageRequest(RequestValues("text=req"), ServerLinks({}), reader), state)
        )
        assert [one.id for one in found.values["found"]] == ["REQ-1"]
        assert file.stat().st_ino == made.st_ino


def test_an_entity_shows_its_text_edges_both_ways_history_and_surroundings(explorer):
    page = explorer.get("/entity/REQ-1").main

    assert "Log in" in page
    assert "Edges to it" in page
    assert "TEST-1" in page
    assert "seq 1" in page
    assert "The same as a list" in page
    assert "<svg" in explorer.get("/entity/REQ-1?depth=2").text


def test_an_id_with_a_slash_and_a_space_has_a_page(explorer):
    assert "A slash" in explorer.get(f"/entity/{quote('n/a b', safe='')}").main


def test_a_record_is_shown_as_a_difference(explorer):
    found = explorer.get("/record/3")

    assert "<del><bdi>Pay</bdi></del>" in found.text
    assert "<ins><bdi>Pay at once</bdi></ins>" in found.text
    assert "ben" in found.main


def test_records_are_filtered_by_actor_time_and_entity(explorer):
    def seqs(query):
        return [one["seq"] for one in json.loads(explorer.get(f"/records?{query}&format=json").text)]

    assert seqs("") == [3, 2, 1]
    assert seqs("actor=ann") == [2]
    assert seqs("id=REQ-9") == [3, 2]
    assert seqs("since=1&until=2") == [2]
    assert seqs("session=none") == []
    assert "Did you mean" in explorer.get("/records?actor=an").main


def test_activity_says_who_wrote_how_much(explorer):
    rows = json.loads(explorer.get("/activity?format=json").text)

    assert {one["actor"]: one["records"] for one in rows} == {"ann": 1, "ben": 1, "tester": 1}
    second = explorer.get("/activity?offset=1").main
    assert "2 to 3 of 3" in second
    assert ("ann" in second, "ben" in second) == (True, False)
    assert "Nobody else has written." in explorer.get("/activity?offset=3").main


def test_a_remedy_that_only_repeats_what_the_rule_finds_is_left_out(models, tmp_path):
    root = shutil.copytree(models / "synced", tmp_path / "repo", symlinks=True)
    found = "select id, 'It has none.' as message from entity"
    rule = {"id": "no-owner", "severity": "warning", "description": "Each has an owner.", "sql": found}
    write(root, {".kb/rules/owner.yaml": json.dumps({"rules": [rule]})})
    with Explorer(root) as explorer:
        assert explorer.get("/violations?rule=no-owner").main.count("Each has an owner.") == 1


def test_tests_that_fail_have_a_column_of_the_coverage_only_where_there_is_one(explorer):
    assert "Failing" not in explorer.get("/coverage").main


def test_changes_between_two_points(explorer):
    page = explorer.get("/changes?from=2&to=3")

    assert "Pay at once" in page.text
    assert "created" not in page.main.split("Changes")[-1]


def test_the_preview_of_a_revert_writes_nothing(explorer, root):
    before = json.loads(kb(root, "--json", "status"))["seq"]
    found = explorer.get("/record/3/revert")

    assert "<del><bdi>Pay at once</bdi></del>" in found.text
    assert "<ins><bdi>Pay</bdi></ins>" in found.text
    assert json.loads(kb(root, "--json", "status"))["seq"] == before
    refused = explorer.get("/record/2/revert")
    assert refused.status == 400
    assert "3" in refused.main


def test_every_page_can_be_shown_as_of_a_point_which_its_links_keep(explorer):
    for path in ("/", "/entities", "/requirements", "/matrix?type=req&edges=verified_by", "/coverage", "/violations"):
        found = explorer.get(f"{path}{'&' if '?' in path else '?'}at=1")
        assert found.status == 200
        assert "as of seq 1 of 3" in found.text
        assert "REQ-9" not in found.main
        inner = re.findall(r'<nav aria-label="Pages">.*?</nav>', found.text, re.DOTALL)[0]
        assert inner.count("at=1") == inner.count("href=")
    assert explorer.get("/entity/REQ-9?at=1").status == 404
    assert "Pay at once" not in explorer.get("/entity/REQ-9?at=2").main
    assert explorer.get("/?at=99").status == 400


def test_typing_finds_entities_by_id_and_by_the_beginning_of_a_word(explorer):
    assert "/entity/REQ-9" in explorer.get("/suggest?text=REQ-9").text
    assert "/entity/REQ-1" in explorer.get("/suggest?text=lo").text
    assert explorer.get("/suggest?text=").text.strip() == ""


def test_the_list_of_what_is_around_an_entity_says_how_much_it_is(explorer):
    assert re.search(r"The same as a list: \d+ of \d+ entit(y|ies), \d+ edges? ", explorer.get("/entity/REQ-1").main)


def test_exports_are_what_the_page_shows(explorer):
    rows = list(csv.reader(io.StringIO(explorer.get("/entities?type=req&format=csv").text)))
    book = explorer.get("/entities?type=req&format=xlsx")
    picture = explorer.get("/entity/REQ-1?format=svg")
    markdown = explorer.get("/entities?type=req&format=md").text

    assert [row[0] for row in rows] == ["id", "REQ-1", "REQ-2", "REQ-9"]
    assert book.body.startswith(b"PK")
    assert picture.headers["content-type"] == "image/svg+xml"
    assert picture.text.startswith("<svg")
    assert explorer.base not in picture.text
    assert markdown.count("\n") == 5
    for found in (book, picture):
        assert found.headers["content-disposition"].startswith("attachment")
    assert explorer.get("/coverage?format=svg").status == 400


def test_an_export_has_all_rows_whichever_part_is_shown(models, tmp_path):
    root = shutil.copytree(models / "synced", tmp_path / "repo", symlinks=True)
    many = [{"id": f"N-{number:03}", "type": "component", "title": "N", "status": "active"} for number in range(230)]
    apply(root, *many)
    with Explorer(root) as explorer:
        second = re.findall(r'href="([^"]*)" rel="next"', explorer.get("/entities?type=component").text)
        page = explorer.get(html.unescape(second[0]).removeprefix(explorer.base))
        [place] = re.findall(r'href="([^"]*format=csv)"', page.text)
        of_entities = explorer.get(html.unescape(place).removeprefix(explorer.base)).text
        of_record = explorer.get("/record/2?format=json").text
        of_changes = explorer.get("/changes?from=1&to=2&format=json").text

    assert "N-000" not in page.main
    assert [row[0] for row in csv.reader(io.StringIO(of_entities))] == ["id", *(one["id"] for one in many)]
    for text in (of_record, of_changes):
        assert {one["of"] for one in json.loads(text)} == {one["id"] for one in many}


@pytest.mark.slow
def test_an_export_has_more_rows_than_one_answer_of_a_query(models, tmp_path):
    root = shutil.copytree(models / "synced", tmp_path / "repo", symlinks=True)
    ids = [f"N-{number:05}" for number in range(MAX_PAGE_ROWS + 50)]
    for part in (ids[:MAX_PAGE_ROWS], ids[MAX_PAGE_ROWS:]):
        apply(root, *({"id": one, "type": "component", "title": "N", "status": "active"} for one in part))
    with Explorer(root) as explorer:
        found = explorer.get("/entities?type=component&format=csv").text
        of_changes = explorer.get("/changes?from=1&to=3&format=csv").text

    assert [row[0] for row in csv.reader(io.StringIO(found))] == ["id", *ids]
    assert {row[1] for row in csv.reader(io.StringIO(of_changes))} == {"of", *ids}


def test_an_export_of_too_many_rows_is_refused_not_cut(monkeypatch):
    monkeypatch.setattr(exports, "MAX_EXPORT_ROWS", 2)
    rows = [("a",), ("b",), ("c",)]
    with pytest.raises(LimitExceeded, match="more than 2 rows"):
        exports.exported(HtmlPage("x", "X", {}, ExportTable(("id",), rows)), "csv")
    assert exports.exported(HtmlPage("x", "X", {}, ExportTable(("id",), rows[:2])), "csv") == b"id\na\nb\n"


def test_the_warnings_of_a_revert_name_commands_as_they_are_typed(models, tmp_path):
    root = shutil.copytree(models / "synced", tmp_path / "repo", symlinks=True)
    with Explorer(root) as explorer:
        found = explorer.get("/record/1/revert")

    assert found.status == 200
    assert "The next kb sync takes them" in found.main


def test_the_words_of_an_error_are_shown_once(explorer):
    found = explorer.get("/entities?type=rec")

    assert found.main.count("There is no entity type") == 1
    assert found.main.count("Did you mean") == 1
    assert " type Did you mean" in found.main


def test_an_error_of_a_whole_file_names_no_place_in_it(models, tmp_path):
    root = shutil.copytree(models / "synced", tmp_path / "repo", symlinks=True)
    with Explorer(root) as explorer:
        (root / ".kb/config.json").write_text("{")
        found = explorer.get("/")

    assert found.status == 400
    assert ".kb/config.json:1: Not valid JSON" in found.main
    assert "$" not in found.main


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/nothing", 404, "There is no page"),
        ("/entity/REQ-8", 404, "REQ-9"),
        ("/record/99", 404, "The last one is"),
        ("/record/x", 404, "is no record"),
        ("/entities?where=nonsense", 400, "is no condition"),
        ("/entities?type=rec", 400, "req"),
        ("/entities?cursor=abc", 400, "cursor"),
        ("/matrix?edges=verified_bi", 400, "verified_by"),
        ("/requirements?offset=-1", 400, "whole number"),
        ("/?at=no+such+point", 400, "neither a seq nor a time"),
        ("/entities?text=%ff", 400, "cannot be read"),
        ("/violations?rule=orphan", 400, "Did you mean &#39;orphans&#39;?"),
        ("/violations?severity=bad", 400, "Known: error, warning."),
        ("/matrix?format=csv", 400, "it shows no rows"),
    ],
)
def test_what_cannot_be_shown_is_said_with_its_remedy(explorer, path, status, words):
    found = explorer.get(path)

    assert found.status == status
    assert words in found.main
    assert "Traceback" not in found.text


def test_stored_text_is_only_text_wherever_it_is_shown(models, tmp_path):
    made = shutil.copytree(models / "synced", tmp_path / "repo", symlinks=True)
    entities = [
        {
            "id": f"H-{number}",
            "type": "req",
            "title": text,
            "owner": text[:200],
            "tags": [text[:200]],
            "status": "open",
            "attributes": {"note": text},
        }
        for number, text in enumerate(HOSTILE)
    ]
    apply(made, *entities, edges=[{"type": "depends_on", "from": "H-0", "to": "H-1"}], actor=HOSTILE[0])
    write(made, {"docs/requirements/hostile.md": "---\nid: REQ-7\ntitle: x\n---\n" + "\n".join(HOSTILE)})
    with Explorer(made) as explorer:
        plain = Markup(explorer.get("/entities?type=component").text)
        for path in [
            *PAGES,
            "/entity/REQ-7",
            "/entity/H-0",
            "/suggest?text=x",
            "/record/2",
            *(f"/entities?text={quote(text[:400])}" for text in HOSTILE),
            *(f"/records?actor={quote(text[:400])}" for text in HOSTILE),
            *(f"/matrix?edges={quote(text[:400])}" for text in HOSTILE),
            *(f"/entity/{quote(text[:400], safe='')}" for text in HOSTILE),
            *(f"/?at={quote(text[:400])}" for text in HOSTILE),
        ]:
            found = explorer.get(path)
            page = Markup(found.text)
            assert found.status < 500, path
            assert page.tags.count("script") <= plain.tags.count("script"), path
            assert not {"img", "iframe", "object", "embed", "base"} & {*page.tags}, path
            assert not [name for name in page.attributes if name.startswith("on") or name == "style"], path
            assert [one for one in page.targets if not one.startswith((f"{explorer.base}/", "#"))] == [], path
            assert "49" not in found.text or "{{ 7" not in path


def test_a_change_of_another_process_is_told_within_a_second(models, tmp_path):
    made = shutil.copytree(models / "synced", tmp_path / "repo", symlinks=True)
    with Explorer(made) as explorer, explorer.events() as events:
        mark = re.findall(r'data-mark="([^"]*)"', explorer.get("/").text)[0]
        assert events.next() == mark
        taken_s = []
        for number in range(5):  # the quickest counts: another program may have had the machine
            apply(made, {"id": "REQ-5", "type": "req", "title": f"New {number}", "status": "open"})
            applied_s = time.monotonic()
            now = events.next()
            taken_s.append(time.monotonic() - applied_s)
            if min(taken_s) < 1:
                break

        assert min(taken_s) < 1
        assert now == re.findall(r'data-mark="([^"]*)"', explorer.get("/").text)[0]
        assert "REQ-5" in explorer.get("/entities").main
        write(made, {"docs/requirements/later.md": "---\nid: REQ-6\ntitle: From a file\n---\n"})
        assert events.next() != now
        page = explorer.get("/entities")
        assert "REQ-6" in page.main
        assert "1 changed file" in page.text


def test_a_switch_of_the_branch_is_followed(models, tmp_path):
    made = shutil.copytree(models / "synced", tmp_path / "repo", symlinks=True)
    git(made, "add", ".")
    git(made, "commit", "-qm", "documents")
    with Explorer(made) as explorer, explorer.events() as events:
        events.next()
        assert "main at seq" in explorer.get("/").main
        git(made, "switch", "-qc", "side")
        assert events.next().startswith("side ")
        assert "side at seq" in explorer.get("/").main
        assert explorer.get("/entity/REQ-1").status == 200


def test_a_store_that_is_damaged_or_gone_is_a_page_with_the_error(models, tmp_path):
    made = shutil.copytree(models / "synced", tmp_path / "repo", symlinks=True)
    with Explorer(made) as explorer:
        assert explorer.get("/").status == 200
        [head] = (made / STORES_NAME).glob("*/head.json")
        before = head.read_bytes()
        head.write_bytes(b"nonsense")
        for path in ("/", "/entities", "/entity/REQ-1", "/record/1"):
            found = explorer.get(path)
            assert found.status == 500
            assert "kb doctor" in found.main or "kb verify" in found.main
            assert "Traceback" not in found.text
        head.write_bytes(before)
        assert explorer.get("/").status == 200
        shutil.rmtree(made / ".git")
        found = explorer.get("/")
        assert found.status == 400
        assert "git repository" in found.main


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_although_connections_are_open_and_frees_the_port(root, number):
    with Explorer(root) as explorer, explorer.events() as events:
        events.next()
        with socket.create_connection(("127.0.0.1", explorer.port)) as idle:
            idle.sendall(b"GET / HTTP/1.1\r\n")  # a request without its end
            assert explorer.end(number) == 0
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", explorer.port))
        assert explorer.process.stderr
        assert explorer.process.stderr.read() == b""
