"""The folder of a program, without an engine: what its requests do, and the most that a run writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbcore.dml import files
from kbcore.dml.files import FileRefused, Files


def _write(made: Files, text: str, mode: str = "write") -> str:
    return made.answer({"kind": "write_file", "path": "a", "mode": mode, "text": text})


def test_all_that_a_run_writes_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_PROGRAM_WRITTEN_BYTES", 10)
    made = Files(tmp_path)
    assert _write(made, "12345678") == "true"
    with pytest.raises(FileRefused, match="The run has written more than 10 bytes") as refused:
        _write(made, "123")
    assert refused.value.formal == 'permission_error(open,source_sink,"a")'
    assert (tmp_path / "a").read_text() == "12345678"
    assert _write(Files(tmp_path), "90", "append") == "true"
    assert (tmp_path / "a").read_text() == "1234567890"


def test_a_file_is_limited_with_what_is_appended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_PROGRAM_FILE_BYTES", 4)
    made = Files(tmp_path)
    _write(made, "abc")
    with pytest.raises(FileRefused, match="'a' would have more than 4 bytes"):
        _write(made, "é", "append")
    _write(made, "d", "append")
    assert (tmp_path / "a").read_text() == "abcd"
    with pytest.raises(FileRefused, match="would have more than 4 bytes"):
        _write(made, "e", "append")
