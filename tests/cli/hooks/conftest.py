"""A repository and a stand-in for ``kb`` for each test of hooks."""

from __future__ import annotations

import pytest

from tests.support.repository.hooks import make_program
from tests.support.repository.repos import make_repository


@pytest.fixture
def root(tmp_path):
    return make_repository(tmp_path / "project")


@pytest.fixture
def program(tmp_path):
    """Make a stand-in for ``kb`` that writes down how it was called, outside of PATH."""
    return make_program(tmp_path / "it's here", 'echo "$PWD: $*" >> "$(dirname "$0")/calls"; echo to-stdout')
