"""Conflicts with another revision as findings of rules, and the run of these rules: ``kb check --against``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore import gc_pause
from kbcore.checks import judge
from kbcore.checks.against.shared import (
    ContestedField,
    DeletedChanges,
    SharedId,
    contested_by_merge,
    made_by_both,
    packed_and_deleted,
)
from kbcore.checks.against.sides import Unread, read_states, states_of
from kbcore.checks.against.three_way import (
    ABSENT,
    FORMER,
    FORMER_TWICE,
    MADE_TWICE,
    RENAMED_TWICE,
    ConflictSide,
    EdgeOfState,
    MergeConflict,
    StatedLine,
    conflicts,
)
from kbcore.checks.branch_files import tree_of
from kbcore.checks.introduced.point import seq_of
from kbcore.errors import FilesUnknown, GitUnusable, InvalidConfig, NotFound, Problem
from kbcore.errors.remedies import kb
from kbcore.git import local_branches, revisions
from kbcore.ids import NUMBER_MARK
from kbcore.model.claims.change import creation_words
from kbcore.model.claims.fold import DELETED
from kbcore.model.graph import FORMER_KEY, Link
from kbcore.rules import CheckReport, Finding, Rule, RuleRun, against
from kbcore.rules.rule import OtherSide, edge_name
from kbcore.secrets import masked_in
from kbcore.store.workspace import Workspace
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import did_you_mean, nearest
from kbcore.text.wording import is_or_are, pluralize
from kbcore.view.contested import choices
from kbcore.view.numbering import series_of
from kbcore.view.view import View

NAMES: Final = tuple(rule.id for rule in against.RULES)
UNREAD: Final = "unread"
_RULE_OF: Final = {"id": against.ID, "field": against.FIELD, "edge": against.EDGE}
_SHOWN: Final = 12
_VALUE_CHARS: Final = 80


class Against(msgspec.Struct, frozen=True):
    """The report, the commit that was compared with, the common ancestors, and both in words."""

    report: CheckReport
    commit: str
    bases: tuple[str, ...]
    said: str


def check_against(workspace: Workspace, view: View, branch: str, ref: str, *, only: Sequence[str] = ()) -> Against:
    """Compare a branch, whose view this is, with another revision, by what both changed since they diverged.

    A branch that is checked out here counts with what its files say, any other one as its last commit has it. ``only``
    names the rules to run.

    Raises: ``FilesUnknown`` where the two cannot be compared; ``NotFound`` for a rule that does not compare.
    """
    _check_names(only)
    try:
        commit, tip, bases, has_files = _commits(workspace, branch, ref)
        levels = workspace.config.rules
        wanted = [name for name in NAMES if (name in only if only else levels.get(name) != "off")]
        off = [
            RuleRun(rule.id, rule.severity, "off", "The configuration turns it off.")
            for rule in against.RULES
            if not only and rule.id not in wanted
        ]
        said = f"against {ref} (commit {commit[:_SHOWN]})"
        if not wanted:
            return Against(CheckReport(ok=True, violations=[], rules=off), commit, bases, said)
        with gc_pause.paused():  # what is read is freed before the end of it
            findings = _compared(
                workspace, view, branch, ref, bases=bases, ours=tip, theirs=commit, has_files=has_files
            )
    except (GitUnusable, InvalidConfig) as error:
        message = f"{branch} and {in_quotes(ref)} cannot be compared. {error.message}"
        raise FilesUnknown(message, hint=error.remedy) from error
    findings[wanted[0]] += findings.pop(UNREAD)
    rules = [_rule(rule, findings[rule.id]) for rule in against.RULES if rule.id in wanted]
    report = judge(workspace, view, tree_of(workspace, branch), only=wanted, extra=rules, is_own=True)
    return Against(msgspec.structs.replace(report, rules=[*report.rules, *off]), commit, bases, said)


def _compared(
    workspace: Workspace,
    view: View,
    branch: str,
    ref: str,
    *,
    bases: Sequence[str],
    ours: str,
    theirs: str,
    has_files: bool,
) -> dict[str, list[Finding]]:
    """Return the findings of each rule, and those of files that could not be read whole as ``UNREAD``."""
    sides = read_states(workspace, view, branch, bases=bases, ours=ours, theirs=(theirs, ref), has_files=has_files)
    states = states_of(sides, view, seq_of(workspace, view, branch, ref, bases[0]))
    claims, files = workspace.store(branch).claims, [side.found for side in sides]
    contested = contested_by_merge(view, claims, files)
    packed = packed_and_deleted(view, claims, files)
    made = made_by_both(view, claims, files, states.documented_here)
    findings: dict[str, list[Finding]] = {name: [] for name in (*NAMES, UNREAD)}
    found = conflicts(states.bases, states.ours, states.theirs)
    for one in found:
        findings[_RULE_OF[one.kind].id].append(_finding(one, ref))
    known = {one.id for one in found if one.code == MADE_TWICE}
    findings[against.ID.id] += [_made(one, ref) for one in made if one.id not in known]
    findings[against.FIELD.id] += [_contested(one, ref) for one in contested]
    findings[against.PACK.id] += [_packed(one, ref) for one in packed]
    findings[UNREAD] += [_unread(one) for one in states.unread]
    return findings


def _check_names(only: Sequence[str]) -> None:
    problems = [
        Problem(
            f"$.rules[{at}]",
            "unknown_rule",
            f"The rule {in_quotes(name)} compares with no revision.",
            f"These compare: {', '.join(NAMES)}. {did_you_mean(name, NAMES)}".rstrip(),
        )
        for at, name in enumerate(only)
        if name not in NAMES
    ]
    if problems:
        raise NotFound(problems[0].message, hint=problems[0].remedy, details=problems, says_first=True)


def _commits(workspace: Workspace, branch: str, ref: str) -> tuple[str, str, tuple[str, ...], bool]:
    """Return the other commit, that of this side, their common ancestors, and whether the files here are this side.

    Raises: ``FilesUnknown``; ``GitUnusable``.
    """
    repo, env = workspace.repo, workspace.machine.env
    commit = revisions.commit_of(repo, env, ref) if ref.strip() else None
    if commit is None:
        near = nearest(ref, local_branches(repo, env))
        hint = f"Did you mean {in_quotes(near)}? " if near else ""
        raise FilesUnknown(
            f"{in_quotes(ref)} is no commit in this clone, so nothing was compared.",
            hint=f"{hint}`git branch -a` lists the branches that are here. Another one is here once it was fetched, as"
            " by `git fetch origin main`.",
        )
    head = workspace.head()
    has_files = head.branch == branch and repo.has_worktree
    tip = head.commit if head.branch == branch else revisions.tip_of(repo, env, branch)
    if tip is None:
        raise FilesUnknown(
            f"{branch} has no commit, so nothing was compared with {in_quotes(ref)}.", hint="Commit something first."
        )
    bases = revisions.merge_bases(repo, env, tip, commit)
    if not bases or revisions.is_cut_off(repo, env, [tip, commit], bases):
        what = "share no commit" if not bases else "may share a later commit than those"
        raise FilesUnknown(
            f"{branch} and {in_quotes(ref)} {what} in this clone, so nothing was compared.",
            hint="A shallow clone has the last commits alone: `git fetch --unshallow`, or `fetch-depth: 0` in CI.",
        )
    return commit, tip, tuple(bases), has_files


def _rule(rule: Rule, found: Sequence[Finding]) -> Rule:
    return msgspec.structs.replace(rule, run=lambda _: list(found))


def _finding(one: MergeConflict, ref: str) -> Finding:
    """Return a conflict as a finding: in the file of this side, or of the other one where this one deleted it."""
    ours, theirs = one.ours, one.theirs
    here = ours.place if ours.id else theirs.place
    message, remedy = _words(one, ref)
    return Finding(
        one.id,
        message,
        remedy,
        here.path,
        concerns=frozenset({ours.id, theirs.id, *_ends(one.edge)} - {"", one.id}),
        code=one.code,
        field=one.field,
        values=_values(one),
        line=here.line,
        other=OtherSide(ref, theirs.place.path, theirs.place.line),
    )


def _contested(one: ContestedField, ref: str) -> Finding:
    """Return a field that the merge would leave contested as a finding."""
    element = one.element
    said = "; ".join(_claimed(value, one.field) for value in one.values)
    name = element.id
    if isinstance(element, Link):
        name = f"{element.from_id} {edge_name(element.type, element.kind)} {element.to_id}"
    message = f"`{one.field}` of {name} is contested once {ref} is merged: {said}."
    remedy = f"Agree on one value before the merge, or decide afterwards: {kb('resolve')}."
    if one.field == DELETED:
        message = _words_of_deletion(one, name, said, ref)
        remedy = f"After the merge {choices(name, DELETED, one.values)}"
    return Finding(
        element.from_id if isinstance(element, Link) else element.id,
        message,
        remedy,
        one.here,
        code="contested",
        field=one.field,
        values=(name, *(_text(value.get("value", ABSENT), one.field) for value in one.values)),
        other=OtherSide(ref, one.there, 0),
    )


def _words_of_deletion(one: ContestedField, name: str, deleted: str, ref: str) -> str:
    here, there = (f" ({path})" if path else "" for path in (one.here, one.there))
    by = f" by {one.changed_by}" if one.changed_by else ""
    if one.is_deleted_here:
        return f"{name} was {deleted} here{here}, and {ref} has a change of it{by}{there}."
    return f"{name} was {deleted} in {ref}{there}, and was changed here{by}{here}."


def _made(one: SharedId, ref: str) -> Finding:
    """Return an id that changes of both sides make as a finding."""
    ours, theirs = (
        ConflictSide(one.id, one.title, StatedLine(one.here, 0)),
        ConflictSide(one.id, one.title_there, StatedLine(one.there, 0)),
    )
    fresh, creation = f"{series_of(one.id)}{NUMBER_MARK}", creation_words(one.creation, one.id)
    return Finding(
        one.id,
        f"{one.id} was made here{_titled(ours)}, and in {ref}{_titled(theirs)}.",
        f"Give this one another id: {kb('rename', one.id, fresh)}; "
        f"or the other one after the merge: {kb('rename', creation, 'NEW')}.",
        one.here,
        code=MADE_TWICE,
        values=(_text(one.title), _text(one.title_there)),
        other=OtherSide(ref, one.there, 0),
    )


def _packed(one: DeletedChanges, ref: str) -> Finding:
    """Return changes that a merge would bring back as a finding of the file that held them."""
    number = pluralize(len(one.changes), "change")
    if one.is_packed_here:
        message = (
            f"{ref} deleted {one.file}, and {number} of it {is_or_are(len(one.changes))} packed here in {one.pack}."
        )
    else:
        message = f"{one.file} was deleted here, and {number} of it {is_or_are(len(one.changes))} packed in {ref}."
    remedy = f"They hold again after the merge: then take them back with {kb('revert')}, or have them hold."
    here, there = (one.pack, one.file) if one.is_packed_here else (one.file, one.pack)
    other = OtherSide(ref, there, 0)
    return Finding(one.file, message, remedy, here, code="packed", values=one.changes, other=other)


def _claimed(value: Mapping[str, Any], field: str) -> str:
    by = ", ".join(dict.fromkeys(str(change["actor"]) for change in value.get("changes", [value])))
    if "changes" not in value:
        return f"deleted by {by}"
    return f"{in_quotes(_text(value.get('value', ABSENT), field)[:_VALUE_CHARS])} by {by}"


def _values(one: MergeConflict) -> tuple[str, ...]:
    if one.edge is not None:
        return one.edge.from_id, edge_name(one.edge.type, one.edge.kind), one.edge.to_id
    return _text(one.ours.value, one.field), _text(one.theirs.value, one.field)


def _ends(edge: EdgeOfState | None) -> tuple[str, ...]:
    return (edge.from_id, edge.to_id) if edge else ()


def _words(one: MergeConflict, ref: str) -> tuple[str, str]:
    """Return the message and the remedy of a conflict."""
    key, ours, theirs = one.id, one.ours, one.theirs
    if one.kind == "edge":
        return _words_of_edge(one, ref)
    if one.kind == "field":
        return _words_of_field(one, ref)
    here, there = _at(ours.place), _at(theirs.place)
    if one.code == RENAMED_TWICE:
        message = f"{key} was renamed to {ours.id} here{here} and to {theirs.id} in {ref}{there}."
        return message, f"Agree on one id: {kb('rename', ours.id, theirs.id)} takes the other one."
    taken_out = kb("set", ours.id, f"{FORMER_KEY}-={key}")
    if one.code == FORMER_TWICE:
        message = f"{key} is a former id of {ours.id} here{here}, and of {theirs.id} in {ref}{there}."
        return (
            message,
            f"Take it out of one of the two, here with {taken_out}: only one document has it after the merge.",
        )
    fresh = f"{series_of(key)}{NUMBER_MARK}"
    if one.code != FORMER:
        message = f"{key} was made here{_titled(ours)}, and in {ref}{_titled(theirs)}."
        return message, (
            f"What clients stated of {key} goes with the id: take that away first ({kb('show', key)} lists it), and "
            f"state it of the new id at the end. Then give this one another id: {kb('rename', key, fresh)}, and take "
            f"{key} out of its `former_ids`, so that it names the other one: "
            f"{kb('set', 'NEW', f'{FORMER_KEY}-={key}')}."
        )
    if ours.id == key:
        message = f"{key} was made here{_titled(ours)}, and is a former id of {theirs.id} in {ref}{there}."
        return message, f"Give this one another id: {kb('rename', key, fresh)}."
    message = f"{key} is a former id of {ours.id} here{here}, and was made in {ref}{_titled(theirs)}."
    return message, f"Take it out, so that it names the other one: {taken_out}."


def _words_of_field(one: MergeConflict, ref: str) -> tuple[str, str]:
    ours, theirs = one.ours, one.theirs
    if not ours.id:
        message = f"{one.id} was deleted here, and {ref} changed its `{one.field}` to {_said(theirs, one.field)}."
        return message, "Bring the entity back, or agree with those who changed it that it goes."
    if not theirs.id:
        changed = f"its `{one.field}` was changed here to {_said(ours, one.field)}"
        message = f"{ref} deleted {one.id}{_at(theirs.place)}, and {changed}."
        return message, "Take the change back, or have the entity brought back there."
    here, there = _said(ours, one.field), _said(theirs, one.field)
    message = f"`{one.field}` of {one.id} was changed here to {here}, and in {ref} to {there}."
    return message, "Agree on one value, and state it here before the merge."


def _words_of_edge(one: MergeConflict, ref: str) -> tuple[str, str]:
    edge = one.edge
    assert edge is not None  # noqa: S101 - a conflict of this kind has one
    name = edge_name(edge.type, edge.kind) or "links to"
    shown = f"{edge.from_id} {name} {edge.to_id}"
    if one.ours.id:
        message = f"{shown} was stated here{_at(one.ours.place)}, and {ref} deleted {one.id}{_at(one.theirs.place)}."
        return message, "Take the edge out, or bring the entity back."
    message = f"{one.id} was deleted here, and {ref} states {shown}{_at(one.theirs.place)}."
    return message, "Bring the entity back, or have the edge taken out there."


def _unread(one: Unread) -> Finding:
    where = f" in {one.where}" if one.where else ""
    fault, line = one.problem, one.problem.line
    why = f"line {line}: {fault.message}" if line else fault.message
    message = f"{one.path}{where} could not be read whole, so not all that it states was compared ({why})."
    return Finding(one.path, message, fault.hint, one.path, code=UNREAD, line=0 if one.where else line)


def _said(side: ConflictSide, field: str) -> str:
    value = "no value" if side.value is ABSENT else in_quotes(_text(side.value, field)[:_VALUE_CHARS])
    return f"{value}{_at(side.place)}"


def _titled(side: ConflictSide) -> str:
    title = "" if side.value is ABSENT else f" as {in_quotes(_text(side.value)[:_VALUE_CHARS])}"
    return f"{title}{_at(side.place)}"


def _at(place: StatedLine) -> str:
    if not place.path:
        return " (stated by a client)"
    return f" ({place.path}:{place.line})" if place.line else f" ({place.path})"


def _text(value: Any, field: str = "") -> str:
    """Return a value of a field as text: JSON where it is none, "" where there is no value; secrets are masked."""
    if value is ABSENT:
        return ""
    value = masked_in(value, field)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
