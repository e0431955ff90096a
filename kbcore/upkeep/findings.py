"""What proofs and diagnoses come upon, as values that any front end can show. Plain data.

A check that could not run is a finding of its own; silence always means that it ran and found nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

import msgspec

from kbcore.errors import Damaged, KBError
from kbcore.storage import verify

Severity = Literal["ok", "note", "warning", "error", "not_checked"]

SEVERITIES: Final[tuple[Severity, ...]] = ("error", "not_checked", "warning", "note", "ok")
"""The gravest first."""

_REMEDIES: Final = {
    "beyond_head": "Nothing to do: the next write settles it.",
    "quarantined": "Keep it until you know that nothing is missing; then delete it.",
    "no_head": "Mend the head first.",
}


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was looked at, and what to do about it.

    ``check`` is the part of the diagnosis; ``code`` that of KB's error for it, or a word. ``line`` counts from 1,
    ``offset`` in bytes from 0; -1 where there is none.
    """

    check: str
    severity: Severity
    code: str
    message: str
    remedy: str = ""
    branch: str = ""
    file: str = ""
    line: int = -1
    offset: int = -1


def of_error(check: str, error: KBError, branch: str = "") -> Finding:
    """Return the finding for an error that a check ran into: damage, or a check that could not run."""
    data = error.data
    return Finding(
        check,
        "error" if isinstance(error, Damaged) else "not_checked",
        error.code,
        error.message,
        error.hint,
        branch,
        str(data.get("file", "")),
        int(data.get("line", -1)),
        int(data.get("offset", -1)),
    )


def of_stored(found: verify.Finding, branch: str) -> Finding:
    """Return what proving the files of a store found, with its remedy."""
    severity: Severity = "error" if found.severity == "damage" else found.severity
    remedy = found.hint or _REMEDIES.get(found.code, "Look at the file; KB does not touch it.")
    return Finding("journal", severity, found.code, found.message, remedy, branch, found.file, found.line, found.offset)


def gravest_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings in order of severity, otherwise as they came."""
    return tuple(sorted(findings, key=lambda one: SEVERITIES.index(one.severity)))


def is_sound(findings: Iterable[Finding]) -> bool:
    """Tell whether everything was checked and nothing is wrong."""
    return not any(one.severity in {"error", "not_checked"} for one in findings)


def as_json(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return findings as plain JSON values."""
    return [msgspec.to_builtins(one) for one in findings]
