"""Snapshots of the data of the resources, so that two moments can be compared.

A snapshot costs a few small reads and no database, unless files or records have changed, or the system reports no
changes of files; only then are the followed entities read. Two marks of one resource differ when its content does,
independent of the writer; they may differ a little more often. Changes by time alone, or of files that no extractor
reads, are not detected: that an event has become old, or that a source file was deleted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kbcore import limits
from kbcore.errors import KBError
from kbmcp.resources.resource_list import RequestedResource
from kbmcp.tools.service import Service

if TYPE_CHECKING:
    from kbcore.config.settings import Config
    from kbcore.model.schema import Schema
    from kbcore.store.workspace import Workspace
    from kbcore.view.view import View

_OF_CLAUSES: Final = frozenset({"snapshot", "symbols"})

Mark = tuple[Any, ...]
"""Only compared, with another mark of the same resource."""

_encode = msgspec.json.Encoder(order="deterministic").encode


class BranchSnapshot(msgspec.Struct, frozen=True):
    """The data that a request would read now. ``error_text`` is the reason if the request or only the store would fail.

    ``head`` is the digest of the last record of the branch that answers, with the mark of the overlay of changed files.
    """

    branch: str = ""
    answering: str = ""
    head: str = ""
    commit: str = ""
    """The commit that is checked out, with which the files are compared for a context."""
    schema: Schema | None = None
    config: Config | None = None
    rules: tuple[tuple[str, str], ...] = ()
    unrecorded_clauses: int = 0
    """The number of changes of the clauses of this process, where they are kept in its memory."""
    sharing: tuple[str, str] | None = None
    """The commit that is checked out, and ``share.mode``: what is not shared depends on them. None where nothing is."""
    error_text: str = ""


def read_snapshot(service: Service) -> BranchSnapshot:
    """Return the data that a request would read at this moment. Makes no store, and writes nothing."""
    from kbcore.store.settings_files import RULES

    snapshot = BranchSnapshot()
    try:
        workspace = service.workspace()
        snapshot = BranchSnapshot(
            branch=service.options.branch or workspace.head().branch,
            commit=workspace.head().commit or "",
            schema=workspace.schema,
            config=workspace.config,
            rules=tuple(workspace.texts_in(RULES).items()),
            unrecorded_clauses=service.prolog.pool.session_seq if service.prolog else 0,
        )
        answering = service.answering(workspace)
        head = workspace.store(answering).head().hash
        files = service.files.state(workspace, snapshot.branch, time_s=limits.FILES_S)
        mark = f"{head} {files.freshness} {files.mark}"
        sharing = _sharing(workspace)
        return msgspec.structs.replace(snapshot, answering=answering, head=mark, sharing=sharing)
    except KBError as error:
        return msgspec.structs.replace(snapshot, error_text=f"{error.code}: {error.message}")


def _sharing(workspace: Workspace) -> tuple[str, str] | None:
    """Return what the state of sharing follows from besides records and files; None where nothing is shared."""
    from kbcore.share.state import is_shared

    return (workspace.head().commit or "", workspace.config.share.mode) if is_shared(workspace) else None


def marks_of(
    service: Service, snapshot: BranchSnapshot, wanted: Collection[RequestedResource]
) -> dict[RequestedResource, Mark]:
    """Return a mark of each of these."""
    ids = {one.id for one in wanted if one.what == "entity"}
    entities = _entity_marks(service, snapshot, ids) if ids else {}
    defined = _defined(service, snapshot) if any(one.what in {"schema", "tools"} for one in wanted) else ()
    clauses = _clauses(service, snapshot) if any(one.what in _OF_CLAUSES for one in wanted) else ()
    return {one: _mark_of(snapshot, one, entities, defined, clauses) for one in wanted}


def _mark_of(
    snapshot: BranchSnapshot, one: RequestedResource, entities: dict[str, Mark], defined: Mark, clauses: Mark
) -> Mark:
    if one.what == "tools":  # they name the types of the schema, and those that the branch defines
        own = (tuple(snapshot.schema.entities), tuple(snapshot.schema.edges)) if snapshot.schema else ()
        return (*own, *sorted(key for key, _ in defined))
    if one.what in {"page", "read"}:  # of what was read, each entity has a mark of its own
        return ()
    place = (snapshot.branch, snapshot.answering, snapshot.error_text)
    if one.what == "entity":
        return (*place, *entities[one.id])
    if one.what == "schema":
        return (*place, snapshot.schema, *defined)
    if one.what in _OF_CLAUSES:
        return (*place, *clauses)
    if one.what == "context":
        return (*place, snapshot.head, snapshot.commit, snapshot.schema, snapshot.config)
    if one.what == "head":
        return (*place, snapshot.head, snapshot.sharing)
    return (*place, snapshot.head, snapshot.schema, snapshot.config, snapshot.rules)


def _defined(service: Service, snapshot: BranchSnapshot) -> Mark:
    """Return a mark of the types and predicates that the branch defines by records of its own."""
    if snapshot.error_text:
        return ()
    try:
        return service.read_view(lambda view: tuple(view.definitions().items()))
    except KBError as error:
        return ((error.code, error.message),)


def _clauses(service: Service, snapshot: BranchSnapshot) -> Mark:
    """Return a mark of the clauses of the Prolog workspace."""
    if snapshot.error_text:
        return ()
    try:
        return (hash(tuple(one.id for one in service.read_clauses())),)
    except KBError as error:
        return (error.code, error.message)


def _entity_marks(service: Service, snapshot: BranchSnapshot, ids: Collection[str]) -> dict[str, Mark]:
    if snapshot.error_text:
        return dict.fromkeys(ids, ())
    try:
        return service.read_view(lambda view: _digests(view, sorted(ids)))
    except KBError as error:
        return dict.fromkeys(ids, (error.code, error.message))


def _digests(view: View, ids: list[str]) -> dict[str, Mark]:
    """Return a digest of each entity with its edges; an entity that does not exist has one of its own."""
    from kbcore.query import stale_ids

    nodes = view.nodes(ids)
    stale = stale_ids(view, nodes, view.seq)
    parts: dict[str, list[bytes]] = {key: [] for key in ids}
    for node in nodes:
        parts[node.id].append(_encode((node, node.id in stale)))
    for link in sorted(view.touching(ids), key=lambda link: link.id):
        if link.is_resolved:
            for end in {link.from_id, link.to_id} & parts.keys():
                parts[end].append(_encode(link))
    return {key: (hashlib.sha256(b"\n".join(found)).digest(),) for key, found in parts.items()}
