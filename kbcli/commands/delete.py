"""``kb delete``: remove entities or edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from kbcli.invocation.context import session_of

if TYPE_CHECKING:
    from kbcli.invocation.context import Session
    from kbcore.model.changeset import Changeset
    from kbcore.model.graph import Link, Node
    from kbcore.store.answers import Outcome
    from kbcore.view.view import View

_SHOWN = 20
_OPTIONS = {"entities": "ID", "edges": "--edge"}
"""The option for each member of the request."""


def run(
    ctx: typer.Context,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Entities to remove.")] = None,
    *,
    edge: Annotated[
        list[Any] | None,
        typer.Option(
            "--edge", metavar="FROM TYPE TO", help="An edge to remove; TYPE:KIND where it has a kind; may be repeated."
        ),
    ] = None,
    cascade: Annotated[
        bool, typer.Option("--cascade", help="Remove the edges of others to these entities too.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be removed; remove nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> int:
    """Remove entities or edges.

    Refused while other entities point at them, unless --cascade. A terminal is asked first. `kb revert` brings back
    what was removed.
    """
    from kbcli.invocation import exits
    from kbcli.messages.options import placed
    from kbcore.checks.introduced import written
    from kbcore.errors import InvalidQuery
    from kbcore.model import changeset

    session = session_of(ctx)
    request = _request(ids or [], edge or [], cascade=cascade)
    if not request["entities"] and not request["edges"]:
        raise InvalidQuery("Nothing is named.", hint="Name ids, or edges with --edge FROM TYPE TO.")
    opened = session.open(dry_run=dry_run)

    def apply(asked: dict[str, Any], *, is_dry: bool) -> Outcome:
        follows_head = opened.choice.follows_head
        with placed(session.output, _OPTIONS):
            wanted = changeset.parse_deletion({**asked, "dry_run": is_dry})
            return written.apply_changeset(
                opened.workspace,
                opened.branch,
                session.author,
                wanted,
                follows_head=follows_head,
                read=opened.target.read,
            )

    if session.output.is_interactive and not (yes or dry_run):
        with placed(session.output, _OPTIONS):
            wanted = changeset.parse_deletion(request)
        going = opened.store.read(lambda view: _going(view, wanted))
        request = _versioned(request, wanted, going)
        if not _confirmed(session, going, apply(request, is_dry=True)):
            session.output.note("Nothing was removed.")
            return exits.INTERRUPTED
    session.show_outcome(apply(request, is_dry=dry_run))
    return exits.DONE


def _request(ids: Sequence[str], edges: Sequence[Sequence[str]], *, cascade: bool) -> dict[str, Any]:
    """Return the request; what is named twice is meant once."""
    named = []
    for from_id, type_, to_id in dict.fromkeys(map(tuple, edges)):
        name, _, kind = type_.partition(":")
        named.append({"type": name, "from": from_id, "to": to_id} | ({"kind": kind} if kind else {}))
    return {"entities": [{"id": one} for one in dict.fromkeys(ids)], "edges": named, "cascade": cascade}


class _Going(NamedTuple):
    """The elements that a deletion would remove, as they are now: entities, and edges with the edges on them."""

    nodes: list[Node]
    links: list[Link]

    @property
    def versions(self) -> dict[str, int]:
        """Return the version of each, by id."""
        return {node.id: node.version for node in self.nodes} | {link.id: link.version for link in self.links}


def _going(view: View, wanted: Changeset) -> _Going:
    keys = [item.id for item in wanted.entity_deletes if item.id]
    named = [item.id for item in wanted.edge_deletes if item.id]
    links = {link.id: link for link in (*view.links(named), *view.touching(keys))}
    return _Going(view.nodes(keys), [link for link in links.values() if link.is_resolved or link.id in named])


def _versioned(request: dict[str, Any], wanted: Changeset, going: _Going) -> dict[str, Any]:
    """Return the request with the versions that are shown: what changes meanwhile is not removed."""
    ids = {item.path: item.id for item in wanted.entity_deletes} | {item.path: item.id for item in wanted.edge_deletes}
    versions = {path: going.versions.get(key) for path, key in ids.items()}
    return request | {
        name: [item | {"expected_version": versions.get(f"$.{name}[{at}]")} for at, item in enumerate(request[name])]
        for name in ("entities", "edges")
    }


def _confirmed(session: Session, going: _Going, planned: Outcome) -> bool:
    """Show what would be removed, and ask at the terminal whether to continue with the plan."""
    from kbcore.store.planning.plan_builder import edge_words
    from kbcore.text.escaping import escape_controls
    from kbcore.text.wording import pluralize

    output = session.output
    lines = [f"{one.id} ({one.type}) {one.fields.get('title', '')}, version {one.version}" for one in going.nodes]
    lines += [f"{edge_words(link)}, version {link.version}" for link in going.links]
    for line in lines[:_SHOWN]:
        output.error_detail(escape_controls(f"  {line}"))
    if len(lines) > _SHOWN:
        output.error_detail(f"  … and {len(lines) - _SHOWN} more")
    parts = [pluralize(len(planned.deleted), "entity"), pluralize(planned.edges.deleted, "edge")]
    return typer.confirm(f"Remove {' and '.join(parts)} from {escape_controls(planned.branch)}?", err=True)
