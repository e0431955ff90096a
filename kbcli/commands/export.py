"""``kb export``: write the facts of a branch to a file, for another store or another program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

import typer

from kbcli.invocation.context import session_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kbcli.invocation.context import Opened, Session
    from kbcore.query.exchange.formats import Exchanged, Format
    from kbcore.store.facts_export import Export

_STDOUT = "-"
_NAMED: Final = 5
"""The most files that a warning names."""
_FILE = typer.Argument(metavar="FILE|-", help="Where to; - is standard output.")
_FORMAT = typer.Option("--format", help="Leave it out for the one that the ending of FILE names.")
_BY_ENDING: Final[tuple[Literal["jsonl", "csv", "xlsx", "reqif"], ...]] = ("jsonl", "csv", "xlsx", "reqif")


def run(
    ctx: typer.Context,
    file: Annotated[str, _FILE] = _STDOUT,
    *,
    format_: Annotated[Literal["json", "jsonl", "csv", "xlsx", "reqif", "needs", "doorstop"] | None, _FORMAT] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files.")] = False,
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="POINT", help="As everything was then, as `kb diff --help` says; also before damage."
        ),
    ] = None,
    not_on: Annotated[
        str | None,
        typer.Option("--not-on", metavar="BRANCH", help="Only what clients wrote and BRANCH has not."),
    ] = None,
    parquet: Annotated[
        str | None,
        typer.Option("--parquet", metavar="DEST", help="Add what is new to a fleet instead: a folder or a URL."),
    ] = None,
    fleet: Annotated[
        bool, typer.Option("--fleet", help="As --parquet, to the place of the settings: see `kb fleet init`.")
    ] = False,
    repo: Annotated[
        str | None,
        typer.Option("--repo", metavar="NAME", help="In the fleet: the name of the repository. [default: OWNER/NAME]"),
    ] = None,
    as_: Annotated[
        str | None,
        typer.Option("--as", metavar="BRANCH", help="In the fleet: the branch, as in CI, which checks out none."),
    ] = None,
    no_history: Annotated[
        bool, typer.Option("--no-history", help="To the fleet: only what is there now, as of a store in CI.")
    ] = False,
) -> None:
    """Write all entities and edges of the branch, as a changeset that `kb apply --import` takes.

    More than one changeset can have is written to several files, numbered in the order in which to apply them. jsonl
    has one entity or edge on each line. A file that exists is not overwritten without --force. History is not exported;
    `kb backup` keeps that.

    csv, xlsx, reqif, needs (the needs.json of Sphinx-Needs) and doorstop are for other tools, and profiles of `sources`
    read them again. What such a format does not hold is named on standard error. FILE is a folder for doorstop.

    An export of everything is for an empty store. `kb merge` brings what clients wrote from one branch to another, as
    before a branch is deleted; --not-on shows it as a changeset.
    """
    from kbcli.invocation.output_files import write_files
    from kbcli.invocation.points import read_as_of
    from kbcore.errors import InvalidQuery
    from kbcore.store.facts_export import export_at, parts
    from kbcore.text.escaping import json_text

    session = session_of(ctx)
    asked = _FleetOptions(parquet, fleet, repo, as_, no_history)
    if asked.is_given:
        _to_fleet(session, asked, {"FILE": file != _STDOUT, "--format": format_, "--at": at, "--not-on": not_on}, force)
        return
    if at is not None and not_on is not None:
        raise InvalidQuery("--at and --not-on exclude each other.", hint="Say one of them.")
    written = format_ or _format_of(file)
    opened = session.open_to_read()
    # A changeset states records: the content of files is recorded by a sync, wherever they are.
    if not_on is not None:
        exported = _missing_on(session, opened, not_on)
    elif at is not None:
        exported = read_as_of(opened, at, export_at)[0]
    else:
        exported = opened.store.read(lambda view: export_at(view, view.seq))
        _warn_of_unrecorded(opened)
    if exported.waiting and not_on is None:
        count = exported.waiting
        what = "edge is unresolved and was" if count == 1 else "edges are unresolved and were"
        session.output.warn(f"{count} {what} left out.")
    counts, left_out = (len(exported.entities), len(exported.edges)), None
    if written == "jsonl":
        items = [*exported.entities, *exported.edges]
        write_files(session, [(file, "".join(f"{json_text(item)}\n" for item in items).encode())], force=force)
    elif written == "json":
        why = {} if not_on is None else {"message": f"what clients wrote on {opened.branch}, for {not_on}"}
        texts = [(json_text(why | part, 1) + "\n").encode() for part in parts(exported)]
        write_files(session, list(zip(_names(file, len(texts)), texts, strict=True)), force=force)
    else:
        found = _write_exchanged(session, opened, written, file, exported, force=force)
        counts = (len(exported.entities) - len(found.entities), len(exported.edges) - len(found.edges))
        left_out = found.left_out_json()
    if file != _STDOUT:
        _show(session, file, *counts, left_out)


class _FleetOptions(NamedTuple):
    """The options of an export to a fleet, as they were given."""

    dest: str | None
    is_configured: bool
    repo: str | None
    branch: str | None
    no_history: bool

    @property
    def is_given(self) -> bool:
        """Tell whether any of them was given."""
        named = (self.dest, self.repo, self.branch)
        return self.is_configured or self.no_history or any(one is not None for one in named)


def _place_of(opened: Opened, fleet: _FleetOptions) -> tuple[str, Path]:
    """Return the place of an export, and the folder that it begins at.

    Raises: ``InvalidQuery`` where none is configured; ``InvalidConfig``.
    """
    from kbcore.errors import InvalidQuery
    from kbcore.fleet.setting_up import root_of

    if fleet.dest is not None:
        return fleet.dest, opened.session.start
    stated = opened.workspace.config.fleet.place
    if stated is None:
        raise InvalidQuery("No place is configured.", hint="`kb fleet init PLACE` sets it, or name one by --parquet.")
    return stated, root_of(opened.workspace)


def _to_fleet(session: Session, fleet: _FleetOptions, others: Mapping[str, object], is_whole: bool) -> None:
    """Add what is new to the fleet at a place. ``others`` are options that do not go with it, by name.

    Raises: ``InvalidQuery`` for options that exclude each other; as ``exporting.export``.
    """
    from kbcli.messages.fleet import export_warnings, place_name
    from kbcore.errors import InvalidQuery
    from kbcore.fleet.exporting import ExportRequest, export, usual_repo_name
    from kbcore.fleet.head import as_json
    from kbcore.fleet.place import place_at
    from kbcore.ids import is_detached_name
    from kbcore.text.escaping import escape_controls
    from kbcore.text.wording import pluralize

    if fleet.dest is None and not fleet.is_configured:
        message = "--repo, --as and --no-history belong to --parquet or --fleet."
        raise InvalidQuery(message, hint="Add --parquet DEST, or --fleet.")
    own = "--fleet" if fleet.is_configured else "--parquet"
    others = {"--parquet": fleet.is_configured and fleet.dest is not None, **others}
    if given := [name for name, value in others.items() if value]:
        message = f"{own} and {given[0]} exclude each other."
        raise InvalidQuery(message, hint="Leave one of them out.")
    opened = session.open_to_read()
    dest, start = _place_of(opened, fleet)
    place = place_at(dest, start, session.machine.fs, session.machine.clock)
    usual = opened.workspace.config.fleet.repo or usual_repo_name(opened.workspace)
    repo = usual if fleet.repo is None else fleet.repo
    branch = opened.branch if fleet.branch is None else fleet.branch
    if is_detached_name(branch):
        hint = "Add --as BRANCH; a workflow of GitHub Actions has it in GITHUB_REF_NAME."
        raise InvalidQuery("No branch is checked out, so that the one in the fleet is not known.", hint=hint)
    is_default = branch == opened.workspace.default_branch
    asked = ExportRequest(repo, branch, not fleet.no_history, is_whole, is_default)
    with session.output.waiting("Exporting"):
        found = opened.store.read(lambda view: export(opened.workspace, opened.branch, view, place, asked))
    _warn_of_unrecorded(opened)
    for line in export_warnings(found, dest):
        session.output.warn(line)
    if session.output.is_json:
        session.output.document(as_json(found.head) | {"path": dest, "written": found.bytes})
        return
    what = f"{found.head.repo} at {found.head.branch}, seq {found.head.seq}"
    did = f"{pluralize(len(found.written), 'part')} of {found.bytes} bytes written to" if found.written else "all is in"
    session.output.say(f"{escape_controls(what)}: {did} {place_name(dest)}.")


def _write_exchanged(
    session: Session, opened: Opened, format_: Format, file: str, exported: Export, *, force: bool
) -> Exchanged:
    """Write the files of another tool, warn of what its format does not hold, and return both.

    Raises: ``InvalidQuery`` for standard output where the format is no text or several files, and as ``_write``.
    """
    from kbcli.invocation.output_files import write_files
    from kbcore.errors import InvalidQuery
    from kbcore.query.exchange.formats import BINARY, FOLDERS, exchanged
    from kbcore.text.escaping import escape_controls

    if file == _STDOUT and format_ in BINARY | FOLDERS:
        what = "a folder" if format_ in FOLDERS else "a file"
        raise InvalidQuery(f"{format_} is not written to standard output.", hint=f"Name {what}.")
    schema = opened.store.read(lambda view: view.schema(opened.workspace.schema))
    found = exchanged(format_, exported.entities, exported.edges, frozenset(schema.edges))
    if found.left_out:
        session.output.warn(f"{format_} does not hold everything: {found.left_out} left out.")
        for line in found.named():
            session.output.note(f"  {escape_controls(line)}")
    names = [(str(Path(file) / path) if path else file, data) for path, data in found.files.items()]
    write_files(session, names, force=force, makes_folders=format_ in FOLDERS)
    if format_ in FOLDERS:
        _warn_of_others(session, [session.start / name for name, _ in names])
    return found


def _warn_of_others(session: Session, written: list[Path]) -> None:
    """Warn of files beside those of an export that a reader of its folders takes for parts of it."""
    from kbcore.text.escaping import escape_controls
    from kbcore.text.wording import pluralize, some_of

    known, folders = {*written}, sorted({path.parent for path in written})
    others = [str(path) for folder in folders for path in sorted(folder.glob("*.yml")) if path not in known]
    if others:
        verb = "is" if len(others) == 1 else "are"
        said = f"{pluralize(len(others), 'file')} beside those written {verb} not of this export"
        session.output.warn(escape_controls(f"{said}: {some_of(others, _NAMED)}. Remove what is no longer wanted."))


def _warn_of_unrecorded(opened: Opened) -> None:
    """Warn that the records do not hold what files say, where that is so."""
    from kbcore.limits import FILES_S
    from kbcore.text.escaping import escape_controls
    from kbcore.text.wording import pluralize

    state = opened.files.state(opened.workspace, opened.branch, time_s=FILES_S)
    if count := state.pending_files:
        differ = "differs" if count == 1 else "differ"
        where = f"from the records of {opened.branch}, and the export is only of the records"
        said = f"{pluralize(count, 'file')} {differ} {where}"
        opened.session.output.warn(escape_controls(f"{said}. Run `kb sync` first."))


def _format_of(file: str) -> Literal["json", "jsonl", "csv", "xlsx", "reqif"]:
    """Return the format that the ending of a file names. Raises: ``InvalidQuery`` where it names none."""
    from kbcore.errors import InvalidQuery
    from kbcore.text.escaping import escape_controls

    ending = Path(file).suffix.lower()
    if file == _STDOUT or ending == ".json":
        return "json"
    for one in _BY_ENDING:
        if ending == f".{one}":
            return one
    hint = "Name it .json, .jsonl, .csv, .xlsx or .reqif, or say which with --format."
    if ending == ".tsv":
        hint = "`kb query --format tsv` and `kb query edge --format tsv` write tables."
    raise InvalidQuery(f"{escape_controls(file)}: the ending names no format of an export.", hint=hint)


def _missing_on(session: Session, opened: Opened, name: str) -> Export:
    """Return what clients wrote on the branch that is meant and another one has not.

    Raises: ``InvalidQuery`` when both are the same; as ``open_to_read``.
    """
    from kbcli.messages.lines import left_out_words, not_renamed_words
    from kbcore.errors import InvalidQuery
    from kbcore.store import branches
    from kbcore.text.escaping import escape_controls
    from kbcore.text.wording import pluralize

    if name == opened.branch:
        raise InvalidQuery(f"{name} has all that it has.", hint="Name another branch with --branch or with --not-on.")
    store, choice, ensured = branches.open_to_read(session.workspace, name)
    session.show_ensured(ensured)
    session.watch(store)
    exported = branches.missing_between(session.workspace, choice.branch, opened.branch)
    if exported.waiting:
        why = left_out_words(opened.branch, name)
        session.output.warn(escape_controls(f"{pluralize(exported.waiting, 'fact')} left out. {why}."))
    for line in not_renamed_words(opened.branch, name, exported):
        session.output.warn(escape_controls(f"{line}."))
    return exported


def _names(file: str, count: int) -> list[str]:
    """Return the names of the files. Raises: ``LimitExceeded`` where there would be several and none has a name."""
    if count == 1:
        return [file]
    if file == _STDOUT:
        from kbcore.errors import LimitExceeded

        message = f"The branch takes {count} changesets, and standard output takes one."
        raise LimitExceeded(message, hint="Name a file, or use --format jsonl.")
    path = Path(file)
    return [str(path.with_name(f"{path.stem}.{at}{path.suffix}")) for at in range(1, count + 1)]


def _show(session: Session, file: str, entities: int, edges: int, left_out: dict[str, Any] | None) -> None:
    from kbcore.text.escaping import escape_controls
    from kbcore.text.wording import pluralize

    if session.output.is_json:
        more = {} if left_out is None else {"left_out": left_out}
        session.output.document({"path": file, "entities": entities, "edges": edges, **more})
    else:
        counts = f"{pluralize(entities, 'entity')} and {pluralize(edges, 'edge')}"
        session.output.say(f"{counts} written to {escape_controls(file)}.")
