"""The settings of a project are read whole, or the request is refused: none of them vanishes in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbcore.errors import InvalidConfig
from tests.support.project import Project


def dangle(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to("nowhere")


@pytest.mark.parametrize("folder", ["schema", "rules"])
@pytest.mark.parametrize("name", ["", "/own.yaml"])
def test_a_settings_file_or_folder_that_is_a_link_to_nothing_is_refused_by_name(
    project: Project, folder: str, name: str
) -> None:
    dangle(project.root / f".kb/{folder}{name}")
    with pytest.raises(InvalidConfig) as refused:
        project.workspace().texts_in(folder)
    assert f".kb/{folder}{name} " in refused.value.message
    assert "link" in refused.value.hint or "remove" in refused.value.hint


def test_a_sync_with_a_schema_that_is_a_link_to_nothing_takes_nothing_away(project: Project) -> None:
    types = "entities: {fact: {description: A fact.}}\n"
    fact = "---\nid: F-1\ntype: fact\ntitle: T\nstatus: open\n---\n"
    project.sync({".kb/schema/own.yaml": types, "docs/requirements/1.md": fact})
    project.write({".kb/schema/own.yaml": None})
    dangle(project.root / ".kb/schema/own.yaml")
    with pytest.raises(InvalidConfig):
        project.sync()
    assert project.node("F-1")


def test_a_project_without_settings_folders_has_none_of_its_own(project: Project) -> None:
    assert (project.workspace().texts_in("schema"), project.workspace().texts_in("rules")) == ({}, {})
