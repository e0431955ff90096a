"""What proofs and diagnoses come upon, as values that any front end can show. Plain data.

A check that could not run is a finding of its own; silence always means that it ran and found nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from kbcore.errors import Damaged, HeadDamaged, InvalidConfig, JournalCorrupt, JournalTruncated, KBError, Problem
from kbcore.storage import layout, verify

Severity = Literal["ok", "note", "warning", "error", "not_checked"]

SEVERITIES: Final[tuple[Severity, ...]] = ("error", "not_checked", "warning", "note", "ok")
"""The gravest first."""

_REMEDIES: Final = {
    "append_in_progress": "Nothing to do: readers see the record when it is written whole.",
    "beyond_head": "Nothing to do: the next write settles it.",
    "quarantined": "Keep it until you know that nothing is missing; then delete it.",
    "no_head": "What is said of the head comes first.",
}
_REFERRALS: Final = (Damaged.default_hint, HeadDamaged.default_hint)
"""What errors say of `kb doctor`; a diagnosis says instead what that would say."""


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
        without_referral(error.hint),
        branch,
        str(data.get("file", "")),
        int(data.get("line", -1)),
        int(data.get("offset", -1)),
    )


def of_config(check: str, error: InvalidConfig) -> list[Finding]:
    """Return a finding for each mistake in files that a person wrote."""
    found = []
    for one in error.details or [Problem("$", error.code, error.message, error.hint)]:
        file, _, line = one.source.rpartition(":")
        message = f"{one.source}: {one.message}".removeprefix(": ")
        at = int(line) if line.isdecimal() else -1
        found.append(Finding(check, "error", error.code, message, one.hint or "Mend the file.", file=file, line=at))
    return found


def told_once(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings, where a check that the settings stopped says just that: their own check says the rest."""
    findings = list(findings)
    known = {one.message for one in findings if one.check == "settings" and one.severity == "error"}
    message, remedy = "This needs the settings, and they are not valid.", "Mend the settings first."
    told = (
        Finding(one.check, "not_checked", one.code, message, remedy, one.branch)
        if one.check != "settings" and one.message in known
        else one
        for one in findings
    )
    return list(dict.fromkeys(told))


def of_proof(proof: verify.Proof, directory: Path, branch: str, good_seq: int) -> list[Finding]:
    """Return what proving the files of a store found, each with its remedy; ``good_seq`` as ``good.good_seq`` says."""
    found = []
    for one in proof.findings:
        severity: Severity = "error" if one.severity == "damage" else one.severity
        remedy = f"{_remedy(one)} {_way_out(one, proof, directory, branch, good_seq)}".strip()
        found.append(
            Finding("journal", severity, one.code, one.message, remedy, branch, one.file, one.line, one.offset)
        )
    return found


def without_referral(hint: str) -> str:
    """Return a hint without the sentence that leads to `kb doctor`."""
    for sentence in _REFERRALS:
        hint = hint.removesuffix(sentence)
    return hint.strip()


def rebuild_command(branch: str) -> str:
    """Return the command that makes a new head for a branch."""
    return f"`kb doctor --rebuild-head --branch {shlex.quote(branch)}`"


def begin_anew(directory: Path, branch: str, *, has_journal: bool = True) -> str:
    """Return what is left to do where neither a backup nor a repair helps."""
    written = "is still to be read in the journal that was moved" if has_journal else "is lost"
    return (
        f"Without a backup, move {directory} away and run `kb sync` on {branch}: what files state comes back, and what "
        f"clients wrote {written}."
    )


def _remedy(found: verify.Finding) -> str:
    if found.code == "unreferenced":
        is_own = layout.kind_of(Path(found.file).name) != "strange"
        return "Leave it; nothing reads it." if is_own else "Look at the file; KB does not touch it."
    return without_referral(found.hint) or _REMEDIES.get(found.code, "")


def _way_out(found: verify.Finding, proof: verify.Proof, directory: Path, branch: str, good_seq: int) -> str:
    """Return what to do about damage where there is no backup, "" for what has its remedy already."""
    if found.code == HeadDamaged.code and found.file == str(directory):
        return ""  # it holds nothing that a head could be made of
    if found.code == HeadDamaged.code:
        made = "makes a new head out of the journal, keeps a copy of the store, and says what it cannot prove."
        return f"Run {rebuild_command(branch)}: it {made}"
    head = proof.head
    if found.code not in {JournalCorrupt.code, JournalTruncated.code} or head is None:
        return ""
    if _is_missing(found) and Path(found.file).name != head.head.file:
        where = "where a snapshot holds what it led to, and refuses otherwise; it keeps a copy of the store."
        return f"Without a backup, {rebuild_command(branch)} makes a new head without it {where}"
    if not _can_end_earlier(found, proof, good_seq):
        return begin_anew(directory, branch, has_journal=not _is_missing(found))
    given_up = f"at seq {good_seq}, and what came after it is given up" if good_seq >= head.first_seq else ""
    if not given_up:
        given_up = "for the records that are there, as if they were the right ones"
    return f"Without a backup, {rebuild_command(branch)} makes a new head {given_up}; it keeps a copy of the store."


def _can_end_earlier(found: verify.Finding, proof: verify.Proof, good_seq: int) -> bool:
    """Tell whether a head can be made that ends before the damage, because nothing good comes after it."""
    head = proof.head
    damaged = {one.file for one in proof.findings if one.code in {JournalCorrupt.code, JournalTruncated.code}}
    if head is None or {Path(file).name for file in damaged} != {head.head.file}:
        return False
    is_last = found.line < 0 or good_seq == head.seq - 1
    return is_last and (good_seq >= head.first_seq or not _is_missing(found))


def _is_missing(found: verify.Finding) -> bool:
    return found.code == JournalTruncated.code and found.offset < 0


def gravest_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings in order of severity, otherwise as they came."""
    return tuple(sorted(findings, key=lambda one: SEVERITIES.index(one.severity)))


def is_sound(findings: Iterable[Finding]) -> bool:
    """Tell whether everything was checked and nothing is wrong."""
    return not any(one.severity in {"error", "not_checked"} for one in findings)


def as_json(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return findings as plain JSON values."""
    return [msgspec.to_builtins(one) for one in findings]
