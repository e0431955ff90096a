"""The writer of a fact that came by a change file or by ``kb merge``: the writer of the change, not who brought it."""

from __future__ import annotations

import json

import pytest

from tests.support.repository.repos import git

SYMBOL = {"type": "symbol", "title": "One", "status": "active"}
RELATES = {"type": "relates_to", "kind": "see", "from": "S-2", "to": "S-1"}


def apply(kb, *entities, edges=(), **more):
    return kb("apply", "-", stdin=json.dumps({"entities": list(entities), "edges": list(edges), **more}))


def wrote(kb, *entities, **more):
    ran = apply(kb, *entities, **more)
    assert ran.status == 0, ran


def logged(kb, *words):
    return [one["seq"] for one in kb("log", *words, "--json").json["records"]]


def of_two_writers(root, kb):
    """Let ann write S-1, and bob and carol on another branch what is to be brought."""
    with pytest.MonkeyPatch.context() as user:
        user.setenv("KB_ACTOR", "ann")
        apply(kb, {"id": "S-1", **SYMBOL, "owner": "ann"})
        git(root, "switch", "-q", "-c", "topic")
        kb("branch", "ensure")
        user.setenv("KB_ACTOR", "bob")
        user.setenv("KB_SESSION", "bobs")
        apply(kb, {"id": "S-1", "title": "Two"}, {"id": "S-2", **SYMBOL}, edges=[RELATES], message="Seen in the code")
        user.setenv("KB_ACTOR", "carol")
        user.setenv("KB_SESSION", "carols")
        apply(kb, {"id": "S-1", "owner": "carol"}, {"id": "S-3", **SYMBOL, "title": "Three", "status": "lost"})


def brought_by_merge(root, kb):
    with pytest.MonkeyPatch.context() as user:
        of_two_writers(root, kb)
        user.setenv("KB_ACTOR", "ann")
        git(root, "switch", "-q", "main")
        kb("merge", "topic")
        kb("query")


def brought_by_sync(root, kb):
    with pytest.MonkeyPatch.context() as user:
        of_two_writers(root, kb)
        user.setenv("KB_ACTOR", "ann")
        kb("share")
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "What was learnt")
        git(root, "switch", "-q", "main")
        git(root, "merge", "-q", "topic")
        kb("sync")
        kb("query")


@pytest.fixture(params=["merge", "sync"])
def brought(grown, user, request):
    """Ann brought what bob and carol wrote on another branch, and says how; she wrote S-1 herself."""
    grown(brought_by_merge if request.param == "merge" else brought_by_sync)
    user.setenv("KB_ACTOR", "ann")
    return request.param


def test_who_overwrites_it_is_warned_with_its_writer(kb, brought):
    written = apply(kb, {"id": "S-1", "title": "Three", "owner": "eve"})

    way = f'through the {brought} of "ann" at seq 3'
    for said in (f"`title` was \"Two\", set by 'bob' {way}", f"`owner` was \"carol\", set by 'carol' {way}"):
        assert said.replace('"', "'") in written.err.replace('"', "'")


def test_its_writer_is_not_warned(kb, brought, user):
    user.setenv("KB_ACTOR", "bob")
    written = apply(kb, {"id": "S-1", "title": "Three"})
    assert "overwrites" not in written.err


def test_who_deletes_it_is_warned_with_its_writer(kb, brought):
    written = kb("delete", "S-2", "--cascade")
    assert f"by 'bob' through the {brought} of 'ann' at seq 3" in written.err.replace('"', "'")


def test_who_would_create_it_again_is_told_its_writer(kb, brought):
    written = apply(kb, {"id": "S-2", **SYMBOL, "create": True})
    assert f"created by 'bob' through the {brought} of 'ann' at seq 3" in written.err.replace('"', "'")
    edge = apply(kb, edges=[{**RELATES, "create": True}])
    assert f"created by 'bob' through the {brought} of 'ann' at seq 3" in edge.err.replace('"', "'")


def test_the_log_of_an_actor_or_a_session_has_the_records_with_which_changes_came(kb, brought):
    assert logged(kb, "--actor", "bob") == logged(kb, "--session", "carols") == [3]
    assert logged(kb, "--actor", "bob", "--session", "carols") == []
    assert logged(kb, "--actor", "ann") == [3, 2]
    [record] = kb("log", "--actor", "bob", "--json").json["records"]
    assert (record["actor"], record["changes_by"]) == ("ann", ["bob", "carol"])
    assert "Changes of: bob, carol" in kb("log", "--actor", "bob").out
    assert "bob" in kb("log", "--actor", "bop").err


def test_a_check_since_a_point_charges_the_writer(kb, brought):
    def found(*words):
        return {one["id"] for one in kb("check", "--since", "2", *words, "--json").json["violations"]}

    assert "S-3" in found("--actor", "carol")
    assert "S-3" in found("--session", "carols")
    assert "S-3" not in found("--actor", "bob") | found("--actor", "ann")


def test_a_diff_by_an_actor_has_what_the_actor_wrote(kb, brought):
    found = kb("diff", "2", "3", "--actor", "bob", "--json").json
    assert {one["id"] for one in found["entities"]} == {"S-1", "S-2"}
    assert len(found["edges"]) == 1
    assert not kb("diff", "2", "3", "--actor", "ann", "--json").json["edges"]


def test_a_diff_says_which_changes_brought_it_with_commit_and_file(kb, brought, root):
    found = kb("diff", "2", "3", "--json").json
    by = {one["id"]: [change["actor"] for change in one["changes"]] for one in found["entities"]}
    assert by == {"S-1": ["bob", "carol"], "S-2": ["bob"], "S-3": ["carol"]}
    [edge] = found["edges"]
    [change] = edge["changes"]
    assert (change["actor"], change["seq"], change["commit"]) == ("bob", 3, git(root, "rev-parse", "HEAD"))
    assert bool(change["file"]) == (brought == "sync")
    where = f", in {change['file']}; it came with seq 3" if brought == "sync" else "; it came with seq 3"
    said = kb("diff", "2", "3").out
    assert f"from the change {change['change'][:12]} of bob, {change['at'][:19]}Z{where}" in said
    only = kb("diff", "2", "3", "--actor", "carol", "--json").json["entities"]
    assert {one["actor"] for entity in only for one in entity["changes"]} == {"carol"}
    assert not any("changes" in one for one in kb("diff", "0", "2", "--json").json["entities"])


def test_a_revert_by_actor_undoes_what_the_actor_wrote_and_no_more(kb, brought):
    undone = kb("revert", "--actor", "bob")

    assert undone.status == 0, undone
    entities = {one["id"]: one for one in kb("query", "symbol", "--json").json["entities"]}
    assert entities.keys() == {"S-1", "S-3"}
    assert (entities["S-1"]["title"], entities["S-1"]["owner"]) == ("One", "carol")
    assert kb("verify").status == 0


def test_a_revert_of_who_brought_it_leaves_the_changes_of_others(kb, brought):
    undone = kb("revert", "--actor", "ann", "--since", "2")
    assert "No record of a client is selected" in undone.err


def test_a_change_that_is_committed_later_came_once(kb, synced, user):
    user.setenv("KB_ACTOR", "ann")
    git(synced, "switch", "-q", "-c", "topic")
    kb("branch", "ensure")
    user.setenv("KB_ACTOR", "bob")
    apply(kb, {"id": "S-1", **SYMBOL})
    kb("share")
    git(synced, "add", "-A")
    git(synced, "commit", "-q", "-m", "What was learnt")
    user.setenv("KB_ACTOR", "ann")
    git(synced, "switch", "-q", "main")
    git(synced, "merge", "-q", "--squash", "topic")
    kb("sync")
    git(synced, "commit", "-q", "-m", "Squashed")
    kb("sync")

    assert logged(kb)[0] == 3
    assert logged(kb, "--actor", "bob") == [2]


def test_what_is_shown_again_when_a_change_goes_is_of_its_own_writer(kb, synced, user):
    user.setenv("KB_ACTOR", "ann")
    wrote(kb, {"id": "S-1", **SYMBOL})
    git(synced, "add", "-A")
    git(synced, "commit", "-q", "-m", "Documents")
    git(synced, "switch", "-q", "-c", "topic")
    kb("branch", "ensure")
    user.setenv("KB_ACTOR", "bob")
    wrote(kb, {"id": "S-1", "title": "Two"})
    kb("share", "--actor", "bob")
    git(synced, "add", "-A")
    git(synced, "commit", "-q", "-m", "What was learnt")
    user.setenv("KB_ACTOR", "carol")
    git(synced, "switch", "-q", "main")
    git(synced, "merge", "-q", "topic")
    kb("sync")
    git(synced, "reset", "-q", "--hard", "HEAD~1")
    kb("sync")
    found = kb("query", "--id", "S-1", "--json").json["entities"]
    assert [one["title"] for one in found] == ["One"], (found, kb("log").out)

    written = apply(kb, {"id": "S-1", "title": "Three"})

    assert "was 'One', set by 'ann' through the sync of 'carol'" in written.err.replace('"', "'"), written


def test_a_choice_between_contested_values_warns_of_no_overwriting(kb, synced, user):
    user.setenv("KB_ACTOR", "ann")
    apply(kb, {"id": "S-1", **SYMBOL})
    git(synced, "switch", "-q", "-c", "topic")
    kb("branch", "ensure")
    user.setenv("KB_ACTOR", "bob")
    wrote(kb, {"id": "S-1", "title": "Theirs"})
    git(synced, "switch", "-q", "main")
    user.setenv("KB_ACTOR", "ann")
    wrote(kb, {"id": "S-1", "title": "Ours"})
    kb("merge", "topic")

    decided = kb("resolve", "S-1", "title", "--take", "2")

    assert (decided.status, "overwrites" in decided.err) == (0, False), decided
