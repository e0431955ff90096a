"""A check waits while changes arrive, for a while; it reports in the end what it would have reported at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count, cycle

import pytest

from kbcore.editing.documents import WriteTarget
from kbcore.editing.renaming import rename
from kbcore.rules import RULES
from kbcore.watch.checking import _ALL_LONGEST_S, _CHANGED_LONGEST_S, _QUIET_S, Checking
from kbcore.watch.events import Checked, Event
from kbcore.watch.open_errors import OpenErrors
from tests.support.logic.engines import why_missing
from tests.support.repository.clocks import StoppedClock
from tests.support.repository.project import AUTHOR, Project, req

TWO = {"docs/requirements/two.md": req("REQ-2", links="[REQ-1, NOBODY]")}


def nothing_new() -> bool:
    return False


def news_at(turn: int) -> Callable[[], bool]:
    """Return what tells of news once, when it is asked for this time, from 0."""
    numbers = count()
    return lambda: next(numbers) == turn


class Scene:
    """The checks of a watcher that has looked at a repository with one requirement."""

    def __init__(self, project: Project) -> None:
        self.clock = StoppedClock()
        self.reported: list[Event] = []
        self.checking = Checking(
            self.clock, self.reported.append, OpenErrors(self.clock, self.reported.append, lambda: False)
        )
        self.project = project
        # The rule `orphans` waits for the first edge of a project.
        linked = {
            "docs/requirements/linked.md": req("REQ-8", links="[REQ-9]"),
            "docs/requirements/end.md": req("REQ-9"),
        }
        project.sync({"docs/requirements/one.md": req("REQ-1"), **linked})
        self.checking.begin()

    def change(self, files: Mapping[str, str | None]) -> None:
        assert self.project.sync(files).outcome.applied
        self.checking.note_change()

    def check(self, has_news: Callable[[], bool] = nothing_new) -> None:
        assert self.checking.is_due
        self.checking.check(self.project.workspace(), "main", has_news)

    def check_all_that_is_due(self) -> None:
        while (due_s := self.checking.due_s) is not None:
            self.clock.now_s = max(self.clock.now_s, due_s)
            self.check()

    def present(self) -> set[tuple[str, str]]:
        last = self.reported[-1]
        assert isinstance(last, Checked)
        return {(one.rule, one.id) for one in last.present}


@pytest.fixture
def scene(project: Project) -> Iterator[Scene]:
    return Scene(project)


@pytest.mark.sliced
@pytest.mark.skipif(bool(why_missing("native")), reason="the project of this test gets no other engine")
def test_rules_of_the_project_in_prolog_are_run_too(scene: Scene) -> None:
    text = "rule('no-one', \"d\").\nviolation('no-one', Id, m) :- entity(Id, req, _, _), \\+ edge(_, Id, _).\n"
    scene.project.write({".kb/rules/own.pl": text, ".kb/config.json": '{"rules": {"orphans": "off"}}'})
    scene.check_all_that_is_due()
    assert scene.present() == {("no-one", "REQ-1"), ("no-one", "REQ-9")}
    scene.change({"docs/requirements/one.md": req("REQ-1", links="[REQ-9]")})
    scene.check_all_that_is_due()
    assert scene.present() == {("no-one", "REQ-9")}


@pytest.mark.sliced
def test_what_a_check_did_not_come_to_is_looked_at_later(scene: Scene) -> None:
    for turn in (0, 7, len(RULES) - 1):
        scene.checking.begin()
        scene.reported.clear()
        scene.check(news_at(turn))
        assert not scene.reported
        scene.check_all_that_is_due()
        assert [event.is_first for event in scene.reported if isinstance(event, Checked)] == [True]
        assert scene.present() == {("orphans", "REQ-1")}
        scene.change(TWO)
        scene.check(news_at(turn))
        assert scene.present() == {("orphans", "REQ-1")}
        scene.check()
        assert scene.present() == {("unresolved-reference", "REQ-2")}
        scene.check_all_that_is_due()
        assert len(scene.reported) == 2
        scene.change(dict.fromkeys(TWO))
        scene.check_all_that_is_due()


def test_ids_of_a_check_that_was_given_up_are_looked_at_with_those_of_the_next_change(scene: Scene) -> None:
    scene.check()
    scene.change(TWO)
    scene.check(news_at(3))
    scene.change({"docs/requirements/three.md": req("REQ-3")})
    scene.check()
    assert scene.present() == {("unresolved-reference", "REQ-2"), ("orphans", "REQ-3")}


@pytest.mark.sliced
def test_changes_without_end_put_checks_off_for_a_while_only(scene: Scene) -> None:
    scene.check()
    scene.change(TWO)
    begun_s = scene.clock.now_s
    while not scene.reported[1:]:
        scene.check(lambda: True)
        scene.clock.now_s += 0.25
    assert scene.clock.now_s - begun_s <= _CHANGED_LONGEST_S + 0.25
    (scene.project.root / ".kb/config.json").write_text('{"rules": {"unresolved-reference": "off"}}')
    while not scene.reported[2:]:
        scene.checking.plan()
        scene.clock.now_s += 0.25
        if scene.checking.is_due:
            scene.check(lambda: True)
    assert scene.clock.now_s - begun_s <= _ALL_LONGEST_S + 0.5
    assert scene.present() == set()


@pytest.mark.sliced
def test_everything_is_looked_at_in_time_although_there_is_always_something_that_changed(scene: Scene) -> None:
    scene.check()
    (scene.project.root / ".kb/config.json").write_text('{"rules": {"orphans": "off"}}')
    begun_s = scene.clock.now_s
    for links in cycle(("[]", "[NOBODY]")):
        scene.change({"docs/requirements/three.md": req("REQ-3", links=links)})
        scene.check()
        if ("orphans", "REQ-1") not in scene.present():
            break
        scene.clock.now_s += 0.5
        assert scene.clock.now_s - begun_s <= _ALL_LONGEST_S + 0.5
    assert scene.checking.due_s is None


def test_what_keeps_from_checking_is_waited_for_and_then_everything_is_looked_at(scene: Scene) -> None:
    scene.check()
    scene.change(TWO)
    scene.checking.put_off()
    assert not scene.checking.is_due
    scene.clock.now_s += _QUIET_S
    scene.check()
    assert scene.present() == {("unresolved-reference", "REQ-2")}
    assert scene.checking.due_s is None


def test_an_edge_that_comes_or_goes_is_looked_at_at_once_although_no_entity_changed(scene: Scene) -> None:
    scene.check()
    one = "docs/requirements/one.md"
    scene.change({one: req("REQ-1", links="[NOBODY]")})
    scene.check()
    assert scene.present() == {("unresolved-reference", "REQ-1")}
    scene.change({one: req("REQ-1")})
    scene.check()
    assert scene.present() == {("orphans", "REQ-1")}


def test_a_file_that_cannot_be_read_and_one_that_can_again_are_looked_at_at_once(scene: Scene) -> None:
    scene.check()
    scene.change({"docs/requirements/three.md": "---\nid: [\n---\n"})
    scene.check()
    unread = ("unreadable-source", "docs/requirements/three.md")
    assert unread in scene.present()
    scene.change({"docs/requirements/three.md": None})
    scene.check()
    assert unread not in scene.present()


def test_the_text_of_a_document_is_looked_at_at_once_although_no_entity_changed(scene: Scene) -> None:
    for path, text in TWO.items():
        scene.change({path: text.replace("NOBODY", "REQ-1")})
    scene.check_all_that_is_due()
    one = "docs/requirements/one.md"
    scene.change({one: f"{req('REQ-1')}\nOther words.\n"})
    scene.check()
    assert scene.present() == {("suspect-edge", "REQ-2")}
    scene.change({one: req("REQ-1")})
    scene.check()
    assert scene.present() == set()


def test_what_else_a_file_states_remains_when_the_file_is_looked_at(scene: Scene) -> None:
    symbols = "symbols:\n- {id: S-1, title: s}\n- {id: S-2, title: s}\n"
    scene.change({"symbols.yaml": symbols})
    scene.check_all_that_is_due()
    before = scene.present()
    scene.change({"symbols.yaml": f"{symbols}- {{id: S-3, title: other, links: [REQ-1]}}\n"})
    scene.check()
    assert scene.present() == before - {("orphans", "REQ-1")}


@pytest.mark.sliced
def test_a_suspect_edge_whose_target_changes_moves_or_is_renamed_is_not_reported_again(project: Project) -> None:
    scene = Scene(project)
    scene.check_all_that_is_due()
    scene.change({"docs/requirements/end.md": req("REQ-9", title="Second")})
    scene.check_all_that_is_due()
    reported = len(scene.reported)
    assert ("suspect-edge", "REQ-8") in scene.present()
    scene.change({"docs/requirements/end.md": req("REQ-9", title="Third")})
    scene.check_all_that_is_due()
    end = "docs/requirements/end.md"
    scene.change({end: None, "docs/requirements/moved/end.md": (project.root / end).read_text()})
    scene.check_all_that_is_due()
    workspace = project.workspace()
    writing = WriteTarget(workspace, "main", AUTHOR, workspace.store("main").read, follows_head=True)
    rename(writing, "REQ-9", "REQ-10")
    scene.checking.note_change()
    scene.check_all_that_is_due()
    news = [
        one for event in scene.reported[reported:] if isinstance(event, Checked) for one in (*event.new, *event.fixed)
    ]
    assert ("suspect-edge", "REQ-8") in scene.present()
    assert [one for one in news if one.rule == "suspect-edge"] == []
