"""``kb new``: make an entity."""

from __future__ import annotations

import re
from typing import Annotated, Final

import typer

from kbcli.invocation.context import session_of
from kbcli.invocation.options import Message

_ASSIGNMENT: Final = re.compile(r"[\w.$-]+[+-]?=")


def _titled(title: str, words: list[str]) -> tuple[str, list[str]]:
    """Return the title, and the words that assign fields: the first word is the title where it assigns none."""
    if title or not words or _ASSIGNMENT.match(words[0]):
        return title, words
    return words[0], words[1:]


def run(
    ctx: typer.Context,
    kind: Annotated[str, typer.Argument(metavar="TYPE", help="The type of the new entity.")],
    assignments: Annotated[
        list[str] | None, typer.Argument(metavar="[TITLE] FIELD=VALUE", help="Its title, and fields as for `kb set`.")
    ] = None,
    *,
    title: Annotated[str, typer.Option("--title", metavar="TEXT", help="Its title.")] = "",
    key: Annotated[str | None, typer.Option("--id", metavar="ID", help="Its id; by default the next free one.")] = None,
    prefix: Annotated[str, typer.Option("--prefix", metavar="TEXT", help="How that begins, such as REQ-AUTH-.")] = "",
    file: Annotated[str, typer.Option("--file", metavar="PATH", help="Its document, from the root.")] = "",
    store: Annotated[bool, typer.Option("--store", help="Write it to the store, without a document.")] = False,
    editor: Annotated[bool, typer.Option("--edit", "-e", help="Open the document in the editor first.")] = False,
    message: Message = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be written; write nothing.")] = False,
) -> None:
    """Make an entity with the next free id of its type, as one record: `kb new note "What to remember"`.

    A type that documents define gets a document, made from `.kb/templates/TYPE.md` if there is one; any other type is
    written to the store. At a terminal the editor opens where no title is given.
    """
    from kbcli.terminal.editor import EditedText
    from kbcore.editing.creation import Wish, make
    from kbcore.errors import InvalidQuery, KBError
    from kbcore.text.escaping import escape_controls

    if key == "":
        raise InvalidQuery("--id is empty.", hint="Leave it out for the next free id.")
    if key and prefix:
        raise InvalidQuery(
            "--id is the full id, and --prefix the beginning of a free one.", hint="Leave one of them out."
        )
    session = session_of(ctx)
    session.writes = True
    title, assignments = _titled(title, assignments or [])
    wish = Wish(kind, assignments, title=title, key=key or "", prefix=prefix, path=file, in_store=store)
    has_title = any(one.startswith("title=") for one in wish.words)
    opened = session.open(dry_run=dry_run)
    uses_editor = editor or (session.output.is_interactive and not has_title and not dry_run)
    name = f"new-{opened.workspace.machine.clock.epoch_ns()}.md"
    text = EditedText(opened.workspace.folders.cache_dir / name, session.env)
    try:
        edit = text.edit if uses_editor else None
        outcome, edits = make(opened.target, wish, edit=edit, message=message, dry_run=dry_run)
    except KBError as error:
        if text.is_there:
            error.add(f"What you wrote is kept in {text.place}.")
        raise
    text.discard()
    if not session.output.is_json:
        session.output.data("".join(f"{escape_controls(one)}\n" for one in outcome.created))
    session.show_outcome(outcome, edits)
