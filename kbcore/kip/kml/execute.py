"""One command that writes: planned on the view that its WHERE sees, committed as one changeset, answered as KIP does.

Everything that holds for ``kb apply`` holds here: validation, whose fact is whose, limits, secrets, the guard of HEAD.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.errors import KipRefused, Rejected
from kbcore.kip import syntax as s
from kbcore.kip.kml.command_drafts import CommandDrafts
from kbcore.kip.kml.delete import delete_concepts, delete_keys, delete_propositions
from kbcore.kip.kml.intent import Intent, changeset_of, leave_out_updated
from kbcore.kip.kml.merge import apply_merge
from kbcore.kip.kml.refusals import DraftSources, in_kip
from kbcore.kip.kml.update import apply_update
from kbcore.kip.kml.upsert import apply_upserts
from kbcore.kip.run_statement import refuse_former_ids
from kbcore.model.changeset import Changeset, digest_of
from kbcore.model.record import DML
from kbcore.model.state import Draft, Stamp
from kbcore.store.answers import Outcome
from kbcore.store.apply import planner
from kbcore.store.dry_run import take
from kbcore.store.proposing import proposing
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author, Request
from kbcore.sync.locate import DERIVED, with_lines
from kbcore.text.escaping import in_quotes
from kbcore.view.view import View

Command = s.Upserts | s.DeleteConcepts | s.DeletePropositions | s.DeleteKeys | s.Update | s.Merge
SOURCE: Final = "kip"
"""The source of what KIP writes, as the log shows it."""

DRY_RUN: Final = "dry_run"
"""The member of an answer that marks it as one of a dry run. All else in it is what the real run answers."""

_APPLY: Final[Mapping[type, Callable[[CommandDrafts, Any], Intent]]] = {
    s.Upserts: apply_upserts,
    s.DeleteConcepts: delete_concepts,
    s.DeletePropositions: delete_propositions,
    s.DeleteKeys: delete_keys,
    s.Update: apply_update,
    s.Merge: apply_merge,
}


class KmlAnswer(msgspec.Struct, frozen=True):
    """The answer to a command: ``result`` in the shape of KIP, and what became of its changeset."""

    result: dict[str, Any]
    outcome: Outcome


class KmlOptions(msgspec.Struct, frozen=True):
    """The way a command is run: only planned (``dry_run``), and why (a message for the log)."""

    dry_run: bool = False
    message: str = ""


def execute(
    workspace: Workspace,
    branch: str,
    author: Author,
    command: Command,
    options: KmlOptions = KmlOptions(),  # noqa: B008 - frozen
    *,
    follows_head: bool,
) -> KmlAnswer:
    """Carry a bound command out on a branch, as one changeset or not at all.

    With ``follows_head`` the branch came from HEAD, and a move of HEAD meanwhile refuses the command.

    Raises: ``KipRefused`` with the offset of the place (``errors.placing`` turns it into line and column); what
    ``BranchStore.commit`` raises where the command is not to blame.
    """
    request = _request(workspace, command, options)
    guard = workspace.guard(branch) if follows_head else None
    plan = _Plan(workspace, author, command, options)
    author = _through_kip(author)
    with plan.explained(branch):
        outcome = workspace.store(branch).commit(
            author, request, plan, guard=guard, head_commit=workspace.head_commit(branch), branch=branch
        )
    return KmlAnswer(plan.result, outcome)


def execute_on_view(
    workspace: Workspace, branch: str, author: Author, command: Command, view: View
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return answer and warnings of a dry run of a command, and apply it to ``view``, of ``unshared_view``.

    Raises: as ``execute``.
    """
    options = KmlOptions(dry_run=True)
    plan = _Plan(workspace, author, command, options)
    author = _through_kip(author)
    with plan.explained(branch):
        take(view, author, _request(workspace, command, options), plan, workspace.machine.clock.now())
    return plan.result, plan.warnings


def _through_kip(author: Author) -> Author:
    """Return the author of a command: its source is KIP, but that of a run of DML, which names the run."""
    return author if author.source.startswith(DML) else msgspec.structs.replace(author, source=SOURCE)


def _request(workspace: Workspace, command: Command, options: KmlOptions) -> Request:
    return Request(
        digest=digest_of("kip", {"command": msgspec.to_builtins(command)}),
        message=options.message or summary(command),
        dry_run=options.dry_run,
        lock_wait_s=workspace.config.lock_wait_s,
        plans_ahead=True,
    )


class _Plan:
    """Plans one command, and keeps what is reported of it afterwards."""

    def __init__(self, workspace: Workspace, author: Author, command: Command, options: KmlOptions) -> None:
        self.workspace = workspace
        self.author = author
        self.command = command
        self.options = options
        self.changeset = Changeset()
        self.origin = DraftSources()
        self.result: dict[str, Any] = {}
        self.warnings: tuple[str, ...] = ()

    @contextlib.contextmanager
    def explained(self, branch: str) -> Iterator[None]:
        """Turn a refusal of the changeset into one of the command. Raises: ``KBError``."""
        try:
            yield
        except Rejected as refused:
            if isinstance(refused, KipRefused):
                raise
            error = refused
            if any(problem.code == DERIVED for problem in refused.details):
                error = with_lines(self.workspace, refused, branch=branch)
            raise in_kip(error, self.origin) from refused

    def __call__(self, view: View, stamp: Stamp) -> Draft:
        """Return what the command comes to on a view. Raises: as ``execute``."""
        self.origin = DraftSources()
        schema = view.schema(self.workspace.schema)
        refuse_former_ids(view, schema, self.command)
        work = CommandDrafts(view, schema, self.workspace.config.kip, now=stamp.at)
        intent = _APPLY[type(self.command)](work, self.command)
        left_out = leave_out_updated(work)
        self.changeset = changeset_of(work, intent, self.origin, most_deleted=limits.MAX_KIP_DELETED)
        # A merge takes over what others have set, and its receipt lists where values differ.
        warns = not isinstance(self.command, s.Merge)
        plan = planner(self.changeset, self.workspace, work.names.shown, warns_of_overwriting=warns)
        draft = proposing(self.workspace, self.author, plan)(view, stamp)
        draft = msgspec.structs.replace(draft, warnings=(*left_out, *_other_names(work), *draft.warnings))
        answer = intent.answer(draft.changes)
        self.warnings = draft.warnings
        self.result = {DRY_RUN: True, **answer} if self.options.dry_run else answer
        # What WHERE asks for cannot be named: the plan is of use at the same head only.
        return msgspec.structs.replace(draft, reads=None)


def _other_names(work: CommandDrafts) -> Iterator[str]:
    """Yield a warning for each concept that a command makes under a name that another one has as an alias."""
    made = {(one.type, one.name): one for one in work.nodes.values() if one.old is None and one.name}
    for alias, node in work.view.with_aliases([name for _, name in made]) if made else ():
        new = made.get((node.type, alias))
        if new is not None:
            kept = in_quotes(str(node.fields.get("name", node.id)))
            yield (
                f"{in_quotes(alias)} is an alias of {kept}, and {in_quotes(new.id)} is another concept of that name: "
                "write to the one that has the alias, or MERGE the two."
            )


def summary(command: Command) -> str:
    """Return a command in a few words, for the log."""
    match command:
        case s.Upserts(upserts):
            blocks = [block for upsert in upserts for block in upsert.blocks]
            more = f" and {len(blocks) - 1} more" if len(blocks) > 1 else ""
            return f"UPSERT {_block_words(blocks[0])}{more}"
        case s.DeleteConcepts():
            return "DELETE CONCEPT"
        case s.DeletePropositions():
            return "DELETE PROPOSITIONS"
        case s.DeleteKeys(part, keys):
            return f"DELETE {part} {', '.join(key.value for key in keys)}"[:200]
        case s.Update():
            return "UPDATE"
        case s.Merge():
            return "MERGE CONCEPT"


def _block_words(block: s.Block) -> str:
    if isinstance(block, s.ConceptBlock):
        parts = (block.identity.type, block.identity.name, block.identity.id)
        return " ".join(part.value for part in parts if part)[:200]
    return f"({block.fact.predicate.value})" if isinstance(block.fact, s.WrittenLink) else block.fact.id.value
