"""D1: a good store is proven, and a damaged note of its last record is reported and not believed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.fault.damaged_stores import (
    KINDS,
    OK,
    STORE,
    Kind,
    copied,
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
from tests.support.repository.places import CACHES_NAME
from tests.support.repository.repos import git

__all__ = ["harmed", "models"]


@pytest.mark.sliced(1)
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


def the_witness(root: Path) -> Path:
    """Return the file that holds the last acknowledged record of the branch, outside of the store."""
    repository_id = git(root, "config", "kb.id").strip()
    found = Path(os.environ["HOME"], ".local/state/kb/witness", repository_id).glob("*/main.json")
    # The model that this is a copy of may be noted there as well.
    own = os.fsencode(root / ".git") + b"\0"
    [path] = [one for one in found if (one.parent / "git-dir").read_bytes() == own]
    return path


@pytest.mark.sliced(2)
@pytest.mark.fault("D1")
@pytest.mark.parametrize("damage", ["a flipped bit", "cut off", "emptied", "a folder", "garbage", "too long"])
def test_a_damaged_witness_is_reported_and_is_never_taken_for_agreement(damage: str, harmed, tally) -> None:
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
        reported = kb(root, *words)
        assert reported.status == 0
        assert f"The note of the last acknowledged record of main is damaged: {path}" in reported.err.replace(
            "\n", " "
        ), reported
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
        reported = kb(root, "query").err.replace("\n", " ")
        assert "Where that fails, as in the place of a folder, remove what is there." in reported
        path.rmdir()
        put(root, "T")
    assert "is damaged" not in kb(root, "query").err
    assert documented("a damaged note of the last record") == set()
    tally.done()
