"""``kb redact``: take a leaked secret out of every store of this clone."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kbcli.invocation.context import session_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kbcli.terminal.output import Output
    from kbcore.maintenance.redaction import RedactAnswer
    from kbcore.maintenance.redaction_preview import FoundStore, Preview, Wanted

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
    if not text.strip():
        raise InvalidQuery("An empty text names nothing to take out.", hint="Give an ID or a SEQ, or a secret with -.")
    is_pattern = regex or target == _STDIN
    with output.waiting("Looking at every record"):
        wanted = redaction_preview.meant(
            workspace, branch, text, is_pattern=is_pattern, is_regex=regex, fields=field or (), takes_names=names
        )
    is_typed = wanted.kind == "pattern" and text == wanted.text and target != _STDIN
    if wanted.kind == "pattern" and field and field != [REDACTED]:
        if wanted.may_be_id:
            raise InvalidQuery(
                f"--field needs an ID or a SEQ, and {branch} has no such id.", hint=redaction_preview.UNKNOWN_ID
            )
        raise InvalidQuery("--field needs an ID or a SEQ: a pattern is taken out of all fields.")
    if names and wanted.kind != "pattern":
        raise InvalidQuery("--names needs a PATTERN: what a name has to contain for its field to go.")
    try:
        if not yes:
            with output.waiting("Looking at every store"):
                found = redaction_preview.preview(workspace, branch, wanted)
            return _show_preview(output, found, wanted)
        with output.waiting("Redacting"):
            done = redaction.redact(workspace, branch, wanted, session.author)
        if output.is_json:
            output.document(done.as_json())
        else:
            _show_done(output, done, wanted)
    except NotFound:
        is_typed = is_typed and not wanted.may_be_id
        raise
    finally:
        if is_typed:
            output.warn("The pattern is in the history of the shell now. Use - to give it by standard input.")
    return exits.DONE if done.is_whole else exits.VIOLATIONS


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
    from kbcli.invocation import exits
    from kbcore.errors import InvalidQuery
    from kbcore.maintenance.redaction_preview import missing
    from kbcore.text.escaping import escape_controls

    error = missing(wanted, found.fields) if found.is_empty and not found.is_on_tips else None
    if output.is_json and error is None:
        output.document({**found.as_json(), "applied": False})
        return exits.DONE if found.is_empty else InvalidQuery.exit_status
    for store in found.stores:
        _show_store(output, store)
    for path in found.change_files:
        output.say(escape_controls(f"{path}: would be written again without it."))
    for sentence in found.elsewhere:
        output.warn(escape_controls(sentence))
    if error:
        raise error
    if found.is_empty:
        _say_nothing_left(output, wanted)
        return exits.DONE
    raise InvalidQuery("A redaction cannot be undone: it needs --yes. Nothing was changed.", hint="Add --yes.")


def _say_nothing_left(output: Output, wanted: Wanted) -> None:
    from kbcore.text.escaping import escape_controls

    where = "no store and no change file of this clone holds"
    output.say(escape_controls(f"Nothing is left to redact: {where} {wanted.words()}."))


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


def _show_done(output: Output, done: RedactAnswer, wanted: Wanted) -> None:
    from kbcore.text.escaping import escape_controls
    from kbcore.text.wording import pluralize

    if done.is_empty:
        _say_nothing_left(output, wanted)
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
