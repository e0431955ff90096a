"""Repositories in the forms of public tools, read by the profile as the only setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbcore.extract.sources import profiles
from tests.support.repository.project import Project
from tests.support.sources.shapes import SHAPES, expected_of, files_of, settings, state_of


@pytest.mark.parametrize("shape", SHAPES)
def test_a_repository_of_a_public_form_gives_its_entities_and_edges(
    project: Project, tmp_path: Path, shape: str
) -> None:
    expected, files = expected_of(shape), files_of(shape)
    configuration = {".kb/config.json": settings(expected.pop("sources"))}
    answer = project.sync({**configuration, **files})
    found = state_of(project, answer)
    assert found == {"unresolved": [], "problems": {}, "not_read": {}, **expected}
    assert not project.sync().outcome.applied

    other = Project(tmp_path / "other")
    settled = {path: data for path, data in files.items() if path.startswith(".kb/")}
    other.sync({**configuration, **settled})
    for path in (path for path in reversed(files) if path not in settled):
        other.sync({path: files[path]})
    again = state_of(other, answer)
    other.close()
    assert again == found


@pytest.mark.parametrize("name", profiles.NAMES)
def test_each_profile_has_a_repository_that_shows_it(name: str) -> None:
    assert any({"profile": name} in expected_of(shape)["sources"] for shape in SHAPES)


def test_hundreds_of_proposals_without_a_title_are_read(project: Project) -> None:
    stub = "---\neip: {0}\nstatus: Moved\ncategory: ERC\n---\n\nThis file was moved to ../ercs/erc-{0}.md.\n"
    files: dict[str, str | bytes | None] = {f"EIPS/eip-{at}.md": stub.format(at) for at in range(1, 366)}
    answer = project.sync({".kb/config.json": settings([{"profile": "eip"}]), **files})
    found = state_of(project, answer)
    assert found["entities"].keys() == {f"EIP-{at}" for at in range(1, 366)}
    assert {one["status"] for one in found["entities"].values()} == {"superseded"}
    assert found["not_read"] == {}
    assert set(found["problems"]) == {"title_is_id"}
