"""The facts of a branch that are not exported: those that changes stated which a project does not share.

When in doubt a fact is left out: a value that such a change stated is left out even where another one states it again,
unless a file states it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from kbcore.config.settings import DEFAULT
from kbcore.ids import link_id
from kbcore.model.claims.change import (
    AddEdge,
    AddMember,
    Change,
    Claim,
    Create,
    Delete,
    EdgeRef,
    Keep,
    RedactedField,
    Ref,
    RemoveEdge,
    Rename,
)
from kbcore.model.graph import CLIENT, CONTESTED, FORMER_KEY, Link, Node, Statement
from kbcore.share.unshared import find_unshared
from kbcore.store.workspace import Workspace
from kbcore.view.parquet import LeftOut
from kbcore.view.view import View

_FORMER: Final = f"attributes.{FORMER_KEY}"


class _Named(msgspec.Struct):
    """The elements that changes name, by present id: those that they state, and of others the fields."""

    stated: set[str]
    fields: dict[str, set[str]]


def find_withheld(workspace: Workspace, branch: str, view: View, judged: int = 0) -> LeftOut | None:
    """Return the facts of a branch that are not to be exported, None where everything is.

    These are the changes that ``kb share`` withholds: of private actors and types, and those that no file may hold.
    Of the records up to ``judged`` none was withheld, by this version of KB and the present settings. They are judged
    again only where a later one is withheld, or where the type of an entity decides, which may have changed since.

    Raises: as ``find_unshared``.
    """
    since = judged if workspace.config.share.types == DEFAULT.share.types else 0
    changes = _withheld(workspace, branch, since)
    if since and changes:
        changes = _withheld(workspace, branch, 0)
    return left_out_of(view, changes) if changes else None


def _withheld(workspace: Workspace, branch: str, since: int) -> list[Change]:
    return [one.change for one in find_unshared(workspace, branch, since=since) if one.withheld]


def left_out_of(view: View, changes: Sequence[Change]) -> LeftOut:
    """Return what is left out of a view where these changes are withheld."""
    named = _named(view, changes)
    ids = {*named.stated, *named.fields}
    nodes = {one.id: one for one in view.nodes(sorted(ids))}
    links = {one.id: one for one in view.links(sorted(ids))}
    left, kept_nodes = set[str](), list[Node]()
    for key, node in nodes.items():
        if (key in named.stated and not node.owners) or _is_stated("type", named, node):
            left.add(key)
        else:
            kept_nodes.append(_without(node, named))
    kept_links = []
    for key, link in links.items():
        of_files = tuple(one for one in link.statements if one.src != CLIENT)
        if key in named.stated and not of_files:
            left.add(key)
        else:
            kept_links.append(_link_without(link, named, of_files))
    new = set(left)
    while new:  # what leads to an element, or from it, names it
        new = {one.id for one in view.touching(sorted(new))} - left
        left |= new
    return LeftOut(
        frozenset(left),
        tuple(one for one in kept_nodes if one.id not in left),
        tuple(one for one in kept_links if one.id not in left),
    )


def _named(view: View, changes: Iterable[Change]) -> _Named:
    claims = [claim for change in changes for claim in change.claims]
    ids = {key for claim in claims for key in _entity_ids(claim)}
    present = view.renamed(sorted(ids))
    found = _Named(set(), defaultdict(set))
    for claim in claims:
        if isinstance(claim, Create):
            found.stated.add(present.get(claim.id, claim.id))
            continue
        key = _id_of(claim.on, present)
        if isinstance(claim, AddEdge | RemoveEdge):
            found.stated.add(key)
        elif isinstance(claim, Rename):
            found.fields[key].add(_FORMER)
            found.fields[present.get(claim.now, claim.now)].add(_FORMER)
        elif not isinstance(claim, Delete | Keep | RedactedField):
            name = claim.field
            found.fields[key].add(f"{name}\0{claim.now}" if isinstance(claim, AddMember) else name)
    return found


def _entity_ids(claim: Claim) -> list[str]:
    if isinstance(claim, Create):
        return [claim.id]
    own = [claim.now] if isinstance(claim, Rename) else []
    return own + _ids_in(claim.on)


def _ids_in(ref: Ref) -> list[str]:
    return _ids_in(ref.from_end) + _ids_in(ref.to_end) if isinstance(ref, EdgeRef) else [ref.id]


def _id_of(ref: Ref, present: Mapping[str, str]) -> str:
    if isinstance(ref, EdgeRef):
        return link_id(ref.type, ref.kind, _id_of(ref.from_end, present), _id_of(ref.to_end, present))
    return present.get(ref.id, ref.id)


def _is_stated(field: str, named: _Named, element: Node) -> bool:
    """Tell whether the value of a field may be that of a withheld change."""
    is_named = element.id in named.stated or field in named.fields.get(element.id, ())
    return is_named and field not in element.owners


def _without(node: Node, named: _Named) -> Node:
    """Return a node without values that withheld changes may have stated."""
    own = named.fields.get(node.id, set())
    fields = {}
    for name, value in node.fields.items():
        if name.startswith(f"{CONTESTED}.") or _is_stated(name, named, node):
            continue
        members = {one.partition("\0")[2] for one in own if one.startswith(f"{name}\0")}
        kept = (
            [one for one in value if str(one) not in members] if members and isinstance(value, list | tuple) else value
        )
        fields[name] = value if name in node.owners else kept
    return msgspec.structs.replace(node, fields=fields)


def _link_without(link: Link, named: _Named, of_files: tuple[Statement, ...]) -> Link:
    own = named.fields.get(link.id, set())
    is_named = link.id in named.stated
    fields = {
        name: value
        for name, value in link.fields.items()
        if not name.startswith(f"{CONTESTED}.") and (name in link.owners or not (is_named or name in own))
    }
    if not is_named:
        return msgspec.structs.replace(link, fields=fields)
    return msgspec.structs.replace(link, fields=fields, statements=of_files, created_by=of_files[0].source)
