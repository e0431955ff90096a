"""Each small repository in the form of a public tool is proposed as its tool, with all entities that it has."""

from __future__ import annotations

from typing import Any

import pytest

from kbcore.extract import registry
from kbcore.extract.facts import SourceFile
from kbcore.extract.sources import extractor as sources
from kbcore.extract.sources import profiles
from kbcore.extract.sources.check import resolved
from kbcore.extract.sources.detection import Configured, Detection, detect
from kbcore.text.globs import matches
from tests.support.sources.shapes import SHAPES, expected_of, files_of

SITES = [name for name in profiles.NAMES if profiles.site(name)]
"""Profiles of pages, which the settings of their site tell from other texts."""
BY_PROFILE = [one for one in SHAPES if "profile" in expected_of(one)["sources"][0] and one not in SITES]
BY_HAND = [one for one in SHAPES if "profile" not in expected_of(one)["sources"][0]]


def found_in(files: dict[str, bytes]) -> Detection:
    def read(path: str, most_bytes: int) -> bytes:
        return files[path][:most_bytes]

    listed = [Configured(one, {}, globs_of(one, {})) for one in registry.BUILT_IN.values()]
    return detect(files, read, listed)


def globs_of(extractor: Any, settings: dict[str, Any]) -> tuple[tuple[str, str | None], ...]:
    return tuple((rule.glob, rule.type) for rule in extractor.path_rules(settings))


def test_the_shapes_are_there() -> None:
    assert len(BY_PROFILE) > 15
    assert BY_HAND


@pytest.mark.parametrize("shape", BY_PROFILE)
def test_a_shape_is_proposed_by_its_profile_and_gives_what_is_expected(shape: str) -> None:
    expected = expected_of(shape)
    proposals = found_in(files_of(shape)).proposals
    wanted = [{key: one[key] for key in ("profile", "glob") if key in one} for one in expected["sources"]]
    assert [one.value for one in proposals] == wanted
    assert sum(one.entities for one in proposals) == len(expected["entities"])


@pytest.mark.parametrize("shape", BY_PROFILE)
def test_a_shape_in_another_folder_gives_the_same_ids_where_they_are_not_of_the_path(shape: str) -> None:
    files = {f"projects/one/{path}": data for path, data in files_of(shape).items()}
    proposals = found_in(files).proposals
    assert {one.value.get("profile") for one in proposals if isinstance(one.value, dict)} == {
        one["profile"] for one in expected_of(shape)["sources"]
    }
    assert sum(one.entities for one in proposals) == len(expected_of(shape)["entities"])


@pytest.mark.parametrize("shape", SITES)
def test_the_pages_of_a_site_are_proposed_with_all_entities_and_edges(shape: str) -> None:
    expected = expected_of(shape)
    [proposal] = found_in(files_of(shape)).proposals
    assert isinstance(proposal.value, dict)
    assert proposal.value["profile"] == shape
    assert (proposal.entities, proposal.edges) == (len(expected["entities"]), len(expected["edges"]))


@pytest.mark.parametrize("name", profiles.NAMES)
def test_each_profile_has_what_tells_its_documents(name: str) -> None:
    assert bool(profiles.signs(name)) != bool(profiles.site(name))


@pytest.mark.parametrize("shape", BY_HAND)
def test_documents_of_no_tool_are_proposed_with_as_many_entities_of_the_same_types(shape: str) -> None:
    files = files_of(shape)
    expected = sorted(one["type"] for one in expected_of(shape)["entities"].values())
    [proposal] = found_in(files).proposals
    assert isinstance(proposal.value, dict)
    whole = resolved(proposal.value)
    globs = [glob for glob, _ in globs_of(sources.EXTRACTOR, whole)]
    facts = [
        sources.EXTRACTOR.extract(SourceFile(path, data), whole) for path, data in files.items() if matches(path, globs)
    ]
    found = sorted(entity.type for one in facts for entity in one.entities)
    assert len(found) == len(expected) == proposal.entities
    # A type of the project's own is the default until it is in `map`.
    assert found == sorted("req" if one == "fact" else one for one in expected)
