"""Read change files: what people and agents added, as it travels with the code.

A file is taken whole or not at all. The state that its changes give depends on all changes that are present, so they
are no facts of this file alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from kbcore import limits
from kbcore.extract.facts import Facts, PathRule, SourceFile
from kbcore.git.worktree_content import DOCUMENT, FileKind
from kbcore.model.claims.change import SUFFIX, Change, Claim, redacted
from kbcore.model.graph import INDEX_SUFFIX
from kbcore.text.problems import FileProblem

if TYPE_CHECKING:
    from kbcore.secrets import Secret

NAME: Final = "changes"
FOLDER: Final = ".kb/changes"
"""The folder of change files, from the top of a worktree."""
OF_CHANGES: Final = (f"path like '{FOLDER}/%'", ())
"""The condition, as ``View.cells`` takes it, that a source is a change file."""
GLOB: Final = f"{FOLDER}/**/*{SUFFIX}"
_NOT_WRITTEN: Final = "KB writes no such file: remove it, or bring back the one that was committed."
CHANGE_FILE: Final = FileKind(limits.MAX_CHANGE_FILE_BYTES, _NOT_WRITTEN, _NOT_WRITTEN, _NOT_WRITTEN)
_INDEX_FILE: Final = DOCUMENT._replace(
    most_bytes=limits.MAX_INDEX_BYTES, if_larger="Write an index for each part of the code."
)
NOT_CHECKED_OUT: Final = FileProblem(
    0,
    "not_checked_out",
    "git has change files here and leaves them out of the worktree, so answers may lack what they say.",
    "Check them out: `git sparse-checkout add .kb`, or `git sparse-checkout disable`.",
)
_encode = msgspec.json.Encoder().encode
_REDACT: Final = "Take the secret out of use, and have the writer redact the value, or remove the file if it is none."


def is_change_file(path: str) -> bool:
    """Tell whether the path is one that change files have."""
    return path.startswith(f"{FOLDER}/") and path.endswith(SUFFIX)


def is_pack_file(path: str) -> bool:
    """Tell whether the path is one that packs have."""
    from kbcore.model.claims import change_file  # noqa: PLC0415 - most repositories have no such file

    return is_change_file(path) and change_file.is_pack(path.removeprefix(f"{FOLDER}/"))


def file_kind(path: str) -> FileKind:
    """Return what a file that is read is to be."""
    if path.endswith(INDEX_SUFFIX):
        return _INDEX_FILE
    return CHANGE_FILE if is_change_file(path) else DOCUMENT


class ChangeFiles:
    """The extractor of change files."""

    name = NAME
    version = 1

    def path_rules(self, settings: Mapping[str, Any]) -> Sequence[PathRule]:  # noqa: ARG002 - the protocol's
        """Return where change files are."""
        return (PathRule(GLOB),)

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
        if not may_hold_secret(change):
            line += 1 + len(change.claims)
            continue
        for part in parts_of(change):
            line = number if are_packed else line + 1
            found = next(change_secrets(part), None)
            if found is not None:
                return FileProblem(line, "secret", f"the line holds what looks like {found.kind}", _REDACT)
    return None


def may_hold_secret(change: Change) -> bool:
    """Tell whether ``change_secrets`` may find anything in the parts of a change, by one look at its text."""
    from kbcore.secrets import has_mark, may_name_secrets  # noqa: PLC0415 - as in ``change_secrets``

    names = {getattr(claim, "field", "") for claim in change.claims}
    values = [getattr(claim, name, None) for claim in change.claims for name in ("now", "was")]
    texts = [*names, *(_encode(one).decode() for one in values if isinstance(one, dict | list))]
    return has_mark(_encode(change).decode()) or may_name_secrets("\n".join(texts))


def parts_of(change: Change) -> list[Change | Claim]:
    """Return the parts of a change, each of which is a line of its file: the change without its claims, and these."""
    return [msgspec.structs.replace(change, claims=()), *change.claims]


def change_secrets(part: Change | Claim) -> Iterator[Secret]:
    """Yield what looks like a secret in a part of a change: in its values, and in the names, ids and words around."""
    from kbcore.secrets import secret_in, secrets_in  # noqa: PLC0415 - as above

    members = msgspec.to_builtins(part)
    for value in (members.pop("now", None), members.pop("was", None)):
        yield from secrets_in(value, members.get("field", "id"))
    # No format has a line break, but that of a private key, which begins with its header: one look does for all texts.
    found = secret_in("\n".join(_texts_in(members)))
    if found:
        yield found


def place_of_secret(change: Change) -> Literal["value", "field", "id"]:
    """Return where a change holds what looks like a secret: in values alone, in the name of a field, or in an id.

    The last is any place where no redaction can take it out.
    """
    every = range(len(change.claims))
    if _has_secret(redacted(change, message=True, claims=every, names=every)):
        return "id"
    return "field" if _has_secret(redacted(change, message=True, claims=every)) else "value"


def _has_secret(change: Change) -> bool:
    return any(next(change_secrets(part), None) is not None for part in parts_of(change))


def _texts_in(value: Any) -> Iterator[str]:
    """Yield the texts in members of a change; the names of its members are those of the format."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts_in(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts_in(one)
