"""D1: each kind of damage is reported with its place, its reach and a way out that works, by every front end."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from kbcore.clock import SystemClock
from kbcore.storage import lock
from kbcore.storage.fs import RealFs
from kbmcp.tools.call import Client
from kbmcp.tools.run_call import run_tool
from kbmcp.tools.service import ServerOptions, Service
from kbmcp.tools.tool_list import by_name
from tests.fault.damaged_stores import (
    FIRST,
    KINDS,
    OK,
    PROVEN_AFTERWARDS,
    STORE,
    Kind,
    changeset,
    documented,
    done,
    forget_views,
    harmed,
    ids,
    kb,
    models,
    put,
    tree,
)
from tests.support.effort.scale import tries
from tests.support.repository.places import CACHES_NAME
from tests.support.repository.repos import git_env

__all__ = ["harmed", "models"]


def in_bytes(text: object, length: int) -> str:
    """Return a text with lengths for numbers of records, given the length of one."""
    return re.sub(r"(\d+)L([+-]\d+)?", lambda found: str(int(found[1]) * length + int(found[2] or 0)), str(text))


def measured(kind: Kind, length: int) -> Kind:
    """Return a kind with bytes for numbers of records."""
    file, line, offset = kind.found
    reported = tuple(re.sub("<(.*?)>", lambda found: in_bytes(found[1], length), one) for one in kind.reported)
    return kind._replace(reported=reported, found=(file, line, int(in_bytes(offset, length))))


@contextlib.contextmanager
def agent(root: Path) -> Iterator[Callable[..., dict[str, Any]]]:
    """Give ``kb_query`` as an agent calls it."""
    service = Service(ServerOptions(root, env=git_env()))
    tool = by_name(service)["kb_query"]
    with start_blocking_portal() as portal:

        def query(**arguments: Any) -> dict[str, Any]:
            result = portal.call(run_tool, service, tool, arguments, Client("agent", "1"))
            return json.loads(result.content[0].text)

        try:
            yield query
        finally:
            service.close()


def check_error(root: Path, kind: Kind, wanted: tuple[str, int], words: tuple[str, ...], stdin: str = "") -> None:
    """Insist on how a command fails, as text and as JSON."""
    code, status = wanted
    shown, reported = kb(root, *words, "--json", stdin=stdin), kb(root, *words, stdin=stdin)
    assert (shown.status, reported.status) == (status, status), (shown, reported)
    assert shown.err == "", shown
    assert shown.error["code"] == code
    assert shown.error["applied"] == "no"
    file, line, offset = kind.found
    assert shown.error["file"] == str(root / STORE / file)
    if line > 0:
        assert (shown.error["line"], shown.error["offset"]) == (line, offset)
    assert shown.error["message"].rstrip(".") in reported.err
    assert file in reported.err
    assert f"hint: {shown.error['hint']}" in reported.err
    assert len(shown.error["hint"]) > 40


def check_diagnosis(root: Path, kind: Kind) -> None:
    """Insist on what `kb doctor` and `kb verify` say, and that both write nothing."""
    before = tree(root)
    note = {CACHES_NAME, f"{CACHES_NAME}/main", f"{CACHES_NAME}/main/damaged.json"}
    for command in ("verify", "doctor"):
        reported, shown = kb(root, command), kb(root, command, "--json")
        assert (reported.status, shown.status) == (kind.verify, kind.verify), reported
        assert shown.json["ok"] is (kind.verify == 0)
        text = re.sub(r"\n +", " ", reported.out + reported.err)
        for pattern in kind.reported:
            is_note = pattern.startswith(("note", "Every", "No record is known", "The records", "good and", "but what"))
            if command == "doctor" or not is_note:
                assert re.search(pattern, text), (pattern, text)
        assert "Run `kb doctor`" not in text, "a diagnosis that says to make a diagnosis leads in circles"
        file, line, offset = kind.found
        places = [(one.get("file"), one.get("line", -1), one.get("offset", -1)) for one in shown.json["findings"]]
        assert (str(root / STORE / file), line, offset) in places
        assert all(one.get("remedy") or one["severity"] in {"ok", "note"} for one in shown.json["findings"])
    after = {name: found for name, found in tree(root).items() if name not in note}
    assert after == {name: found for name, found in before.items() if name not in note}, "a diagnosis wrote something"
    forget_views(root)


def check_good_part(root: Path, kind: Kind) -> None:
    """Insist that `--at` answers up to the seq that is promised, and no further."""
    for at in {tries(kind.good, min(1, kind.good)), kind.good} - {0}:
        assert ids(root, "--at", str(at)) == "ABCDEFG"[:at]
        forget_views(root)
    if kind.query != OK:
        refused = kb(root, "query", "--at", str(kind.good + 1), "--json")
        assert refused.json.get("error", {}).get("code") == kind.query[0] or kind.good == 7, refused


def check_agent(root: Path, kind: Kind) -> None:
    """Insist that an agent hears the same, in words that it can follow."""
    with agent(root) as query:
        found = query()
        if kind.query == OK:
            assert len(found["entities"]) >= 5
            return
        error = found["error"]
        assert error["code"] == kind.query[0]
        assert error["file"].endswith(kind.found[0])
        assert "--at" not in error["hint"]
        assert not re.search(r"(?<!user to run )`kb (?:query|apply|check)", error["hint"])
        if kind.good > 0:
            assert "`at`" in error["hint"] or kind.good == 7
            assert len(query(at=kind.good)["entities"]) == kind.good


EVERYDAY = {kind.row: name for name, kind in reversed(KINDS.items())}.values()
"""One kind for each row of the table."""


@pytest.mark.sliced(5)
@pytest.mark.fault("D1")
@pytest.mark.parametrize("name", [name for name in KINDS if tries(name in EVERYDAY, 1)])
def test_damage_is_reported_with_its_place_and_a_way_out_that_works(name: str, models, harmed, tally) -> None:
    length = (models / "plain" / STORE / FIRST).stat().st_size // 5
    kind = measured(KINDS[name], length)
    root = harmed(kind)
    tally.tried()
    if kind.query == OK:
        assert ids(root)
    else:
        check_error(root, kind, kind.query, ("query",))
    forget_views(root)
    if kind.apply != OK:
        check_error(root, kind, kind.apply, ("apply", "-"), changeset("Q"))
    forget_views(root)
    check_diagnosis(root, kind)
    check_good_part(root, kind)
    check_agent(root, kind)
    forget_views(root)
    if name in PROVEN_AFTERWARDS:
        kind.follow(root)
        forget_views(root)
        assert ids(root) == kind.left
        proven = done(kb(root, "verify", "--json")).json
        assert proven["ok"]
        put(root, "Z")
    tally.done()


def warned(root: Path, keys: str) -> str:
    return done(kb(root, "apply", "-", stdin=changeset(keys))).err


@pytest.mark.fault("D1")
def test_what_a_write_repairs_is_reported_in_its_answer_and_in_the_log(harmed, tally) -> None:
    torn = harmed(KINDS["torn tail"])
    tally.tried()
    assert "23 bytes of an unfinished write were cut from" in warned(torn, "Q")
    [kept] = (torn / STORE / "quarantine").glob("*.cut")
    assert kept.read_bytes() == b'{"v":1,"seq":6,"prev":"'
    assert f"quarantine/{kept.name}" in done(kb(torn, "show", "6")).out
    tally.done()


@pytest.mark.fault("D1")
def test_an_old_head_is_reported_when_it_is_repaired(harmed, tally) -> None:
    root = harmed(KINDS["old head"])
    tally.tried()
    reported = warned(root, "Q")
    assert "records 6 to 8 were complete, and now count" in reported
    assert "The head file was older than the journal: a person or a tool restored an old one." in reported
    tally.done()


@pytest.mark.fault("D1")
def test_a_head_without_the_beginning_says_what_is_gone(harmed, tally) -> None:
    root = harmed(KINDS["sealed file missing"])
    tally.tried()
    (root / STORE / "head.json").unlink()
    reported = done(kb(root, "doctor", "--rebuild-head")).err
    assert "The records before 6 are not there: a snapshot replaces them" in reported
    tally.done()


@pytest.mark.sliced(1)
@pytest.mark.fault("D1")
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_foreign_write_is_reported_truthfully(when: str, harmed, monkeypatch, tally) -> None:
    root = harmed(KINDS["torn tail"]._replace(harm=lambda _: None))
    tally.tried()
    with monkeypatch.context() as patch:
        patch.setattr(RealFs, "write", intruding(root / STORE / FIRST, when))
        shown = kb(root, "apply", "-", "--json", stdin=changeset("Q"))
    code, applied = {"before": (("foreign_write", 44), "no"), "after": (("commit_uncertain", 30), "unknown")}[when]
    assert (shown.error["code"], shown.status) == code
    assert shown.error["applied"] == applied
    assert f"{FIRST}: another program wrote to the journal without taking the lock" in shown.error["message"]
    assert documented("a foreign write") >= {code}
    hint = {"before": "Find what else writes to the store.", "after": "Send the same changeset again with the same"}
    assert shown.error["hint"].startswith(hint[when])
    again = done(kb(root, "apply", "-", "--json", stdin=changeset("Q"))).json
    assert again["duplicate"] is (when == "after")
    assert any("quarantine/" in one for one in again["warnings"])
    assert ids(root) == "ABCDEQ"
    assert done(kb(root, "verify", "--json")).json["ok"]
    tally.done()


def intruding(path: Path, when: str) -> Callable[[RealFs, int, bytes], int]:
    """Return a write beside which another program appends to the journal without the lock."""
    plain = RealFs.write

    def intrude() -> None:
        with path.open("ab") as file:
            file.write(b"strange bytes\n")

    def writing(self: RealFs, fd: int, data: bytes) -> int:
        is_journal = os.fstat(fd).st_ino == path.stat().st_ino
        if is_journal and when == "before":
            intrude()
        taken = plain(self, fd, data)
        if is_journal and when == "after":
            intrude()
        return taken

    return writing


@pytest.mark.sliced
@pytest.mark.fault("D1")
def test_a_lock_that_is_held_names_its_holder(harmed, tally) -> None:
    root = harmed(KINDS["torn tail"]._replace(harm=lambda _: None))
    config = root / ".kb/config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"lockWaitSeconds": 0}))
    tally.tried()
    holder = os.open(root / STORE / "lock", os.O_RDWR)
    try:
        fcntl.flock(holder, fcntl.LOCK_EX)
        os.pwrite(holder, lock.describe(SystemClock(), "kb sync"), 0)
        shown = kb(root, "apply", "-", "--json", stdin=changeset("Q"))
        reported = kb(root, "apply", "-", stdin=changeset("Q"))
        assert ids(root) == "ABCDE"
        assert done(kb(root, "verify", "--json")).json["ok"]
        assert kb(root, "doctor").status == 0
    finally:
        os.close(holder)
    assert (shown.error["code"], shown.status) == ("lock_timeout", 20)
    assert shown.error["retryable"]
    assert f"is held by kb sync (process {os.getpid()} on {os.uname().nodename}, since 20" in reported.err
    assert "hint: Wait for the named process, or end it; the lock is freed when it dies." in reported.err
    assert documented("a lock that is held") == {("lock_timeout", 20)}
    put(root, "Q")
    tally.done()


@pytest.mark.sliced(1)
@pytest.mark.fault("D1")
@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        (errno.ENOSPC, ("storage_full", 22)),
        (errno.EROFS, ("read_only_store", 23)),
        (errno.EDQUOT, ("storage_full", 22)),
    ][: tries(2, 3)],
)
def test_a_disk_that_takes_nothing_is_reported_and_queries_go_on(code: int, wanted, harmed, monkeypatch, tally) -> None:
    root = harmed(KINDS["torn tail"]._replace(harm=lambda _: None))
    before = (root / STORE / FIRST).read_bytes()
    tally.tried()

    def refuse(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(RealFs, "write", refuse)
        if code == errno.EROFS:
            patch.setattr(RealFs, "refusal_to_write", lambda *_: code)
        shown = kb(root, "apply", "-", "--json", stdin=changeset("Q"))
        assert ids(root) == "ABCDE"
        assert done(kb(root, "verify", "--json")).json["ok"]
        diagnosed = kb(root, "doctor")
        with agent(root) as query:
            assert len(query()["entities"]) == 5
    assert (shown.error["code"], shown.status) == wanted
    assert FIRST in shown.error["message"]
    assert shown.error["applied"] == "no"
    assert "queries keep working" in shown.error["hint"].lower()
    assert documented("a full disk" if wanted[1] == 22 else "a store that cannot be written") == {wanted}
    assert diagnosed.status == (23 if code == errno.EROFS else 0)
    assert ("cannot be written to: Read-only file system. Queries work." in diagnosed.out) is (code == errno.EROFS)
    assert (root / STORE / FIRST).read_bytes() == before
    put(root, "Q")
    tally.done()


@pytest.mark.fault("D1")
def test_the_page_names_what_comes_for_each_kind(tally) -> None:
    codes = {40: "journal_corrupt", 41: "journal_truncated", 42: "head_damaged", 43: "snapshot_corrupt",
             50: "format_too_new"}  # fmt: skip
    rows = {kind.row for kind in KINDS.values()}
    for row in sorted(rows):
        tally.tried()
        kinds = [kind for kind in KINDS.values() if kind.row == row]
        come = {found for kind in kinds for found in (kind.query, kind.apply) if found != OK}
        come |= {(codes[kind.verify], kind.verify) for kind in kinds if kind.verify}
        if documented(row) != come:
            tally.violated(row, f"the page names {documented(row)}, and {come} come")
    tally.done(at_least=12)
