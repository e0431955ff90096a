"""Notices of sharing for agents: in ``kb://head``, its notifications, and once in the first answer of a connection."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from kbcore.share.merging import merge
from kbcore.share.sharing import share
from kbcore.storage.fs import RealFs
from tests.mcp.agents import MODES, agent
from tests.mcp.test_resources import read
from tests.mcp.test_subscriptions import HEAD, entity, fast, follower
from tests.support.repository.places import caches_at
from tests.support.repository.project import AUTHOR, Project
from tests.support.repository.repos import git

__all__ = ["fast"]


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path / "a project", fs=RealFs())
    made.apply(entities=[entity("A")])
    yield made
    made.close()


@pytest.fixture
def sharing(project):
    set_mode(project, "ask")
    return project


def set_mode(project, mode):
    path = project.root / ".kb/config.json"
    settings = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**settings, "share": {"mode": mode}}))


def test_without_sharing_nothing_is_said_and_no_index_is_made(project):
    with agent(project.root) as found:
        assert "note" not in found.call("kb_query", limit=1)
        assert "sharing" not in read(found, HEAD)
    assert not list(caches_at(project.root).rglob("claims.db"))


def test_the_first_answer_of_a_connection_says_what_is_not_shared_and_later_ones_do_not(sharing):
    with agent(sharing.root) as found:
        said = found.call("kb_query", limit=1)["note"]
        assert said.startswith("1 change is not shared: ")
        assert "`kb share`" in said
        assert "note" not in found.call("kb_query", limit=1)


def test_the_head_has_the_numbers(sharing):
    sharing.apply(entities=[entity("B")])
    with agent(sharing.root) as found:
        shown = read(found, HEAD)["sharing"]
        [actor] = shown.pop("actors")
        assert actor == sharing.workspace().changes("main").read(lambda index, seq: index.unshared(seq))[0].change.actor
        assert shown == {
            "mode": "ask", "unshared": 2, "refused": 0, "private": 0, "withdrawn": 0, "contested": 0,
            "written": 0,
            "whole": 0,
            "redacted": 0,
            "redactions": [],
        }  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_the_head_is_notified_when_a_commit_shares_what_no_record_says(mode, sharing, fast):
    share(sharing.workspace(), "main")
    sharing.sync()
    with follower(sharing.root, mode) as found, found.following(HEAD):
        git(sharing.root, "commit", "-q", "-m", "shared")
        assert found.received(1) == [HEAD]
        set_mode(sharing, "auto")
        assert found.received(1) == [HEAD]


def test_contested_fields_are_said(project):
    project.switch("topic", create=True)
    project.apply(entities=[entity("A", title="Theirs")])
    project.switch("main")
    project.apply(entities=[entity("A", title="Ours")])
    merge(project.workspace(), "main", "topic", AUTHOR)
    with agent(project.root) as found:
        assert "1 field is contested: " in found.call("kb_query", limit=1)["note"]
        assert read(found, HEAD)["sharing"]["contested"] == 1


def test_what_a_merge_brought_is_of_its_writer_over_mcp(project):
    project.switch("topic", create=True)
    bob = msgspec.structs.replace(AUTHOR, actor="bob", session="s-1")
    project.apply(entities=[entity("A", title="Theirs"), entity("B")], author=bob, message="Seen in the code")
    project.switch("main")
    merge(project.workspace(), "main", "topic", AUTHOR)
    with agent(project.root) as found:
        [one] = found.call("kb_history", action="who", id="A", field="title")["written"]
        by = {name: one[name] for name in ("seq", "actor", "through", "brought_by", "message")}
        assert by == {
            "seq": 2, "actor": "bob", "through": "merge", "brought_by": AUTHOR.actor, "message": "Seen in the code",
        }  # fmt: skip
        [record] = found.call("kb_history", action="log", actor="bob")["records"]
        assert (record["seq"], record["changes_by"]) == (2, ["bob"])
        said = found.call("kb_upsert", entities=[{"id": "A", "title": "Mine"}])["warnings"]
        assert any(f"by 'bob' through the merge of '{AUTHOR.actor}' at seq 2" in str(one) for one in said), said


def test_a_check_by_an_actor_names_the_actor_and_refuses_an_unknown_one(project):
    bob = msgspec.structs.replace(AUTHOR, actor="bob", session="s-1")
    edge = {"type": "relates_to", "kind": "see", "from": "A", "to": "C"}  # orphans waits for the first edge
    project.apply(entities=[entity("C")], edges=[edge])
    project.apply(entities=[entity("B")], author=bob)
    with agent(project.root) as found:
        answer = found.call("kb_check", since=2, actor="bob")
        assert ({one["id"] for one in answer["violations"]}, answer["since"]["actor"]) == ({"B"}, "bob")
        assert found.call("kb_check", since=2, actor=AUTHOR.actor)["total"] == 0
        refused = found.refused("kb_check", since=2, actor="bop")
        assert "'bob'" in str(refused), refused
        assert found.refused("kb_check", actor="bob")["details"][0]["path"] == "$.actor"


def test_kip_warns_with_the_writer_of_what_it_overwrites(project):
    project.switch("topic", create=True)
    bob = msgspec.structs.replace(AUTHOR, actor="bob")
    person = {"id": "Person:p", "type": "Person", "name": "p", "title": "P", "attributes": {"role": "lead"}}
    project.apply(entities=[person], author=bob)
    project.switch("main")
    merge(project.workspace(), "main", "topic", AUTHOR)
    command = 'UPSERT { CONCEPT ?p { {type: "Person", name: "p"} SET ATTRIBUTES { role: "dev" } } }'
    with agent(project.root, "--toolsets", "core,kip") as found:
        answer = found.result("execute_kip", {"command": command})
    said = json.loads(answer.content[1].text)["note"]
    assert f"set by 'bob' through the merge of '{AUTHOR.actor}' at seq 2" in said
