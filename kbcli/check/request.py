"""The request of a check: which part of a branch, in which form, and the options that exclude each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbcore.rules.registry import FailOn

Format = Literal["text", "short", "json", "sarif", "junit", "github"]
Severity = Literal["error", "warning"]


class CheckRequest(NamedTuple):
    """The part of a branch to check, and the form of the report."""

    only: Sequence[str]
    since: str | None
    staged: bool
    format: Format
    fail_on: FailOn
    requires_synced: bool = False
    only_records: bool = False
    targets: Sequence[str] = ()
    severity: Severity | None = None
    limit: int | None = None
    statistics: bool = False
    actor: str = ""
    session: str = ""
    no_baseline: bool = False
    against: str | None = None
    scope: Sequence[str] = ()
    """Globs and folders of the files that are reported on; none for all."""

    def command_on(self, branch: str) -> str:
        """Return the command that asks the same, without rules and limits; ``branch`` as it was named, or ""."""
        import shlex

        words = [
            *self.targets,
            *[word for path in self.scope for word in ("--path", path)],
            *(["--branch", branch] if branch else []),
            *["--staged"] * self.staged,
            *(["--since", self.since] if self.since else []),
            *(["--against", self.against] if self.against else []),
            *(["--actor", self.actor] if self.actor else []),
            *(["--session", self.session] if self.session else []),
            *(["--severity", self.severity] if self.severity else []),
            *["--recorded"] * self.only_records,
            *["--no-baseline"] * self.no_baseline,
        ]
        return " ".join(["kb check", *map(shlex.quote, words)])


def check_limit(asked: CheckRequest) -> None:
    """Raises: ``InvalidQuery`` for a limit out of bounds; ``typer.BadParameter`` where none has a meaning."""
    from kbcore.errors import InvalidQuery
    from kbcore.limits import MAX_PAGE_ROWS

    if asked.limit is not None and not 1 <= asked.limit <= MAX_PAGE_ROWS:
        message = f"--limit must be from 1 to {MAX_PAGE_ROWS}, not {asked.limit}."
        raise InvalidQuery(message, hint="Leave it out for the first few of each rule, or say --format short for all.")
    if asked.limit is not None and asked.statistics:
        raise typer.BadParameter("--statistics counts every violation; leave out --limit.")
    if (asked.limit is not None or asked.statistics) and asked.format in {"sarif", "junit", "github"}:
        raise typer.BadParameter(f"--format {asked.format} shows all; leave out --limit and --statistics.")


def check_states(asked: CheckRequest) -> None:
    """Raises: ``typer.BadParameter`` for options that name different states to judge."""
    if asked.only_records and (asked.requires_synced or asked.staged):
        other = "--staged" if asked.staged else "--require-synced"
        raise typer.BadParameter(f"--recorded judges no files; leave out --recorded or {other}.")
    if asked.staged and asked.requires_synced:
        raise typer.BadParameter("--staged judges what is staged, not the files; leave it out or --require-synced.")
    if asked.staged and asked.since is not None:
        raise typer.BadParameter("--staged compares with HEAD; leave out --staged or --since.")
    if asked.against is not None:
        refused = [
            *["--since"] * (asked.since is not None),
            *["--staged"] * asked.staged,
            *["--recorded"] * asked.only_records,
        ]
        if refused:
            what = "--against compares what the files say now with another revision"
            raise typer.BadParameter(f"{what}; leave out {' and '.join(refused)}.")


def refuse_options(what: str, asked: CheckRequest, others: Sequence[str] = (), only: Sequence[str] = ()) -> None:
    """Refuse what says how to judge where nothing is judged so. Raises: ``typer.BadParameter``."""
    given = [
        *others,
        *["--rule"] * bool(only),
        *["PATH or ID"] * bool(asked.targets),
        *["--path"] * bool(asked.scope),
        *["--severity"] * (asked.severity is not None),
        *["--limit"] * (asked.limit is not None),
        *["--statistics"] * asked.statistics,
        *["--since"] * (asked.since is not None),
        *["--staged"] * asked.staged,
        *["--against"] * (asked.against is not None),
        *[f"--format {asked.format}"] * (asked.format not in {"text", "json"}),
        *[f"--fail-on {asked.fail_on}"] * (asked.fail_on != "error"),
        *["--require-synced"] * asked.requires_synced,
        *["--recorded"] * asked.only_records,
    ]
    if given:
        raise typer.BadParameter(f"{what}; leave out {' and '.join(given)}.")
