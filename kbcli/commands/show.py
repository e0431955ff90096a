"""``kb show``: one entity with its edges and history, or one record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbcli.invocation.context import session_of
from kbcli.invocation.options import At

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbcli.invocation.context import Opened, Session
    from kbcli.views.entity import Around
    from kbcore.model.graph import Node
    from kbcore.pages.entity import EdgeLine
    from kbcore.rules import CheckReport
    from kbcore.sync.overlay import FileState
    from kbcore.sync.symbol_at import AtPath
    from kbcore.view.view import View


def run(
    ctx: typer.Context,
    subject: Annotated[
        str,
        typer.Argument(
            metavar="ID|SEQ|POINT|PATH[:LINE]",
            help="An entity, a record, or what is in a file; what an entity has as its id is that entity.",
        ),
    ],
    *,
    at: At = None,
    no_body: Annotated[bool, typer.Option("--no-body", help="Leave out the text of its document.")] = False,
) -> None:
    """Show one entity with its edges and history, or one record.

    Of an entity the text of its document comes too, of a record what it changed, before and after.
    A POINT is a time or a revision of git, as `kb diff --help` says, and means the record that was the last one there.
    With --at an entity is shown as it was, without what the rules say of it. Of a file its entities are listed, of a
    line the innermost symbol around it is shown.
    """
    session = session_of(ctx)
    opened = session.open_to_read()
    is_page = not session.output.is_json
    if at is None:
        (found, around), files = _read(opened, subject, is_page=is_page, with_body=not no_body)
    else:
        (found, around), files = _read_past(opened, subject, at, is_page=is_page, with_body=not no_body)
    is_record = "entity" not in found and "path" not in found
    found = {"branch": opened.branch} | (found if is_record else (files.as_json() | found))
    if session.output.is_json:
        session.output.document(found)
    elif around:
        from kbcli.views.entity import lines
        from kbcore.store.settings_files import RULES

        session.output.is_paged = True
        session.output.data("".join(f"{line}\n" for line in lines(session.output, found, around)))
        session.show_files(opened.branch, files)
        if at is None and opened.workspace.texts_in(RULES):
            # Each of them may take long, and no page waits for that.
            session.output.note("The project's own rules are run by `kb check` only.")
    elif is_record:
        _show_record(session, found, opened.store.head().seq)
    else:
        _show_file(session, found)
        session.show_files(opened.branch, files)


def _read(
    opened: Opened, subject: str, *, is_page: bool, with_body: bool
) -> tuple[tuple[dict[str, Any], Around | None], FileState]:
    """Return what is asked for, with what the page needs, and how it relates to the files.

    A record is found also when the journal is damaged after it.
    """
    from kbcore.errors import Damaged, HistoryPruned, InvalidQuery, NotFound
    from kbcore.store.history.log import record_json, stated_json
    from kbcore.store.history.moment import meant, read_at
    from kbcore.store.history.when import is_seq
    from kbcore.sync.overlay import as_of, records_alone

    def read(view: View) -> tuple[dict[str, Any], Around | None]:
        return _found(opened, view, subject, is_page=is_page, with_body=with_body)

    try:
        return opened.read(read)
    except NotFound:
        try:
            point = opened.point(subject)
        except InvalidQuery:
            point = None
        if point is None or point.seq is not None:
            _show_files(opened)
            raise

        def record(view: View) -> tuple[dict[str, Any], str]:
            found = meant(view, point)
            return record_json(opened.store, view, found.seq), found.said

        shown, said = opened.store.read(record)
        opened.session.show_point(as_of(shown["seq"], said))
        return (shown, None), records_alone("It is a record.")
    except (Damaged, HistoryPruned) as error:
        if not is_seq(subject):
            raise
        refused = error
    alone = records_alone("It is a record.")
    try:
        return (read_at(opened.store, subject, lambda view, seq: record_json(opened.store, view, seq)), None), alone
    except HistoryPruned as error:
        found = opened.store.read(lambda view: stated_json(opened.store, view, int(subject)))
        if found is None:
            # The second error is about the state there, the first one about the record.
            raise (refused if isinstance(refused, HistoryPruned) else error) from None
        return (found, None), alone


def _show_files(opened: Opened) -> None:
    """Say how the files relate to an answer that does not find what was asked for."""
    from kbcore.limits import FILES_S

    session = opened.session
    if not session.output.is_json:
        session.show_files(opened.branch, session.files.state(opened.workspace, opened.branch, time_s=FILES_S))


def _read_past(
    opened: Opened, subject: str, at: str, *, is_page: bool, with_body: bool
) -> tuple[tuple[dict[str, Any], Around | None], FileState]:
    """Return an entity, or the entities of a file, as it was at a point, with what the page needs, and which record.

    Raises: ``InvalidQuery`` for no point; ``NotFound`` where there was no such entity; ``HistoryPruned``.
    """
    from kbcli.invocation.points import entity_at, file_at, read_as_of
    from kbcore.errors import NotFound
    from kbcore.model.graph import entity_json
    from kbcore.pages.entity import edge_lines
    from kbcore.query import Query, page_of
    from kbcore.query.subject import read_subjects
    from kbcore.store.history.log import log
    from kbcore.store.history.reach import not_listed
    from kbcore.store.history.when import is_seq
    from kbcore.sync.searching import documents

    def read(view: View, seq: int) -> tuple[dict[str, Any], Around | None]:
        try:
            file = file_at(opened, view, seq, subject, is_now=False)
            if file and len(file.subjects) > 1:
                return _of_file(file), None
            key = file.subjects[0].id if file else entity_at(opened.session, view, seq, subject).id
        except NotFound as error:
            error.remedy = f"`kb show {subject}` shows the record, without --at." if is_seq(subject) else error.remedy
            raise
        page = page_of(view, Query(ids=(key,), edges=True, at=seq), opened.branch)
        [node] = page.entities
        texts = documents(opened.workspace, opened.branch, view, [node], seq) if with_body else {}
        edges = edge_lines(page.edges, {key}, lambda ends: read_subjects(view.rows, ends, seq)).get(key, [])
        edges.sort(key=_place)
        found = {
            "entity": entity_json(node) | ({"stale": True} if key in page.stale else {}),
            "edges": [edge.facts for edge in edges],
            "history": log(view, id=key, before_seq=seq + 1),
            **not_listed(view).as_json(),
            **({"body": next(iter(texts.values()))} if texts else {}),
        }
        return found, _around(view, found, edges, None) if is_page else None

    return read_as_of(opened, at, read)


def _moved_source(opened: Opened, view: View, source: str) -> dict[str, Any]:
    """Return the files that hold what the change file of a source held, where that is gone: it was packed."""
    from kbcore.extract.changes import is_change_file

    if not is_change_file(source) or view.sources([source]):
        return {}
    files = opened.workspace.changes(opened.branch).read(lambda index, seq: index.files_instead_of(source, seq))
    return {"source_now": sorted(files)} if files else {}


def _found(
    opened: Opened, view: View, subject: str, *, is_page: bool, with_body: bool
) -> tuple[dict[str, Any], Around | None]:
    from kbcore.checks import run_checks
    from kbcore.pages.entity import read_entity_pages
    from kbcore.query.former_ids import called
    from kbcore.store.history.log import log, no_such_entity, record_json
    from kbcore.store.history.reach import not_listed
    from kbcore.store.history.when import is_seq
    from kbcore.sync.symbol_at import lines_of
    from kbcore.view.tables import files_of

    former = called(view, [subject])
    opened.session.show_called(former)
    subject = former.get(subject, subject)
    present = view.nodes([subject])
    if not present and is_seq(subject):
        return record_json(opened.store, view, int(subject)), None
    if not present:
        from kbcli.invocation.points import file_at

        found = file_at(opened, view, view.seq, subject, is_now=True)
        if found is None:
            raise no_such_entity(view, subject)
        if len(found.subjects) > 1:
            return _of_file(found), None
        subject = found.subjects[0].id
        present = view.nodes([subject])
    [node] = present
    page = read_entity_pages(view, [subject], with_records=False)[subject]
    edges = sorted(page.edges, key=_place)
    unread = [source.path for source in view.sources(sorted(files_of(node))) if source.may_be_newer(subject)]
    lines = lines_of(opened.workspace, opened.branch, node)
    shown = {
        **_of_file_owners(opened, view, node),
        **({"lines": {"first": lines[0], "last": lines[1]}} if lines else {}),
        "entity": page.facts
        | ({"stale": True, "stale_files": unread} if unread else {})
        | _moved_source(opened, view, node.source),
        "edges": [edge.facts for edge in edges],
        "history": log(view, id=subject),
        **not_listed(view).as_json(),
        **(_body(opened, view, view.as_recorded(present)) if with_body else {}),
    }
    if not is_page:
        return shown, None
    report = run_checks(opened.workspace, view, branch=opened.branch, ids=[subject], is_own=True)
    return shown, _around(view, shown, edges, report)


def _of_file_owners(opened: Opened, view: View, node: Node) -> dict[str, Any]:
    """Return the owners of the file of an entity that has none of its own; nothing where there are none."""
    from kbcore.query.owners import read_owners
    from kbcore.sync.code_owners import code_owners

    if node.fields.get("owner"):
        return {}
    found = read_owners(view.rows, None, [node.id], code_owners(opened.workspace, opened.branch))
    return {"code_owners": found[node.id].as_json()} if node.id in found else {}


def _of_file(found: AtPath) -> dict[str, Any]:
    """Return what is shown of a file with several entities."""
    return {"path": found.place.as_text(), "entities": [one.as_json() for one in found.subjects]}


def _body(opened: Opened, view: View, nodes: Sequence[Node]) -> dict[str, str | None]:
    """Return the text of the document that states an entity: None where it is not available; {} where there is none."""
    from kbcore.sync.searching import documents

    found = documents(opened.workspace, opened.branch, view, nodes, None)
    return {"body": next(iter(found.values()))} if found else {}


def _place(edge: EdgeLine) -> tuple[bool, str, str, str, str]:
    return "unresolved" in edge.facts, edge.facts["from"], edge.type, edge.facts["to"], edge.kind


def _around(view: View, found: dict[str, Any], edges: Sequence[EdgeLine], report: CheckReport | None) -> Around:
    """Return the further parts of the page of the entity; ``report`` is None where no rules were run."""
    from kbcli.views.entity import NAMED, RECORDS, Around
    from kbcore.model.state import ElementChange
    from kbcore.store.history.log import ids_of
    from kbcore.store.history.reach import not_listed
    from kbcore.store.history.shown import entity_change
    from kbcore.store.history.touched import changes_of, touched

    key = found["entity"]["id"]
    seqs = [record["seq"] for record in found["history"][:RECORDS]]
    changes = changes_of(view, key, 0)
    # The entity itself is one of what a record touched.
    named = touched(view, seqs, limit=NAMED + 2, ids=ids_of(view, key, changes))
    return Around(
        tuple(not_listed(view).sentences()),
        edges,
        report,
        {seq: entity_change(ElementChange(key, one.before, one.after)) for seq, one in changes.items() if seq in seqs},
        {seq: [one for one in part if one.to_id] for seq, part in named.items()},
    )


def _show_file(session: Session, found: dict[str, Any]) -> None:
    """Write the list of the entities of a file."""
    from kbcli.terminal import tables
    from kbcore.text.escaping import escape_controls
    from kbcore.text.wording import pluralize

    output = session.output
    output.is_paged = True
    title = f"{found['path']} ({pluralize(len(found['entities']), 'entity')})"
    head = ("ID", "TYPE", "STATUS", "TITLE")
    rows = [tuple(one.get(name.lower(), "") for name in head) for one in found["entities"]]
    output.data(f"{output.flowed(output.styled(escape_controls(title), 'bold'))}\n")
    output.stream(f"{line}\n" for line in tables.aligned(head, rows, output.width))


def _show_record(session: Session, record: dict[str, Any], head: int) -> None:
    from kbcli.messages import records
    from kbcli.messages.changes import show_change
    from kbcore.text.escaping import escape_controls

    output = session.output
    output.is_paged = True
    notes = [
        f"changeset {record['changeset_id']} ({record['tool']}): {records.summary(record['summary'])}",
        *([f"{record['partial']} This is what it states."] if "partial" in record else []),
        *(f"warning: {warning}" for warning in record.get("warnings", ())),
        *records.changes(record.get("changes", ()), record.get("changes_total", 0)),
    ]
    lines = records.page(output, record, head=head, now=session.machine.clock.now()) + [
        line for one in notes for line in output.wrapped(escape_controls(one), "    ")
    ]
    for operation in record["operations"]:
        lines += ["", *show_change(output, operation)]
    output.data("".join(f"{output.flowed(line)}\n" for line in lines))
