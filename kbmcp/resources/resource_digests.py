"""What stands behind the resources at one moment, so that two moments can be compared.

A sight costs a few small reads and no database, unless files or records have changed, or the system notices no changes
of files; only then are the followed entities looked at. Two marks of one resource differ when its content does, whoever
changed it; they may differ a little more often. What time alone changes, or a file that no extractor wants, is not
seen: that an event has grown old, or that a source file is gone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import msgspec

from kbcore import limits
from kbcore.errors import KBError
from kbmcp.resources.resource_list import RequestedResource
from kbmcp.tools.call import Service

if TYPE_CHECKING:
    from kbcore.config.settings import Config
    from kbcore.model.schema import Schema
    from kbcore.view.view import View

Mark = tuple[Any, ...]
"""Only compared, with another mark of the same resource."""

_encode = msgspec.json.Encoder(order="deterministic").encode


class Sight(msgspec.Struct, frozen=True):
    """What a request would find now. ``trouble`` is why it would find nothing; it may be that of the store alone.

    ``head`` is the digest of the last record of the branch that answers, with the mark of what files say beside it.
    """

    branch: str = ""
    answering: str = ""
    head: str = ""
    schema: Schema | None = None
    config: Config | None = None
    rules: tuple[tuple[str, str], ...] = ()
    trouble: str = ""


def sight_of(service: Service) -> Sight:
    """Return what a request would find at this moment. Makes no store, and writes nothing."""
    from kbcore.store.workspace import RULES

    sight = Sight()
    try:
        workspace = service.workspace()
        sight = Sight(
            branch=service.options.branch or workspace.head().branch,
            schema=workspace.schema,
            config=workspace.config,
            rules=tuple(workspace.texts_in(RULES).items()),
        )
        answering = service.answering(workspace)
        head = workspace.store(answering).head().hash
        files = service.files.state(workspace, sight.branch, time_s=limits.FILES_S)
        return msgspec.structs.replace(sight, answering=answering, head=f"{head} {files.freshness} {files.mark}")
    except KBError as error:
        return msgspec.structs.replace(sight, trouble=f"{error.code}: {error.message}")


def marks_of(service: Service, sight: Sight, wanted: Collection[RequestedResource]) -> dict[RequestedResource, Mark]:
    """Return a mark of each of these."""
    ids = {one.id for one in wanted if one.what == "entity"}
    entities = _entity_marks(service, sight, ids) if ids else {}
    defined = _defined(service, sight) if any(one.what in {"schema", "tools"} for one in wanted) else ()
    return {one: _mark_of(sight, one, entities, defined) for one in wanted}


def _mark_of(sight: Sight, one: RequestedResource, entities: dict[str, Mark], defined: Mark) -> Mark:
    if one.what == "tools":  # they name the types of the schema, and those that the branch defines
        own = (tuple(sight.schema.entities), tuple(sight.schema.edges)) if sight.schema else ()
        return (*own, *sorted(key for key, _ in defined))
    if one.what == "page":
        return ()
    place = (sight.branch, sight.answering, sight.trouble)
    if one.what == "entity":
        return (*place, *entities[one.id])
    if one.what == "schema":
        return (*place, sight.schema, *defined)
    if one.what == "head":
        return (*place, sight.head)
    return (*place, sight.head, sight.schema, sight.config, sight.rules)


def _defined(service: Service, sight: Sight) -> Mark:
    """Return a mark of the types and predicates that the branch defines by records of its own."""
    if sight.trouble:
        return ()
    try:
        return service.look(lambda view: tuple(view.definitions().items()))
    except KBError as error:
        return ((error.code, error.message),)


def _entity_marks(service: Service, sight: Sight, ids: Collection[str]) -> dict[str, Mark]:
    if sight.trouble:
        return dict.fromkeys(ids, ())
    try:
        return service.look(lambda view: _digests(view, sorted(ids)))
    except KBError as error:
        return dict.fromkeys(ids, (error.code, error.message))


def _digests(view: View, ids: list[str]) -> dict[str, Mark]:
    """Return a digest of each entity with its edges; that of one that does not exist stands for its absence."""
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
