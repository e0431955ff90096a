"""`kb ui --write`: forms write by changesets, wrong ones are refused with the field, and other pages write nothing."""

from __future__ import annotations

import json
import re
import shutil
from urllib.parse import urlencode

import pytest

from tests.cli.ui.test_pages import apply, kb
from tests.support.processes.explorer import Explorer

FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def root(models, tmp_path):
    made = shutil.copytree(models / "synced", tmp_path / "repo", symlinks=True)
    apply(made, {"id": "REQ-9", "type": "req", "title": "Pay", "status": "open"})
    return made


def post(explorer, path, headers=None, **values):
    given = {"Cookie": explorer.cookie, "Origin": explorer.origin, "Content-Type": FORM} | (headers or {})
    given = {name: value for name, value in given.items() if value}
    return explorer.ask("POST", f"{explorer.base}{path}", given, urlencode(values).encode())


def seq_of(explorer):
    return int(re.findall(r"at seq (\d+)", explorer.get("/").main)[0])


def seq_in(root):
    return json.loads(kb(root, "--json", "status"))["seq"]


def test_a_form_sets_a_field_states_an_edge_and_removes_it(root):
    with Explorer(root, "--write") as explorer:
        assert 'method="post"' in explorer.get("/entity/REQ-9").text
        done = post(explorer, "/entity/REQ-9", action="set", field="title", value="Pay <b>now</b>", seq=2)
        assert (done.status, done.headers["location"]) == (303, f"{explorer.base}/entity/REQ-9")
        assert "Pay &lt;b&gt;now&lt;/b&gt;" in explorer.get("/entity/REQ-9").text
        assert post(explorer, "/entity/REQ-9", action="set", field="tags", value="a, b", seq=3).status == 303
        assert post(explorer, "/entity/REQ-9", action="link", edge="depends_on", to="REQ-1", seq=4).status == 303
        assert "depends_on" in explorer.get("/entity/REQ-9").main
        assert post(explorer, "/entity/REQ-9", action="unlink", edge="depends_on", to="REQ-1", seq=5).status == 303
        assert "Edges from it" not in explorer.get("/entity/REQ-9").main
    last = json.loads(kb(root, "--json", "log"))["records"][0]
    assert (last["seq"], last["actor"], last["source"]) == (6, "tester", "cli")


@pytest.mark.parametrize(
    ("values", "status", "words"),
    [
        ({"action": "set", "field": "tags", "value": "x" * 70_000}, 400, "tags"),
        ({"action": "set", "field": "", "value": "x"}, 400, "field is empty"),
        ({"action": "link", "edge": "depends_onn", "to": "REQ-1"}, 400, "depends_on"),
        ({"action": "link", "edge": "depends_on", "to": "REQ-99"}, 400, "REQ-99"),
        ({"action": "set", "field": "id", "value": "REQ-7"}, 400, "An id is not set"),
        ({"action": "set", "field": "created_at", "value": "2026-01-01"}, 400, "set by KB itself"),
        ({"action": "set", "field": "depends_on", "value": "REQ-1"}, 400, "is an edge"),
        ({"action": "set", "field": "tags+", "value": "x"}, 400, "is no name of a field"),
        ({"action": "erase"}, 400, "nothing that a form does"),
    ],
)
def test_a_wrong_form_writes_nothing_and_names_the_field(root, values, status, words):
    with Explorer(root, "--write") as explorer:
        found = post(explorer, "/entity/REQ-9", seq=2, **values)

        assert found.status == status
        assert words in found.main
        assert "This cannot be written" in found.main
        assert found.main.count("Nothing was written.") == 1
        assert seq_in(root) == 2


def test_a_form_of_an_earlier_state_says_once_that_nothing_was_written(root):
    with Explorer(root, "--write") as explorer:
        found = post(explorer, "/entity/REQ-9", action="set", field="title", value="Later", seq=1)

    assert found.status == 409
    assert found.main.count("Nothing was written.") == 1


def test_an_id_of_dots_has_a_page_that_changes_it(root):
    apply(root, {"id": "..", "type": "req", "title": "Dots", "status": "open"})
    with Explorer(root, "--write") as explorer:
        [place] = re.findall(r'href="([^"]*/entity/[^"]*)"', explorer.get("/entities?id=..").text)
        assert place.endswith("/entity/%2F..")
        path = place.removeprefix(explorer.base)
        assert "Dots" in explorer.get(path).main
        done = post(explorer, path, action="set", field="title", value="Two dots", seq=3)
        assert (done.status, done.headers["location"]) == (303, place)
        assert "Two dots" in explorer.get(path).main


def test_what_a_file_states_is_refused_with_the_file(root):
    with Explorer(root, "--write") as explorer:
        found = post(explorer, "/entity/REQ-1", action="set", field="title", value="Other", seq=2)

        assert found.status == 400
        assert "docs/requirements/login.md" in found.main


def test_the_second_of_two_writers_is_told(root):
    with Explorer(root, "--write") as explorer:
        apply(root, {"id": "REQ-9", "type": "req", "title": "Other", "status": "open"})
        found = post(explorer, "/entity/REQ-9", action="set", field="title", value="Mine", seq=2)

        assert found.status == 409
        assert "has changed since the page was shown" in found.main
        assert "Other" in explorer.get("/entity/REQ-9").main


def test_a_revert_that_was_previewed_is_written(root):
    apply(root, {"id": "REQ-9", "type": "req", "title": "Pay at once", "status": "open"})
    with Explorer(root, "--write") as explorer:
        assert "Revert record 3</button>" in explorer.get("/record/3/revert").text
        done = post(explorer, "/record/3/revert", seq=3)
        assert done.headers["location"] == f"{explorer.base}/record/4"
        assert "Pay at once" not in explorer.get("/entity/REQ-9").main


def test_forms_of_other_pages_write_nothing(root):
    values = {"action": "set", "field": "title", "value": "Evil", "seq": 2}
    with Explorer(root, "--write") as explorer:
        for headers, status in (
            ({"Origin": "http://evil.example"}, 403),
            ({"Origin": "http://127.0.0.1:1"}, 403),
            ({"Origin": "null"}, 403),
            ({"Origin": "null", "Sec-Fetch-Site": "cross-site"}, 403),
            ({"Origin": ""}, 403),
            ({"Sec-Fetch-Site": "same-site"}, 403),
            ({"Sec-Fetch-Site": "cross-site"}, 403),
            ({"Cookie": ""}, 403),
            ({"Host": "evil.example"}, 421),
            ({"Content-Type": "text/plain"}, 415),
            ({"Content-Type": "application/json"}, 415),
        ):
            assert post(explorer, "/entity/REQ-9", headers, **values).status == status, headers
        assert post(explorer, "/?token=x", {"Sec-Fetch-Site": "cross-site"}, **values).status == 403
        assert post(explorer, "/entity/REQ-9", action="set", field="title", value="x" * 200_000).status == 413
        assert seq_of(explorer) == 2


def test_without_write_no_form_is_offered_or_taken(root):
    with Explorer(root) as explorer:
        assert "post" not in explorer.get("/entity/REQ-9").text
        assert post(explorer, "/entity/REQ-9", action="set", field="title", value="x", seq=2).status == 405
        assert post(explorer, "/record/2/revert", seq=2).status == 405
        assert seq_of(explorer) == 2
