"""The kinds of damage to a store, what KB says of each, and stores that have it."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from kbcli import app
from kbcore.storage import head
from kbcore.storage.fs import RealFs
from tests.support.processes.cli import ROOT, Ran, environment, worded
from tests.support.repository.places import STORES_NAME, caches_at
from tests.support.repository.repos import make_repository

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


def after_a_seal(root: Path) -> None:
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
    reported: tuple[str, ...]
    """The messages of `kb doctor`, as regular expressions; <5L-1> is the length of five records less a byte."""
    good: int = 0
    """The seq that can be read with --at; 0 for none."""
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


REBUILD = r"what `kb help rebuild-head` describes for the branch main makes a new head "


NO_BACKUP = r"Without a backup, "


SALVAGE = (
    NO_BACKUP
    + r"run what `kb help salvage` describes for the branch main: it keeps a copy of the store and every record that "
)


SNAPSHOTS = r"`kb doctor --rebuild-snapshots --branch main`: it "


NO_HEAD = (
    r"Run what `kb help rebuild-head` describes for the branch main: it makes a new head from the journal, keeps a copy"
)


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
        (r"beyond the head, which is older than the journal: .* restored an old one, and readers do not see the later ",
         r"records; the next write makes 3 complete records part of history", "Nothing to do"),
        5, (FIRST, -1, "5L"), write, "ABCDEFGHQ",
    ),
    "old head before a seal": Kind(
        "an old head before a seal", "sealed", after_a_seal, OK, HEAD, 42,
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
         SNAPSHOTS + "rebuilds the snapshot", r"Every record up to seq 7 is good, and everything can be read\."),
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
        (rf"{SNAPSHOT}, line 4, byte 684: ", "It replaces the records before 6, which were pruned",
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


def tree(root: Path) -> dict[str, tuple[int, int, str]]:
    """Return everything below a folder: size, time of change and digest."""
    found = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(root))] = (status.st_size, status.st_mtime_ns, digest)
    return found


def documented(row: str) -> set[tuple[str, int]]:
    """Return the codes and statuses that the page names in the row of a kind of damage."""
    page = (ROOT / "docs/durability.md").read_text(encoding="utf-8")
    table = page.partition("<!-- damage -->\n")[2].partition("<!-- end of damage -->")[0]
    [line] = [line for line in table.splitlines() if line.startswith(f"| {row} |")]
    return {(code, int(status)) for code, status in re.findall(r"`(\w+)` \((\d+)\)", line)}
