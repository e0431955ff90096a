"""The server on its standard streams: what it reads, what it writes, and how it ends."""

from __future__ import annotations

import fcntl
import json
import select
import shlex
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from types import SimpleNamespace

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from kbmcp.serving import ServerOptions, server_for
from kbmcp.tools.argument_models import QueryArguments
from tests.mcp.agents import ROOT, SERVER, WAIT_S, Raw, locked, program, raw, server_env
from tests.support.repository.project import Project

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}


def upsert(key: str) -> dict[str, object]:
    """Return a changeset of two entities and an edge, which must come whole or not at all."""
    entities = [{"id": f"{key}-{end}", "type": "req", "title": key, "status": "open"} for end in "ab"]
    return {"entities": entities, "edges": [{"type": "depends_on", "from": f"{key}-a", "to": f"{key}-b"}]}


def assert_whole(project: Project, key: str) -> bool:
    """Insist that a changeset of ``upsert`` is there whole or not at all, and tell which."""
    found = len(project.view().nodes([f"{key}-a", f"{key}-b"])) + len(project.view().touching([f"{key}-a"]))
    assert found in {0, 3}
    return found == 3


@pytest.fixture
def started(project):
    """A project whose branch has its store."""
    project.apply(**upsert("first"))
    return project


@pytest.fixture(scope="module")
def lasting(shared) -> Iterator[Raw]:
    """One server for all that must not harm it; in the end it goes as if nothing had been."""
    with raw(shared.root) as server:
        server.greet()
        yield server
        assert server.close() == 0
        server.assert_only_messages()


def test_every_line_that_is_no_message_gets_its_error_and_the_server_lives_on(lasting):
    broken = (b"garbage", b"{", b"\xff\xfe\x00", b"[" * 9)
    invalid = (b"[]", b"null", b'"text"', b'{"id":null}', b"[" * 5000, b'[{"jsonrpc":"2.0","id":5,"method":"ping"}]')
    invalid += (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}')
    for lines, code in ((broken, -32700), (invalid, -32600)):
        for line in (b"", *lines):
            lasting.write(line + b"\n")
        codes = [lasting.refusal()["code"] for _ in lines]
        assert codes == [code] * len(lines)
    lasting.write(b'{"jsonrpc":"2.0","id":15}\n')
    assert lasting.reply(15)["error"]["message"] == "The request cannot be read: `method` is missing."
    lasting.write(b'{"jsonrpc":"2.0","method":"notifications/unknown"}\n')
    lasting.send("no/such/method", {}, 7)
    assert lasting.reply(7)["error"]["code"] == -32601
    lasting.call(8, "kb_query", {"limit": 1})
    assert lasting.answer(8)["branch"] == "main"


def test_a_key_that_occurs_twice_refuses_the_call_before_anything_is_done(lasting):
    lasting.write(
        b'{"jsonrpc":"2.0","id":31,"method":"tools/call","params":{"name":"kb_query","arguments":'
        b'{"limit":1,"limit":2}}}\n'
    )
    error = lasting.reply(31)["error"]
    assert error["code"] == -32600
    assert "'limit' occurs twice" in error["message"]


BATCH = (
    b'[{"jsonrpc":"2.0","id":1,"method":"ping"},7,{"jsonrpc":"2.0","method":"notifications/unknown"},'
    b'{"jsonrpc":"2.0","id":"two","method":"tools/call","params":{"name":"kb_query","arguments":{"limit":1}}},'
    b'{"jsonrpc":"2.0","id":3,"method":"no/such/method"},{"jsonrpc":"2.0","id":4,"method":"initialize"}]\n'
)


def test_a_batch_is_answered_as_one_under_the_version_that_has_them(shared):
    with raw(shared.root) as server:
        server.send("initialize", {**HELLO, "protocolVersion": "2025-03-26"}, 0)
        assert server.reply(0)["result"]["protocolVersion"] == "2025-03-26"
        server.send("notifications/initialized")
        server.write(BATCH)
        found = {answer["id"]: answer for answer in server.batch()}
        assert found.keys() == {1, None, "two", 3, 4}
        assert found[1]["result"] == {}
        assert json.loads(found["two"]["result"]["content"][0]["text"])["branch"] == "main"
        assert {key: found[key]["error"]["code"] for key in (None, 3, 4)} == {None: -32600, 3: -32601, 4: -32600}
        server.write(b'[{"jsonrpc":"2.0","method":"notifications/unknown"}]\n')
        server.write(b"[5]\n")
        [alone] = server.batch()
        assert alone["error"]["code"] == -32600
        server.call(9, "kb_query", {"limit": 1})
        assert server.answer(9)["branch"] == "main"
        assert server.close() == 0


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25"])
def test_a_batch_is_refused_under_every_other_version(version, shared):
    with raw(shared.root) as server:
        server.write(BATCH)
        assert server.refusal()["code"] == -32600, "before any version is agreed on"
        server.send("initialize", {**HELLO, "protocolVersion": version}, 0)
        assert server.reply(0)["result"]["protocolVersion"] == version
        server.write(BATCH)
        assert "only of 2025-03-26" in server.refusal()["message"]
        assert server.close() == 0
        server.assert_only_messages()


def test_a_request_that_cannot_be_read_is_answered_if_it_says_which_it_is(lasting):
    half = b'{"jsonrpc":"2.0","id":"half","method":"tools/call","params":{"name":"kb_query","arguments":{"text":"'
    lasting.write(half + b'\\ud800"}}}\n')
    assert lasting.reply("half")["error"]["code"] == -32600
    lasting.write(b'{"id":3,"method":"ping"}\n')
    assert lasting.reply(3)["error"]["code"] == -32600


@pytest.mark.parametrize("levels", [202, 5000, 100_000])
def test_a_request_that_is_nested_too_deep_is_answered_with_the_reason(levels, lasting):
    deep = b"[" * (levels - 2) + b"]" * (levels - 2)
    call = b'{"jsonrpc":"2.0","method":"tools/call","params":{"id":8,"where":' + deep + b'},"id":"\\"deep"}\n'
    lasting.write(call)
    error = lasting.reply('"deep')["error"]
    assert error["code"] == -32600
    assert f"nested {levels} levels deep; at most 201" in error["message"]


def test_a_call_that_is_nested_as_deep_as_can_be_reaches_its_tool(lasting):
    deep = b"[" * 198 + b"]" * 198
    lasting.write(b'{"jsonrpc":"2.0","id":15,"method":"tools/call","params":{"name":"kb_query","arguments":{"where":')
    lasting.write(deep + b"}}}\n")
    assert lasting.answer(15)["error"]["code"] == "invalid_query"


@pytest.mark.sliced(1)
@pytest.mark.parametrize("is_id_last", [False, True])
def test_a_message_beyond_all_measure_is_refused_by_its_id(is_id_last, lasting):
    params = b'"params":{"x":"' + b"y" * (33 << 20) + b'"}'
    members = [b'"jsonrpc":"2.0"', b'"method":"ping"', b'"id":11', params]
    lasting.write(b"{" + b",".join(members[::-1] if is_id_last else members) + b"}\n")
    error = lasting.reply(11)["error"]
    assert error["code"] == -32600
    assert "longer than 33554432 bytes" in error["message"]
    lasting.write(b"z" * (33 << 20) + b"\n")
    assert lasting.refusal()["code"] == -32600
    lasting.send("ping", None, 12)
    assert lasting.reply(12)["result"] == {}


def test_messages_may_come_in_pieces_and_with_any_line_end(shared):
    with raw(shared.root) as server:
        server.greet()
        request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "kb_query"}})
        for at in range(0, len(request), 20):
            server.write(request[at : at + 20].encode())
        server.write(b"\r\n\n")
        assert server.answer(1)["total"] == 0
        server.write(b'{"jsonrpc":"2.0","id":2,"method":"ping"}')
        assert server.close() == 0


def test_of_two_requests_with_one_id_at_a_time_the_second_is_refused(lasting):
    for _ in range(2):
        lasting.call(21, "kb_query")
    refused = lasting.reply(21)
    assert refused["error"]["code"] == -32600
    assert "has no answer yet" in refused["error"]["message"]
    assert lasting.answer(21)["branch"] == "main"
    lasting.call(21, "kb_query")
    assert lasting.answer(21)["branch"] == "main"


@pytest.mark.parametrize(
    ("params", "wrong"),
    [
        ({"name": "kb_query", "arguments": [1]}, "`params.arguments` must be an object"),
        ({"name": "kb_query", "arguments": "x"}, "`params.arguments` must be an object"),
        ({"arguments": {}}, "`params.name` is missing"),
        ({"name": 5}, "`params.name` must be a string"),
    ],
)
def test_the_error_for_wrong_parameters_of_a_tool_names_them(params, wrong, lasting):
    lasting.send("tools/call", params, 22)
    error = lasting.reply(22)["error"]
    assert error == {"code": -32602, "message": f"The parameters of tools/call are invalid: {wrong}."}


def test_a_model_that_is_not_of_the_parameters_fails_as_a_bug_and_not_as_a_fault_of_the_request(project, capfd):
    """An error of pydantic's out of KB's own code; whoever validates the parameters raises one of another title."""

    async def fails(_):
        QueryArguments.model_validate({"limit": "many"})

    middleware = server_for(ServerOptions(project.root)).middleware[-1]
    asked = SimpleNamespace(method="tools/call", params={"name": "kb_query"}, protocol_version="2025-06-18")
    with pytest.raises(MCPError) as caught:
        anyio.run(middleware, asked, fails)
    error = caught.value.error
    assert (error.code, error.data["error"]["code"]) == (-32603, "internal_error")
    assert "QueryArguments" in capfd.readouterr().err


PROMPT = {"type": "ref/prompt", "name": "kb-start"}


@pytest.mark.parametrize(
    ("method", "params", "wrong"),
    [
        ("prompts/get", {}, "`params.name` is missing"),
        ("prompts/get", {"name": 5}, "`params.name` must be a string"),
        ("prompts/get", {"name": "x", "arguments": [1]}, "`params.arguments` must be an object"),
        ("prompts/get", {"name": "x", "arguments": {"id\n": 1}}, r"`params.arguments.id\n` must be a string"),
        ("completion/complete", {"argument": {"name": "id", "value": ""}}, "`params.ref` is missing"),
        ("completion/complete", {"ref": PROMPT, "argument": {"name": "id"}}, "`params.argument.value` is missing"),
        ("completion/complete", {"ref": PROMPT, "argument": 1}, "`params.argument` must be an object"),
        (
            "completion/complete",
            {"ref": {"type": "x", "name": "y"}, "argument": {"name": "id", "value": ""}},
            "`params.ref.type` must be 'ref/prompt' or 'ref/resource'",
        ),
        ("resources/read", {"uri": 1}, "`params.uri` must be a string"),
        ("resources/subscribe", {}, "`params.uri` is missing"),
        ("tools/list", {"cursor": 3}, "`params.cursor` must be a string"),
        ("initialize", None, "`params` is missing"),
        ("initialize", {**HELLO, "protocolVersion": 5}, "`params.protocolVersion` must be a string"),
        ("initialize", {**HELLO, "clientInfo": {"name": "x"}}, "`params.clientInfo.version` is missing"),
        ("initialize", {**HELLO, "capabilities": []}, "`params.capabilities` must be an object"),
    ],
)
def test_the_error_for_wrong_parameters_of_a_request_names_them(method, params, wrong, lasting):
    lasting.send(method, params, 23)
    error = lasting.reply(23)["error"]
    assert error == {"code": -32602, "message": f"The parameters of {method} are invalid: {wrong}."}


def test_lines_with_numbers_or_members_that_no_request_has_are_refused_under_their_id(lasting):
    for line, said in (
        (b'{"jsonrpc":"2.0","id":24,"method":"ping","params":{"x":NaN}}', "JSON has no number NaN."),
        (b'{"jsonrpc":"2.0","id":24,"method":"ping","result":{}}', "`method` cannot be in one message"),
    ):
        lasting.write(line + b"\n")
        error = lasting.reply(24)["error"]
        assert error["code"] == -32600
        assert said in error["message"]
    lasting.send("ping", None, 24)
    assert lasting.reply(24)["result"] == {}


def test_each_request_of_a_batch_is_answered_once_where_two_have_one_id(shared):
    with raw(shared.root) as server:
        server.send("initialize", {**HELLO, "protocolVersion": "2025-03-26"}, 0)
        server.reply(0)
        ping = b'{"jsonrpc":"2.0","id":20,"method":"ping"}'
        server.write(b"[" + ping + b"," + ping + b"]\n")
        first, second = server.batch()
        assert {first["id"], second["id"]} == {20}
        assert sorted([first.keys(), second.keys()], key=sorted) == [
            {"jsonrpc", "id", "error"},
            {"jsonrpc", "id", "result"},
        ]
        assert server.close() == 0


def test_the_modern_era_needs_no_handshake(shared):
    with raw(shared.root) as server:
        server.send("server/discover", {"_meta": ENVELOPE}, 1)
        found = server.reply(1)["result"]
        assert "2026-07-28" in found["supportedVersions"]
        assert found["instructions"].startswith("KB is the memory")
        server.send("tools/call", {"name": "kb_query", "arguments": {}, "_meta": ENVELOPE}, 2)
        assert server.answer(2)["branch"] == "main"
        assert server.close() == 0


def test_requests_sent_before_the_end_of_input_are_answered(started):
    """As in ``printf … | kb-mcp``: the input ends while nothing has been answered yet."""
    with raw(started.root) as server:
        server.send("initialize", HELLO, 0)
        server.send("notifications/initialized")
        server.call(1, "kb_upsert", upsert("piped"))
        server.call(2, "kb_query")
        assert server.close() == 0
        assert server.answer(1)["applied"] is True
        assert "entities" in server.answer(2)
        server.assert_only_messages()
    assert assert_whole(started, "piped")


@pytest.mark.sliced(1)
@pytest.mark.parametrize("ending", ["end of input", signal.SIGTERM, signal.SIGINT])
def test_a_write_under_way_is_finished_before_the_end(ending, started):
    with raw(started.root) as server:
        server.greet()
        server.call(1, "kb_query")
        server.answer(1)
        with locked(started.workspace().folders.directory_of("main")):
            server.call(2, "kb_upsert", upsert("late"))
            time.sleep(0.2)
            if ending == "end of input":
                server.process.stdin.close()
            else:
                server.process.send_signal(ending)
            time.sleep(0.2)
            assert server.process.poll() is None
        assert server.ended() == 0
        assert server.answer(2)["applied"] is True
        server.assert_only_messages()
        assert "Traceback" not in server.errors.decode()
    assert assert_whole(started, "late")


@pytest.mark.sliced(1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_an_idle_server_cleanly(number, shared):
    with program(shared.root) as server:
        server.greet()
        server.process.send_signal(number)
        assert server.ended(10) == 0
        assert server.errors == b""


def wait_until_it_waits(server: Raw) -> None:
    """Wait until the server has written as much as its pipe takes, and nobody reads it."""
    assert select.select([server.process.stdout], [], [], WAIT_S)[0], "it has begun to answer"
    until_s, seen = time.monotonic() + WAIT_S, -1
    while seen < (written := _unread_bytes(server.process.stdout.fileno())) or not written:
        assert time.monotonic() < until_s
        seen = written
        time.sleep(0.1)


def _unread_bytes(fd: int) -> int:
    return struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, bytes(4)))[0]


def test_a_client_that_does_not_read_cannot_keep_the_server(started):
    started.apply(entities=[{"id": f"R{at}", "type": "req", "title": "x" * 900, "status": "open"} for at in range(20)])
    with raw(started.root, reads=False) as server:
        server.send("initialize", HELLO, 0)
        server.send("notifications/initialized")
        for key in range(1, 12):
            server.call(key, "kb_query", {})
        wait_until_it_waits(server)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        server.process.send_signal(signal.SIGTERM)
        assert server.ended() == 0


def test_a_client_that_disconnects_ends_the_server(started):
    with raw(started.root, reads=False) as server:
        server.send("initialize", HELLO, 0)
        server.process.stdout.close()
        assert server.ended(10) == 0
        assert "no longer reads" in server.errors.decode()
        assert "Traceback" not in server.errors.decode()


def test_a_cancelled_write_is_whole_or_absent(started):
    """Cancel at many moments: before the call has its turn, while it plans, while it commits, after it."""
    delays_s = [0, 0.0005, 0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.008, 0.01, 0.012, 0.015, 0.02, 0.03, 0.05]
    with raw(started.root) as server:
        server.greet()
        server.call("warm", "kb_upsert", upsert("warm"))
        server.answer("warm")
        for number, delay_s in enumerate(delays_s):
            server.call(number, "kb_upsert", upsert(f"cut{number}"))
            time.sleep(delay_s)
            server.send("notifications/cancelled", {"requestId": number, "reason": "test"})
        server.call("last", "kb_query")
        assert server.answer("last")["total"] >= 4
        answered = {json.loads(line).get("id") for line in server.lines}
        assert server.close() == 0
        server.assert_only_messages()
    written = {number for number in range(len(delays_s)) if assert_whole(started, f"cut{number}")}
    assert written >= {number for number in range(len(delays_s)) if number in answered}


def test_a_write_that_is_cancelled_before_its_turn_is_absent(started):
    with raw(started.root) as server:
        server.greet()
        with locked(started.workspace().folders.directory_of("main")):
            server.call(1, "kb_upsert", upsert("ahead"))
            time.sleep(0.5)
            server.call(2, "kb_upsert", upsert("behind"))
            time.sleep(0.2)
            server.send("notifications/cancelled", {"requestId": 2})
            time.sleep(0.1)
        assert server.answer(1)["applied"] is True
        assert server.close() == 0
        assert 2 not in {json.loads(line).get("id") for line in server.lines}
    assert assert_whole(started, "ahead")
    assert not assert_whole(started, "behind")


NOISY = """
import builtins, os, sys
names = ("duckdb", "mcp", "pydantic", "yaml", "kbcore.store.workspace", "kbcore.query", "kbmcp.serving")
class Noise:
    def find_spec(self, name, path=None, target=None):
        if name in names:
            print("noise on import of", name)
            os.write(1, b"raw noise\\n")
            os.system("echo noise of a child")
            sys.stdout.flush()
        return None
sys.meta_path.insert(0, Noise())
import json
dumps = json.dumps
def noisy(*arguments, **options):
    print("noise in a call", flush=True)
    return dumps(*arguments, **options)
json.dumps = noisy
print("noise before anything")
"""


@pytest.mark.sliced
def test_nothing_that_a_dependency_prints_reaches_the_client(started, tmp_path):
    (tmp_path / "plugin").mkdir()
    (tmp_path / "plugin" / "sitecustomize.py").write_text(NOISY)
    path = f"{tmp_path / 'plugin'}:{ROOT}"
    with program(started.root, env={"PYTHONPATH": path, "PYTHONUNBUFFERED": ""}) as server:
        server.greet()
        server.send("tools/list", {}, 1)
        server.reply(1)
        server.call(2, "kb_query", {"limit": 1})
        assert server.answer(2)["total"] == 2
        server.call(3, "kb_upsert", upsert("noisy"))
        assert server.answer(3)["applied"] is True
        assert server.close() == 0
        server.assert_only_messages()
        errors = server.errors.decode()
    assert "noise before anything" in errors
    for place in ("noise on import of duckdb", "raw noise", "noise of a child", "noise in a call"):
        assert place in errors
    assert len(server.lines) == 4


def test_hostile_text_leaves_only_as_escapes(started):
    hostile = "\x1b[2J\x07\x9b31m \u202eright \u2066iso\u2069 \u200b\ufeff \U000e0041tag \u2028line \x7f"
    kept = "naïve \u200d\u200c שלום 👩\u200d🚀 日本"
    with raw(started.root) as server:
        server.greet()
        entity = {"id": "H", "type": "req", "title": hostile, "status": "open", "owner": kept}
        server.call(1, "kb_upsert", {"entities": [entity]})
        assert server.answer(1)["applied"] is True
        server.call(2, "kb_query", {"ids": ["H"]})
        reply = server.reply(2)["result"]
        text = reply["content"][0]["text"]
        wire = b"".join(server.lines).decode()
    for character in set(hostile) - set(" abcdefghijklmnopqrstuvwxyz[J2m31"):
        assert character not in text
        assert character not in wire
    assert kept in text
    [found] = json.loads(text)["entities"]
    assert (found["title"], found["owner"]) == (hostile, kept)
    assert reply["structuredContent"] == json.loads(text)


def test_without_streams_the_server_says_so(project):
    ended = subprocess.run(
        f"exec {shlex.join(SERVER)} <&-",
        shell=True,
        capture_output=True,
        env=server_env(),
        cwd=ROOT,
        check=False,
        text=True,
    )
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr


def test_a_request_whose_id_is_half_a_character_is_refused_without_it(lasting):
    lasting.write(b'{"jsonrpc":"2.0","id":"\\ud800","method":"tools/call","params":{}}\n')
    lasting.write(b'{"jsonrpc":"2.0","id":"\\udfff","method":"ping"}\n')
    assert [lasting.refusal()["code"] for _ in range(2)] == [-32600, -32600]
    lasting.send("ping", None, 32)
    assert lasting.reply(32)["result"] == {}
