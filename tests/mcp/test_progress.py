"""Progress of long calls: for who asked for it, ever further, a few times a second, and none after the answer."""

from __future__ import annotations

import time

import anyio
import pytest

from kbcore import progress
from kbmcp.tools import run_call
from kbmcp.tools.run_call import reporting
from tests.mcp.agents import MODES, agent
from tests.support.repository.places import caches_at
from tests.support.repository.project import Project


def noted(work, report, monkeypatch, every_s=0.01):
    """Carry out ``work(note)`` in a thread, and return nothing: what is reported goes to ``report``."""
    monkeypatch.setattr(run_call, "EVERY_S", every_s)

    async def run() -> None:
        async with reporting(report):
            await anyio.to_thread.run_sync(work)

    anyio.run(run)


def test_steps_are_one_count_that_only_grows(monkeypatch):
    sent: list[tuple[float, float, str]] = []

    async def report(*note) -> None:
        sent.append(note)

    def work() -> None:
        passed = 0
        for what, count in (("records read", 3), ("rules run", 2), ("rules run", 1), ("things done", 1)):
            for _ in progress.track(range(count), count, what, every=1):
                until_s = time.monotonic() + 10
                while not (sent and sent[-1][0] >= passed) and time.monotonic() < until_s:
                    time.sleep(0.001)
                passed += 1

    noted(work, report, monkeypatch)
    done = [one[0] for one in sent]
    assert done[:7] == list(range(7))
    assert sent[0] == (0, 3, "records read: 0 of 3")
    assert {(4, 5, "rules run: 1 of 2"), (1, 3, "records read: 1 of 3")} <= set(sent)
    assert all(total >= at for at, total, _ in sent)


def test_many_steps_are_few_notices_and_a_client_that_does_not_read_holds_up_nothing(monkeypatch):
    sent = []

    async def report(*note) -> None:
        sent.append(note)
        await anyio.sleep_forever()

    noted(lambda: list(progress.track(range(200_000), 200_000, "things done", every=1)), report, monkeypatch)
    assert len(sent) <= 1


def test_a_short_call_sends_no_progress(monkeypatch):
    sent = []

    async def report(*note) -> None:
        sent.append(note)

    noted(lambda: list(progress.track([1], 1, "things done")), report, monkeypatch, every_s=60)
    assert sent == []


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """A repository whose view takes a while to fold: many elements in a few records."""
    made = Project(tmp_path_factory.mktemp("telling") / "project")
    for part in range(2):
        keys = [f"R{part}-{at}" for at in range(4_000)]
        made.apply(entities=[{"id": key, "type": "req", "title": "t", "status": "open"} for key in keys])
    yield made
    made.close()


@pytest.mark.sliced(1)
@pytest.mark.parametrize("mode", MODES)
def test_a_first_fold_and_a_check_send_progress_in_both_eras(grown, mode, monkeypatch):
    monkeypatch.setattr(run_call, "EVERY_S", 0.001)
    cache = caches_at(grown.root)
    cache.rename(cache.with_name(f"cache-{mode}"))
    heard = []

    async def hear(done, total, message) -> None:
        heard.append((done, total, message))

    async def call(client, **more):
        return await client.call_tool("kb_check", {"limit": 1}, **more)

    with agent(grown.root, mode=mode) as found:
        assert found._portal.call(lambda: call(found._client, progress_callback=hear)).is_error is False
        before = len(heard)
        found._portal.call(lambda: call(found._client))
        assert len(heard) == before
    done = [one[0] for one in heard]
    assert done == sorted(set(done))
    whats = {message.partition(":")[0] for _, _, message in heard}
    assert "rules run" in whats
    assert whats & {"records read", "entities loaded"}
