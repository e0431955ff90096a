"""The head file of a branch in a fleet: which parts hold its facts, and of which record of which store.

``docs/fleet-format.md`` is the specification.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final
from urllib.parse import quote, unquote

import msgspec

from kbcore.config.fleet import NAME_RULE, name_fault
from kbcore.errors import FormatTooNew, InvalidQuery, StorageError
from kbcore.text.escaping import in_quotes
from kbcore.view.parquet import KINDS

FORMAT: Final = 1
HEADS: Final = "heads"
AGAIN: Final = "Export the branch again, with --force, in its repository."
"""The remedy for everything in a place that is missing or damaged."""
MAX_HEAD_BYTES: Final = 4 * 2**20
_HASH_DIGITS: Final = 16
_REPO, _BRANCH = "repo=", "branch="
_IN_HEADS: Final = re.compile(rf"{HEADS}/{_REPO}[^/]+/{_BRANCH}[^/]+\.json")
Count = Annotated[int, msgspec.Meta(ge=0)]
FACTS_HASH_DIGITS: Final = 32
"""Hex digits of the hash of all facts of a branch."""
FactsHash = Annotated[str, msgspec.Meta(pattern=f"^[0-9a-f]{{{FACTS_HASH_DIGITS}}}$")]


class PartFile(msgspec.Struct, frozen=True):
    """A file of rows: where it is below the place, its kind, and its content."""

    path: str
    kind: str
    rows: Count
    bytes: Count
    sha256: str


class FleetHead(msgspec.Struct, frozen=True, rename={"has_history": "history", "is_default": "default"}):
    """The content of a head file.

    ``store``, ``seq``, ``sum`` and ``at`` are of the last record; ``hash`` is that of all present facts, in hex digits.
    ``history`` tells whether the parts have records and superseded rows as well; they are whole after
    ``history_from``.
    """

    format: int
    repo: str
    branch: str
    store: str
    lineage: str
    seq: Count
    sum: str
    at: str
    hash: FactsHash
    has_history: bool
    history_from: Count
    listed_from: Count
    settings: PartFile
    parts: tuple[PartFile, ...]
    is_default: bool = False
    """It is the default branch of the repository."""
    kb: str = ""
    """The version of KB that wrote it."""


_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(FleetHead).decode


def encode(head: FleetHead) -> bytes:
    """Return the bytes of a head file."""
    return msgspec.json.format(_encode(head), indent=1) + b"\n"


def decode(data: bytes, name: str) -> FleetHead:
    """Return the head that a file at a path below the place has. Raises: ``FormatTooNew``, ``StorageError``."""
    try:
        form = msgspec.json.decode(data, type=_Form).format
        if form > FORMAT:
            message = f"{name} has format {form}, and this KB reads up to {FORMAT}."
            raise FormatTooNew(message, hint="Install the version of KB that exported it, or a newer one.")
        head = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"{name} is no head file: {error}."
        raise StorageError(message, hint=AGAIN) from error
    if any(one.kind not in KINDS for one in head.parts) or not all(map(_is_below, (head.settings, *head.parts))):
        raise StorageError(f"{name} names a part that cannot be one.", hint=AGAIN)
    if name != head_path(head.repo, head.branch):
        message = f"{name} is of another branch: {in_quotes(head.branch)} of {in_quotes(head.repo)}."
        raise StorageError(message, hint=f"Remove it if it was copied there. {AGAIN}")
    return head


def _is_below(part: PartFile) -> bool:
    """Tell whether a path can be one of a file below the place, wherever that is."""
    return part.path.isprintable() and not {"", ".", ".."} & {*part.path.split("/")}


class _Form(msgspec.Struct):
    format: int


def head_path(repo: str, branch: str) -> str:
    """Return where the head file of a branch is below the place."""
    return f"{HEADS}/{_folder(repo, branch)}.json"


def part_path(kind: str, repo: str, branch: str, seq: int, sha256: str) -> str:
    """Return where a part is below the place. Its name depends on its content."""
    return f"kind={kind}/{_folder(repo, branch)}/part-{seq}-{sha256[:_HASH_DIGITS]}.parquet"


def settings_path(repo: str, branch: str, sha256: str) -> str:
    """Return where the settings of a branch are below the place."""
    return f"settings/{_folder(repo, branch)}/{sha256[:_HASH_DIGITS]}.json"


def is_head(path: str) -> bool:
    """Tell whether a path below the place may be that of a head file: whatever else is there is not KB's."""
    return _IN_HEADS.fullmatch(path) is not None


def names_in(path: str) -> tuple[str, str]:
    """Return the names of the repository and of the branch in the path of a head file."""
    repo, _, branch = path.removeprefix(f"{HEADS}/").removesuffix(".json").partition("/")
    return unquote(repo.removeprefix(_REPO)), unquote(branch.removeprefix(_BRANCH))


def repo_folder(repo: str) -> str:
    """Return the name of the folders of a repository in `heads`, `settings` and those of each kind of part."""
    return f"{_REPO}{quote(repo, safe='')}"


def _folder(repo: str, branch: str) -> str:
    return f"{repo_folder(repo)}/{_BRANCH}{quote(branch, safe='')}"


def check_name(what: str, name: str) -> None:
    """Refuse a name of a repository or a branch that cannot be one. Raises: ``InvalidQuery``."""
    if name_fault(name):
        message = f"{in_quotes(name)} cannot be the name of a {what}."
        raise InvalidQuery(message, hint=f"Give {NAME_RULE}, as in `acme/pay`.")


def as_json(head: FleetHead) -> dict[str, Any]:
    """Return what a command says of a head."""
    return {
        "repo": head.repo,
        "branch": head.branch,
        "seq": head.seq,
        "at": head.at,
        "history": head.has_history,
        "parts": len(head.parts),
        "bytes": sum(one.bytes for one in head.parts),
    }
