"""The folders that files of Prolog are read from."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbcore.errors import PrologFailed
from kbcore.logic.source_files import name_of, read_file, roots_of

FACTS = "p(1).\n"


def test_a_file_below_the_worktree_has_a_relative_name(tmp_path: Path) -> None:
    (tmp_path / "a.pl").write_text(FACTS, encoding="utf-8")
    found = read_file(roots_of(tmp_path, {}), "a.pl")
    assert (found.name, found.path, found.text) == ("a.pl", tmp_path / "a.pl", FACTS)


@pytest.mark.parametrize("named", ["/", "/etc", "/proc", "/etc/ssl"])
def test_a_folder_of_the_system_is_not_read_whatever_the_user_names(tmp_path: Path, named: str) -> None:
    for roots in (roots_of(tmp_path, {"KB_LOGIC_ROOTS": named}), roots_of(tmp_path, {}, [named])):
        for file in ("/etc/passwd", "/etc/ssl/x", "/proc/cpuinfo"):
            with pytest.raises(PrologFailed) as caught:
                name_of(roots, file)
            assert caught.value.data["kind"] == "file_path_violation"


@pytest.mark.parametrize(
    ("folder", "file", "is_allowed"),
    [
        ("/var", "/var/lib/a.pl", False),
        ("/var/project", "/var/project/a.pl", True),
        ("/usr", "/usr/share/a.pl", False),
        ("/usr/project", "/usr/project/a.pl", True),
        ("/usr/project", "/usr/share/a.pl", False),
        ("/dev", "/dev/shm/project/a.pl", False),
        ("/dev/shm", "/dev/shm/project/a.pl", False),
        ("/dev/shm/project", "/dev/shm/project/a.pl", True),
        ("/dev/shm/project", "/dev/shm/a.pl", False),
    ],
)
def test_a_folder_below_one_of_the_system_is_read_where_it_is_named(folder: str, file: str, is_allowed: bool) -> None:
    roots = roots_of(None, {"KB_LOGIC_ROOTS": folder})
    if is_allowed:
        assert name_of(roots, file)[0] == file
    else:
        with pytest.raises(PrologFailed):
            name_of(roots, file)


def test_a_file_below_the_worktree_is_named_in_errors_as_it_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "bad.pl").write_bytes(b"p(1).\np(\xff).\n")
    for given, kind in (("bad.pl", "encoding"), ("gone.pl", "file_not_found")):
        with pytest.raises(PrologFailed) as caught:
            read_file(roots_of(tmp_path, {}), str(tmp_path / given))
        assert (caught.value.data["kind"], str(tmp_path) in caught.value.message) == (kind, False)
        assert given in caught.value.message


def test_an_empty_list_allows_no_file(tmp_path: Path) -> None:
    (tmp_path / "a.pl").write_text(FACTS, encoding="utf-8")
    with pytest.raises(PrologFailed):
        read_file(roots_of(tmp_path, {"KB_LOGIC_ROOTS": ""}), "a.pl")


@pytest.mark.parametrize("file", [".git/config", ".git", "sub/.git/hooks/a.pl", ".GIT/config", "link.pl"])
def test_a_file_of_git_is_not_read(tmp_path: Path, file: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text(FACTS, encoding="utf-8")
    (tmp_path / "link.pl").symlink_to(".git/config")
    with pytest.raises(PrologFailed) as caught:
        read_file(roots_of(tmp_path, {}), file)
    assert caught.value.data["kind"] == "file_path_violation"
    assert name_of(roots_of(tmp_path, {}), ".github/a.pl")[0] == ".github/a.pl"
