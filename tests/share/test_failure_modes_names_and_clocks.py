"""Failure modes of sharing: names of files, clocks that are wrong, ids that meet, and repositories of other kinds."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.checks import run_checks
from kbcore.errors import IntegrityViolation, NotFound
from kbcore.errors.remedies import Command, parts_of
from kbcore.model.claims import change_file
from kbcore.model.claims.change import Change, Create, identified
from kbcore.share.separating import Separation, separate
from kbcore.store.history.log import seqs_about
from kbcore.store.pool import Machine
from tests.share.conftest import FILES
from tests.support.disk.faultfs import NoSyncFs
from tests.support.processes.cli import run_kb
from tests.support.repository.clocks import SetClock
from tests.support.repository.clones import Clone, clone_of, hold, upstream
from tests.support.repository.project import req
from tests.support.repository.repos import git_env

NAME = re.compile(r"[0-9]{4}-[0-9]{2}/[0-9abcdefghjkmnpqrstvwxyz]{26}-[0-9a-f]{8}\.jsonl")


@given(st.datetimes().filter(lambda at: at.year >= 1970), st.text(max_size=8))
def test_names_are_short_and_the_same_on_every_file_system(at, actor):
    """No letter differs by case or by composition, none is reserved, and the length is always the same."""
    change = identified(Change("", f"{at:%Y-%m-%dT%H:%M:%S.%f}Z".zfill(27), actor, "kb", (Create("Ä" * 300),)))
    path = change_file.file_path([change], change_file.encode([change]))
    assert NAME.fullmatch(path)
    assert len(path) == 49
    assert path.split("/")[0] == change.at[:7]


def test_one_change_in_two_files_with_one_ulid_is_there_once(ann: Clone) -> None:
    ann.add("FACT-1", title="Once")
    ann.begin("feature")
    ann.sync()
    ann.fact("FACT-2")
    ann.commit()
    ann.switch("main")
    ann.commit()
    ann.git("merge", "--quiet", "--no-edit", "feature")
    hold(ann)
    names = [Path(path).name.partition("-")[0] for path in ann.changes()]
    assert len(names) == len({*names}) + 1
    assert ann.titles() | {"FACT-1": "Once", "FACT-2": "Title of FACT-2"} == ann.titles()
    assert not ann.conflicts()


def test_the_history_of_an_entity_that_gave_up_a_common_id_is_its_own(ann: Clone, clone: Callable[..., Clone]) -> None:
    bob = clone("bob")
    ann.fact("ID-1", title="Of ann")
    anns = ann.seq()
    ann.commit()
    ann.push()
    bob.fact("ID-1", title="Of bob")
    bobs = bob.seq()
    bob.rename("ID-1", "ID-2")
    renamed = bob.seq()
    bob.commit()
    bob.pull()
    bob.sync()
    assert seqs_about(bob.view(), "ID-2") == [bobs, renamed]
    assert seqs_about(bob.view(), "ID-1") == [bob.seq()]
    bob.push()
    ann.pull()
    ann.sync()
    assert seqs_about(ann.view(), "ID-1") == [anns]
    assert seqs_about(ann.view(), "ID-2") == [ann.seq()]


def machine_at(time: str) -> tuple[Machine, SetClock]:
    clock = SetClock()
    clock.time = time
    return Machine(NoSyncFs(), clock, git_env()), clock


def test_clocks_that_are_years_off_or_set_back_decide_nothing(ann: Clone, clone: Callable[..., Clone]) -> None:
    ahead, clock = machine_at("2036-01-01T00:00:00.000000Z")
    behind, _ = machine_at("2016-01-01T00:00:00.000000Z")
    bob, eve = clone("bob", machine=ahead), clone("eve", machine=behind)
    for one in (ann, bob, eve):
        one.add("FACT-1", title=f"By {one.actor}")
        one.commit()
    clock.time = "2026-01-01T00:00:00.000000Z"  # set back
    bob.add("FACT-1", title="Later by bob")
    bob.commit()
    for one in (bob, eve):
        ann.git("pull", "--quiet", "--no-rebase", "--no-edit", f"../{one.actor}", "main")
    hold(ann)
    values = ann.state().nodes["FACT-1"].fields["contested.title"]
    assert {one["value"] for one in values} == {"By ann", "Later by bob", "By eve"}
    least = min(change["change"] for one in values for change in one["changes"])
    assert values[0]["changes"][0]["change"] == least

    ann.resolve("FACT-1", "title", 3)
    ann.commit()
    ann.push()
    eve.pull()
    bob.pull()
    hold(ann, bob, eve)
    assert not ann.conflicts()
    assert ann.facts() == bob.facts() == eve.facts()


def test_one_new_id_on_two_branches_is_one_entity_with_a_conflict(ann: Clone, bob: Clone) -> None:
    for one in (ann, bob):
        one.fact("FACT-2", f"By {one.actor}", tags=[one.actor])
        one.link("FACT-2", "REQ-1")
        one.commit()
    ann.push()
    bob.pull()
    hold(bob)
    assert bob.conflicts() == {("FACT-2", "title")}
    assert sorted(bob.state().nodes["FACT-2"].fields["tags"]) == ["ann", "bob"]
    bob.push()
    ann.pull()
    hold(ann)
    assert ann.facts() == bob.facts()

    refused = run_kb(ann.root, "rename", "FACT-2@", "FACT-3")
    assert refused.status
    [change] = [key for key, one in bob.own["main"].items() if isinstance(one.claims[0], Create)]
    assert f"FACT-2@{change[:8]} by bob" in refused.err
    [conflict] = run_checks(ann.workspace(), ann.view(), branch="main", only=["conflict"]).violations
    commands = [one.shown() for one in parts_of(conflict.remedy) if isinstance(one, Command)]
    assert commands[:2] == [f"`kb resolve FACT-2 title --take {number}`" for number in (1, 2)]
    assert re.fullmatch(r"`kb rename FACT-2@[0-9a-f]{8} NEW`", commands[2])
    assert run_kb(ann.root, "rename", f"FACT-2@{change[:8]}", "FACT-3").status == 0
    ann.note_own()
    hold(ann)
    assert not ann.conflicts()
    assert not run_checks(ann.workspace(), ann.view(), branch="main", only=["similar-ids"]).violations
    assert {"FACT-2": "By ann", "FACT-3": "By bob"}.items() <= ann.titles().items()
    assert ann.edges("FACT-3") == {("FACT-3", "relates_to", "REQ-1", True)}
    bob.add("FACT-2", title="Of the one that bob made", expected_seq=bob.seq())
    bob.commit()
    ann.commit()
    ann.push()
    bob.pull()
    hold(bob)
    bob.push()
    ann.pull()
    hold(ann)
    assert ann.facts() == bob.facts()


def separated(clone: Clone, key: str, creation: str, new: str) -> None:
    """Give one creation of an id another id."""
    separate(clone.workspace(), clone.branch, Separation(key, creation, new), clone.author())
    clone.note_own()


def test_an_id_that_was_created_once_or_is_taken_is_not_separated(ann: Clone, bob: Clone) -> None:
    with pytest.raises(NotFound):
        separated(ann, "FACT-1", "", "FACT-3")
    for one in (ann, bob):
        one.fact("FACT-2")
        one.commit()
    ann.push()
    bob.pull()
    hold(bob)
    with pytest.raises(IntegrityViolation):
        separated(bob, "FACT-2", next(reversed(bob.own["main"]))[:8], "FACT-1")
    bob.write({"docs/requirements/FACT-1.md": req("FACT-1")})
    hold(bob)
    separated(bob, "FACT-1", next(iter(ann.own["main"])), "FACT-7")
    hold(bob)
    assert {"FACT-1", "FACT-7"} <= bob.titles().keys()


def test_a_repository_of_sha_256_shares_as_any_other(tmp_path: Path) -> None:
    up = upstream(tmp_path, FILES, object_format="sha256")
    ann, bob = clone_of(up, "ann"), clone_of(up, "bob")
    assert len(ann.workspace().head().commit or "") == 64
    for one in (ann, bob):
        one.fact("FACT-1", f"By {one.actor}")
        one.commit()
    ann.push()
    bob.pull()
    hold(ann, bob)
    bob.git("rebase", "--quiet", "HEAD~1")
    bob.git("revert", "--no-edit", "HEAD")
    hold(bob)
    for one in (ann, bob):
        one.close()


def test_no_commit_is_relied_on_where_history_is_replaced_or_written_again(ann: Clone, bob: Clone) -> None:
    ann.add("FACT-1", title="Later")
    ann.commit()
    before = ann.facts()
    ann.git("replace", "HEAD", "HEAD~2")
    hold(ann)
    assert ann.facts() == before
    ann.git("replace", "-d", "HEAD")
    hold(ann)
    written = ann.git("commit-tree", "HEAD^{tree}", "-m", "all of it")
    ann.git("reset", "--quiet", "--hard", written)
    hold(ann)
    assert ann.facts() == before
    ann.push("--force")
    bob.git("fetch", "--quiet")
    bob.git("reset", "--quiet", "--hard", "origin/main")
    hold(bob)
    assert bob.facts() == before
