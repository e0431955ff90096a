"""``kb show``: one entity with its edges and history, or one record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbcli.options import session_of

if TYPE_CHECKING:
    from kbcli.context import Session
    from kbcore.model import Link
    from kbcore.store import BranchStore
    from kbcore.view.view import View

_RECORDS = 20
"""Records of an entity's history that the text shows; JSON has all of them."""


def run(
    ctx: typer.Context,
    subject: Annotated[
        str, typer.Argument(metavar="ID|SEQ", help="An entity, or a record; a number is a seq unless an entity has it.")
    ],
) -> None:
    """Show one entity with its edges and history, or one record with what it changed, before and after."""
    session = session_of(ctx)
    opened = session.open_to_read()
    found = _read(opened.store, subject)
    found = {"branch": opened.branch, **found}
    if session.output.is_json:
        session.output.document(found)
    elif "entity" in found:
        _tell_entity(session, found)
    else:
        _tell_record(session, found)


def _read(store: BranchStore, subject: str) -> dict[str, Any]:
    """Return what is asked for; a record also when the journal is damaged behind it."""
    from kbcore.errors import Damaged
    from kbcore.history.log import record_json
    from kbcore.history.moment import is_seq, read_at

    try:
        return store.read(lambda view: _found(store, view, subject))
    except Damaged:
        if not is_seq(subject):
            raise
        return read_at(store, subject, lambda view, seq: record_json(store, view, seq))


def _found(store: BranchStore, view: View, subject: str) -> dict[str, Any]:
    from kbcore.history.log import log, missing, record_json
    from kbcore.history.moment import is_seq
    from kbcore.history.reach import first_record, is_pruned
    from kbcore.model import edge_json, entity_json
    from kbcore.view.tables import files_of

    nodes = view.nodes([subject])
    if not nodes and is_seq(subject):
        return record_json(store, view, int(subject))
    if not nodes:
        raise missing(view, subject)
    edges = sorted(view.touching([subject]), key=_place)
    unread = [source.path for source in view.sources(sorted(files_of(nodes[0]))) if not source.is_ok]
    return {
        "seq": view.seq,
        "entity": entity_json(nodes[0]) | ({"stale": True, "stale_files": unread} if unread else {}),
        "edges": [edge_json(link) for link in edges],
        "history": log(view, id=subject),
        **({"pruned_before": first_record(view)} if is_pruned(view) else {}),
    }


def _place(link: Link) -> tuple[bool, str, str, str, str]:
    return not link.stands, link.from_id, link.type, link.to_id, link.kind


def _tell_entity(session: Session, found: dict[str, Any]) -> None:
    from kbcli.changes import element_lines, record_rows
    from kbcli.pages import edge_row
    from kbcli.tables import aligned
    from kbcore.visible import visible

    output = session.output
    output.is_paged = True
    entity = found["entity"]
    title = visible(f"{entity['id']} ({entity['type']}) {entity.get('title', '')}")
    lines = [output.styled(title, "bold")]
    shown = {name: value for name, value in entity.items() if name not in {"stale", "stale_files"}}
    lines += [visible(f"  {line}") for line in element_lines(shown, also=("created_at", "updated_at", "version"))]
    unread = entity.get("stale_files", ())
    lines += [visible(f"  may be older than {path}, which could not be read whole") for path in unread]
    if found["edges"]:
        rows = [(*edge_row(edge), "unresolved" if edge.get("unresolved") else "") for edge in found["edges"]]
        lines += ["", *aligned(("FROM", "EDGE", "TO", "CONFIDENCE", "SOURCE", ""), rows, output.width)]
    history, pruned_before = found["history"], found.get("pruned_before")
    if history:
        lines += ["", *aligned(*record_rows(history[:_RECORDS]), output.width)]
    if len(history) > _RECORDS:
        lines.append(visible(f"… and {len(history) - _RECORDS} more; `kb log {entity['id']}` lists them"))
    elif pruned_before:
        lines += [*([] if history else [""]), f"Records before seq {pruned_before} were pruned."]
    output.data("\n".join(lines) + "\n")


def _tell_record(session: Session, record: dict[str, Any]) -> None:
    from kbcli.changes import short_time, summary, tell_change
    from kbcore.visible import visible

    output = session.output
    output.is_paged = True
    head = [
        output.styled(visible(f"Record {record['seq']} of {record['branch']}"), "bold"),
        visible(f"  {short_time(record['at'])} {record['actor']} through {record['source']} ({record['tool']})"),
        *([visible(f"  {record['message']}")] if record["message"] else []),
        visible(f"  changeset {record['changeset_id']}: {summary(record['summary'])}"),
        *(visible(f"  warning: {warning}") for warning in record.get("warnings", ())),
        *([visible(f"  repair: {record['repair']}")] if record.get("repair") else []),
    ]
    body = [line for operation in record["operations"] for line in tell_change(output, operation)]
    output.data("\n".join([*head, *body]) + "\n")
