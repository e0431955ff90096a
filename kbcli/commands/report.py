"""``kb report``: the state of the branch as one HTML file, as Markdown or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from kbcli.invocation.context import session_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbcli.invocation.context import Opened, Session
    from kbcore.pages.branch_report import BranchReport
    from kbcore.view.view import View

_DEFAULT: Final = "kb-report"
_SUFFIXES: Final = {"html": ".html", "md": ".md", "json": ".json"}


def run(
    ctx: typer.Context,
    *,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE|DIR|-", help="Where to; - is standard output.")
    ] = _DEFAULT,
    since: Annotated[
        str, typer.Option("--since", metavar="POINT", help="Also show what changed since then.", show_default=False)
    ] = "",
    matrix: Annotated[
        list[str] | None,
        typer.Option(
            "--matrix",
            metavar="WORDS",
            help="Also show a matrix: TYPE EDGE... [TYPE], as one word; may be repeated.",
        ),
    ] = None,
    format_: Annotated[
        Literal["html", "md", "json"] | None,
        typer.Option("--format", help="Output format.  [default: by the ending of FILE, else html]"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is no report.")] = False,
) -> None:
    """Write the state of the branch as one HTML file: coverage, requirements, violations, conflicts and all entities.

    The file needs no network and no server. A report that would be larger than 5 MB has fewer details, and says so. In
    a folder the report is index.html, and badge.svg shows how many requirements are verified. The rules are run with
    what the files say now, as `kb check` does; the report of a branch that is not checked out is of its records alone,
    and says so. A POINT is what `kb diff --help` says. A matrix has the entities of a type and what the edges of a path
    lead to, such as 'req specified_by covered_by test'; ^EDGE goes against one.
    """
    from msgspec.structs import replace

    from kbcli.invocation.bounds import check_format
    from kbcli.invocation.points import refuse_empty
    from kbcli.messages.options import placed
    from kbcore.errors import FilesUnknown
    from kbcore.limits import FILES_CHECK_S
    from kbweb.report import MAX_PAGES

    session = session_of(ctx)
    refuse_empty(ctx)
    check_format(format_, {None, "json"}, is_json=session.output.is_json)
    opened = session.open_to_read()
    written_as: str = format_ or next((name for name, ending in _SUFFIXES.items() if out.endswith(ending)), "html")
    # Pages of more entities do not fit into one file, which is seen before they are read.
    max_pages = MAX_PAGES if written_as == "html" and not session.output.is_json else 0 if written_as == "md" else None
    with placed(session.output, dict.fromkeys(("type", "steps", "to"), "--matrix")):
        report, files = opened.read(
            lambda view: _read(opened, view, since, matrix or (), max_pages), time_s=FILES_CHECK_S
        )
    if files.is_retryable:
        message = f"The files cannot be judged, so no report was written. {files.reason}"
        raise FilesUnknown(message, hint="Run it again when that is over.")
    if files.freshness == "unknown":
        said = f"The report is only of the records of {opened.branch}, not of the files. {files.reason}"
        report = replace(report, records_only_reason=said)
    if session.output.is_json:
        session.output.document(report.as_json() | files.as_json())
        return
    _write(session, opened, report, out, written_as, force=force)
    session.show_files(opened.branch, files)


def _read(opened: Opened, view: View, since: str, matrices: Sequence[str], max_pages: int | None) -> BranchReport:
    """Return the report. Raises: as ``run_checks``, ``matrix_in``, ``when.point_in`` and ``compare.diff``."""
    import msgspec

    from kbcore.checks import run_checks
    from kbcore.pages.branch_report import read_report
    from kbcore.query.matrix import matrix_in
    from kbcore.store.history.compare import diff
    from kbcore.store.history.moment import meant

    schema = view.schema(opened.workspace.schema)
    asked = [matrix_in(words, schema) for words in matrices]
    check = run_checks(opened.workspace, view, branch=opened.branch)
    report = read_report(view, opened.branch, check, opened.code_owners(), matrices=asked, max_pages=max_pages)
    if not since:
        return report
    start = meant(view, opened.point(since)).seq
    return msgspec.structs.replace(report, since=since, changes=diff(view, start, view.recorded_seq))


def _write(session: Session, opened: Opened, report: BranchReport, out: str, format_: str, *, force: bool) -> None:
    """Write the report in its format; into a folder with the badge. Raises: as ``write_files``."""
    from pathlib import PurePath

    from kbcli.invocation.output_files import STDOUT, write_files
    from kbcli.views.branch_report import markdown
    from kbcore.checks import descriptions
    from kbcore.text.escaping import escape_controls, json_text
    from kbweb.badge import badge
    from kbweb.report import html_report

    if format_ == "md":
        text = "".join(markdown(report))
    elif format_ == "json":
        text = json_text(report.as_json()) + "\n"
    else:
        text = html_report(report, descriptions(opened.workspace))
    suffix = _SUFFIXES[format_]
    is_folder = out != STDOUT and (out.endswith("/") or (session.start / out).is_dir() or "." not in PurePath(out).name)
    contents = [(f"{out.rstrip('/')}/index{suffix}" if is_folder else out, text.encode())]
    if is_folder:
        contents.append((f"{out.rstrip('/')}/badge.svg", badge(report.overview.requirements).encode()))
    write_files(session, contents, force=force, makes_folders=True, is_own=_is_report)
    if out != STDOUT:
        session.output.say(f"Written: {escape_controls(contents[0][0])}")


def _is_report(data: bytes) -> bool:
    """Tell whether a file begins as a report, or a badge, that KB wrote."""
    from kbcli.views.branch_report import BEGINS
    from kbweb.badge import MARK
    from kbweb.report import GENERATOR

    return (
        (data.startswith(b"<!doctype html>") and GENERATOR.encode() in data)
        or (data.startswith(b'{"branch":"') and b'"overview":{"entities":' in data)
        or BEGINS.match(data) is not None
        or (data.startswith(b"<svg ") and MARK.encode() in data)
    )
