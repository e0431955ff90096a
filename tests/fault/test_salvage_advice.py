"""D2: the advice of a diagnosis is executed word by word, and leads to a working store."""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fault.damaged_stores import (
    KINDS,
    PROVEN_AFTERWARDS,
    STORE,
    Kind,
    changeset,
    copied,
    done,
    forget_views,
    harmed,
    ids,
    kb,
    models,
    put,
)
from tests.fault.salvaging import lose_an_end
from tests.support.disk.damage import contents
from tests.support.processes.advice import spelled_out
from tests.support.processes.cli import environment
from tests.support.repository.places import STORES_NAME
from tests.support.repository.repos import git

__all__ = ["harmed", "models"]


def commands_in(text: str) -> list[list[str]]:
    """Return the `kb` commands that a message names, as words, in their order."""
    return [shlex.split(command)[1:] for command in dict.fromkeys(re.findall(r"`(kb [^`]*)`", spelled_out(text)))]


def confirmed(words: list[str]) -> list[str]:
    """Return the option by which a person confirms a command, for one that asks."""
    return ["--yes"] * (not {"--new-epoch", "--salvage"}.isdisjoint(words))


def advised(root: Path, command: str = "doctor") -> list[str]:
    """Return what `kb doctor` or `kb verify` advises about damage and losses, the gravest first."""
    found = kb(root, command, "--json").json["findings"]
    return [one["remedy"] for one in found if one["severity"] == "error" and one["code"] not in {"", "no_head"}]


def follow(root: Path, advice: str, *, backup: Path | None) -> bool:
    """Execute the commands of an advice that repair something; return whether there was one."""
    has_repaired = False
    for words in commands_in(advice):
        if words[0] == "restore" and backup is not None:
            done(kb(root, *(str(backup) if word == "FILE" else word for word in words)))
            return True
        if words[0] == "doctor" and len(words) > 1 and backup is None:
            done(kb(root, *words, *confirmed(words)))
            has_repaired = True
    return has_repaired


DAMAGED = [
    name for name, kind in KINDS.items() if kind.verify and name in PROVEN_AFTERWARDS and name != "emptied folder"
]


LEFT = {
    "corrupt before the head": "ABDE",
    "converted line ends": "ABCDE",
    "last newline": "ABCDE",
    "missing journal": "",
    "mixed files": "ABCDEW",
}
"""The result of the advice for a store without a backup, where that is less than undoing the damage by hand."""


@pytest.mark.sliced(7)
@pytest.mark.fault("D2")
@pytest.mark.parametrize("name", DAMAGED)
def test_the_advice_of_a_diagnosis_followed_word_by_word_leads_to_a_working_store(name: str, harmed, tally) -> None:
    kind = KINDS[name]
    root = harmed(kind)
    tally.tried()
    if kind.query[0]:
        said = kb(root, "query", "--json").error["hint"]
        assert any(words[0] == "doctor" for words in commands_in(said)), said
    for _ in range(3):
        advice = advised(root)
        if not advice:
            break
        assert follow(root, advice[0], backup=None), advice
        forget_views(root)
    assert ids(root) == LEFT.get(name, kind.left)
    assert done(kb(root, "verify", "--json")).json["ok"]
    put(root, "Z")
    tally.done()


TWICE = [
    ("sealed file changed", "damaged snapshot"),
    ("old head before a seal", "sealed file changed"),
    ("old head before a seal", "missing snapshot"),
    ("sealed file missing", "missing snapshot"),
]
"""Kinds of damage of one store at a time; the first says which store it is."""


@contextlib.contextmanager
def as_before(root: Path, kept: Path) -> Iterator[None]:
    """Put a repository, and the home folder with the notes on its stores, back as they were."""
    places = {root: kept / "repo", Path(environment()["HOME"]): kept / "home"}
    for place, copy in places.items():
        copied(place, copy)
    yield
    for place, copy in places.items():
        shutil.rmtree(place)
        copy.rename(place)


def repair(root: Path, advice: str) -> bool:
    """Execute the repairs of an advice as they are printed, of which a person confirms a new epoch."""
    repairs = [words for words in commands_in(advice) if words[0] == "doctor" and len(words) > 1]
    for words in repairs:
        done(kb(root, *words, *confirmed(words)))
    forget_views(root)
    return bool(repairs)


@pytest.mark.sliced(8)
@pytest.mark.fault("D2")
@pytest.mark.parametrize("loses", [False, True], ids=["complete", "went back"])
@pytest.mark.parametrize("command", ["verify", "doctor"])
@pytest.mark.parametrize("names", [*((name,) for name in DAMAGED), *TWICE], ids=" and ".join)
def test_each_repair_that_is_advised_is_carried_out_as_it_is_printed(
    names: tuple[str, ...], command: str, loses: bool, harmed, tmp_path, tally
) -> None:
    kinds = [KINDS[name] for name in names]
    root = harmed(kinds[0]._replace(harm=ids))
    for kind in kinds:
        kind.harm(root)
    if loses:
        lose_an_end(root)
    forget_views(root)
    tally.tried()
    for first in advised(root, command):
        with as_before(root, tmp_path / "kept"):
            assert repair(root, first), first
            for _ in range(3):
                if not (left := advised(root, command)):
                    break
                assert repair(root, left[0]), left
            assert done(kb(root, "verify", "--json")).json["ok"]
            assert len(names) > 1 or ids(root) == LEFT.get(names[0], kinds[0].left)
            put(root, "Z")
    tally.done()


OTHER = f"{STORES_NAME}/other"


def with_other(root: Path) -> Path:
    """Give a repository a branch that is not checked out, with a store of its own."""
    git(root, "branch", "other")
    done(kb(root, "apply", "-", "--branch", "other", stdin=changeset("O")))
    return root


def repair_other(root: Path, said: str) -> None:
    """Execute the repairs of an advice on the branch that is not checked out; the other branch stays as it is."""
    before = contents(root / STORE)
    assert repair(root, said), said
    assert contents(root / STORE) == before, said


@pytest.mark.sliced(2)
@pytest.mark.fault("D2")
@pytest.mark.parametrize("words", [("query",), ("check", "--recorded"), ("log",)], ids=" ".join)
@pytest.mark.parametrize("harm", ["damaged", "missing"])
def test_the_repair_of_a_head_on_another_branch_is_of_that_branch_as_it_is_printed(
    harm: str, words: tuple[str, ...], harmed, tally
) -> None:
    root = with_other(harmed(KINDS["corrupt before the head"]._replace(harm=ids)))
    path = root / OTHER / "head.json"
    if harm == "missing":
        path.unlink()
    else:
        path.write_bytes(b"{")
    forget_views(root)
    tally.tried()
    refused = kb(root, *words, "--branch", "other", "--json")
    assert refused.status == 42, refused
    repair_other(root, refused.error["hint"])
    assert ids(root, "--branch", "other") == "ABCDEO"
    tally.done()


@pytest.mark.sliced(1)
@pytest.mark.fault("D2")
@pytest.mark.parametrize("words", [("status",), ("query",)], ids=" ".join)
def test_the_repair_of_a_copied_store_of_another_branch_is_of_that_branch_as_it_is_printed(
    words: tuple[str, ...], harmed, tmp_path, tally
) -> None:
    root = with_other(harmed(KINDS["corrupt before the head"]._replace(harm=ids)))
    copy = copied(root, tmp_path / "copy")
    for place, key in (root, "P"), (copy, "Q"), (root, "R"):
        done(kb(place, "apply", "-", "--branch", "other", stdin=changeset(key)))
    tally.tried()
    said = done(kb(root, *words, "--branch", "other")).err
    repair_other(root, said)
    assert "same store id" not in done(kb(root, *words, "--branch", "other")).err
    tally.done()


@pytest.mark.sliced(4)
@pytest.mark.fault("D2")
@pytest.mark.parametrize(
    "name", [name for name in DAMAGED if KINDS[name].query[0] in {"journal_corrupt", "journal_truncated"}]
)
def test_the_advice_to_restore_followed_word_by_word_brings_everything_back(name: str, harmed, tmp_path, tally) -> None:
    kind: Kind = KINDS[name]
    saved = tmp_path / "saved.backup"
    root = harmed(kind._replace(harm=lambda _: None))
    wanted = ids(root)
    done(kb(root, "backup", str(saved)))
    kind.harm(root)
    forget_views(root)
    tally.tried()
    if kind.row == "mixed files":
        said = advised(root)[0]
        assert "Put head.json and the journal back" in said
    else:
        assert any(follow(root, one, backup=saved) for one in advised(root))
        forget_views(root)
        assert ids(root) == wanted
        assert done(kb(root, "verify", "--json")).json["ok"]
    tally.done()
