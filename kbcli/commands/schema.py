"""``kb schema``: show the types of entities and edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbcli.invocation.context import session_of

if TYPE_CHECKING:
    from kbcli.invocation.context import Session
    from kbcore.model.schema import Schema


def run(
    ctx: typer.Context,
    type_: Annotated[str | None, typer.Argument(metavar="TYPE", help="One entity or edge type, in full.")] = None,
) -> None:
    """Show the types of entities and edges: KB's own, the project's, KIP's, and those that the branch defines.

    A project adds types in .kb/schema; KIP commands define others on a branch.
    """
    from kbcore.errors import NotFound
    from kbcore.model.schema_text import edge_type_json, entity_type_json, schema_json
    from kbcore.text.escaping import in_quotes
    from kbcore.text.suggest import did_you_mean

    session = session_of(ctx)
    schema = _schema(session, type_)
    if type_ is None:
        whole = schema_json(schema)
        if session.output.is_json:
            session.output.document(whole)
        else:
            _show_all(session, whole)
        return
    if type_ in schema.entities:
        one = {"name": type_, "what": "entity", **entity_type_json(schema.entities[type_])}
    elif type_ in schema.edges:
        one = {"name": type_, "what": "edge", **edge_type_json(schema.edges[type_])}
    else:
        hint = did_you_mean(type_, [*schema.entities, *schema.edges])
        raise NotFound(f"There is no type {in_quotes(type_)}, neither of entities nor of edges.", hint=hint)
    if session.output.is_json:
        session.output.document(one)
    else:
        _show_one(session, one)


def _schema(session: Session, type_: str | None) -> Schema:
    """Return the schema of the branch; that of the project alone is enough for a type that is in it."""
    workspace = session.workspace
    project = workspace.schema
    if type_ in project.entities or type_ in project.edges:
        return project
    from kbcore.model.concepts import extended
    from kbcore.store import branches

    branch = branches.choose(workspace, session.named_branch).branch
    if not workspace.folders.has_store(branch):
        return extended(project)
    return workspace.store(branch).read(lambda view: view.schema(project))


def _show_all(session: Session, whole: dict[str, Any]) -> None:
    output = session.output
    entities: list[tuple[str, ...]] = [
        (name, one["description"], one["origin"]) for name, one in whole["entities"].items()
    ]
    edges: list[tuple[str, ...]] = [
        (name, ", ".join(one["from"]), ", ".join(one["to"]), one["description"], one["origin"])
        for name, one in whole["edges"].items()
    ]
    first = output.list_lines(("ENTITY", "MEANING", "ORIGIN"), entities)
    second = output.list_lines(("EDGE", "FROM", "TO", "MEANING", "ORIGIN"), edges)
    output.data("\n".join([*first, "", *second]) + "\n")


def _show_one(session: Session, one: dict[str, Any]) -> None:
    from kbcore.model.schema_text import IMPACT_WORDS
    from kbcore.text.escaping import escape_controls

    lines = [f"{one['name']} ({one['what']}, defined by {one['origin']})", f"  {one['description']}"]
    if one["what"] == "edge":
        lines.append(f"  from {', '.join(one['from'])} to {', '.join(one['to'])}")
        lines += ["  must not form a cycle"] * one["acyclic"] + ["  needs a kind"] * one["kind"]
        lines.append(f"  impact: {one['impact']} ({IMPACT_WORDS[one['impact']]})")
    else:
        lines.append(f"  required: {', '.join(one['required'])}")
        lines.append(f"  default status of documents: {one['statusDefault']}")
        lines += [f"  statuses: {', '.join(one['statuses'])}"] if one["statuses"] else []
        for name, attribute in one["attributes"].items():
            notes = [attribute["type"], *(["required"] if attribute["required"] else [])]
            notes += [f"one of {', '.join(attribute['values'])}"] if attribute["values"] else []
            notes += [f"may hold {', '.join(attribute['keys'])}"] if attribute["keys"] else []
            lines.append(f"  attributes.{name}: {'; '.join(notes)}. {attribute['description']}".rstrip())
    session.output.data("".join(session.output.flowed(escape_controls(line)) + "\n" for line in lines))
