"""Failure modes of sharing: change files that no KB wrote so are refused with their place, and all else is taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from kbcore import limits
from kbcore.checks import run_checks
from kbcore.extract.changes import FOLDER
from kbcore.model.claims import change_file
from kbcore.model.claims.change import Change, Claim, SetField, identified
from kbcore.share.faults import fault_of
from kbcore.share.sharing import for_review
from kbcore.share.unshared import find_unshared
from kbcore.share.worktree_changes import NewFiles
from tests.support.repository.clones import Clone, hold

BIDI = "\u202e"
SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"


def with_title(change: Change, title: str) -> Change:
    """Return the change that another writer makes of it, with another title."""

    def turned(claim: Claim) -> Claim:
        is_title = isinstance(claim, SetField) and claim.field == "title"
        return msgspec.structs.replace(claim, now=title) if is_title else claim

    return identified(msgspec.structs.replace(change, claims=tuple(map(turned, change.claims))))


def marked(data: bytes) -> bytes:
    first, rest = data.split(b"\n", 1)
    return first + b"\n<<<<<<< ours\n" + rest + b"=======\n>>>>>>> theirs\n"


DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str, int]] = {
    "edited by hand": (lambda data: data.replace(b'"Two"', b'"2"'), "wrong_id", 1),
    "cut off within a line": (lambda data: data[:-9], "truncated", 5),
    "cut off after a line": (lambda data: data[: data[:-1].rindex(b"\n") + 1], "truncated", 4),
    "without its last line break, as web editors leave it": (lambda data: data[:-1], "truncated", 5),
    "with one line more, as web editors leave it": (lambda data: data + b"\n", "not_canonical", 6),
    "with conflict markers": (marked, "merge_conflict", 2),
    "with white space": (lambda data: data.replace(b',"op"', b', "op"', 1), "not_canonical", 2),
    "in a newer format": (lambda data: data.replace(b'"kb":1', b'"kb":7'), "newer_format", 1),
    "not UTF-8": (lambda data: data.replace(b"Two", b"Tw\xff"), "not_utf8", 4),
    "empty": (lambda _: b"", "truncated", 1),
}
"""A change to a file, and the code and line with which it is refused."""


@pytest.mark.sliced(3)
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_refused_with_its_place_and_the_rest_is_taken(
    ann: Clone, bob: Clone, clone: Callable[..., Clone], damage: str
) -> None:
    change, code, line = DAMAGE[damage]
    ann.fact("FACT-2", "Two")
    ann.commit()
    ann.push()
    bob.pull()
    hold(bob)
    [path] = {*ann.changes()} & {one for one, changes in ann.committed().items() if "FACT-2" in str(changes)}
    known, data = ann.committed()[path], (ann.root / path).read_bytes()
    ann.fact("FACT-3")
    ann.share()
    (ann.root / path).write_bytes(change(data))
    ann.git("add", "--all")
    ann.git("commit", "--quiet", "-m", "by hand")
    ann.push()
    bob.pull()

    hold(ann, bob, stale=known, is_damaged=True)
    assert {"FACT-2", "FACT-3"} <= bob.titles().keys()
    assert [(where, one.code, one.line) for where, one in bob.sync().problems] == [(path, code, line)]
    eve = clone("eve")
    hold(eve, is_damaged=True)
    assert "FACT-2" not in eve.titles()
    assert "FACT-3" in eve.titles()
    for one in (ann, bob, eve):
        report = run_checks(one.workspace(), one.view(), branch="main")
        assert not report.ok
        assert [found.id for found in report.violations if found.rule == "unreadable-source"] == [path]

    (ann.root / path).write_bytes(data)
    ann.commit("as it was")
    ann.push()
    for one in (bob, eve):
        one.pull()
    hold(ann, bob, eve)
    assert ann.facts() == bob.facts() == eve.facts()


def planted(clone: Clone, data: bytes, name: str) -> str:
    """Commit a file into the folder of change files, as somebody without KB may; return its path."""
    path = f"{FOLDER}/{name}"
    (clone.root / path).parent.mkdir(parents=True, exist_ok=True)
    (clone.root / path).write_bytes(data)
    clone.git("add", "--all", "--force")
    clone.git("commit", "--quiet", "-m", "planted")
    return path


@pytest.mark.parametrize(
    ("title", "code"),
    [(f"a{BIDI}b", "unsafe_text"), ("a\u200bb", "unsafe_text"), (f"token {SECRET}", "secret")],
    ids=["text of another direction", "no width", "secret"],
)
def test_a_planted_file_that_hides_text_or_holds_a_secret_is_refused(ann: Clone, title: str, code: str) -> None:
    before = ann.facts()
    change = with_title(next(iter(ann.committed().values()))[0], title)
    data = change_file.encode([change])
    path = planted(ann, data, change_file.file_path([change], data))
    [(where, problem)] = ann.sync().problems
    assert (where, problem.code) == (path, code)
    assert ann.facts() == before
    ann.git("rm", "--quiet", path)
    hold(ann)


@pytest.mark.parametrize("member", ["actor", "session", "tool"])
def test_a_planted_file_whose_writer_is_named_like_a_secret_is_refused(ann: Clone, member: str) -> None:
    before = ann.facts()
    change = identified(msgspec.structs.replace(next(iter(ann.committed().values()))[0], **{member: SECRET}))
    data = change_file.encode([change])
    path = planted(ann, data, change_file.file_path([change], data))
    assert [(where, one.code, one.line) for where, one in ann.sync().problems] == [(path, "secret", 1)]
    assert ann.facts() == before
    ann.git("rm", "--quiet", path)
    hold(ann)


def test_a_change_that_no_file_may_hold_for_its_size_is_named(ann: Clone) -> None:
    change = next(iter(ann.committed().values()))[0]
    assert fault_of(change) == ("", "")
    assert fault_of(with_title(change, "word " * (limits.MAX_CHANGE_FILE_BYTES // 5)))[0] == "too_large"


def test_a_value_before_is_no_reason_to_withhold_a_change_and_is_left_out(ann: Clone) -> None:
    ann.fact("FACT-2", "word " * 1000)
    [one] = find_unshared(ann.workspace(), ann.branch)
    *others, last = [claim for claim in one.change.claims if isinstance(claim, SetField)]
    for was in ("word " * (limits.MAX_CHANGE_FILE_BYTES // 5), f"token {SECRET}", f"a{BIDI}b"):
        claims = (one.change.claims[0], *others, msgspec.structs.replace(last, was=was))
        changed = msgspec.structs.replace(one.change, claims=claims)
        assert fault_of(changed) == ("", "")
        [shown] = for_review(ann.workspace(), ann.branch, [msgspec.structs.replace(one, change=changed)], NewFiles())
        assert shown == one.change


def test_a_file_under_another_name_is_refused(ann: Clone) -> None:
    [path] = ann.changes()
    ann.git("mv", path, path.replace(".jsonl", "x.jsonl"))
    ann.git("commit", "--quiet", "-m", "moved")
    hold(ann, is_damaged=True)
    assert [one.code for _, one in ann.sync().problems] == ["wrong_name"]
    assert "FACT-1" not in ann.titles()


def test_a_file_beyond_the_limit_is_refused_unread(ann: Clone) -> None:
    path = planted(ann, b"x" * (limits.MAX_CHANGE_FILE_BYTES + 1), "2026-11/large.jsonl")
    [(where, problem)] = ann.sync().problems
    assert (where, problem.code) == (path, "unreadable")
    assert str(limits.MAX_CHANGE_FILE_BYTES) in problem.message


def test_a_file_larger_than_a_document_may_be_is_taken(ann: Clone, bob: Clone) -> None:
    made = {"type": "symbol", "title": "Long", "status": "active", "attributes": {"text": "word " * 12_000}}
    ann.apply(entities=[{"id": f"FACT-B{number}", **made} for number in range(80)])
    [path] = {*ann.share().files}
    assert (ann.root / path).stat().st_size > limits.MAX_SOURCE_FILE_BYTES
    ann.commit()
    ann.push()
    bob.pull()
    hold(ann, bob)
    assert bob.facts() == ann.facts()
    assert "FACT-B79" in bob.titles()


@pytest.mark.parametrize(
    ("written", "reason", "place"),
    [
        ({"title": f"token {SECRET}"}, "secret", "title of FACT-1"),
        ({"title": f"a{BIDI}b"}, "unsafe_text", "title of FACT-1"),
        ({"attributes": {"k": "a\u200bb"}}, "unsafe_text", "attributes.k of FACT-1"),
    ],
    ids=["secret", "direction", "no width"],
)
def test_what_no_file_may_hold_is_named_and_never_reaches_git(
    ann: Clone, written: dict[str, Any], reason: str, place: str
) -> None:
    before = ann.changes()
    ann.add("FACT-1", **written)
    ann.fact("FACT-2")
    found = ann.share()
    assert [(one.withheld, one.place) for one in found.withheld] == [(reason, place)]
    assert len(found.files) == 1
    [path] = {*ann.changes()} - {*before}
    text = (ann.root / path).read_text()
    assert BIDI not in text
    assert SECRET not in text
    hold(ann)
    ann.commit()
    hold(ann)
    in_git = ann.git("log", "--all", "-p")
    assert SECRET not in in_git
    assert BIDI not in in_git
