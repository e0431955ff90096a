"""D1: what a user is told of each kind of damage: which file, line and byte, what is good, and a way out that works.

Each kind is done to a real store, then told by ``kb query``, ``kb apply``, ``kb verify`` and ``kb doctor``, as text and
as JSON, and by ``kb_query`` over MCP; then its remedy is followed. The table in docs/durability.md has to say the same.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from anyio.from_thread import start_blocking_portal

from kbcli import app
from kbcore.clock import SystemClock
from kbcore.storage import head, lock
from kbcore.storage.fs import RealFs
from kbmcp.tools.call import Client, ServerOptions, Service
from kbmcp.tools.run_call import run_tool
from kbmcp.tools.tool_list import by_name
from tests.support.effort.scale import tries
from tests.support.processes.cli import ROOT, Ran, environment, worded
from tests.support.repository.places import CACHES_NAME, STORES_NAME, caches_at
from tests.support.repository.repos import git, git_env, make_repository

STORE = f"{STORES_NAME}/main"
FIRST = "journal-0000000001.jsonl"
SECOND = "journal-0000000006.jsonl"
SNAPSHOT = "snapshot-0000000005.jsonl"


def kb(root: Path, *words: str, stdin: str = "") -> Ran:
    """Run ``kb`` in this process, at the top of a repository."""
    out, err, env = io.StringIO(), io.StringIO(), environment()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        for name in list(os.environ):
            patch.delenv(name)
        for name, value in env.items():
            patch.setenv(name, value)
        patch.chdir(root)
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"))
        status = app.main(words)
    return Ran(status, worded(out.getvalue()), worded(err.getvalue()))


def done(ran: Ran) -> Ran:
    assert ran.status == 0, ran
    return ran


def changeset(key: str) -> str:
    entity = {"id": key, "type": "req", "title": f"Title of {key}", "status": "open"}
    return json.dumps({"changeset_id": f"for-{key}", "entities": [entity]})


def put(root: Path, keys: str) -> None:
    for key in keys:
        done(kb(root, "apply", "-", stdin=changeset(key)))


def ids(root: Path, *words: str) -> str:
    return "".join(entity["id"] for entity in done(kb(root, "query", "--json", *words)).json["entities"])


def forget_views(root: Path) -> None:
    """Delete the cache: what it holds would be answered whatever became of the journal."""
    shutil.rmtree(caches_at(root), ignore_errors=True)


def copied(source: Path, target: Path) -> Path:
    return Path(shutil.copytree(source, target, symlinks=True))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Repositories with five records: plain; sealed, with two more; and with the history before those pruned."""
    folder = tmp_path_factory.mktemp("models")
    plain = make_repository(folder / "plain")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RealFs, "fsync", lambda *_: None)
        patch.setenv("HOME", str(folder / "home"))  # not that of the test that happens to be the first
        done(kb(plain, "init", "--no-hooks"))
        put(plain, "ABCDE")
        forget_views(plain)
        sealed = copied(plain, folder / "sealed")
        done(kb(sealed, "compact"))
        put(sealed, "FG")
        forget_views(sealed)
        pruned = copied(sealed, folder / "pruned")
        done(kb(pruned, "compact", "--prune-before", "6"))
        (pruned / STORE / "snapshot-0000000007.jsonl").unlink()
        done(kb(pruned, "doctor", "--rebuild-snapshots"))
        forget_views(pruned)
    return folder


def edit(root: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    path = root / STORE / name
    path.write_bytes(change(path.read_bytes()))


def swap(name: str, old: bytes, new: bytes) -> Callable[[Path], None]:
    return lambda root: edit(root, name, lambda data: data.replace(old, new))


def append(name: str, data: bytes) -> Callable[[Path], None]:
    return lambda root: edit(root, name, lambda before: before + data)


def cut(name: str, length: int) -> Callable[[Path], None]:
    """Cut so many bytes off; 0 is the whole last line."""
    return lambda root: edit(
        root, name, lambda data: data[:-length] if length else b"".join(data.splitlines(keepends=True)[:-1])
    )


def remove(name: str) -> Callable[[Path], None]:
    return lambda root: (root / STORE / name).unlink()


def with_old_head(keys: str) -> Callable[[Path], None]:
    """Write records, then put the head back that did not know of them."""

    def harm(root: Path) -> None:
        old = (root / STORE / "head.json").read_bytes()
        put(root, keys)
        (root / STORE / "head.json").write_bytes(old)

    return harm


def empty(root: Path) -> None:
    """Leave nothing of the store but its folder."""
    shutil.rmtree(root / STORE)
    (root / STORE).mkdir()


def behind_a_seal(root: Path) -> None:
    """Put the head back that was there before the journal was sealed."""
    shutil.copy(root.parent / "plain-head.json", root / STORE / "head.json")


def mixed(root: Path) -> None:
    """Put another journal of the same length beside the head."""
    other = copied(root, root.with_name("other"))
    put(root, "Y")
    put(other, "W")
    shutil.copy(other / STORE / FIRST, root / STORE / FIRST)
    shutil.rmtree(other)


def newer(root: Path) -> None:
    of = head.read(RealFs(), root / STORE)
    (root / STORE / "head.json").write_bytes(head.encode(msgspec.structs.replace(of, format=2)))


NEWER_RECORD = b'{"v":2,"seq":6,"prev":"%b","sum":"%b","rec":{}}\n' % (b"0" * 64, b"0" * 64)


class Kind(NamedTuple):
    """One kind of damage, what tells of it, and what leads out of it."""

    row: str
    """The row of the table in docs/durability.md."""
    model: str
    harm: Callable[[Path], None]
    query: tuple[str, int]
    """Code and status of `kb query`; ("", 0) where it answers."""
    apply: tuple[str, int]
    verify: int
    told: tuple[str, ...]
    """What `kb doctor` says, as regular expressions; <5L-1> is the length of five records less a byte."""
    good: int = 0
    """What can be read with --at; 0 for nothing."""
    found: tuple[str, int, int | str] = ("", -1, -1)
    """File, line and byte (as <5L-1>) of the finding of `kb doctor`."""
    follow: Callable[[Path], object] = lambda root: None
    """Does what the remedy says."""
    left: str = "ABCDE"
    """The entities that are there then."""


def begin_again(root: Path) -> None:
    """Remove the folder of a store, and make a new one, as only who writes does."""
    (root / STORE).rmdir()
    done(kb(root, "sync"))


def rebuild_head(root: Path) -> None:
    done(kb(root, "doctor", "--rebuild-head", "--branch", "main"))


def rebuild_snapshots(root: Path) -> None:
    done(kb(root, "doctor", "--rebuild-snapshots", "--branch", "main"))


def write(root: Path) -> None:
    put(root, "Q")


def salvage(root: Path) -> None:
    done(kb(root, "doctor", "--salvage", "--branch", "main"))


OK = ("", 0)
CORRUPT, TRUNCATED, HEAD = ("journal_corrupt", 40), ("journal_truncated", 41), ("head_damaged", 42)
SNAPSHOT_BAD, TOO_NEW = ("snapshot_corrupt", 43), ("format_too_new", 50)
RESTORE = r"If there is a backup, `kb restore FILE --only main --replace` brings the branch back as it was then\. "
UNDO = r"undo exactly that; `kb verify` proves it\. " + RESTORE
REBUILD = r"`kb doctor --rebuild-head --branch main` makes a new head "
NO_BACKUP = r"Without a backup, "
SALVAGE = NO_BACKUP + r"run `kb doctor --salvage --branch main`: it keeps a copy of the store and every record that "
SNAPSHOTS = r"`kb doctor --rebuild-snapshots --branch main`: it "
NO_HEAD = r"Run `kb doctor --rebuild-head --branch main`: it makes a new head out of the journal, keeps a copy"

KINDS = {
    "torn tail": Kind(
        "an unfinished write", "plain", append(FIRST, b'{"v":1,"seq":6,"prev":"'), OK, OK, 0,
        (r"23 bytes beyond the head were never acknowledged; the next write moves 23 bytes .* to quarantine",
         "Nothing to do: the next write settles it"),
        5, (FIRST, -1, "5L"), write, "ABCDEQ",
    ),
    "whole record beyond the head": Kind(
        "an unanswered record", "plain", with_old_head("F"), OK, OK, 0,
        (r"were never acknowledged; the next write makes 1 complete record part of history", "Nothing to do"),
        5, (FIRST, -1, "5L"), write, "ABCDEFQ",
    ),
    "old head": Kind(
        "an old head", "plain", with_old_head("FGH"), OK, OK, 0,
        (r"beyond the head, which is older than the journal: .* put an old one back, and readers miss what came ",
         r"after; the next write makes 3 complete records part of history", "Nothing to do"),
        5, (FIRST, -1, "5L"), write, "ABCDEFGHQ",
    ),
    "old head before a seal": Kind(
        "an old head before a seal", "sealed", behind_a_seal, OK, HEAD, 42,
        (rf"head.json is older than the journal: it does not name {SECOND}", "Put the newer head file back", NO_HEAD),
        5, ("head.json", -1, -1), rebuild_head, "ABCDEFG",
    ),
    "corrupt before the head": Kind(
        "a changed record", "plain", swap(FIRST, b"Title of C", b"Title of X"), CORRUPT, CORRUPT, 40,
        (rf"{FIRST}, line 3, byte <2L>: the checksum does not match the record \(expected \w+, found \w+\)",
         r"Records up to seq 2 are good and readable with --at 2\. If you know what changed the file, " + UNDO, SALVAGE,
         r"note .* The records up to seq 2 are good and readable with --at 2\."),
        2, (FIRST, 3, "2L"), swap(FIRST, b"Title of X", b"Title of C"),
    ),
    "corrupt before the head, no backup": Kind(
        "a changed record", "plain", swap(FIRST, b"Title of C", b"Title of X"), CORRUPT, CORRUPT, 40,
        (SALVAGE + "is proven, and says which records are gone",), 2, (FIRST, 3, "2L"), salvage, "ABDE",
    ),
    "converted line ends": Kind(
        "a changed record", "plain", swap(FIRST, b"\n", b"\r\n"), CORRUPT, CORRUPT, 40,
        (r"line 1, byte 0: .*", "The line ends in CRLF", "No record is readable", UNDO + SALVAGE,
         "No record is known to be what was acknowledged"),
        0, (FIRST, 1, 0), swap(FIRST, b"\r\n", b"\n"),
    ),
    "converted line ends are not given up": Kind(
        "a changed record", "plain", swap(FIRST, b"\n", b"\r\n"), CORRUPT, CORRUPT, 40,
        (UNDO + SALVAGE,), 0, (FIRST, 1, 0), salvage,
    ),
    "corrupt last record": Kind(
        "a changed record", "plain", swap(FIRST, b"Title of E", b"Title of X"), CORRUPT, CORRUPT, 40,
        (r"line 5, byte <4L>: ", UNDO + SALVAGE),
        4, (FIRST, 5, "4L"), salvage, "ABCD",
    ),
    "truncated": Kind(
        "lost bytes", "plain", cut(FIRST, 0), TRUNCATED, TRUNCATED, 41,
        (rf"{FIRST} has <4L> bytes, and <5L> were acknowledged", "readable with --at N",
         UNDO + SALVAGE, r"The records up to seq 4 are good and readable with --at 4\."),
        4, (FIRST, -1, "4L"), salvage, "ABCD",
    ),
    "last newline": Kind(
        "lost bytes", "plain", cut(FIRST, 1), TRUNCATED, TRUNCATED, 41,
        (r"The last newline is missing: an editor removed it\.",), 4, (FIRST, -1, "5L-1"), append(FIRST, b"\n"),
    ),
    "missing journal": Kind(
        "lost bytes", "plain", remove(FIRST), TRUNCATED, TRUNCATED, 41,
        (rf"{FIRST} is missing, and the head names it", RESTORE, SALVAGE),
        0, (FIRST, -1, -1), salvage, "",
    ),
    "mixed files": Kind(
        "mixed files", "plain", mixed, CORRUPT, CORRUPT, 40,
        (rf"{FIRST}: the records are valid and end with 6, but the head file does not name this end",
         "Files from different times or stores were mixed", "Put head.json and the journal back from one and the same",
         NO_BACKUP + REBUILD + "for the records that are there, as if they were the right ones",
         "No record is known to be what was acknowledged"),
        0, (FIRST, -1, "6L"), rebuild_head, "ABCDEW",
    ),
    "missing head": Kind(
        "a missing or damaged head", "plain", remove("head.json"), HEAD, HEAD, 42,
        (r"head.json is damaged: it is missing although there is a journal", NO_HEAD, "nothing else was checked"),
        0, ("head.json", 1, 0), rebuild_head,
    ),
    "damaged head": Kind(
        "a missing or damaged head", "plain", swap("head.json", b'"main"', b'"mean"'), HEAD, HEAD, 42,
        (r"head.json is damaged: its checksum does not match", "The file was edited by hand", NO_HEAD),
        0, ("head.json", 1, 0), rebuild_head,
    ),
    "emptied folder": Kind(
        "an emptied store", "plain", empty, HEAD, HEAD, 42,
        (r"main holds nothing, and no store", "Restore the folder from a backup, or remove it", "nothing else was"),
        0, ("", -1, -1), begin_again, "",
    ),
    "damaged snapshot": Kind(
        "a damaged or missing snapshot", "sealed", swap(SNAPSHOT, b"Title of C", b"Title of X"), OK, OK, 43,
        (rf"{SNAPSHOT}, line 4, byte 684: the line does not match its checksum", "Nothing is lost: the journal has",
         SNAPSHOTS + "makes the snapshot anew", r"Every record up to seq 7 is good, and everything can be read\."),
        7, (SNAPSHOT, 4, 684), rebuild_snapshots, "ABCDEFG",
    ),
    "missing snapshot": Kind(
        "a damaged or missing snapshot", "sealed", remove(SNAPSHOT), OK, OK, 43,
        (rf"{SNAPSHOT} is missing, and the head names it", "Nothing is lost", SNAPSHOTS),
        7, (SNAPSHOT, -1, -1), rebuild_snapshots, "ABCDEFG",
    ),
    "damaged snapshot of pruned history": Kind(
        "a damaged snapshot of pruned history", "pruned", swap(SNAPSHOT, b"Title of C", b"Title of X"),
        SNAPSHOT_BAD, SNAPSHOT_BAD, 43,
        (rf"{SNAPSHOT}, line 4, byte 684: ", "It stands for the records before 6, which were pruned",
         "Put the file back from a backup, or run " + SNAPSHOTS + "looks for the same facts in the other branches",
         "but what they build on is not"),
        0, (SNAPSHOT, 4, 684), rebuild_snapshots, "ABCDEFG",
    ),
    "newer head": Kind(
        "a newer format", "plain", newer, TOO_NEW, TOO_NEW, 50,
        (r"head.json needs a newer KB: format 2", "Install the KB version that wrote this store, or a newer one"),
        0, ("head.json", -1, -1),
    ),
    "newer record": Kind(
        "a newer format", "plain", append(FIRST, NEWER_RECORD), OK, TOO_NEW, 50,
        (rf"{FIRST}, line 6, byte <5L>: the record has format 2, and this KB reads up to 1", "Install the KB version"),
        5, (FIRST, 6, "5L"),
    ),
    "sealed file grown": Kind(
        "a changed sealed file", "sealed", append(FIRST, b"x\n"), CORRUPT, CORRUPT, 40,
        (rf"{FIRST} was sealed with <5L> bytes and has <5L+2>", "cut it back to <5L> bytes", "`kb verify` proves",
         SALVAGE, r"Every record up to seq 7 is good\."),
        7, (FIRST, -1, "5L"), cut(FIRST, 2), "ABCDEFG",
    ),
    "sealed file changed": Kind(
        "a changed sealed file", "sealed", swap(FIRST, b"Title of C", b"Title of X"), CORRUPT, CORRUPT, 40,
        (rf"{FIRST}, line 3, byte <2L>: ", "Records up to seq 2 are good and readable with --at 2", UNDO + SALVAGE),
        2, (FIRST, 3, "2L"), swap(FIRST, b"Title of X", b"Title of C"), "ABCDEFG",
    ),
    "sealed file cut": Kind(
        "a changed sealed file", "sealed", cut(FIRST, 100), TRUNCATED, TRUNCATED, 41,
        (rf"{FIRST} has <5L-100> bytes, and <5L> were acknowledged", SALVAGE, "good and readable with --at 4"),
        4, (FIRST, -1, "5L-100"), salvage, "ABCDEFG",
    ),
    "sealed file missing": Kind(
        "a changed sealed file", "sealed", remove(FIRST), TRUNCATED, TRUNCATED, 41,
        (rf"{FIRST} is missing, and the head names it", SALVAGE),
        0, (FIRST, -1, -1), salvage, "ABCDEFG",
    ),
}  # fmt: skip
PROVEN_AFTERWARDS = {name for name, kind in KINDS.items() if kind.row != "a newer format"}


@pytest.fixture
def harmed(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Kind], Path]:
    monkeypatch.setattr(RealFs, "fsync", lambda *_: None)

    def harm(kind: Kind) -> Path:
        shutil.copy(models / "plain" / STORE / "head.json", tmp_path / "plain-head.json")
        root = copied(models / kind.model, tmp_path / "repo")
        kind.harm(root)
        forget_views(root)
        return root

    return harm


def in_bytes(text: object, length: int) -> str:
    """Return a text with lengths for numbers of records, given the length of one."""
    return re.sub(r"(\d+)L([+-]\d+)?", lambda found: str(int(found[1]) * length + int(found[2] or 0)), str(text))


def measured(kind: Kind, length: int) -> Kind:
    """Return a kind with bytes for numbers of records."""
    file, line, offset = kind.found
    told = tuple(re.sub("<(.*?)>", lambda found: in_bytes(found[1], length), one) for one in kind.told)
    return kind._replace(told=told, found=(file, line, int(in_bytes(offset, length))))


def tree(root: Path) -> dict[str, tuple[int, int, str]]:
    """Return everything below a folder: size, time of change and digest."""
    found = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(root))] = (status.st_size, status.st_mtime_ns, digest)
    return found


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
    shown, told = kb(root, *words, "--json", stdin=stdin), kb(root, *words, stdin=stdin)
    assert (shown.status, told.status) == (status, status), (shown, told)
    assert shown.err == "", shown
    assert shown.error["code"] == code
    assert shown.error["applied"] == "no"
    file, line, offset = kind.found
    assert shown.error["file"] == str(root / STORE / file)
    if line > 0:
        assert (shown.error["line"], shown.error["offset"]) == (line, offset)
    assert shown.error["message"].rstrip(".") in told.err
    assert file in told.err
    assert f"hint: {shown.error['hint']}" in told.err
    assert len(shown.error["hint"]) > 40


def check_diagnosis(root: Path, kind: Kind) -> None:
    """Insist on what `kb doctor` and `kb verify` say, and that both write nothing."""
    before = tree(root)
    note = {CACHES_NAME, f"{CACHES_NAME}/main", f"{CACHES_NAME}/main/damaged.json"}
    for command in ("verify", "doctor"):
        told, shown = kb(root, command), kb(root, command, "--json")
        assert (told.status, shown.status) == (kind.verify, kind.verify), told
        assert shown.json["ok"] is (kind.verify == 0)
        text = re.sub(r"\n +", " ", told.out + told.err)
        for pattern in kind.told:
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
def test_damage_is_told_with_its_place_and_a_way_out_that_works(name: str, models, harmed, tally) -> None:
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
def test_what_a_write_mends_is_told_in_its_answer_and_in_the_log(harmed, tally) -> None:
    torn = harmed(KINDS["torn tail"])
    tally.tried()
    assert "23 bytes of an unfinished write were cut from" in warned(torn, "Q")
    [kept] = (torn / STORE / "quarantine").glob("*.cut")
    assert kept.read_bytes() == b'{"v":1,"seq":6,"prev":"'
    assert f"quarantine/{kept.name}" in done(kb(torn, "show", "6")).out
    tally.done()


@pytest.mark.fault("D1")
def test_an_old_head_is_told_loudly_when_it_is_mended(harmed, tally) -> None:
    root = harmed(KINDS["old head"])
    tally.tried()
    told = warned(root, "Q")
    assert "records 6 to 8 were complete, and now count" in told
    assert "The head file was older than the journal: somebody or some tool put an old one back." in told
    tally.done()


@pytest.mark.fault("D1")
def test_a_head_without_the_beginning_says_what_is_gone(harmed, tally) -> None:
    root = harmed(KINDS["sealed file missing"])
    tally.tried()
    (root / STORE / "head.json").unlink()
    told = done(kb(root, "doctor", "--rebuild-head")).err
    assert "The records before 6 are not there: a snapshot stands for them" in told
    tally.done()


@pytest.mark.fault("D1")
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_foreign_write_is_told_truthfully(when: str, harmed, monkeypatch, tally) -> None:
    root = harmed(KINDS["torn tail"]._replace(harm=lambda _: None))
    tally.tried()
    with monkeypatch.context() as patch:
        patch.setattr(RealFs, "write", intruding(root / STORE / FIRST, when))
        shown = kb(root, "apply", "-", "--json", stdin=changeset("Q"))
    code, applied = {"before": (("foreign_write", 44), "no"), "after": (("commit_uncertain", 30), "unknown")}[when]
    assert (shown.error["code"], shown.status) == code
    assert shown.error["applied"] == applied
    assert f"{FIRST}: somebody wrote to the journal without taking the lock" in shown.error["message"]
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
        told = kb(root, "apply", "-", stdin=changeset("Q"))
        assert ids(root) == "ABCDE"
        assert done(kb(root, "verify", "--json")).json["ok"]
        assert kb(root, "doctor").status == 0
    finally:
        os.close(holder)
    assert (shown.error["code"], shown.status) == ("lock_timeout", 20)
    assert shown.error["retryable"]
    assert f"is held by kb sync (process {os.getpid()} on {os.uname().nodename}, since 20" in told.err
    assert "hint: Wait for the named process, or end it; the lock is freed when it dies." in told.err
    assert documented("a lock that is held") == {("lock_timeout", 20)}
    put(root, "Q")
    tally.done()


@pytest.mark.fault("D1")
@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        (errno.ENOSPC, ("storage_full", 22)),
        (errno.EROFS, ("read_only_store", 23)),
        (errno.EDQUOT, ("storage_full", 22)),
    ][: tries(2, 3)],
)
def test_a_disk_that_takes_nothing_is_told_and_queries_go_on(code: int, wanted, harmed, monkeypatch, tally) -> None:
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
@pytest.mark.parametrize("model", ["plain", "sealed", "pruned"])
def test_a_good_store_is_proven(model: str, harmed, tally) -> None:
    root = harmed(Kind("", model, lambda _: None, OK, OK, 0, ()))
    ids(root)
    before = tree(root)
    tally.tried()
    proven = done(kb(root, "verify", "--json")).json
    assert proven["ok"]
    assert proven["good_seq"] == proven["seq"]
    assert [check["status"] for check in proven["checks"]] == ["ran"] * 4
    assert f"main at seq {proven['seq']}: sound" in done(kb(root, "verify")).out
    diagnosed = done(kb(root, "doctor"))
    assert f"Every byte up to seq {proven['seq']} is as it was written." in diagnosed.out
    assert "All is well." in diagnosed.out
    # The doctor times the disk with a file that comes and goes in the cache.
    assert tree(root) | {CACHES_NAME: None} == before | {CACHES_NAME: None}
    tally.done()


def documented(row: str) -> set[tuple[str, int]]:
    """Return the codes and statuses that the page names in the row of a kind of damage."""
    page = (ROOT / "docs/durability.md").read_text(encoding="utf-8")
    table = page.partition("<!-- damage -->\n")[2].partition("<!-- end of damage -->")[0]
    [line] = [line for line in table.splitlines() if line.startswith(f"| {row} |")]
    return {(code, int(status)) for code, status in re.findall(r"`(\w+)` \((\d+)\)", line)}


def the_witness(root: Path) -> Path:
    """Return the file that holds the last acknowledged record of the branch, apart from the store."""
    repository_id = git(root, "config", "kb.id").strip()
    found = Path(os.environ["HOME"], ".local/state/kb/witness", repository_id).glob("*/main.json")
    # The model that this is a copy of may be noted there as well.
    own = os.fsencode(root / ".git") + b"\0"
    [path] = [one for one in found if (one.parent / "git-dir").read_bytes() == own]
    return path


@pytest.mark.sliced(2)
@pytest.mark.fault("D1")
@pytest.mark.parametrize("damage", ["a flipped bit", "cut off", "emptied", "a folder", "garbage", "too long"])
def test_a_damaged_witness_is_told_and_is_never_taken_for_agreement(damage: str, harmed, tally) -> None:
    root = harmed(KINDS["torn tail"]._replace(harm=lambda _: None))
    # The copy of the model has a note of its own from now on.
    put(root, "Q")
    old = copied(root / STORE, root.with_name("old"))
    put(root, "R")
    tally.tried()
    path = the_witness(root)
    data = path.read_bytes()
    if damage == "a folder":
        path.unlink()
        path.mkdir()
    else:
        changed = {
            "a flipped bit": data[:40] + bytes([data[40] ^ 1]) + data[41:],
            "cut off": data[:100],
            "emptied": b"",
            "too long": b"x" * 20_000,
        }
        path.write_bytes(changed.get(damage, b"x" * 512))
    for words in (["query"], ["status"], ["check"]):
        told = kb(root, *words)
        assert told.status == 0
        assert f"The note of the last acknowledged record of main is damaged: {path}" in told.err.replace("\n", " "), (
            told
        )
    found = {one["code"]: one for one in done(kb(root, "doctor", "--json")).json["findings"]}
    assert (found["witness_damaged"]["severity"], found["witness_damaged"]["file"]) == ("warning", str(path))
    assert "All is well" not in kb(root, "doctor").out
    # It is no witness of anything: neither a loss nor a state that is in order.
    shutil.rmtree(root / STORE)
    copied(old, root / STORE)
    forget_views(root)
    assert "to an earlier state" not in kb(root, "query").err
    assert "is damaged" in kb(root, "query").err
    put(root, "S")
    if damage == "a folder":  # nothing can be renamed over it: the advice is to remove it
        told = kb(root, "query").err.replace("\n", " ")
        assert "Where that fails, as in the place of a folder, remove what is there." in told
        path.rmdir()
        put(root, "T")
    assert "is damaged" not in kb(root, "query").err
    assert documented("a damaged note of the last record") == set()
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
