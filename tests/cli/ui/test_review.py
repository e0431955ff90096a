"""The page of proposals of `kb ui`: by actor, as differences; decided by forms, as `kb review` does, with `--write`."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from tests.cli.ui.test_pages import apply, kb
from tests.cli.ui.test_writing import post, seq_in
from tests.support.browser.chromium import chromium
from tests.support.processes.cli import write
from tests.support.processes.explorer import Explorer

EDGE = {"type": "verified_by", "from": "REQ-2", "to": "T-<b>"}


@pytest.fixture
def root(models, tmp_path):
    """Two agents have proposed a test with an edge, a change of a requirement, and the removal of it."""
    made = shutil.copytree(models / "synced", tmp_path / "repo", symlinks=True)
    settings = json.loads((made / ".kb/config.json").read_text())
    write(made, {".kb/config.json": json.dumps(settings | {"review": {"actors": "agent*"}})})
    apply(made, {"id": "REQ-9", "type": "req", "title": "Pay", "status": "open", "owner": "ben"})
    apply(made, {"id": "T-<b>", "type": "test", "title": "Works", "status": "passing"}, edges=[EDGE], actor="agent-1")
    apply(made, {"id": "REQ-9", "owner": "ann"}, actor="agent-2")
    kb(made, "delete", "REQ-9", actor="agent-1")
    return made


def left(root):
    found = json.loads(kb(root, "--json", "review"))["proposals"]
    return [
        (one.get("id") or f"{one['from']} {one['to']}", one.get("field", "deleted" if "delete" in one else ""))
        for one in found
    ]


def names_of(explorer, query=""):
    """Return the names of the proposals of the page, in its order."""
    return re.findall(r'name="chosen" value="([0-9a-f]{32})"', explorer.get(f"/review{query}").text)


def test_what_is_proposed_is_shown_by_actor_as_a_difference(root):
    with Explorer(root) as explorer:
        page = explorer.get("/review")
        assert re.findall(r"<h2><bdi>([^<]*)</bdi></h2>", page.text) == ["agent-1", "agent-2"]
        assert "4 of 4 proposals" in page.main
        assert "<del><bdi>ben</bdi></del> <ins><bdi>ann</bdi></ins>" in page.text
        assert "<ins><bdi>passing</bdi></ins>" in page.text
        assert "T-&lt;b&gt;" in page.text
        assert ("<form method" in page.text, names_of(explorer)) == (False, [])
        assert post(explorer, "/review", action="accept", chosen="x", seq=5).status == 405
        rows = json.loads(explorer.get("/review?format=json").text)
        assert [(row["by"], row["of"], row["field"], row["change"]) for row in rows] == [
            ("agent-1", "T-<b>", "", "created"),
            ("agent-1", "REQ-2 verified_by T-<b>", "", "created"),
            ("agent-1", "REQ-9", "deleted", "deleted"),
            ("agent-2", "REQ-9", "owner", "updated"),
        ]


def test_an_edge_that_is_only_proposed_is_marked_on_the_pages_of_its_ends(root):
    apply(root, edges=[{"type": "depends_on", "from": "REQ-9", "to": "REQ-1"}], actor="agent-1")
    marked = '<b>depends_on</b> <span class="sev warning">proposed</span>'
    with Explorer(root) as explorer:
        assert [explorer.get(f"/entity/{one}").text.count(marked) for one in ("REQ-9", "REQ-1")] == [1, 1]
        rows = json.loads(explorer.get("/entity/REQ-9?format=json").text)
        around = explorer.get("/entity/REQ-9").text.split('id="around"')[1]
        picture = explorer.get("/entity/REQ-9?format=svg").text
        entities = explorer.get("/entities?type=test").text
    assert [(row["type"], row["proposed"]) for row in rows] == [("depends_on", "yes")]
    assert re.search(r'<b>depends_on</b> <a [^>]*>REQ-1</a> <span class="sev warning">proposed</span></li>', around)
    drawn = '<path class="proposed"'
    assert [drawn in one for one in (around, picture, kb(root, "graph", "REQ-9", "--format", "svg"))] == [True] * 3
    assert re.search(r'T-&lt;b&gt;</a> <span class="sev warning">proposed</span></th>', entities)
    report = kb(root, "report", "--out", "-")
    assert report.count(marked) == 2
    assert report.count(drawn) == 4  # of two edges, on the pages of their ends


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("actor=agent-2", ["owner"]),
        ("type=verified_by", [""]),
        ("id=REQ-9", ["deleted", "owner"]),
        ("record=3", ["", ""]),
        ("session=none", []),
        ("at=3", ["", ""]),
        ("at=2", []),
    ],
)
def test_filters_are_those_of_kb_review(models, root, query, expected):
    with Explorer(root) as explorer:
        rows = json.loads(explorer.get(f"/review?{query}&format=json").text)
        assert [row["field"] for row in rows] == expected
        assert explorer.get(f"/review?{query}").status == 200


def test_a_type_or_an_id_that_does_not_exist_is_refused_with_those_that_do(root):
    with Explorer(root) as explorer:
        unknown, near = explorer.get("/review?type=zzz"), explorer.get("/review?type=verified_bi")
        assert (unknown.status, near.status) == (400, 400)
        assert "There is no type &#39;zzz&#39;." in unknown.main
        assert all(one in unknown.main for one in ("Known: ", " adr, ", " verified_by, "))
        assert "Did you mean &#39;verified_by&#39;?" in near.main
        assert "0 of 4 proposals" in explorer.get("/review?type=flag").main
        gone = explorer.get("/review?id=REQ-8")
        assert (gone.status, "REQ-9" in gone.main) == (404, True)


def test_what_is_ticked_is_accepted_or_rejected_by_one_record(root):
    with Explorer(root, "--write") as explorer:
        test, edge, removal, owner = names_of(explorer)
        refused = post(explorer, "/review", action="accept", seq=5)
        assert (refused.status, "Nothing is ticked" in refused.main) == (400, True)
        done = post(explorer, "/review", action="accept", chosen=owner, seq=5, message="yes", actor="agent-2")
        assert (done.status, done.headers["location"]) == (303, f"{explorer.base}/review?actor=agent-2")
        assert left(root) == [("T-<b>", ""), ("REQ-2 T-<b>", ""), ("REQ-9", "deleted")]
        gone = post(explorer, "/review", action="reject", chosen=owner, seq=6)
        assert (gone.status, "Not all that is ticked is proposed" in gone.main) == (404, True)
        assert post(explorer, "/review", action="erase", chosen=edge, seq=6).status == 400
        assert post(explorer, "/review", action="reject", chosen=removal, seq=6).status == 303
        assert post(explorer, "/review", action="reject", chosen=test, seq=7).status == 303
    assert left(root) == []
    records = json.loads(kb(root, "--json", "log"))["records"]
    assert [one["message"] for one in records[:3]] == ["reject T-<b>", "reject deleted of REQ-9", "yes"]
    assert records[0]["actor"] == "tester"


def test_after_the_deletion_of_what_a_page_is_about_is_accepted_the_page_is_about_all(root):
    with Explorer(root, "--write") as explorer:
        [removal] = names_of(explorer, "?id=REQ-9&actor=agent-1")
        done = post(explorer, "/review", action="accept", chosen=removal, seq=5, id="REQ-9", actor="agent-1")
        assert (done.status, done.headers["location"]) == (303, f"{explorer.base}/review?actor=agent-1")
        assert "2 of 2 proposals" in explorer.get("/review?actor=agent-1").main


def test_a_decision_on_an_earlier_state_or_by_who_may_not_is_refused(root):
    with Explorer(root, "--write") as explorer:
        [owner] = names_of(explorer, "?actor=agent-2")
        apply(root, {"id": "REQ-9", "title": "Pay at once"})
        refused = post(explorer, "/review", action="accept", chosen=owner, seq=5)
        assert (refused.status, "has changed since the page was shown" in refused.main) == (409, True)
        headers = {"Origin": "http://127.0.0.1:1"}
        assert post(explorer, "/review", headers, action="accept", chosen=owner, seq=6).status == 403
        assert (len(left(root)), seq_in(root)) == (4, 6)
    with Explorer(root, "--write", actor="agent-1") as explorer:
        refused = post(explorer, "/review", action="accept", chosen=owner, seq=6)
        assert (refused.status, "may not decide" in refused.main) == (400, True)
        assert (len(left(root)), seq_in(root)) == (4, 6)


def test_it_is_decided_in_a_browser_without_javascript_and_by_keyboard(root):
    with chromium() as browser, Explorer(root, "--write", opens=False) as explorer:
        context = browser.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(explorer.url)
        page.wait_for_url(f"{explorer.origin}{explorer.base}/")
        page.get_by_role("link", name="Review").click()
        page.wait_for_url("**/review")
        page.get_by_label("Decide T-<b>").uncheck()
        page.get_by_label("Reason").first.focus()
        page.keyboard.type("no test of it")
        page.keyboard.press("Enter")
        page.wait_for_timeout(300)
        assert page.get_by_text("4 of 4 proposals").is_visible()
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.get_by_text("3 of 3 proposals").wait_for()
        assert page.get_by_label("Decide REQ-2").count() == 0
        context.close()
    assert left(root) == [("T-<b>", ""), ("REQ-9", "owner"), ("REQ-9", "deleted")]
    assert json.loads(kb(root, "--json", "log"))["records"][0]["message"] == "no test of it"
