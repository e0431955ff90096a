"""A subscriber of a resource is notified when it changes, whoever changed it, and of nothing else."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import mcp_types as types
import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ToolsListChanged

from kbcore.storage.fs import RealFs
from kbcore.store.history.undo import revert
from kbmcp.resources import resource_digests
from kbmcp.resources.subscriptions import MAX_FOLLOWED
from tests.mcp.agents import MODES, ROOT, WAIT_S, agent, raw, server_env, spawned
from tests.mcp.test_streams import ENVELOPE
from tests.mcp.wiring import wired
from tests.support.repository.places import stores_at
from tests.support.repository.project import AUTHOR, Project, req

HEAD, CHECK, SCHEMA, A, B = "kb://head", "kb://check", "kb://schema", "kb://entity/A", "kb://entity/B"
WORK, WAKING = "kb://kip/work", "kb://kip/waking"
"""Resources of the toolset kip."""
END_S = 8.0
"""Well below the time that requests in hand are given at the end of input."""


def entity(key, **fields):
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open", **fields}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A repository whose files are replaced in one step: a server looks at them while they are written."""
    made = Project(tmp_path / "a project", fs=RealFs())
    yield made
    made.close()


@pytest.fixture
def started(project):
    project.apply(entities=[entity("A"), entity("B")])
    return project


class Follower:
    """The SDK's client in one era, and its notifications."""

    def __init__(self, client, portal, received):
        self._client = client
        self._portal = portal
        self._received = received

    def call(self, name, **arguments):
        return self._portal.call(self._client.call_tool, name, arguments)

    @contextmanager
    def following(self, *uris, tools=False):
        """Follow these resources, in this order, with what the era has for it."""
        if self._client.protocol_version == "2026-07-28":
            listening = self._client.listen(resource_subscriptions=uris, tools_list_changed=tools)
            with self._portal.wrap_async_context_manager(listening) as stream:
                self._portal.start_task_soon(self._pump, stream)
                yield stream.honored
            return
        with warnings.catch_warnings(action="ignore"):  # the SDK warns of what the newer era has no more
            for uri in uris:
                self._portal.call(self._client.subscribe_resource, uri)
            yield None
            for uri in uris:
                self._portal.call(self._client.unsubscribe_resource, uri)

    async def _pump(self, stream):
        async for event in stream:
            self._received.put("tools" if isinstance(event, ToolsListChanged) else event.uri)

    def received_until(self, last):
        """Return its notifications until, and without, a last one."""
        found = []
        while (uri := self._received.get(timeout=WAIT_S)) != last:
            found.append(uri)
        return found

    def received(self, count):
        return [self._received.get(timeout=WAIT_S) for _ in range(count)]

    def assert_silent(self):
        assert self._received.empty()


@contextmanager
def follower(root: Path, mode: str, *options: str) -> Iterator[Follower]:
    received: queue.Queue[str] = queue.Queue()

    async def hear(message):
        is_update = isinstance(message, types.ResourceUpdatedNotification)
        if is_update and mode == "legacy":  # of the other era's updates the client makes events as well
            received.put(message.params.uri)

    with start_blocking_portal() as portal:
        server = wired(["-C", str(root), *options], server_env())
        client = Client(server, mode=mode, message_handler=hear, read_timeout_seconds=WAIT_S)
        connection = portal.wrap_async_context_manager(client)
        try:
            yield Follower(connection.__enter__(), portal, received)
        finally:  # what a test raises is none of the connection's business, and stays as it was raised
            connection.__exit__(None, None, None)


@pytest.fixture
def fast(monkeypatch):
    """Let servers in this process look more often."""
    monkeypatch.setattr("kbmcp.resources.subscriptions.LOOK_S", 0.01)


@pytest.mark.sliced(1)
@pytest.mark.parametrize("mode", MODES)
def test_only_changes_are_notified(mode, started, fast):
    with follower(started.root, mode) as found, found.following(A, B, CHECK, HEAD):
        started.apply(entities=[entity("A", priority="must")])
        assert found.received_until(HEAD) == [A, CHECK]
        started.apply(entities=[entity("C")])
        assert found.received_until(HEAD) == [CHECK]
        found.call("kb_upsert", entities=[entity("B", owner="ann")])
        assert found.received_until(HEAD) == [B, CHECK]
        revert(started.workspace(), "main", AUTHOR, [2], follows_head=True)
        assert found.received_until(HEAD) == [A, CHECK]
        found.assert_silent()


@pytest.mark.sliced(1)
@pytest.mark.parametrize("mode", MODES)
def test_an_edge_notifies_both_ends_also_when_it_becomes_resolved(mode, started, fast):
    with follower(started.root, mode) as found, found.following(A, B, "kb://entity/LATER", HEAD):
        started.apply(edges=[{"type": "depends_on", "from": "A", "to": "B"}])
        assert found.received_until(HEAD) == [A, B]
        started.sync({"docs/requirements/doc.md": req("DOC", links="[A, LATER]")})
        assert found.received_until(HEAD) == [A]
        started.apply(entities=[entity("LATER")])
        assert found.received_until(HEAD) == ["kb://entity/LATER"]
        version = started.node("LATER").version
        started.delete(entities=[{"id": "LATER", "expected_version": version}], cascade=True)
        assert found.received_until(HEAD) == ["kb://entity/LATER"]


@pytest.mark.sliced(1)
@pytest.mark.parametrize("mode", MODES)
def test_a_file_that_can_no_longer_be_read_makes_its_entities_other_documents(mode, started, fast):
    started.sync({"docs/requirements/doc.md": req("DOC")})
    with follower(started.root, mode) as found, found.following(A, "kb://entity/DOC", HEAD):
        started.sync({"docs/requirements/doc.md": "---\nid: [\n---\n"})
        assert found.received_until(HEAD) == ["kb://entity/DOC"]


@pytest.mark.sliced(1)
@pytest.mark.parametrize("mode", MODES)
def test_another_branch_notifies_every_subscription(mode, started, fast):
    with follower(started.root, mode) as found, found.following(A, SCHEMA, CHECK, HEAD):
        started.switch("feature", create=True)
        assert found.received_until(HEAD) == [A, SCHEMA, CHECK]
        assert json.loads(found.call("kb_query", ids=["A"]).content[0].text)["branch"] == "feature"
        assert not found.call("kb_upsert", entities=[entity("B")]).is_error
        found.assert_silent()  # a write that changes nothing makes no store
        assert not found.call("kb_upsert", entities=[entity("B", owner="ann")]).is_error
        assert found.received_until(HEAD) == [A, SCHEMA, CHECK]  # the branch has got its store
        started.apply(entities=[entity("A", owner="ann")], branch="main")
        started.apply(entities=[entity("C")])
        assert found.received_until(HEAD) == [CHECK]


@pytest.mark.sliced(1)
@pytest.mark.parametrize("mode", MODES)
def test_a_named_branch_is_followed_whatever_is_checked_out(mode, started, fast):
    with follower(started.root, mode, "--branch", "main") as found, found.following(A, B, HEAD):
        started.switch("feature", create=True)
        started.apply(entities=[entity("A", owner="ann")])
        started.apply(entities=[entity("B", owner="bob")], branch="main")
        assert set(found.received_until(B)) <= {HEAD}  # it also says whether the branch is checked out


@pytest.mark.parametrize("mode", MODES)
def test_a_server_that_only_reads_follows_what_it_answers_from(mode, started, fast):
    started.switch("feature", create=True)
    with follower(started.root, mode, "--read-only") as found, found.following(A, HEAD):
        started.apply(entities=[entity("A", owner="ann")], branch="main")
        assert found.received_until(HEAD) == [A]
    assert not (stores_at(started.root) / "feature").exists()


@pytest.mark.sliced(1)
@pytest.mark.parametrize("mode", MODES)
def test_settings_notify_the_subscriptions_that_depend_on_them(mode, started, fast):
    with follower(started.root, mode) as found, found.following(A, CHECK, SCHEMA, tools=True):
        started.write({".kb/schema/own.yaml": "entities: {fact: {description: A fact}}\n"})
        assert found.received_until(SCHEMA) == [CHECK]
        if mode != "legacy":
            assert found.received_until("tools") == []
        started.write({".kb/rules/own.yaml": "rules: []\n"})
        assert found.received_until(CHECK) == []
        started.write({".kb/schema/own.yaml": "entities: [broken"})
        found.received_until(SCHEMA)


def test_a_type_that_the_branch_defines_notifies_subscriptions_of_the_schema(started, fast):
    with follower(started.root, MODES[0]) as found, found.following(SCHEMA, HEAD):
        started.apply(entities=[entity("A", owner="ann")])
        assert found.received_until(HEAD) == []
        started.apply(entities=[{"id": "$ConceptType:T", "type": "$ConceptType", "name": "T", "title": "T"}])
        assert {*found.received_until(SCHEMA), HEAD} == {HEAD}


def test_a_type_that_the_branch_defines_notifies_subscriptions_of_the_list_of_tools(started, fast):
    with follower(started.root, "2026-07-28") as found, found.following(HEAD, tools=True):
        started.apply(entities=[entity("A", owner="ann")])
        assert found.received_until(HEAD) == []
        started.apply(entities=[{"id": "$ConceptType:T", "type": "$ConceptType", "title": "T"}])
        assert {*found.received(2)} == {"tools", HEAD}
        started.apply(entities=[{"id": "$ConceptType:T", "type": "$ConceptType", "title": "Another title"}])
        assert found.received_until(HEAD) == []


@pytest.mark.parametrize("mode", MODES)
def test_damage_and_its_end_are_notified(mode, started, fast):
    head = started.workspace().folders.directory_of("main") / "head.json"
    whole = head.read_bytes()
    with follower(started.root, mode) as found, found.following(A, HEAD):
        head.write_bytes(b"damaged")
        assert found.received_until(HEAD) == [A]
        head.write_bytes(whole)
        assert found.received_until(HEAD) == [A]


@pytest.mark.parametrize("mode", MODES)
def test_an_ended_subscription_is_not_notified(mode, started, fast):
    with follower(started.root, mode) as found, found.following(HEAD):
        with found.following(A):
            pass
        started.apply(entities=[entity("A", owner="ann")])
        assert found.received_until(HEAD) == []


@pytest.mark.parametrize("mode", MODES)
def test_nothing_runs_without_subscriptions(mode, started, fast, monkeypatch):
    looks = []
    look = resource_digests.read_snapshot
    monkeypatch.setattr(resource_digests, "read_snapshot", lambda service: looks.append(mode) or look(service))
    with follower(started.root, mode) as found:
        found.call("kb_query")
        time.sleep(0.05)
        assert not looks
        with found.following(HEAD):
            started.apply(entities=[entity("C")])
            assert found.received_until(HEAD) == []
        assert looks
        until_s = time.monotonic() + WAIT_S
        while looks:  # one more look may be under way
            assert time.monotonic() < until_s
            looks.clear()
            time.sleep(0.05)


@pytest.mark.parametrize("mode", MODES)
def test_a_kb_that_is_not_there_yet_can_be_followed(mode, project, fast):
    with follower(project.root, mode) as found, found.following(A, HEAD):
        project.apply(entities=[entity("A")])
        assert HEAD not in found.received_until(HEAD)


def test_one_resource_can_be_followed_on_two_streams(started, fast):
    with follower(started.root, "2026-07-28") as found, found.following(A, HEAD), found.following(A):
        started.apply(entities=[entity("A", owner="ann")])
        assert sorted(found.received(3)) == [A, A, HEAD]
        found.assert_silent()


def test_what_the_server_does_not_offer_cannot_be_followed(started, fast):
    none_of_core = ("kb://haed", "tools", "", WORK, WAKING)
    with follower(started.root, "2026-07-28") as found, found.following(A, *none_of_core) as honored:
        assert honored.resource_subscriptions == [A]
    options = ("--toolsets", "core,kip")
    with follower(started.root, "2026-07-28", *options) as found, found.following(WORK, WAKING) as honored:
        assert honored.resource_subscriptions == [WORK, WAKING]
    with follower(started.root, "legacy") as found:
        for uri in none_of_core:
            with pytest.raises(MCPError) as caught, found.following(uri):
                pass
            assert (caught.value.error.code, caught.value.error.data["error"]["code"]) == (-32002, "not_found")


def test_there_is_an_end_to_what_one_client_may_follow(started, fast):
    uris = [f"kb://entity/E{at}" for at in range(MAX_FOLLOWED)]
    with follower(started.root, "2026-07-28") as found:
        with pytest.raises(MCPError) as caught, found.following(*uris, HEAD):
            pass
        error = caught.value.error
        assert (error.code, error.data["error"]["code"]) == (-32602, "limit_exceeded")
        with found.following(*uris[1:], HEAD):
            started.apply(entities=[entity("E5")])
            assert found.received_until(HEAD) == [uris[5]]
            with pytest.raises(MCPError, match="1000"), found.following(A):
                pass


def kb(root: Path, *arguments: str, text: str = "") -> None:
    command = [sys.executable, "-m", "kbcli.app", "-C", str(root), *arguments]
    subprocess.run(command, input=text, text=True, check=True, capture_output=True, env=server_env(), cwd=ROOT)


def notices(server, count: int, kind: str = "resources/updated") -> list[Mapping[str, object]]:
    """Return what came over the wire of one kind, as soon as there is so much of it."""
    deadline_s = time.monotonic() + WAIT_S
    found: list[Mapping[str, object]] = []
    while len(found) < count and time.monotonic() < deadline_s:
        time.sleep(0.01)
        messages = [json.loads(line) for line in [*server.lines]]
        found = [one["params"] for one in messages if one.get("method") == f"notifications/{kind}"]
    return found


def test_over_the_wire_with_a_handshake(started):
    with raw(started.root) as server:
        capabilities = server.greet()["result"]["capabilities"]
        assert capabilities["resources"] == {"subscribe": True, "listChanged": False}
        assert capabilities["tools"] == {"listChanged": True}
        server.send("subscriptions/listen", {"notifications": {}}, "of the other era")
        assert server.reply("of the other era")["error"]["code"] == -32601
        for number, uri in enumerate((A, HEAD)):
            server.send("resources/subscribe", {"uri": uri}, number)
            assert server.reply(number)["result"] == {}
        kb(started.root, "apply", "-", text=json.dumps({"entities": [entity("A", owner="ann")]}))
        server.call("after", "kb_query", {"ids": ["A"]})
        assert server.answer("after")["entities"][0]["owner"] == "ann"
        assert notices(server, 2) == [{"uri": A}, {"uri": HEAD}]
        assert server.close(END_S) == 0
        server.assert_only_messages()
        assert server.errors == b""


def listen(server, key, *uris):
    wanted = {"resourceSubscriptions": list(uris), "toolsListChanged": True, "promptsListChanged": True}
    server.send("subscriptions/listen", {"notifications": wanted, "_meta": ENVELOPE}, key)


@pytest.mark.sliced(1)
@pytest.mark.parametrize("ending", ["end of input", signal.SIGTERM])
def test_over_the_wire_without_a_handshake_and_a_stream_ends_with_an_answer(ending, started):
    with raw(started.root) as server:
        listen(server, "mine", A, "kb://nothing", HEAD)
        server.send("server/discover", {"_meta": ENVELOPE}, "discover")
        capabilities = server.reply("discover")["result"]["capabilities"]
        server.send("resources/subscribe", {"uri": HEAD, "_meta": ENVELOPE}, "of the other era")
        assert server.reply("of the other era")["error"]["code"] == -32601
        assert capabilities["resources"] == {"subscribe": True, "listChanged": True}
        mark = {"io.modelcontextprotocol/subscriptionId": "mine"}
        kept = {"resourceSubscriptions": [A, HEAD], "toolsListChanged": True}
        assert notices(server, 1, "subscriptions/acknowledged") == [{"notifications": kept, "_meta": mark}]
        with spawned(started.root) if ending == "end of input" else agent(started.root) as other:
            seq = other.call("kb_upsert", entities=[entity("A", owner="ann")])["seq"]
            assert notices(server, 2) == [{"uri": A, "_meta": mark}, {"uri": HEAD, "_meta": mark}]
        params = {"uri": HEAD, "_meta": ENVELOPE}
        server.send("resources/read", params, "read")
        assert json.loads(server.reply("read")["result"]["contents"][0]["text"])["seq"] == seq
        if ending == "end of input":
            assert server.close(END_S) == 0
        else:
            server.process.send_signal(ending)
            assert server.ended(END_S) == 0
        result = server.reply("mine")["result"]
        assert result["resultType"] == "complete"
        assert result["_meta"]["io.modelcontextprotocol/subscriptionId"] == "mine"
        server.assert_only_messages()
        assert server.errors == b""


def test_a_stream_asked_for_just_before_the_end_does_not_keep_the_server(started):
    with raw(started.root) as server:
        listen(server, 1, A)
        listen(server, 2, A)
        server.send("notifications/cancelled", {"requestId": 2, "_meta": ENVELOPE})
        assert server.close(END_S) == 0
        assert server.reply(1)["result"]["resultType"] == "complete"
        assert 2 not in {json.loads(line).get("id") for line in server.lines}
