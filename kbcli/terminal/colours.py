"""The meaning of colours, and when they are used. A colour only repeats what a word says.

Green is good, yellow is in progress or suspicious, red is wrong or removed, dim is inactive.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

Style = Literal["bold", "dim", "red", "green", "yellow", "cyan"]
When = Literal["always", "auto", "never"]

_CODES: Final[Mapping[Style, str]] = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
}
_STATUSES: Final[Mapping[Style, str]] = {
    "green": "accepted active agreed approved complete completed closed done enabled fixed implemented live met "
    "mitigated passed passing released resolved satisfied verified",
    "yellow": "blocked draft experiment experimental in-progress in_progress in-review investigating on-hold pending "
    "planned proposed review started wip",
    "red": "broken failed failing flaky overdue violated",
    "dim": "abandoned archived cancelled canceled deprecated disabled dropped obsolete rejected removed retired "
    "skipped superseded withdrawn wontfix",
}
"""Words that projects use for statuses, by what they mean. A status that is none of them has no colour."""

SEVERITIES: Final[Mapping[str, Style]] = {"error": "red", "warning": "yellow"}
STALE: Final = "(stale)"
UNRESOLVED: Final = "unresolved"
"""The mark after a status, or in place of one, that may be out of date."""


def coloured(text: str, style: Style) -> str:
    """Return text as a terminal shows it in a style."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m"


def when_coloured(env: Mapping[str, str]) -> When:
    """Return what the environment says about colours.

    NO_COLOR forbids them whatever else is set. FORCE_COLOR and CLICOLOR_FORCE want them in pipes as well; CLICOLOR=0
    and a terminal that is dumb have none.
    """
    if env.get("NO_COLOR"):
        return "never"
    if any(env.get(name, "0") not in {"", "0", "false"} for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return "always"
    return "never" if env.get("CLICOLOR") == "0" or env.get("TERM") == "dumb" else "auto"


def of_status(cell: str) -> Style | None:
    """Return the colour of a status, by the words that projects use for it."""
    if cell.endswith(STALE):
        return "yellow"
    if cell == UNRESOLVED:
        return "red"
    word = cell.casefold()
    return next((style for style, words in _STATUSES.items() if word in words.split()), None)
