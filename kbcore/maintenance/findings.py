"""Findings of proofs and diagnoses, as values that any front end can show. Plain data.

A check that could not run is a finding of its own; silence always means that it ran and found nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from kbcore.errors import (
    Damaged,
    FormatTooNew,
    HeadDamaged,
    InvalidConfig,
    JournalCorrupt,
    JournalTruncated,
    KBError,
    Problem,
    SnapshotCorrupt,
)
from kbcore.errors.remedies import for_shell, shell, without_referrals
from kbcore.storage import layout, verify
from kbcore.storage.loss import Loss

Severity = Literal["ok", "note", "warning", "error", "not_checked"]

SEVERITIES: Final[tuple[Severity, ...]] = ("error", "not_checked", "warning", "note", "ok")
"""The gravest first."""

_REMEDIES: Final = {
    "append_in_progress": "Nothing to do: readers see the record when it is written whole.",
    "beyond_head": "Nothing to do: the next write settles it.",
    "quarantined": "Keep it until you know that nothing is missing; then delete it.",
    "no_head": "First follow the remedy for the head.",
}

_JOURNAL: Final = frozenset({JournalCorrupt.code, JournalTruncated.code})


class DoctorFinding(msgspec.Struct, frozen=True, omit_defaults=True):
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


def of_error(check: str, error: KBError, branch: str = "") -> DoctorFinding:
    """Return the finding for an error that a check ran into: damage, or a check that could not run."""
    data = error.data
    return DoctorFinding(
        check,
        "error" if isinstance(error, Damaged) else "not_checked",
        error.code,
        error.message,
        for_shell(without_referrals(error.remedy)),
        branch,
        str(data.get("file", "")),
        int(data.get("line", -1)),
        int(data.get("offset", -1)),
    )


def of_config(check: str, error: InvalidConfig) -> list[DoctorFinding]:
    """Return a finding for each mistake in files that a person wrote."""
    found = []
    for one in error.details or [Problem("$", error.code, error.message, error.remedy)]:
        message = f"{one.place}: {one.message}" if one.source else one.message
        hint, line = one.hint or "Correct the file.", one.line or -1
        found.append(DoctorFinding(check, "error", error.code, message, hint, file=one.source, line=line))
    return found


def with_settings_once(findings: Iterable[DoctorFinding]) -> list[DoctorFinding]:
    """Return the findings, where a check that the settings stopped says just that: their own check says the rest."""
    findings = list(findings)
    are_invalid = any(one.check == "settings" and one.code == InvalidConfig.code for one in findings)
    message, remedy = "This needs the settings, and they are not valid.", "Correct the settings first."
    found: dict[tuple[Any, ...], DoctorFinding] = {}
    for at, one in enumerate(findings):
        if are_invalid and one.check != "settings" and one.code == InvalidConfig.code:
            stopped = DoctorFinding(one.check, "not_checked", one.code, message, remedy, one.branch)
            found.setdefault((one.check, one.branch), stopped)
        else:
            found[at,] = one
    return [*found.values()]


def of_proof(proof: verify.Proof, directory: Path, branch: str, loss: Loss | None) -> list[DoctorFinding]:
    """Return what proving the files of a store found, each with its remedy; ``loss`` is what the store lacks."""
    found, way_on = [], way_out(proof, directory, branch, loss)
    for one in proof.findings:
        severity: Severity = "error" if one.severity == "damage" else one.severity
        remedy = _remedy(one)
        if one.code == SnapshotCorrupt.code and way_on:
            remedy = f"{way_on} After that, {shell('verify', '--branch', branch)} says what to do about the snapshot."
        elif one.code in {*_JOURNAL, HeadDamaged.code}:
            remedy = f"{remedy} {way_on}".strip()
        found.append(
            DoctorFinding("journal", severity, one.code, one.message, remedy, branch, one.file, one.line, one.offset)
        )
    return found


def rebuild_command(branch: str) -> str:
    """Return the command that makes a new head for a branch."""
    return f"{shell('doctor', '--rebuild-head', '--branch', branch)}"


def salvage_advice(branch: str, loss: Loss | None) -> str:
    """Return what to do about damage where there is no backup; a person confirms a salvage after a loss."""
    command = layout.salvage_command(branch, *["--yes"] * bool(loss))
    return (
        f"Without a backup, run {command}: it keeps a copy of the store and every record that is proven, and says "
        "which records are gone."
    )


def damaged_journals(findings: Iterable[DoctorFinding], branch: str) -> list[tuple[str, str]]:
    """Return the code and the file of each damage to a journal of a branch."""
    return [
        (one.code, one.file)
        for one in findings
        if one.branch == branch and one.severity == "error" and one.code in _JOURNAL and one.file
    ]


def _remedy(found: verify.ProofFinding) -> str:
    if found.code == "unreferenced":
        is_own = layout.kind_of(Path(found.file).name) != "strange"
        return "Leave it; nothing reads it." if is_own else "Look at the file; KB does not touch it."
    return for_shell(without_referrals(found.remedy)) or _REMEDIES.get(found.code, "")


def way_out(proof: verify.Proof, directory: Path, branch: str, loss: Loss | None) -> str:
    """Return what to do first about a damaged journal or head, or a loss, where there is no backup.

    A salvage and a new head settle a loss too; a new epoch is refused where there is damage. "" where nothing of that
    is wrong, and where the remedies of the findings say it.
    """
    found = {one.code for one in proof.findings if one.code != HeadDamaged.code or one.file != str(directory)}
    if FormatTooNew.code in found:
        return "First follow the remedy for what needs a newer KB." if loss else ""
    journal = [one for one in proof.findings if one.code in _JOURNAL]
    if any(not _is_mixed(one, proof) for one in journal):
        return salvage_advice(branch, loss)
    if journal:
        given_up = "for the records that are there, as if they were the right ones"
        return f"Without a backup, {rebuild_command(branch)} makes a new head {given_up}; it keeps a copy of the store."
    if HeadDamaged.code in found:
        made = "makes a new head from the journal, keeps a copy of the store, and says what it cannot prove."
        return f"Run {rebuild_command(branch)}: it {made}"
    return loss.new_epoch() if loss else ""


def _is_mixed(found: verify.ProofFinding, proof: verify.Proof) -> bool:
    """Tell whether the records are sound and end elsewhere than the head says: no record is at fault."""
    is_last = proof.head is not None and Path(found.file).name == proof.head.head.file
    return is_last and found.code == JournalCorrupt.code and found.line < 0


def by_severity(findings: Iterable[DoctorFinding]) -> tuple[DoctorFinding, ...]:
    """Return findings in order of severity, otherwise as they came."""
    return tuple(sorted(findings, key=lambda one: SEVERITIES.index(one.severity)))


def is_sound(findings: Iterable[DoctorFinding]) -> bool:
    """Tell whether everything was checked and nothing is wrong."""
    return not any(one.severity in {"error", "not_checked"} for one in findings)


def as_json(findings: Iterable[DoctorFinding]) -> list[dict[str, Any]]:
    """Return findings as plain JSON values."""
    return [msgspec.to_builtins(one) for one in findings]
