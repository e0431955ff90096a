"""``kb sources``: what is configured to be read, and what else could be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from kbcli.invocation.command_tree import HelpfulCommand, group_of, run_by_default
from kbcli.invocation.context import session_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kbcli.invocation.context import Session
    from kbcore.extract.facts import StatedEntity, StatedLink
    from kbcore.sync.sources import FileSays

app = group_of("List what is read, find more documents, try one; without a command, list.")

Format = Annotated[Literal["text", "json"], typer.Option("--format", help="How to write it.", show_default=False)]
_EDGES_SHOWN: Final = 20
"""Edges between entities of other files, as an index states them."""


@app.command("list", cls=HelpfulCommand)
def list_(ctx: typer.Context, *, format_: Format = "text") -> None:
    """List what is configured: files, entities and problems of each source, and what no source covers."""
    import msgspec

    from kbcli.messages.proposed_settings import possible_line
    from kbcore.sync.sources import list_sources

    session = _session(ctx, format_)
    opened = session.open_to_read()
    found, seq = opened.store.read(lambda view: (list_sources(opened.workspace, view), view.seq))
    output = session.output
    if output.is_json:
        output.document({"branch": opened.branch, **msgspec.to_builtins(found)})
        return
    rows = [
        (one.name, one.setting, str(one.files), str(one.entities), str(one.problems), " ".join(one.globs))
        for one in found.sources
    ]
    head = ("NAME", "SETTING", "FILES", "ENTITIES", "PROBLEMS", "GLOBS")
    output.stream(f"{line}\n" for line in output.list_lines(head, [_shown(row) for row in rows]))
    if not seq and any(one.files for one in found.sources):
        output.note("Nothing is recorded of these files yet: `kb sync` reads them.")
    if said := possible_line(found.uncovered):
        output.note(said)


run_by_default(app, list_)


@app.command("detect", cls=HelpfulCommand)
def detect(
    ctx: typer.Context,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Take all that is proposed.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what is proposed; write nothing.")] = False,
    format_: Format = "text",
) -> None:
    """Look for documents that no source reads, and propose settings for them, as `kb init` does."""
    from kbcli.input import proposals
    from kbcli.messages.proposed_settings import nothing_line

    session = _session(ctx, format_)
    workspace = session.workspace
    found = proposals.find(workspace)
    command = "" if dry_run else "kb sources detect"
    is_taken = proposals.offer(session, workspace, found, yes=yes, command=command)
    if session.output.is_json:
        session.output.document(proposals.as_json(found, is_taken=is_taken))
    elif is_taken:
        session.output.say("Next: `kb sync` reads the documents.")
    elif not found.documents.proposals:
        session.output.say(nothing_line(found.documents.covered))


@app.command("try", cls=HelpfulCommand)
def try_(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file of the worktree.")],
    *,
    profile: Annotated[str | None, typer.Option("--profile", metavar="NAME", help="Read it by this profile.")] = None,
    entry: Annotated[
        str | None, typer.Option("--entry", metavar="JSON", help="Read it by this entry of `sources`.")
    ] = None,
    format_: Format = "text",
) -> None:
    """Show what one file says: entities, fields, edges and problems, each with its line. Nothing is written.

    Without --profile and --entry the file is read by what is configured.
    """
    from kbcore.sync.paths import normal_paths
    from kbcore.sync.sources import try_file

    session = _session(ctx, format_)
    workspace = session.workspace_as_it_is() if profile or entry else session.workspace
    [path] = normal_paths([file], session.start, workspace.repo.worktree)
    says = try_file(workspace, path, profile=profile or "", entry=_object(entry))
    if session.output.is_json:
        session.output.document(_as_json(says))
        return
    for line in _lines(says):
        session.output.say_as_it_is(line)


@app.command("profiles", cls=HelpfulCommand)
def profiles_(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Show the settings of this one.")] = None,
    *,
    format_: Format = "text",
) -> None:
    """List the profiles: settings of a source by name. With a name, show one."""
    from kbcore.errors import NotFound
    from kbcore.extract.sources import profiles
    from kbcore.text.suggest import did_you_mean

    session = _session(ctx, format_)
    output = session.output
    if name is None:
        found = [(one, profiles.read(one)["description"]) for one in sorted(profiles.NAMES)]
        if output.is_json:
            output.document({"profiles": [{"name": one, "description": said} for one, said in found]})
        else:
            output.stream(f"{line}\n" for line in output.list_lines(("NAME", "DESCRIPTION"), found))
        return
    if name not in profiles.NAMES:
        hint = did_you_mean(name, profiles.NAMES) or "`kb sources profiles` lists them."
        raise NotFound(f"There is no profile {name}.", hint=hint)
    profile = {"name": name, **profiles.read(name)}
    if output.is_json:
        output.document(profile)
        return
    import json

    output.say_as_it_is(f"{name}: {profile['description']}\n{profile['documentation']}")
    output.say_as_it_is(json.dumps(profile["source"], indent=2, ensure_ascii=False))


def _session(ctx: typer.Context, format_: str) -> Session:
    session = session_of(ctx)
    session.output.is_json = session.output.is_json or format_ == "json"
    return session


def _object(text: str | None) -> dict[str, Any] | None:
    """Return the object that an option has. Raises: ``InvalidQuery``."""
    import json

    from kbcore.errors import InvalidQuery

    if text is None:
        return None
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InvalidQuery(
            f"--entry is no JSON: {error}.", hint='For example \'{"type": "req", "id": "{id}"}\'.'
        ) from error
    if not isinstance(found, dict):
        raise InvalidQuery("--entry is no object.", hint="Give one entry, without the list.")
    return found


def _shown(row: tuple[str, ...]) -> list[str]:
    from kbcore.text.escaping import escape_controls

    return [escape_controls(one) for one in row]


def _lines(says: FileSays) -> Iterator[str]:
    from kbcore.text.escaping import escape_controls, json_text, problem_line

    by = f"{says.name} ({says.setting})" if says.setting else f"{says.name}, which is not configured"
    yield escape_controls(f"{says.path} is read by {by}.")
    for entity in says.facts.entities:
        type_ = entity.type or "a part of an entity"
        yield escape_controls(f"{entity.id} ({type_})" + (f", line {entity.line}" if entity.line else ""))
        given = says.defaults.get(entity.id, {})
        for name, value in entity.fields.items():
            at = f" (line {entity.lines[name]})" if entity.lines.get(name) else ""
            at = f" (defaults[{given[name]}])" if name in given else at
            yield escape_controls(f"  {name}: {value if isinstance(value, str) else json_text(value)}{at}")
        if says.owners and not (entity.is_part or "owner" in entity.fields):
            yield escape_controls(
                f"  owner of file: {', '.join(says.owners.owners)} ({', '.join(says.owners.given_by)})"
            )
        for link in says.facts.links:
            if link.subject == entity.id and not link.is_of_others:
                yield escape_controls(f"  {_edge(link)} (line {link.line})")
    of_others = [link for link in says.facts.links if link.is_of_others]
    for link in of_others[:_EDGES_SHOWN]:
        yield escape_controls(f"{link.subject} {_edge(link)}")
    if len(of_others) > _EDGES_SHOWN:
        yield f"… and {len(of_others) - _EDGES_SHOWN:,} more edges, which `--json` lists."
    for one in says.facts.problems:
        yield escape_controls(f"{one.severity}: {problem_line(says.path, one.line, one.message, one.hint)}")
    if not (says.facts.entities or says.facts.links or says.facts.problems):
        yield "It states nothing."


def _edge(link: StatedLink) -> str:
    name = f"{link.type or 'links to'}{f':{link.kind}' if link.kind else ''}"
    where = " in the text" if link.in_text else ""
    return f"{link.target} {name} this" if link.reverse else f"{name} {link.target}{where}"


def _as_json(says: FileSays) -> dict[str, Any]:
    import msgspec

    return {
        "path": says.path,
        "read_by": {"name": says.name, "setting": says.setting or None},
        "entities": [_entity_json(one, says.defaults.get(one.id, {})) for one in says.facts.entities],
        "edges": [_edge_json(one) for one in says.facts.links],
        "problems": msgspec.to_builtins(says.facts.problems),
        **({"code_owners": says.owners.as_json()} if says.owners else {}),
    }


def _entity_json(entity: StatedEntity, given: Mapping[str, int]) -> dict[str, Any]:
    fields = {
        name: {"value": value, "line": entity.lines.get(name)}
        | ({"default": f"defaults[{given[name]}]"} if name in given else {})
        for name, value in entity.fields.items()
    }
    return {"id": entity.id, "type": entity.type, "line": entity.line, "is_part": entity.is_part, "fields": fields}


def _edge_json(link: StatedLink) -> dict[str, Any]:
    ends = (link.target, link.subject) if link.reverse else (link.subject, link.target)
    kind = {"kind": link.kind} if link.kind else {}
    return {
        "type": link.type, **kind, "from": ends[0], "to": ends[1],
        "line": link.line, "is_path": link.is_path, "in_text": link.in_text,
    }  # fmt: skip
