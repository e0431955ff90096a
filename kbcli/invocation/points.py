"""Reads a branch as it was at a point that an option names, or as it is; and which records options select."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kbcore.ids import check_branch_name
from kbcore.text.escaping import in_quotes

if TYPE_CHECKING:
    import typer

    from kbcli.invocation.context import Opened, Session
    from kbcore.query.subject import Subject
    from kbcore.store.history.log import RecordFilter
    from kbcore.store.history.moment import Meant
    from kbcore.store.history.when import When
    from kbcore.sync.overlay import FileState
    from kbcore.sync.symbol_at import AtPath
    from kbcore.view.view import View

T = TypeVar("T")


def read_as_of(opened: Opened, at: str | None, use: Callable[[View, int], T]) -> tuple[T, FileState]:
    """Return ``use(view, seq)`` for the seq that is meant, and how the answer relates to the files.

    Raises: as ``when.point_in`` and ``moment.read_at``.
    """
    if at is None:
        return opened.read(lambda view: use(view, view.seq))
    return read_as_meant(opened, opened.point(at), use)


def read_as_meant(opened: Opened, point: When, use: Callable[[View, int], T]) -> tuple[T, FileState]:
    """Return ``use(view, seq)`` for the seq that a point means, and how the answer relates to the files.

    Says which record is meant, unless that is plain. Raises: as ``moment.read_at``.
    """
    from kbcore.sync.at_commit import read_point
    from kbcore.sync.overlay import as_of

    def answer(view: View, found: Meant) -> tuple[T, FileState]:
        return use(view, found.seq), as_of(found.seq, found.said, is_of_documents=found.is_of_documents)

    answered, files = read_point(opened.workspace, opened.store, point, answer, notes=opened.session.notes)
    opened.session.show_point(files)
    return answered, files


def record_meant(opened: Opened, text: str) -> Meant:
    """Return the record that a point means. Whether a seq exists is checked by what is done with it.

    Raises: as ``when.point_in`` and ``moment.meant``.
    """
    from kbcore.store.history.moment import Meant, clock_notes, meant

    point = opened.point(text)
    if point.seq is not None:
        return Meant(point.seq)

    def read(view: View) -> Meant:
        opened.session.notes += clock_notes(view, point)
        return meant(view, point)

    return opened.store.read(read)


class Filters(NamedTuple):
    """The records that the options of a command select, as they were typed; an empty one excludes none."""

    actor: str = ""
    source: str = ""
    session: str = ""
    since: str = ""
    until: str = ""

    def read(self, opened: Opened) -> RecordFilter:
        """Return the records that are meant. Raises: as ``when.point_in``."""
        from kbcore.store.history.log import RecordFilter

        since, until = (opened.point(one) if one else None for one in (self.since, self.until))
        return RecordFilter(self.actor, self.source, self.session, since, until)

    def named(self) -> list[str]:
        """Return the options that are given."""
        return [f"--{name}" for name, value in zip(self._fields, self, strict=True) if value]


def refuse_empty(ctx: typer.Context) -> None:
    """Refuse an argument or option of a command that is typed and empty: it would mean all.

    Raises: ``InvalidQuery``.
    """
    from kbcore.errors import InvalidQuery

    for one in ctx.command.params:
        value = ctx.params.get(one.name or "")
        source = ctx.get_parameter_source(one.name or "")
        if isinstance(value, str) and not value.strip() and source is not None and source.name == "COMMANDLINE":
            name = one.opts[0] if one.param_type_name == "option" else str(getattr(one, "metavar", None) or one.name)
            raise InvalidQuery(f"{name} is empty.", hint="Leave it out, or give it a value.")


def open_range(session: Session, ends: tuple[str, str]) -> tuple[Opened, str, str]:
    """Return what answers for a range ``A..B``, and both ends: the store is that of B, where B is a branch with one.

    An end that is left out is the head. Raises: as ``Session.open_to_read``.
    """
    first, last = ends
    is_branch = last and check_branch_name(last) is None and session.workspace.folders.has_store(last)
    return session.open_to_read(last if is_branch else None), first, "" if is_branch else last


def file_at(opened: Opened, view: View, seq: int, text: str, *, is_now: bool) -> AtPath | None:
    """Return the entities of the file that a text names, as of a seq; None where the text is an id.

    ``is_now`` is False for an earlier state: lines are not known of it, which is said.

    Raises: ``NotFound`` with the nearest files for what looks like a path and is of no file, for a folder, and for a
    line that the file does not have.
    """
    from kbcore.query.former_ids import called
    from kbcore.query.subject import find
    from kbcore.sync.paths import folder_in
    from kbcore.sync.symbol_at import at_path, no_entity_at, place_in
    from kbcore.text.escaping import escape_controls

    at = None if seq == view.seq else seq
    if find(view.rows, text, at) or called(view, [text], at):
        return None
    workspace = opened.workspace
    start = folder_in(opened.session.start, workspace.repo.worktree) if workspace.repo.has_worktree else ""
    found = at_path(workspace, view, text, at, branch=opened.branch, start=start, is_now=is_now)
    if found is None:
        refused = no_entity_at(view, text, None if is_now else seq, start=start)
        if refused:
            raise refused
    elif place_in(text, "").line and not found.place.line:
        whole = escape_controls(found.place.path)
        said = f"Lines are known of files as they are checked out now: all of {whole} is meant."
        opened.session.output.note(f"note: {said}")
    return found


def entity_at(session: Session, view: View, seq: int, id_: str) -> Subject:
    """Return an entity as of a seq, and say where it has another id there.

    Raises: ``NotFound`` with the nearest id, or what became of it.
    """
    from kbcore.errors import NotFound
    from kbcore.query.data_names import nearest_id
    from kbcore.query.former_ids import called
    from kbcore.query.subject import find

    at = None if seq == view.seq else seq
    former = called(view, [id_], at)
    session.show_called(former, at)
    found = find(view.rows, former.get(id_, id_), at)
    if found:
        return found
    if seq == view.seq:
        from kbcore.store.history.log import no_such_entity

        raise no_such_entity(view, id_)
    near = nearest_id(view.rows, id_)
    hint = (
        f"Did you mean {in_quotes(near)}?"
        if near not in {"", id_}
        else f"`kb log {id_}` shows when it was created and removed."
    )
    raise NotFound(f"There was no entity {in_quotes(id_)} at seq {seq}.", hint=hint)
