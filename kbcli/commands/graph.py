"""``kb graph``: draw a part of the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from kbcli.invocation.context import session_of
from kbcli.invocation.options import At
from kbcore.limits import DEFAULT_SECTION_ROWS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kbcli.invocation.context import Session
    from kbcore.query.section import Section, SectionRequest
    from kbcore.view.view import View

Texts = list[str] | None
_MERMAID_EDGES = 500
_MERMAID_CHARS = 50_000


def run(
    ctx: typer.Context,
    id_: Annotated[str | None, typer.Argument(metavar="ID", help="Only what is around this entity.")] = None,
    *,
    depth: Annotated[
        int | None, typer.Option("--depth", metavar="N", help="In at most so many steps; with ID. [default: 1]")
    ] = None,
    type_: Annotated[Texts, typer.Option("--type", metavar="TYPE", help="Only these types; may be repeated.")] = None,
    follow: Annotated[
        Texts,
        typer.Option("--follow", metavar="EDGE[,EDGE]", help="Only these edges, in either direction; may be repeated."),
    ] = None,
    at: At = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", help="So many entities at most.")
    ] = DEFAULT_SECTION_ROWS,
    format_: Annotated[
        Literal["mermaid", "dot", "svg"] | None,
        typer.Option("--format", help="What to draw it for.  [default: mermaid]"),
    ] = None,
) -> None:
    """Draw a part of the graph as Mermaid, DOT or SVG: what is around an entity, or the entities with the most edges.

    Markdown on many sites shows Mermaid, and a browser SVG; `kb graph --format dot | dot -Tpdf` makes another picture.
    SVG takes at most 300 entities.
    """
    from kbcli.invocation.points import entity_at, read_as_of

    session = session_of(ctx)
    _check(session, {"id": id_, "at": at}, depth, limit, format_)
    opened = session.open_to_read()
    names = [name.strip() for one in follow or () for name in one.split(",")]
    wanted = _wanted(id_, depth, (type_ or (), names), limit)

    def answer(view: View, seq: int) -> tuple[int, Section, SectionRequest]:
        import msgspec

        from kbcore.query.section import section

        schema = view.schema(opened.workspace.schema)
        _check_names("--type", type_ or (), schema.entities)
        _check_names("--follow", names, schema.edges)
        asked = wanted
        if wanted.start:
            asked = msgspec.structs.replace(wanted, start=entity_at(session, view, seq, wanted.start).id)
        return seq, section(view.rows, None if seq == view.seq else seq, asked), asked

    (seq, found, wanted), files = read_as_of(opened, at, answer)
    if session.output.is_json:
        session.output.document({"branch": opened.branch, **files.as_json(), **_document(found)})
    else:
        _show(session, found, wanted, f"{opened.branch} at seq {files.seq}", format_)
        session.show_files(opened.branch, files)
        if not found.nodes:
            from kbcli.messages.empty_results import no_content_message

            session.output.note(
                "No entity of that type." if seq and wanted.types else no_content_message(at, session.sync_command())
            )


def _check(
    session: Session, given: Mapping[str, str | None], depth: int | None, limit: int, format_: str | None
) -> None:
    """Refuse options that cannot be meant. Raises: ``InvalidQuery``."""
    from kbcli.invocation.bounds import check_bounds, check_format
    from kbcore.errors import InvalidQuery
    from kbcore.limits import MAX_PAGE_ROWS, MAX_TRAVERSAL_DEPTH
    from kbcore.query import empty_problems, refuse

    check_format(format_, {None}, is_json=session.output.is_json)
    refuse(empty_problems({name: word for name, word in given.items() if word is not None}))
    if depth is not None and given["id"] is None:
        raise InvalidQuery("--depth needs an entity to start from.", hint="Name one: kb graph ID --depth N.")
    check_bounds("--depth", 1 if depth is None else depth, MAX_TRAVERSAL_DEPTH, 1)
    check_bounds("--limit", limit, MAX_PAGE_ROWS, DEFAULT_SECTION_ROWS)


def _wanted(
    id_: str | None, depth: int | None, names: tuple[Sequence[str], Sequence[str]], limit: int
) -> SectionRequest:
    from kbcore.query.section import SectionRequest

    types, follow = names
    return SectionRequest(id_ or "", depth or 1, tuple(types), tuple(follow), limit)


def _check_names(option: str, names: Sequence[str], known: Mapping[str, Any]) -> None:
    from kbcore.errors import InvalidQuery
    from kbcore.text.escaping import in_quotes
    from kbcore.text.suggest import did_you_mean

    for name in names:
        if name not in known:
            what = "entity type" if option == "--type" else "edge type"
            raise InvalidQuery(f"{option}: there is no {what} {in_quotes(name)}.", hint=did_you_mean(name, known))


def _document(found: Section) -> dict[str, Any]:
    return {
        "total": {"entities": found.entities, "edges": found.edges},
        "cut": found.is_cut,
        "nodes": [node.as_json() for node in found.nodes],
        "edges": [arrow.as_json() for arrow in found.arrows],
    }


def _show(session: Session, found: Section, wanted: SectionRequest, where: str, format_: str | None) -> None:
    from kbcore.query.diagram import dot, mermaid
    from kbcore.text.wording import pluralize

    output = session.output
    output.is_paged = True
    notes = [where]
    if found.entities > len(found.nodes):
        of = "nearest" if wanted.start else "those with the most edges"
        notes.append(f"{len(found.nodes)} of {pluralize(found.entities, 'entity')}, {of}")
    if found.edges > len(found.arrows):
        notes.append(f"{len(found.arrows)} of {pluralize(found.edges, 'edge')}")
    if format_ == "svg":
        output.data(_picture(found, wanted, where))
    else:
        text = (dot if format_ == "dot" else mermaid)(found, wanted.start, notes)
        output.data(text)
    if format_ in {None, "mermaid"} and (len(found.arrows) > _MERMAID_EDGES or len(text) > _MERMAID_CHARS):
        output.note(
            f"Mermaid by default draws no more than {_MERMAID_EDGES} edges and {_MERMAID_CHARS} characters; "
            "--limit draws less, --format dot has no such limit."
        )
    for note in notes[1:]:
        output.note(f"{note}; --limit and --type choose.")


def _picture(found: Section, wanted: SectionRequest, where: str) -> str:
    """Return the picture of a section. Raises: ``InvalidQuery`` where nobody could read it."""
    from kbcore.errors import InvalidQuery
    from kbcore.query.svg_drawing import MAX_NODES, svg

    if len(found.nodes) > MAX_NODES:
        raise InvalidQuery(
            f"A picture of {len(found.nodes)} entities cannot be read; {MAX_NODES} are the most.",
            hint="Choose fewer with --limit, --type, --follow or, around an ID, --depth.",
        )
    return svg(found, wanted.start, None, where) + "\n"
