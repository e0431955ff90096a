"""The tests leave no connection open: DuckDB would report it at the end of a worker, to standard error."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import pytest_runtest_teardown

KEPT = """
import ctypes
from tests.support.views.graph import Graph
for graph in (Graph(), Graph()):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(graph))
"""
"""Something that is not freed at the end of the process has graphs."""
ERROR = ValueError()


def test_a_graph_that_is_kept_beyond_the_end_of_a_process_keeps_no_connection():
    ended = subprocess.run([sys.executable, "-c", KEPT], capture_output=True, text=True, check=True)
    assert ended.stderr == ""


@pytest.mark.parametrize("error", [ERROR])
def test_an_error_that_is_a_parameter_keeps_no_frame_after_its_test(error, request):
    with pytest.raises(ValueError):  # noqa: PT011 - any one
        raise error
    assert error.__traceback__ is not None
    pytest_runtest_teardown(request.node)
    assert error.__traceback__ is None
