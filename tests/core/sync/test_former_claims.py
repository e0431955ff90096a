"""An id means one entity: a former id that another entity has, or has had, is refused and the rest is taken in."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbcore.editing.documents import WriteTarget
from kbcore.editing.renaming import rename
from kbcore.editing.setting import set_fields
from kbcore.errors import IntegrityViolation, InvalidChangeset
from tests.support.repository.project import AUTHOR, Project, req

ONE, TWO, FIVE = (f"docs/requirements/{name}.md" for name in ("one", "two", "five"))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "repo")


def target_of(project: Project) -> WriteTarget:
    workspace = project.workspace()
    return WriteTarget(workspace, "main", AUTHOR, workspace.store("main").read, follows_head=True)


def claims(project: Project, key: str) -> object:
    node = project.node(key)
    assert node is not None
    return node.fields.get("attributes.former_ids")


def errors(answer: object) -> list[tuple[str, str, int, str]]:
    return [(path, one.code, one.line, one.message) for path, one in answer.problems if one.severity == "error"]


@pytest.mark.parametrize("files", [[TWO, FIVE], [FIVE, TWO]], ids=["living first", "in one sync"])
def test_the_id_of_a_living_entity_is_left_out_of_former_ids(project: Project, files: list[str]) -> None:
    texts = {TWO: req("REQ-2"), FIVE: req("REQ-5", former_ids="[REQ-4, REQ-2]", owner="ann")}
    if files[0] == TWO:
        project.sync({TWO: texts[TWO]})
    answer = project.sync(texts)
    [(path, code, line, message)] = errors(answer)
    assert (path, code, line) == (FIVE, "claimed_id", 5)
    assert message == f"'REQ-2' in `former_ids` of 'REQ-5' is the id of another entity, in '{TWO}'."
    assert claims(project, "REQ-5") == ["REQ-4"]
    assert project.node("REQ-5").fields["owner"] == "ann"
    assert project.node("REQ-2") is not None
    assert project.view().renamed(["REQ-2", "REQ-4"]) == {"REQ-4": "REQ-5"}
    assert [one.code for _, one in project.sync().problems] == ["claimed_id"]
    assert project.sync({FIVE: req("REQ-5", former_ids="[REQ-4]")}).problems == ()


@pytest.mark.parametrize("first", [ONE, FIVE, ""])
def test_of_two_files_with_a_former_id_the_first_path_has_it_until_it_gives_it_up(project: Project, first: str) -> None:
    texts = {ONE: req("REQ-9", former_ids="REQ-2"), FIVE: req("REQ-5", former_ids="[REQ-2]")}
    if first:
        project.sync({first: texts[first]})
    answer = project.sync(texts)
    holder, other, paths = "REQ-5", "REQ-9", {"REQ-9": ONE, "REQ-5": FIVE}
    message = f"'REQ-2' in `former_ids` of '{other}' is a former id of '{holder}', in '{paths[holder]}'."
    assert errors(answer) == [(paths[other], "claimed_id", 5, message)]
    assert claims(project, other) is None
    assert project.view().renamed(["REQ-2"]) == {"REQ-2": holder}
    assert project.sync({paths[holder]: req(holder)}).problems == ()
    assert project.view().renamed(["REQ-2"]) == {"REQ-2": other}


def test_a_rename_in_files_is_no_claim_of_another_and_two_files_of_one_entity_neither(project: Project) -> None:
    project.sync({ONE: req("REQ-1"), TWO: req("REQ-2")})
    assert project.sync({ONE: req("REQ-7", former_ids="[REQ-1]")}).problems == ()
    assert project.sync({ONE: req("REQ-8", former_ids="[REQ-1, REQ-7]")}).problems == ()
    assert project.view().renamed(["REQ-1", "REQ-7"]) == {"REQ-1": "REQ-8", "REQ-7": "REQ-8"}
    assert project.sync({ONE: None, FIVE: req("REQ-8", former_ids="[REQ-1, REQ-7, REQ-8]")}).problems == ()
    assert project.sync({TWO: None}).problems == ()
    assert project.sync({FIVE: req("REQ-8", former_ids="[REQ-1, REQ-7, REQ-2]")}).problems == ()


def test_links_lead_where_queries_do_while_an_id_is_claimed_twice(project: Project) -> None:
    linking = req("REQ-3", depends_on="[REQ-2]")
    texts = {FIVE: req("REQ-9", former_ids="[REQ-2]"), ONE: req("REQ-5", former_ids="[REQ-2]"), TWO: linking}
    project.sync(texts)
    [holder] = project.view().renamed(["REQ-2"]).values()
    assert project.edges("REQ-3") == {("REQ-3", "depends_on", holder, True)}


def test_set_refuses_a_former_id_that_another_has_with_the_holder(project: Project) -> None:
    project.sync({ONE: req("REQ-9", former_ids="[REQ-1]"), TWO: req("REQ-2"), FIVE: req("REQ-5")})
    before = (project.root / FIVE).read_bytes()
    for key, holder in {"REQ-2": "is the id of another entity", "REQ-1": "in `former_ids` of 'REQ-9'"}.items():
        with pytest.raises(InvalidChangeset, match=holder) as refused:
            set_fields(target_of(project), "REQ-5", [f"former_ids+={key}"])
        assert "former_ids" in refused.value.hint
    assert (project.root / FIVE).read_bytes() == before


def test_an_import_cannot_claim_an_id_that_another_has_or_gets(project: Project) -> None:
    project.apply(entities=[{"id": "REQ-2", "type": "req", "title": "T", "status": "open"}])

    def item(key: str, *former: str) -> dict[str, object]:
        return {"id": key, "type": "req", "title": key, "status": "open", "attributes": {"former_ids": [*former]}}

    for items in ([item("REQ-5", "REQ-2")], [item("A", "OLD"), item("B", "OLD")], [item("A", "B"), item("B")]):
        with pytest.raises(IntegrityViolation, match="former_ids"):
            project.import_(entities=items)
    project.import_(entities=[item("REQ-5", "REQ-1")])
    with pytest.raises(IntegrityViolation, match="is a former id of 'REQ-5'"):
        project.import_(entities=[item("REQ-6", "REQ-1")])
    project.import_(entities=[item("REQ-5", "REQ-1")])


@pytest.mark.parametrize("living", [True, False])
def test_a_store_of_an_older_version_reads_as_ever_and_can_be_put_right(
    project: Project, monkeypatch: pytest.MonkeyPatch, *, living: bool
) -> None:
    new = {"type": "req", "title": "T", "status": "open"}
    former = {"attributes": {"former_ids": ["REQ-2", "REQ-1"]}}
    items = [{"id": "REQ-5", **new, **former}, {"id": "REQ-2" if living else "REQ-4", **new}]
    items[1] |= {} if living else {"attributes": {"former_ids": ["REQ-2"]}}
    with monkeypatch.context() as older:
        older.setattr("kbcore.store.planning.entities._check_claims", lambda *_: None)
        project.import_(entities=items)
    assert project.view().renamed(["REQ-2"]) == ({} if living else {"REQ-2": "REQ-4"})
    if living:
        with pytest.raises(IntegrityViolation, match="would mean both"):
            rename(target_of(project), "REQ-2", "REQ-8")
    with pytest.raises(InvalidChangeset, match="set by KB"):
        set_fields(target_of(project), "REQ-5", ["former_ids-=REQ-1"])
    set_fields(target_of(project), "REQ-5", ["former_ids-=REQ-2"])
    assert claims(project, "REQ-5") == ["REQ-1"]
    if living:
        rename(target_of(project), "REQ-2", "REQ-8")
        assert project.view().renamed(["REQ-2"]) == {"REQ-2": "REQ-8"}
