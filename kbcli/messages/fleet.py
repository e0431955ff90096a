"""A fleet in words: what was set up, and who may read it. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kbcore.fleet.head import repo_folder
from kbcore.ids import in_other_repo
from kbcore.text.escaping import escape_controls, in_quotes
from kbcore.text.wording import pluralize, some_of

if TYPE_CHECKING:
    from kbcore.config.settings import ShareSettings
    from kbcore.fleet.exporting import ExportResult
    from kbcore.fleet.setting_up import SetUp

_READERS: Final = {
    "everybody": "everybody on this machine",
    "group": "the group of the folder",
    "owner": "only its owner",
    "unknown": "whoever the rights of the place let in",
}
_NAMED: Final = 5


def place_name(place: str) -> str:
    """Return a place as a sentence names it, whose full stop may follow: ``..`` is in quotes."""
    return in_quotes(place) if place.endswith(".") else escape_controls(place)


def set_up_lines(found: SetUp, share: ShareSettings, settings: str) -> Iterator[str]:
    """Yield what a user has to know of the fleet of a repository, a sentence or two a line."""
    were = f"{'was' if len(found.written) == 1 else 'were'} written to {settings}; commit it"
    verb = were if found.written else f"is set in {settings}"
    yield f"{' and '.join(found.written) or 'fleet.place'} {verb}. {found.repo} exports to {place_name(found.place)}."
    who = _READERS[found.readers]
    yield f"Whoever may read the place reads all that is exported there: {who}."
    if {*share.actors, *share.types} == {"*"}:
        yield "Of this repository that is everything, with its history, its settings, and the names of who wrote what."
    else:
        shared = f"actors {some_of(share.actors, _NAMED)}, types {some_of(share.types, _NAMED)}"
        yield f"Of this repository that is what `share` allows ({shared}), without history where anything is left out."
    if in_other_repo(f"{found.repo}:ID") is None:
        yield f"{in_quotes(found.repo)} is not OWNER/NAME: `kb check` of others reports links to it as unresolved."
        yield "  `kb config set fleet.repo OWNER/NAME` changes the name."
    if found.needs_ignoring:
        yield "The place is inside of the worktree, and git does not ignore it: add it to .gitignore."
    yield "Next: `kb export --fleet` exports what is new. In CI: `kb export --fleet --as BRANCH --no-history`;"
    yield "  `kb init --github` writes a workflow that does it for a place on S3."


def export_warnings(found: ExportResult, place: str) -> Iterator[str]:
    """Yield what is to be known of an export to a place: what it left out, and what was there before."""
    if found.left_out:
        elements = pluralize(found.left_out, "element")
        yield f"{elements} left out in whole or in part, and all history: they are not shared."
    if found.had_more:
        folder = shlex.quote(repo_folder(found.head.repo))
        yield escape_controls(
            f"Earlier parts are still in {place_name(place)}, and may hold what is left out now. To take them out, "
            f"remove {folder} from `heads`, `settings` and each `kind=…` there, and export its branches again."
        )
    if found.replaced is not None:
        name, before = f"{found.head.repo} at {found.head.branch}", found.replaced
        yield escape_controls(
            f"{name} in {place_name(place)} was of another clone or repository, seq {before.seq} of {before.at}, later "
            "than what is exported now. Give each repository a name of its own, and export each branch from one clone."
        )
