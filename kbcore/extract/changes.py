"""Read change files: what people and agents added, as it travels with the code.

A file is taken whole or not at all. The state that its changes give depends on all changes that are present, so they
are no facts of this file alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kbcore import limits
from kbcore.extract.facts import Facts, PathRule, SourceFile
from kbcore.git.worktree_content import DOCUMENT, SizeLimit
from kbcore.model.claims.change import SUFFIX, Change, Claim
from kbcore.text.problems import FileProblem

if TYPE_CHECKING:
    from kbcore.secrets import Secret

NAME: Final = "changes"
FOLDER: Final = ".kb/changes"
"""The folder of change files, from the top of a worktree."""
OF_CHANGES: Final = (f"path like '{FOLDER}/%'", ())
"""The condition, as ``View.cells`` takes it, that a source is a change file."""
_GLOB: Final = f"{FOLDER}/**/*{SUFFIX}"
SIZE: Final = SizeLimit(
    limits.MAX_CHANGE_FILE_BYTES, "KB writes no such file: remove it, or bring back the one that was committed."
)
_REDACT: Final = "Take the secret out of use, and have the writer redact the value."


def is_change_file(path: str) -> bool:
    """Tell whether the path is one that change files have."""
    return path.startswith(f"{FOLDER}/") and path.endswith(SUFFIX)


def is_pack(path: str) -> bool:
    """Tell whether the path is one that packs have."""
    from kbcore.model.claims import change_file  # noqa: PLC0415 - most repositories have no such file

    return is_change_file(path) and change_file.is_pack(path.removeprefix(f"{FOLDER}/"))


def size_limit(path: str) -> SizeLimit:
    """Return how large a file that is read may be."""
    return SIZE if is_change_file(path) else DOCUMENT


class ChangeFiles:
    """The extractor of change files."""

    name = NAME
    version = 1

    def path_rules(self, settings: Mapping[str, Any]) -> Sequence[PathRule]:  # noqa: ARG002 - the protocol's
        """Return where change files are."""
        return (PathRule(_GLOB),)

    def extract(self, source: SourceFile, settings: Mapping[str, Any]) -> Facts:  # noqa: ARG002 - the protocol's
        """Return the changes of a file; none, and why, where the file is refused."""
        from kbcore.model.claims import change_file  # noqa: PLC0415 - most repositories have no such file

        name = source.path.removeprefix(f"{FOLDER}/")
        read = change_file.decode(source.data, name)
        problem = read.problem or _secret(read.changes, are_packed=change_file.is_pack(name))
        return Facts(problems=(problem,), is_complete=False) if problem else Facts(changes=read.changes)


EXTRACTOR: Final = ChangeFiles()


def _secret(changes: Sequence[Change], *, are_packed: bool) -> FileProblem | None:
    """Return the problem of the first line that holds what looks like a secret."""
    line = 0
    for number, change in enumerate(changes, start=1):
        for part in (change.message, *change.claims):
            line = number if are_packed else line + 1
            found = next(change_secrets(part), None)
            if found is not None:
                return FileProblem(line, "secret", f"the line holds what looks like {found.kind}", _REDACT)
    return None


def change_secrets(part: str | Claim) -> Iterator[Secret]:
    """Yield what looks like a secret in the message of a change, or in the values of a claim."""
    from kbcore.secrets import secrets_in  # noqa: PLC0415 - as above

    if isinstance(part, str):
        yield from secrets_in(part)
        return
    for value in (getattr(part, "now", None), getattr(part, "was", None)):
        if value is not None and value is not msgspec.UNSET:
            yield from secrets_in(value, getattr(part, "field", "id"))
