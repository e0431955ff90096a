"""``kb redact``: take a leaked secret out of every store of this clone."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kbcli.invocation.context import session_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kbcli.terminal.output import Output
    from kbcore.errors import NotFound
    from kbcore.maintenance.redaction import RedactAnswer
    from kbcore.maintenance.redaction_preview import FoundStore, Preview, Wanted
    from kbcore.store.workspace import Workspace

_STDIN: Final = "-"
_MOST_CHARS: Final = 64 * 1024
_SHOWN: Final = 20


def run(
    ctx: typer.Context,
    target: Annotated[
        str,
        typer.Argument(metavar="ID|SEQ|PATTERN", help="What to take out; - reads a pattern from standard input."),
    ],
    *,
    field: Annotated[
        list[str] | None,
        typer.Option("--field", metavar="FIELD", help="With ID or SEQ: only this field; may be repeated."),
    ] = None,
    regex: Annotated[bool, typer.Option("--regex", help="The pattern is a regular expression of Python.")] = False,
    names: Annotated[
        bool,
        typer.Option("--names", help="With PATTERN: remove each field, with its values, whose name contains it."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do it. Without it, show what would be changed.")] = False,
) -> int:
    """Take a leaked secret out of every store of this clone.

    It goes from journals, snapshots, caches and change files, in every branch. ID takes out the values of an
    entity, or of a change, SEQ those of a record, and PATTERN each text that contains it, in all records. Give a
    secret by standard input: then it is not in the history of the shell. Nothing brings back what was taken out.
    Documents, the history of git, other clones and backups are named, and not changed. Revoke the secret first.
    """
    from kbcli.invocation import exits
    from kbcore.errors import InvalidQuery, NotFound
    from kbcore.maintenance import redaction, redaction_preview
    from kbcore.model.claims.change import REDACTED
    from kbcore.store import branches

    session = session_of(ctx)
    session.is_read_only = not yes
    output, workspace = session.output, session.workspace
    branch = branches.choose(workspace, session.named_branch).branch
    text = _read() if target == _STDIN else target
    is_pattern = regex or target == _STDIN
    with output.waiting("Looking at every record"):
        wanted = redaction_preview.meant(
            workspace, branch, text, is_pattern=is_pattern, is_regex=regex, fields=field or (), takes_names=names
        )
    if wanted.kind == "pattern" and field and field != [REDACTED]:
        raise InvalidQuery(
            f"--field needs an ID or a SEQ, and no record of {branch} has what was given as an id.",
            hint="A pattern is taken out of all fields. What only files state yet has an id after `kb sync`.",
        )
    if names and wanted.kind != "pattern":
        raise InvalidQuery("--names needs a PATTERN: what a name has to contain for its field to go.")
    if wanted.kind == "pattern" and text == wanted.text and target != _STDIN:
        output.warn("The pattern is in the history of the shell now. Use - to give it by standard input.")
    try:
        if not yes:
            with output.waiting("Looking at every store"):
                found = redaction_preview.preview(workspace, branch, wanted)
            return _show_preview(output, found, wanted)
        with output.waiting("Redacting"):
            done = redaction.redact(workspace, branch, wanted, session.author)
    except NotFound as error:
        raise _unknown_field(workspace, branch, wanted) or error from None
    if output.is_json:
        output.document(done.as_json())
    else:
        _show_done(output, done)
    return exits.DONE if done.is_whole else exits.VIOLATIONS


def _unknown_field(workspace: Workspace, branch: str, wanted: Wanted) -> NotFound | None:
    """Return the error about fields that an entity does not have, where nothing holds values of them; None for none."""
    from kbcore.errors import NotFound
    from kbcore.secrets import masked
    from kbcore.text.escaping import in_quotes
    from kbcore.text.suggest import did_you_mean
    from kbcore.text.wording import some_of

    if wanted.kind != "entity" or not wanted.fields:
        return None
    nodes = workspace.store(branch).read(lambda view: view.nodes([wanted.text]))
    known = [name for node in nodes for name in node.fields]
    unknown = [name for name in wanted.fields if not {name, f"attributes.{name}"} & {*known}]
    if not unknown:
        return None
    shown = some_of([in_quotes(name) for name in unknown], _SHOWN)
    return NotFound(
        f"Nothing in the stores of this clone holds values of {shown} of {wanted.text}.",
        hint=masked(did_you_mean(unknown[0], known)),
    )


def _read() -> str:
    """Return the pattern on standard input, without the line break at its end."""
    from kbcore.errors import InvalidQuery

    if sys.stdin is None:
        raise InvalidQuery("There is no standard input to read the pattern from.")
    data = sys.stdin.buffer.read(_MOST_CHARS + 1)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InvalidQuery("The pattern on standard input is not UTF-8.") from error
    if len(data) > _MOST_CHARS:
        raise InvalidQuery(f"The pattern on standard input has more than {_MOST_CHARS} bytes.")
    return text.removesuffix("\n").removesuffix("\r")


def _show_preview(output: Output, found: Preview, wanted: Wanted) -> int:
    """Show what would be changed; without a person's consent nothing is."""
    from kbcore.errors import InvalidQuery, NotFound
    from kbcore.maintenance.redaction import SPLIT
    from kbcore.text.escaping import escape_controls

    if output.is_json and not found.is_empty:
        output.document({**found.as_json(), "applied": False})
        return InvalidQuery.exit_status
    for store in found.stores:
        _show_store(output, store)
    for path in found.change_files:
        output.say(escape_controls(f"{path}: would be written again without it."))
    for sentence in found.elsewhere:
        output.warn(escape_controls(sentence))
    if found.is_empty:
        raise NotFound(f"Nothing in the stores of this clone holds {wanted.words()}.", hint=SPLIT)
    raise InvalidQuery("A redaction cannot be undone: it needs --yes. Nothing was changed.", hint="Add --yes.")


def _show_store(output: Output, store: FoundStore) -> None:
    from kbcore.text.escaping import escape_controls
    from kbcore.text.wording import pluralize

    name = store.branch if store.place == "branch" else f"{store.branch} in the trash"
    if store.error:
        output.warn(escape_controls(f"{name} cannot be searched: {store.error}"))
        return
    output.say(escape_controls(f"{name}: {pluralize(len(store.records), 'record')} would be changed."))
    for one in store.records[:_SHOWN]:
        output.say(escape_controls(f"  {one.seq}: {', '.join(one.places)}"))
    if len(store.records) > _SHOWN:
        output.say(f"  … and {len(store.records) - _SHOWN} more")
    if store.snapshots:
        output.say(f"  {pluralize(store.snapshots, 'snapshot')} would be written again")
    for entry in store.quarantine:
        output.say(escape_controls(f"  quarantine/{entry} would be deleted"))
    for file in store.unused:
        if not file.startswith("quarantine/"):
            output.say(escape_controls(f"  {file} would be deleted"))
    if store.also_in:
        output.warn(escape_controls(f"{name}: the same text stays in {_records(store.also_in)}."))


def _records(seqs: Iterable[int]) -> str:
    from kbcore.text.wording import some_of

    return f"record {some_of([str(seq) for seq in seqs], _SHOWN)}"


def _show_done(output: Output, done: RedactAnswer) -> None:
    from kbcore.text.escaping import escape_controls
    from kbcore.text.wording import pluralize

    for one in done.stores:
        name = one.branch if one.place == "branch" else f"{one.branch} in the trash"
        if one.error:
            output.error(escape_controls(f"{name} was not redacted: {one.error}"))
            continue
        output.say(
            escape_controls(f"{name}: {pluralize(one.records, 'record')} redacted, as record {one.seq} documents.")
        )
        for message in one.left:
            output.warn(escape_controls(f"{message}. The next write to {one.branch} removes it."))
    for path in done.change_files:
        staged = ", and staged with the removal of the old files. Commit that" if path in done.staged else ""
        output.say(escape_controls(f"{path}: written without it{staged}."))
    for sentence in done.failed:
        output.error(escape_controls(sentence))
    for sentence in done.elsewhere:
        output.warn(escape_controls(sentence))
