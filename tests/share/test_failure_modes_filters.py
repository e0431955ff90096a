"""Failure modes of sharing: what git is set to do with files on their way into and out of the worktree."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.repository.clones import Clone, hold

ATTRIBUTES = ".kb/.gitattributes"


def write(clone: Clone, name: str, text: str) -> None:
    (clone.root / name).parent.mkdir(parents=True, exist_ok=True)
    (clone.root / name).write_text(text)


@pytest.mark.parametrize("has_attributes", [True, False])
@pytest.mark.parametrize("how", ["core.autocrlf", "text=auto"])
def test_changes_are_the_same_ones_where_git_ends_lines_in_another_way(
    ann: Clone, clone: Callable[..., Clone], how: str, has_attributes: bool
) -> None:
    if how == "text=auto":
        write(ann, ".gitattributes", "* text=auto\n")
    if not has_attributes:
        ann.git("rm", "--quiet", ATTRIBUTES)
    ann.commit()
    ann.push()
    options = ["-c", "core.autocrlf=true"] if how == "core.autocrlf" else ["-c", "core.eol=crlf"]
    bob = clone("bob", *options)
    [path] = bob.changes()
    assert (b"\r\n" in (bob.root / path).read_bytes()) == (not has_attributes)
    hold(bob)
    assert bob.facts() == ann.facts()

    bob.add("FACT-1", title="By bob")
    bob.commit()
    bob.git("checkout", "--quiet", "--force", "HEAD")
    hold(bob)
    bob.push()
    ann.pull()
    hold(ann)
    assert ann.facts() == bob.facts()
    assert (ann.root / ATTRIBUTES).read_text() == "changes/** -text -filter -merge\n"


POINTER = "printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%s\\nsize 12\\n' 0123"


def test_a_filter_for_all_such_files_does_not_touch_change_files(ann: Clone, bob: Clone) -> None:
    write(ann, ".gitattributes", "*.jsonl filter=large diff=large -text\n")
    ann.git("config", "filter.large.clean", POINTER)
    ann.git("config", "filter.large.required", "true")
    ann.fact("FACT-2")
    ann.commit()
    ann.push()
    bob.pull()
    hold(ann, bob)
    assert bob.facts() == ann.facts()


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 12\n", "Git LFS"),
        (b"\0GITCRYPT\0\xfe\x01", "git-crypt"),
    ],
)
def test_what_a_filter_left_in_the_place_of_a_file_is_named_with_the_line_to_change(
    ann: Clone, content: bytes, what: str
) -> None:
    [path] = ann.changes()
    known = ann.committed()[path]
    (ann.root / path).write_bytes(content)
    ann.git("add", "--all")
    ann.git("commit", "--quiet", "-m", "filtered")
    hold(ann, stale=known, is_damaged=True)
    [(where, problem)] = ann.sync().problems
    assert (where, problem.code) == (path, "filtered")
    assert what in problem.message
    assert "changes/** -text -filter -merge" in problem.hint


def test_change_files_are_committed_although_git_ignores_their_folder_or_ending(ann: Clone, bob: Clone) -> None:
    write(ann, ".gitignore", ".kb/\n*.jsonl\n")
    ann.fact("FACT-2")
    ann.commit()
    ann.push()
    bob.pull()
    hold(ann, bob)
    assert bob.facts() == ann.facts()
