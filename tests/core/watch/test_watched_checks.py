"""Checks of the watcher after each change, and their settings and rules."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

import pytest

from kbcore.errors import (
    InvalidConfig,
)
from kbcore.storage.fs import RealFs
from kbcore.store.history import undo
from kbcore.watch import pauses
from kbcore.watch.debounce import DOUBT_S
from kbcore.watch.events import Checked, Event, Synced, Waiting
from kbcore.watch.notices import NotedPaths
from tests.core.watch.watching import CALM_S, ONE, REQS
from tests.support.repository.project import AUTHOR, Project, document, req
from tests.support.repository.repos import commit_files
from tests.support.repository.watched import WAIT_S, Watched

_SAVING_S = 0.05
"""So long a file is away while it is saved; from ``DOUBT_S`` on it counts as gone."""


_ROUNDS = 5


class Sudden(NotedPaths):
    """Notices of which one comes in the middle of a check: when it is asked the third time whether there is any."""

    news: ClassVar[list[Callable[[], object]]] = []

    def take(self, wait_s: float) -> set[str]:
        if wait_s or not self.news:
            return super().take(wait_s)
        self.news.pop()()
        return super().take(wait_s if self.news else WAIT_S)


def test_settings_may_change_become_invalid_and_be_corrected_meanwhile(watched: Watched) -> None:
    config, root = watched.root / ".kb/config.json", watched.root
    root.joinpath("specs").mkdir()
    root.joinpath("specs/s.md").write_text(document("S-1", title="S", status="open"))
    config.write_text('{"extractors": {"markdown": {"paths": {"req": ["specs/**/*.md"]}}}}')
    watched.until_there("S-1")
    root.joinpath("specs/t.md").write_text(document("S-2", title="S", status="open"))
    watched.until_there("S-2")
    config.write_text("{")
    reported = watched.until_event(lambda event: isinstance(event, Waiting))
    assert isinstance(reported.error, InvalidConfig)
    root.joinpath("specs/u.md").write_text(document("S-3", title="S", status="open"))
    time.sleep(CALM_S)
    assert len(watched.of(Waiting)) == 1
    config.write_text('{"extractors": {"markdown": {"paths": {"req": ["specs/**/*.md"]}}}}')
    watched.until_there("S-3")
    schema = root / ".kb/schema"
    schema.mkdir()
    (schema / "own.yaml").write_text("entities: {fact: {description: A fact.}}\n")
    root.joinpath("specs/f.md").write_text(document("F-1", type="fact", title="F", status="open"))
    watched.until_there("F-1")
    watched.assert_in_step()


def deleted_in(events: Sequence[object]) -> set[str]:
    return {key for event in events if isinstance(event, Synced) for key in event.answer.outcome.deleted}


def test_settings_that_are_being_saved_are_not_taken_for_none(watched: Watched) -> None:
    root = watched.root
    config, schema, aside = root / ".kb/config.json", root / ".kb/schema/own.yaml", root / "aside"
    root.joinpath("specs").mkdir()
    root.joinpath("specs/f.md").write_text(document("F-1", type="fact", title="F", status="open"))
    schema.parent.mkdir()
    schema.write_text("entities: {fact: {description: A fact.}}\n")
    text = '{"extractors": {"markdown": {"paths": {"req": ["specs/**/*.md"]}}}}'
    config.write_text(text)
    watched.until_there("F-1")
    watched.until(lambda: "REQ-1" in deleted_in(watched.events))
    for number in range(_ROUNDS):
        watched.until_there("F-1")
        watched.until_gone("REQ-1")
        count = len(watched.events)
        is_as_quick = []
        for path in (config, schema):
            title = f"{path.name} {number}"
            began_s = time.monotonic()
            path.rename(aside)
            root.joinpath("specs/f.md").write_text(document("F-1", type="fact", title=title, status="open"))
            time.sleep(_SAVING_S)
            aside.rename(path)
            is_as_quick.append(time.monotonic() - began_s < DOUBT_S)
            watched.until_there("F-1", title=title)
        began_s = time.monotonic()
        config.write_text("")
        time.sleep(_SAVING_S)
        config.write_text(text)
        is_as_quick.append(time.monotonic() - began_s < DOUBT_S)
        root.joinpath("specs/g.md").write_text(document("S-1", title=f"S {number}", status="open"))
        watched.until_there("S-1", title=f"S {number}")
        if all(is_as_quick):  # else this machine was too busy for a save, and they may well have been taken for none
            break
    reported = watched.events[count:]
    assert [event.error for event in reported if isinstance(event, Waiting)] == []
    assert deleted_in(reported) == set()
    config.unlink()
    watched.until_there("REQ-1")
    watched.until_gone("F-1")
    watched.assert_in_step()


@pytest.mark.sliced
def test_rules_and_levels_that_change_are_checked_by_at_once(watched: Watched) -> None:
    config, rules = watched.root / ".kb/config.json", watched.root / ".kb/rules"
    rules.mkdir()
    rule = "rules: [{id: own, severity: error, description: d, sql: \"select id, 'is here' as message from entity\"}]"
    (rules / "own.yaml").write_text(rule)
    watched.until_event(lambda event: isinstance(event, Checked) and "own" in {one.rule for one in event.new})
    config.write_text('{"rules": {"own": "off"}}')
    watched.until_event(lambda event: isinstance(event, Checked) and "own" in {one.rule for one in event.fixed})
    config.write_text("{}")
    (rules / "own.yaml").write_text("rules: [")
    watched.until_event(lambda event: isinstance(event, Waiting))
    (watched.root / REQS / "two.md").write_text(req("REQ-2"))
    watched.until_there("REQ-2")
    (rules / "own.yaml").write_text(rule)
    watched.until_event(
        lambda event: (
            isinstance(event, Checked) and {one.id for one in event.present if one.rule == "own"} == {"REQ-1", "REQ-2"}
        )
    )
    (rules / "own.yaml").write_text(rule.replace("from entity", "from nowhere"))
    reported = watched.until_event(lambda event: isinstance(event, Checked) and event.not_run)
    assert [run.id for run in reported.not_run] == ["own"]
    assert {one.id for one in reported.present if one.rule == "own"} == {"REQ-1", "REQ-2"}
    (rules / "own.yaml").write_text(rule)
    again = watched.until_event(lambda event: isinstance(event, Checked) and event.run_again)
    assert (again.run_again, again.not_run) == (("own",), ())


def test_violations_come_and_go_with_what_is_saved(watched: Watched) -> None:
    one = watched.root / ONE
    one.write_text(req("REQ-1", links="[NOBODY]"))
    found = watched.until_event(lambda event: isinstance(event, Checked) and "NOBODY" in str(event.new))
    assert "REQ-1" in str(found.new)
    one.write_text(req("REQ-1"))
    fixed = watched.until_event(lambda event: isinstance(event, Checked) and "NOBODY" in str(event.fixed))
    assert "NOBODY" not in str(fixed.present)
    one.write_text("---\nid: [\n---\n")
    watched.until_event(lambda event: isinstance(event, Checked) and "unreadable-source" in str(event.new))


@pytest.mark.sliced
def test_a_change_that_comes_during_a_check_is_committed_first_and_both_are_checked(project: Project) -> None:
    commit_files(project.root, {ONE: req("REQ-1")})
    two = project.root / REQS / "two.md"
    with Watched(project.root, listen=Sudden) as watched:
        watched.until(lambda: watched.is_quiet(CALM_S))
        count = len(watched.events)
        Sudden.news += [lambda: two.write_text(req("REQ-2", priority="must")), *[lambda: None] * 2]
        (project.root / ONE).write_text(req("REQ-1", priority="must"))
        watched.until_event(lambda event: isinstance(event, Checked), since=count)
        reported = watched.events[count:]
        assert [type(event) for event in reported[:3]] == [Synced, Synced, Checked]
        assert {one.id for one in reported[2].new if one.rule == "must-coverage"} == {"REQ-1", "REQ-2"}
        watched.assert_in_step()


@pytest.mark.sliced
def test_what_somebody_else_commits_is_checked_and_files_that_waited_for_it_are_taken_in(watched: Watched) -> None:
    other = Project(watched.root, fs=RealFs(), is_new=False)
    other.apply(entities=[{"id": "T-1", "type": "adr", "title": "T", "status": "open"}])
    (watched.root / ONE).write_text(req("REQ-1", links="[{type: verified_by, target: T-1}]"))
    watched.until(lambda: watched.reader.view().rows("select 1 from source where not is_ok"))
    other.apply(entities=[{"id": "T-1", "type": "test"}])
    watched.until(lambda: ("REQ-1", "verified_by", "T-1", True) in watched.reader.edges("REQ-1"))
    count = len(watched.events)
    other.apply(entities=[{"id": "T-2", "type": "test", "title": "T", "status": "open", "owner": "a\u202eb"}])
    watched.until_event(lambda event: isinstance(event, Checked) and "T-2" in str(event.new), since=count)
    other.close()
    watched.assert_in_step()


@pytest.mark.sliced
def test_what_somebody_takes_back_of_a_file_counts_again_at_once_and_is_said_why(watched: Watched) -> None:
    two = watched.root / REQS / "two.md"
    two.write_text(req("REQ-2"))
    watched.until_there("REQ-2")
    two.write_text(req("REQ-2", title="Better"))
    watched.until_there("REQ-2", title="Better")
    other = Project(watched.root, fs=RealFs(), is_new=False)
    for seq in (3, 2):
        count = len(watched.events)
        undo.rollback(other.workspace(), "main", AUTHOR, seq - 1, follows_head=True)
        reported = watched.until_event(
            lambda event: isinstance(event, Synced) and event.answer.outcome.warnings, since=count
        )
        why = f"(rollback to {seq - 1}, by tester) changed what {REQS}/two.md states"
        assert why in reported.answer.outcome.warnings[0]
        watched.until_there("REQ-2", title="Better")
    other.close()
    watched.assert_in_step()


@pytest.mark.sliced
def test_a_file_that_only_a_rule_asks_for_is_missed_after_a_while_of_quiet(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pauses, "QUIET_SCAN_S", 0.1)
    monkeypatch.setattr(pauses, "LONGEST_QUIET_SCAN_S", 0.4)
    source = project.root / "src/login.py"
    linked = {f"{REQS}/linked.md": req("REQ-8", links="[REQ-9]"), f"{REQS}/end.md": req("REQ-9")}
    commit_files(project.root, {"src/login.py": "", ONE: req("REQ-1", text_ref="src/login.py"), **linked})
    with Watched(project.root) as watched:
        first = waited_for_check(watched, "new", "orphans")
        assert "missing-file" not in {one.rule for one in first.new}
        source.unlink()
        waited_for_check(watched, "new", "missing-file")
        source.write_text("")
        waited_for_check(watched, "fixed", "missing-file")


def waited_for_check(watched: Watched, which: Literal["new", "fixed"], rule: str) -> Checked:
    """Wait until a violation of a rule is new or fixed, and return the report of it."""

    def is_it(event: Event) -> bool:
        return isinstance(event, Checked) and rule in {one.rule for one in getattr(event, which)}

    checked = watched.until_event(is_it)
    assert isinstance(checked, Checked)
    return checked
