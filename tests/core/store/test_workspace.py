"""The settings of a project are read whole, or the request is refused: none of them vanishes in silence."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kbcore.errors import InvalidConfig, NotInitialised
from tests.support.repository.project import Project, req


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


@pytest.mark.parametrize("name", ["schema/own.yaml", "rules/own.yml"])
def test_a_clone_without_the_configuration_has_the_rest_of_the_settings(project: Project, name: str) -> None:
    shutil.rmtree(project.workspace().folders.data_dir)
    (project.root / ".kb/.gitignore").write_text("/branches\n")
    with pytest.raises(NotInitialised, match="holds no settings"):
        project.workspace()
    answer = project.sync({f".kb/{name}": "", "docs/requirements/1.md": req("REQ-1")})
    assert project.node("REQ-1")
    assert [(path, one.code) for path, one in answer.problems if one.severity != "note"] == [
        (".kb/config.json", "missing_config")
    ]
    answer = project.sync({".kb/config.json": "{}"})
    assert [one.code for _, one in answer.problems if one.severity != "note"] == []
