"""One open tool call: the workspace and the branch as this request finds them, who asks, and reading what is there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from kbcore import limits
from kbmcp.tools.answers import Payload
from kbmcp.tools.entities_read import EntitiesRead

if TYPE_CHECKING:
    from kbcore.store.branch_store import BranchStore
    from kbcore.store.workspace import Workspace
    from kbcore.store.write_request import Author
    from kbcore.sync.overlay import FileState, WorktreeFiles
    from kbcore.view.view import View
    from kbmcp.tools.prolog_connection import PrologConnection

T = TypeVar("T")

THIS_SESSION: Final = "this"
Report = Callable[[float, float, str], Awaitable[None]]
"""Sends how much is done, of how much, in words."""


class Client(msgspec.Struct, frozen=True):
    """The client, as it names itself, and its token for progress of this call, if it sent one."""

    name: str = ""
    version: str = ""
    report: Report | None = None
    author: Author | None = None
    """The writer, where that is known and does not follow from the client's name."""
    ask: Callable[[str], Awaitable[bool]] | None = None
    """Asks the person who uses the client, and returns whether that person confirms; None where the client does not."""
    confirmed: str = ""
    """The question that the person has confirmed for this call."""


class Call(msgspec.Struct, frozen=True):
    """An open call. ``notice`` is what the first use of a branch has to say."""

    workspace: Workspace
    files: WorktreeFiles
    branch: str
    follows_head: bool
    author: Author
    notice: str
    is_dotted: bool
    """The spelling in which this server lists its tools, which answers use too."""
    repository: str = ""
    """The name of the repository, for the answer."""
    is_read_only: bool = False
    has_core: bool = True
    notes: list[str] = []
    """Notices for the answer of this call only."""
    prolog: PrologConnection | None = None
    """The Prolog workspace, where the server offers it."""
    confirmed: str = ""
    """The question that a person has confirmed."""
    reads: EntitiesRead | None = None
    """The entities that the client was shown on this connection."""

    @property
    def store(self) -> BranchStore:
        """Return what answers for the branch now: another store before the first record than after it."""
        return self.workspace.store(self.branch)

    def session_named(self, name: str) -> str:
        """Return the id of the session that a client names: ``this`` is that of its connection."""
        return self.author.session if name == THIS_SESSION else name

    @property
    def answered_from(self) -> dict[str, str]:
        """Return the member of the answer that names the branch whose store answers, where that is another one."""
        return self.workspace.answered_from(self.branch)

    def read(self, use: Callable[[View], T]) -> T:
        """Return ``use(view)`` on a view with what the files of the worktree say."""
        return self.files.read(self.workspace, self.branch, lambda view, _: use(view), time_s=limits.FILES_S)

    def answer(self, use: Callable[[View], Payload]) -> Payload:
        """Do as ``read`` for a document, which says how it relates to the files."""

        def on(view: View, state: FileState) -> Payload:
            return use(view) | state.as_json()

        return self.files.read(self.workspace, self.branch, on, time_s=limits.FILES_S)

    def page(self, use: Callable[[View], Payload]) -> Payload:
        """Do as ``answer`` for a page of which a cursor may ask as of an earlier seq."""
        branch, time_s = self.branch, limits.FILES_S
        shown, state = self.files.read_page(self.workspace, branch, use, lambda one: int(one["seq"]), time_s=time_s)
        return shown | state.as_json()
