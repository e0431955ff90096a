"""Files of a git directory that are not what git writes there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kbcore.errors import GitUnusable
from kbcore.git.files import read_end
from tests.support.processes.hanging import in_time


@pytest.mark.parametrize(("content", "end"), [(b"", b""), (b"abc", b""), (b"abcd", b"abcd"), (b"0abcd", b"abcd")])
def test_the_end_of_a_file_has_the_length_asked_for_or_is_nothing(tmp_path: Path, content: bytes, end: bytes) -> None:
    path = tmp_path / "index"
    path.write_bytes(content)
    assert read_end(path, 4) == end


def test_the_end_of_no_file_is_nothing(tmp_path: Path) -> None:
    assert read_end(tmp_path / "index", 4) == b""
    assert read_end(tmp_path, 4) == b""


@pytest.mark.parametrize("put", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "device"])
def test_the_end_of_what_has_no_end_is_refused_at_once(tmp_path: Path, put) -> None:
    path = tmp_path / "index"
    put(path)
    with in_time(), pytest.raises(GitUnusable, match="is not a regular file"):
        read_end(path, 4)
