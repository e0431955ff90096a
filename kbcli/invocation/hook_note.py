"""The note that a git hook leaves for the next one in a worktree: up to where nothing is left to do.

It is read with what Python has loaded at its start, and at most one git process, because most hooks have nothing to do
and git waits for them. A note that is lost, or that does not fit in any part, costs a whole run and nothing else.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

NAME = "kb-hook"
"""The file in the git directory of a worktree, which git removes with the worktree."""
CHANGES = ".kb/changes"
SETTINGS = ".kb/config.json"

_FORMAT = "1"
_MAX_BYTES = 2**20
BRANCH = "refs/heads/"
_OWN_INDEXES = ("index", "index.lock")
"""The names in the git directory of the index that git commits from, but where a commit is made of named paths."""
_SEQUENCES = ("rebase-merge", "rebase-apply", "sequencer")
_KB = ".kb/"
_COMPANION = ".kb/.gitattributes"

NOTHING = "nothing"
RECORD = "record"
"""One record: that the commit has the change files which are pending."""
WORK = "work"


class HookNote:
    """The note that a hook left: the branch, commit, settings and store that it is about, and what it said of them.

    ``endings`` are those of the files that documents may have, in small letters; ``packages`` is how the folder of
    installed packages looks, of which one may read files of other endings. ``head`` is the path of the store's head.
    ``staged`` are change files that ``pre-commit`` wrote and put into the index, ``pending`` those that a commit has
    and no record knows.
    """

    __slots__ = (
        *(
            "branch",
            "changes",
            "commit",
            "endings",
            "head",
            "mode",
            "packages",
            "pending",
            "seen",
            "settings",
            "staged",
        ),
    )

    def __init__(
        self,
        *,
        branch: str,
        commit: str,
        mode: str,
        head: str,
        seen: str,
        settings: str,
        changes: str,
        endings: Sequence[str],
        packages: str,
        staged: Sequence[str] = (),
        pending: Sequence[str] = (),
    ) -> None:
        self.branch = branch
        self.commit = commit
        self.mode = mode
        self.head = head
        self.seen = seen
        self.settings = settings
        self.changes = changes
        self.endings = tuple(endings)
        self.packages = packages
        self.staged = tuple(staged)
        self.pending = tuple(pending)


def due(event: str, env: Mapping[str, str]) -> str:
    """Return whether an event of git calls for ``NOTHING``, ``WORK`` or one ``RECORD``."""
    git_dir = git_dir_of(env)
    note = read(git_dir) if git_dir else None
    if note is None:
        return WORK
    branch, commit = checked_out(git_dir)
    is_as_noted = look_of(SETTINGS) == note.settings and packages_look() == note.packages
    if branch != note.branch or not commit or not is_as_noted:
        return WORK
    is_same_store = look_of(note.head) == note.seen
    if event == "pre-commit":
        is_same = commit == note.commit and is_same_store and note.mode == "auto" and not note.staged
        return NOTHING if is_same and changes_look() == note.changes else WORK
    if event == "post-rewrite":
        return NOTHING if commit == note.commit and is_same_store else WORK
    has_all = is_same_store or (note.mode == "off" and bool(look_of(note.head)))  # who shares nothing has none to count
    return _after_commit(git_dir, note, commit) if event == "post-commit" and has_all else WORK


def _after_commit(git_dir: str, note: HookNote, commit: str) -> str:
    """Return what a commit on top of the noted one calls for."""
    if any(os.path.exists(f"{git_dir}/{name}") for name in _SEQUENCES):  # noqa: PTH110 - pathlib takes long to import
        return WORK
    parents, names = _commit_of(commit)
    if parents != [note.commit] or not names.issuperset(note.staged):
        return WORK
    others = (name for name in names.difference(note.staged) if not (note.staged and _goes_with_changes(name)))
    if any(name.startswith(_KB) or name.lower().endswith(note.endings) for name in others):
        return WORK
    note.pending += note.staged
    note.commit, note.staged = commit, ()
    write(git_dir, note)
    return RECORD if note.pending else NOTHING


def _goes_with_changes(name: str) -> bool:
    """Return whether a path is one that is committed with change files."""
    return name == _COMPANION or (name.startswith(f"{CHANGES}/") and name.endswith("/.keep"))


def git_dir_of(env: Mapping[str, str]) -> str:
    """Return the git directory of the worktree whose top is the current folder, "" where that takes more to find out.

    git starts its hooks there.
    """
    if env.get("GIT_WORK_TREE") or env.get("GIT_COMMON_DIR"):
        return ""
    found = env.get("GIT_DIR") or ".git"
    link = _read(found) if os.path.isfile(found) else ""  # noqa: PTH113 - as above
    if link.startswith("gitdir: "):
        found = link[len("gitdir: ") :].rstrip("\n")
    return found if os.path.isfile(f"{found}/HEAD") else ""  # noqa: PTH113 - as above


def checked_out(git_dir: str) -> tuple[str, str]:
    """Return the full name of the branch that is checked out and its commit; "" for what one file does not say."""
    head = _read(f"{git_dir}/HEAD")
    branch = head[len("ref: ") :].rstrip("\n") if head.startswith(f"ref: {BRANCH}") else ""
    common = _read(f"{git_dir}/commondir").rstrip("\n")
    commit = _read(os.path.join(git_dir, common, branch)).strip() if branch else ""  # noqa: PTH118 - as above
    return branch, commit


def is_of_own_index(git_dir: str, env: Mapping[str, str]) -> bool:
    """Return whether git commits from the index of the worktree, and not from one of named paths or of the caller."""
    folder, name = os.path.split(env.get("GIT_INDEX_FILE", ""))
    return not name or (name in _OWN_INDEXES and os.path.realpath(folder) == os.path.realpath(git_dir))


def look_of(path: str) -> str:
    """Return how a file looks from outside, "" where it cannot be seen."""
    try:
        about = os.stat(path)  # noqa: PTH116 - as above
    except OSError:
        return ""
    return f"{about.st_size} {about.st_mtime_ns} {about.st_ctime_ns} {about.st_ino}"


def packages_look() -> str:
    """Return how the folders of installed packages look from outside: they change with each package."""
    return " ".join(look_of(path) for path in sys.path if path.endswith(("site-packages", "dist-packages")))


def changes_look() -> str:
    """Return which change files the worktree has, by their names, of which each has a digest of its content."""
    names = [f"{folder}/{name}" for folder, _, files in os.walk(CHANGES) for name in files]
    return " ".join(sorted(names))


def read(git_dir: str) -> HookNote | None:
    """Return the note of a worktree, None where there is none that can be used."""
    lines = _read(f"{git_dir}/{NAME}").split("\n")
    found = dict(line.split(" ", 1) for line in lines if " " in line)
    if found.pop("format", "") != _FORMAT or lines[-1] != "end":
        return None
    try:
        return HookNote(
            branch=found["branch"],
            commit=found["commit"],
            mode=found["mode"],
            head=found["head"],
            seen=found["seen"],
            settings=found["settings"],
            changes=found["changes"],
            endings=_listed(found["endings"]),
            packages=found["packages"],
            staged=_listed(found["staged"]),
            pending=_listed(found["pending"]),
        )
    except KeyError:
        return None


def write(git_dir: str, note: HookNote) -> None:
    """Leave a note, in place of the one before; a note that does not fit, or cannot be written, is none."""
    fields = {
        "format": _FORMAT,
        "branch": note.branch,
        "commit": note.commit,
        "mode": note.mode,
        "head": note.head,
        "seen": note.seen,
        "settings": note.settings,
        "changes": note.changes,
        "endings": "\t".join(note.endings),
        "packages": note.packages,
        "staged": "\t".join(note.staged),
        "pending": "\t".join(note.pending),
    }
    text = "".join(f"{name} {value}\n" for name, value in fields.items()) + "end"
    path = f"{git_dir}/{NAME}"
    if any("\n" in value for value in fields.values()) or len(text) > _MAX_BYTES:
        remove(git_dir)
        return
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "w", encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123 - as above
            file.write(text)
        os.replace(temporary, path)  # noqa: PTH105 - as above
    except OSError:
        remove(git_dir)


def remove(git_dir: str) -> None:
    """Remove the note of a worktree."""
    try:
        os.unlink(f"{git_dir}/{NAME}")  # noqa: PTH108 - as above
    except OSError:  # there is none, or none can be written or removed there
        return


def _listed(text: str) -> list[str]:
    return [one for one in text.split("\t") if one]


def _commit_of(commit: str) -> tuple[list[str], set[str]]:
    """Return the parents of a commit and the paths that differ from the first one; nothing of a merge."""
    words = ["git", "diff-tree", "--always", "--root", "-r", "-z", "--no-renames", "--name-only", "--format=%P", commit]
    parents, _, names = _output_of(words).partition(b"\0")
    return os.fsdecode(parents).split(), {os.fsdecode(name) for name in names.removeprefix(b"\n").split(b"\0") if name}


def _output_of(words: Iterable[str]) -> bytes:
    """Return what a program writes to standard output; nothing of one that fails or cannot be started."""
    reads, writes = os.pipe()
    try:
        pid = os.posix_spawnp("git", [*words], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, writes, 1)])
    except OSError:
        os.close(writes)
        os.close(reads)
        return b""
    os.close(writes)
    found = b""
    with open(reads, "rb") as file:  # noqa: PTH123 - as above
        found = file.read()
    _, status = os.waitpid(pid, 0)
    return b"" if status else found


def _read(path: str) -> str:
    """Return the text of a small file, "" where it cannot be read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as above
            data = file.read(_MAX_BYTES)
    except OSError:
        return ""
    return os.fsdecode(data)
