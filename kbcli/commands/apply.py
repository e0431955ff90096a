"""``kb apply``: apply a changeset from a file."""

from __future__ import annotations

from typing import Annotated

import typer

from kbcli.invocation.context import session_of
from kbcli.invocation.options import DryRun


def run(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="JSON or YAML; - is standard input.")],
    *,
    is_import: Annotated[
        bool,
        typer.Option(
            "--import",
            help="Take times, authors and sources from the file, as an export has them; noted in the record.",
        ),
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Apply a changeset from a file, all of it or nothing.

    Entities are made, or the fields that they name are replaced; null removes a field. Every problem is reported at
    once, each with its place in the changeset. Members of attributes and metadata are set one by one; with
    "replace": true in the item they take the place of the old ones. An entity with "create": true must be new. The id
    of a new entity may end in {n}, as in REQ-{n}: it gets the next number that is free.
    """
    from kbcli.input import changeset_file
    from kbcore.checks.introduced import written
    from kbcore.model import changeset
    from kbcore.store import apply

    session = session_of(ctx)
    session.writes = True
    if file == changeset_file.STDIN and session.output.is_interactive:
        session.output.note("Reading a changeset from the terminal; end it with Ctrl-D.")
    request = changeset_file.read(file, session.start, session.output.warn)
    if dry_run and isinstance(request, dict):
        request["dry_run"] = True
    wanted = changeset.parse(request, is_import=is_import)
    opened = session.open(dry_run=wanted.dry_run)
    with session.output.waiting("Applying"):
        author = apply.importing(session.author) if is_import else session.author
        outcome = written.apply_changeset(
            opened.workspace,
            opened.branch,
            author,
            wanted,
            follows_head=opened.choice.follows_head,
            read=opened.files.reading(opened.workspace, opened.branch),
        )
    session.show_outcome(outcome)
