"""Facts of files that a link or a folder hides are kept, marked stale, and reported once for the folder."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kbcore.sync.answer import SyncAnswer
from tests.support.repository.project import Project, req

REQS = "docs/requirements"


def out(project: Project) -> Path:
    return project.root.parent / "outside"


def become_link(project: Project, folder: str, target: Path) -> None:
    """Put what is in a folder elsewhere, and a link in its place."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(project.root / folder, target)
    (project.root / folder).symlink_to(target)


def leave(project: Project) -> None:
    become_link(project, f"{REQS}/sub", out(project))


def leave_and_vanish(project: Project) -> None:
    leave(project)
    shutil.rmtree(out(project))


def go_where_nobody_looks(project: Project) -> None:
    become_link(project, f"{REQS}/sub", project.root / "elsewhere/sub")


def vanish_inside(project: Project) -> None:
    go_where_nobody_looks(project)
    shutil.rmtree(project.root / "elsewhere")


def lead_to_itself(project: Project) -> None:
    shutil.rmtree(project.root / REQS / "sub")
    (project.root / REQS / "sub").symlink_to("sub")


LOST = [leave, leave_and_vanish, go_where_nobody_looks, vanish_inside, lead_to_itself]
SCOPES = [{}, {"paths": (REQS,)}, {"paths": (f"{REQS}/sub",)}] + [
    {"touched": touched}
    for touched in ((f"{REQS}/sub",), (f"{REQS}/sub/1.md",), (REQS,), (f"{REQS}/sub/1.md", f"{REQS}/sub"))
]


@pytest.fixture
def known(project: Project) -> Project:
    project.sync({f"{REQS}/sub/1.md": req("REQ-1", links="[REQ-2]"), f"{REQS}/2.md": req("REQ-2")})
    return project


def is_stale(project: Project, path: str) -> bool:
    return not project.view().sources([path])[0].is_ok


def problems_of(answer: SyncAnswer) -> list[tuple[str, str, str]]:
    return [(path, one.code, one.severity) for path, one in answer.problems]


@pytest.mark.sliced(9)
@pytest.mark.parametrize("scope", SCOPES, ids=str)
@pytest.mark.parametrize("lose", LOST)
def test_a_folder_that_became_a_link_keeps_what_was_known_of_its_files(
    known: Project, lose: Callable[[Project], None], scope: dict[str, tuple[str, ...]]
) -> None:
    edges = known.edges("REQ-1")
    lose(known)
    answer = known.sync(**scope)
    assert (answer.outcome.deleted, answer.removed, answer.bad) == ((), 0, 1)
    assert (f"{REQS}/sub", "unreadable", "error") in problems_of(answer)
    assert all(one.hint for _, one in answer.problems)
    assert (known.edges("REQ-1"), is_stale(known, f"{REQS}/sub/1.md")) == (edges, True)
    again = known.sync(**scope)
    assert (again.changed, again.outcome.applied, problems_of(again)) == (0, False, problems_of(answer))


def test_what_comes_back_in_the_place_of_the_link_is_read_again_and_what_is_gone_with_it_goes(known: Project) -> None:
    leave(known)
    known.sync()
    (known.root / REQS / "sub").unlink()
    shutil.move(out(known), known.root / REQS / "sub")
    assert (known.sync().problems, is_stale(known, f"{REQS}/sub/1.md")) == ((), False)
    leave(known)
    known.sync()
    (known.root / REQS / "sub").unlink()
    assert known.sync().outcome.deleted == ("REQ-1",)


@pytest.mark.parametrize("rest", ["", "sub/1.md"])
def test_a_folder_of_the_settings_that_leads_out_keeps_what_was_known(known: Project, rest: str) -> None:
    become_link(known, REQS, out(known))
    answer = known.sync(touched=(f"{REQS}/{rest}",)) if rest else known.sync()
    assert answer.outcome.deleted == ()
    assert problems_of(answer) == [(REQS, "unreadable", "error")]
    assert is_stale(known, f"{REQS}/sub/1.md")
    shutil.rmtree(out(known))
    assert known.sync().outcome.deleted == ()


def test_a_folder_of_the_settings_that_became_a_link_to_nothing_in_the_repository_keeps_what_was_known(
    known: Project,
) -> None:
    become_link(known, REQS, known.root / "elsewhere")
    shutil.rmtree(known.root / "elsewhere")
    assert known.sync(touched=(f"{REQS}/2.md",)).outcome.deleted == ()
    assert known.sync().outcome.deleted == ()
    assert known.node("REQ-1")


def test_a_folder_that_moved_to_where_it_is_looked_for_leaves_a_link_that_hides_nothing(known: Project) -> None:
    become_link(known, f"{REQS}/sub", known.root / REQS / "new")
    answer = known.sync()
    assert problems_of(answer) == [(f"{REQS}/sub", "passed_over", "note")]
    assert (answer.outcome.deleted, answer.removed, answer.bad) == ((), 1, 0)
    assert known.node("REQ-1").path == f"{REQS}/new/1.md"


def test_a_link_to_a_file_in_the_place_of_a_folder_takes_what_was_in_it_away(known: Project) -> None:
    shutil.rmtree(known.root / REQS / "sub")
    (known.root / REQS / "sub").symlink_to("2.md")
    assert known.sync().outcome.deleted == ("REQ-1",)


@pytest.mark.parametrize("target", ["elsewhere", "../outside"])
def test_a_link_that_hides_nothing_known_is_a_note(known: Project, target: str) -> None:
    place = known.root / target
    place.mkdir()
    (place / "1.md").write_text(req("REQ-9"))
    (known.root / REQS / "link").symlink_to(place)
    for touched in (None, (f"{REQS}/link",), (f"{REQS}/link/1.md",)):
        answer = known.sync(touched=touched)
        assert problems_of(answer) == [(f"{REQS}/link", "passed_over", "note")]
        assert (answer.bad, known.node("REQ-9")) == (0, None)


def test_a_file_in_a_folder_that_may_not_be_entered_is_kept_and_marked_stale(
    known: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = os.lstat

    def refusing(path: os.PathLike[str]) -> os.stat_result:
        # Permissions would do, if root did not pass them by.
        if os.fspath(path).endswith("sub/1.md"):
            raise PermissionError(errno.EACCES, "Permission denied", os.fspath(path))
        return asked(path)

    monkeypatch.setattr(os, "lstat", refusing)
    answer = known.sync(touched=(f"{REQS}/sub/1.md",))
    assert (answer.outcome.deleted, answer.bad) == ((), 1)
    assert is_stale(known, f"{REQS}/sub/1.md")


def test_a_rebuild_keeps_what_a_link_hides_as_well(known: Project) -> None:
    leave(known)
    answer = known.sync(rebuild=True)
    assert (answer.outcome.deleted, problems_of(answer)) == ((), [(f"{REQS}/sub", "unreadable", "error")])
    assert is_stale(known, f"{REQS}/sub/1.md")


@pytest.mark.parametrize("link", ["docs", "docs/requirements"])
def test_a_document_that_moves_into_a_linked_folder_is_gone(project: Project, link: str) -> None:
    real = f"elsewhere{REQS.removeprefix(link)}"
    place = project.root / link
    place.parent.mkdir(exist_ok=True)
    place.symlink_to("../elsewhere" if "/" in link else "elsewhere")
    project.sync({f"{real}/1.md": req("REQ-1"), f"{real}/2.md": req("REQ-2")})
    project.write({f"{real}/2.md": None})
    answer = project.sync()
    assert (answer.outcome.deleted, answer.bad) == (("REQ-2",), 0)


def test_a_git_directory_that_is_a_link_is_no_folder_of_the_project(known: Project) -> None:
    become_link(known, ".git", known.root.parent / "git aside")
    assert known.sync().problems == ()
