"""Finding a leaked secret: the stores of this clone, change files and other places that hold it. Nothing is written.

What is looked for is a pattern, or the values of an entity, of a record of one branch, or of a change.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from kbcore.errors import InvalidQuery, KBError, NotFound
from kbcore.errors.remedies import kb, shell
from kbcore.maintenance import redacted_files, redacted_store, redacted_tips, redaction_elsewhere
from kbcore.maintenance.redacted_store import StoreSurvey
from kbcore.model.claims.change import ID_CHARS, MESSAGE, REDACTED
from kbcore.model.graph import CORE_FIELDS, OBJECT_FIELDS
from kbcore.model.redaction.changes import without
from kbcore.model.redaction.redactor import Redactor
from kbcore.model.redaction.target import RedactionTarget, commands, names_of, pattern_of
from kbcore.process import interrupting
from kbcore.secrets import masked
from kbcore.storage import head, layout, scan
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head
from kbcore.store import backup_refs, branches
from kbcore.store.branches.store_moves import in_trash
from kbcore.store.workspace import Workspace
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import did_you_mean
from kbcore.text.wording import some_of
from kbcore.view import redacted_changes

UNKNOWN_ID: Final = f"{shell('query')} lists the ids; what only files state yet has one after {shell('sync')}."
_IN_SHELL: Final = "If it is a secret, it is in the history of the shell now: give it by standard input, with -."
_TAKEN_OUT: Final = "Where it was taken out before, nothing is left to redact."
_SPLIT: Final = (
    "A secret that is spread over several values is not found as one: give each part, or name the record or the entity."
)
_HELD_NOWHERE: Final = "Nothing in the stores and change files of this clone holds {}."
_SHOWN: Final = 20
_CHANGE: Final = re.compile(rf"[0-9a-f]{{{ID_CHARS}}}")


class Wanted(msgspec.Struct, frozen=True):
    """The request of a person: a pattern, or fields of an entity, of a record of one branch, or of a change."""

    kind: Literal["pattern", "entity", "record", "change"]
    text: str = ""
    """The pattern, or the id of the entity or the change."""
    is_regex: bool = False
    seq: int = 0
    fields: tuple[str, ...] = ()
    takes_names: bool = False
    """With a pattern: remove the fields whose names it is in."""
    may_be_id: bool = False
    """With a pattern: it was given where an id may be, and no entity and no change has it."""

    def words(self) -> str:
        """Return what is wanted, without the pattern."""
        if self.kind == "pattern":
            return "the pattern"
        named = {"entity": self.text, "record": f"record {self.seq}", "change": f"the change {self.text}"}
        return f"{self._values()} of {named[self.kind]}"

    def _values(self) -> str:
        if not self.fields:
            return "values"
        return f"values of {some_of([in_quotes(name) for name in self.fields], _SHOWN)}"


class FoundRecord(msgspec.Struct, frozen=True):
    """A record that would be changed, and where, in words."""

    seq: int
    places: tuple[str, ...]


class FoundStore(msgspec.Struct, frozen=True):
    """A store that holds what is to be taken out, or cannot be searched: then ``error`` says why."""

    branch: str
    place: str
    """``branch``, or the folder in the trash."""
    records: tuple[FoundRecord, ...] = ()
    snapshots: int = 0
    quarantine: tuple[str, ...] = ()
    """Files in quarantine: they are removed with the redaction."""
    also_in: tuple[int, ...] = ()
    """Records that hold a text of a value which would be taken out, and stay."""
    unused: tuple[str, ...] = ()
    """Files that hold a pattern and that the store does not use, quarantine among them: these are removed."""
    error: str = ""


class Preview(msgspec.Struct, frozen=True):
    """The preview of a redaction: what it would change, and what it does not reach."""

    stores: tuple[FoundStore, ...]
    change_files: tuple[str, ...]
    elsewhere: tuple[str, ...]
    """Places that hold it and are not changed, or may hold it, a sentence each."""
    fields: tuple[str, ...] = ()
    """The fields of what is named by an id or a seq, also of those which lost their values before."""
    is_on_tips: bool = False
    """True where the last commit of a branch that is not checked out holds it."""

    @property
    def is_empty(self) -> bool:
        """True when nothing would be changed, as far as could be looked at."""
        return not self.stores and not self.change_files

    def as_json(self) -> dict[str, Any]:
        """Return what would be changed, and what is not reached, as plain JSON values."""
        shown: dict[str, Any] = msgspec.to_builtins(self)
        return {name: shown[name] for name in ("stores", "change_files", "elsewhere")}


class CloneStore(msgspec.Struct, frozen=True):
    """A store of the clone; ``place`` is ``branch``, or the folder in the trash."""

    branch: str
    place: str
    directory: Path


class ResolvedTarget(msgspec.Struct, frozen=True):
    """The request, and for a record what names it in every store: its lineage, seq, time and epoch."""

    wanted: Wanted
    record: tuple[str, int, str, str] | None = None
    changes: frozenset[str] = frozenset()
    """The ids of the changes that came with the record, or of the one that is wanted."""
    names: frozenset[str] = frozenset()
    """The ids that the entity has or had in any store: each store and each change file may name it by any of them."""
    holders: frozenset[str] = frozenset()
    """The entities that hold it in any store or change file (``RedactionTarget``)."""

    def target_in(self, fs: Fs, directory: Path, of: Head) -> RedactionTarget:
        """Return what is to be taken out of one store."""
        wanted = self.wanted
        fields = _names_of_fields(wanted)
        if wanted.kind == "pattern":
            return self._of_pattern()
        if wanted.kind == "entity":
            return RedactionTarget(ids=self.names, fields=fields, holders=self.holders)
        is_there = self.record is not None and self.record == _name_of(fs, directory, of, self.record[1])
        if is_there or not self.changes:
            seqs = frozenset([wanted.seq] if is_there else [])
        else:
            seqs = redacted_store.seqs_of(fs, directory, of, self.changes)
        return RedactionTarget(seqs=seqs, fields=fields, changes=self.changes, holders=self.holders)

    def target_in_files(self) -> RedactionTarget:
        """Return what is to be taken out of change files: they do not know the seqs of records."""
        if self.wanted.kind == "pattern":
            return self._of_pattern()
        fields = _names_of_fields(self.wanted)
        return RedactionTarget(ids=self.names, fields=fields, changes=self.changes, holders=self.holders)

    def _of_pattern(self) -> RedactionTarget:
        wanted = self.wanted
        matches = pattern_of(wanted.text, is_regex=wanted.is_regex)
        return RedactionTarget(matches=matches, takes_names=wanted.takes_names, holders=self.holders)


class _Stamps(msgspec.Struct, frozen=True):
    at: str
    epoch: str = ""


@interrupting.maintenance()
def meant(
    workspace: Workspace,
    branch: str,
    text: str,
    *,
    is_pattern: bool,
    is_regex: bool,
    fields: Iterable[str] = (),
    takes_names: bool = False,
) -> Wanted:
    """Return what a person means: the number of a record, the id of an entity or a change of a branch, or a pattern.

    ``REDACTED`` among the fields of a change are those whose names were taken out, by another clone or of another copy:
    a pattern of these names.

    Raises: ``NotFound`` where no name of the change was taken out; ``InvalidQuery`` for other fields with these; what
    reading the store of the branch raises.
    """
    if is_pattern:
        return Wanted("pattern", text, is_regex, takes_names=takes_names)
    if text.isascii() and text.isdecimal():
        return Wanted("record", seq=int(text), fields=tuple(fields))
    fs, directory = workspace.machine.fs, workspace.folders.directory_of(branch)
    of = head.read(fs, directory)
    kind: Literal["entity", "change", "pattern"] = "pattern"
    if text in redacted_store.names_in(fs, directory, of).entities:
        kind = "entity"
    elif _CHANGE.fullmatch(text) and redacted_store.has_change(fs, directory, of, text):
        kind = "change"
    if kind == "change" and REDACTED in (fields := tuple(fields)):
        copies = redacted_files.copies_of(workspace, text)
        taken = redacted_changes.noted(fs, workspace.folders.branches_dir).get(text)
        names = redacted_store.names_taken_out(fs, directory, of, text, [(one, without(one, taken)) for one in copies])
        given = [kb("redact", *words) for words in commands(text, fields)]
        if len(given) > 1:
            raise InvalidQuery(
                "The fields whose names go are taken out by a command of their own.",
                hint=f"Give two commands: {' and '.join(given)}.",
            )
        if not names:
            raise NotFound(f"The change {text} has no field whose name was taken out, and which is left here.")
        exact = "|".join(rf"\A{re.escape(name)}\Z" for name in sorted(names))
        return Wanted("pattern", exact, is_regex=True, takes_names=True)
    if kind == "pattern":
        return Wanted(kind, text, fields=tuple(fields), takes_names=takes_names, may_be_id=True)
    return Wanted(kind, text, fields=tuple(fields))


@interrupting.maintenance()
def preview(workspace: Workspace, branch: str, wanted: Wanted) -> Preview:
    """Return what a redaction would change. Takes no lock and writes nothing.

    Raises: ``InvalidQuery`` for a pattern that cannot be taken out; ``NotFound`` for a record that is not there;
    what reading the named store raises.
    """
    asked = resolve(workspace, branch, wanted)
    found, surveys, sources = list[FoundStore](), list[StoreSurvey](), set[str]()
    for store in stores_of(workspace):
        try:
            one, survey = _look(workspace, store, asked)
        except InvalidQuery:
            raise
        except KBError as error:
            found.append(FoundStore(store.branch, store.place, error=error.message))
            continue
        surveys.append(survey)
        sources |= documents_of(survey.redactor, wanted)
        if one is not None:
            found.append(one)
    refuse_kept(workspace, surveys)
    fields = names_in(surveys)
    refuse_unknown(wanted, fields)
    shared = redacted_files.find_change_files(workspace, asked.target_in_files())
    tips = redacted_tips.find_tips(workspace)
    on_tips = tips.sentences(asked.target_in_files())
    outside = redaction_elsewhere.places(
        workspace, asked.target_in_files(), sources, is_found=bool(found or shared.paths or on_tips)
    )
    elsewhere = (*shared.failed, *shared.left, *tips.failed, *on_tips, *outside)
    return Preview(tuple(found), shared.paths, elsewhere, tuple(sorted(fields)), bool(on_tips))


def names_in(surveys: Iterable[StoreSurvey]) -> frozenset[str]:
    """Return the fields that stores have of what is named, also those which lost their values before."""
    return frozenset().union(*(one.redactor.named for one in surveys))


def refuse_unknown(wanted: Wanted, fields: Collection[str]) -> None:
    """Refuse fields that what is named does not have, and never had, beside others: one of them may be misspelled.

    Those of a change are what another clone has redacted, and some may be gone here. Raises: ``NotFound``.
    """
    if wanted.kind != "change" and fields and wanted.fields and (refused := missing(wanted, fields)):
        raise refused


def missing(wanted: Wanted, fields: Collection[str]) -> NotFound | None:
    """Return the error about what nothing holds, and nothing ever held; None where it was taken out before.

    ``fields`` are those that stores have of what is named. Of a pattern it is not known whether it was taken out.
    """
    message = _HELD_NOWHERE.format(wanted.words())
    if wanted.may_be_id:
        message = "No entity and no change has this id, and no store and no change file of this clone holds this text."
        return NotFound(message, hint=f"{UNKNOWN_ID} {_IN_SHELL} {_TAKEN_OUT} {_SPLIT}")
    if wanted.kind == "pattern":
        return NotFound(message, hint=f"{_TAKEN_OUT} {_SPLIT}")
    unknown = _unknown(wanted, fields)
    if not unknown and (fields or wanted.fields):
        return None
    if unknown:
        message = _HELD_NOWHERE.format(msgspec.structs.replace(wanted, fields=unknown).words())
    hint = masked(did_you_mean(unknown[0], fields)) if unknown else ""
    return NotFound(message, hint=hint or (shell("show", wanted.seq, lead="Run") + "." if wanted.seq else ""))


def _unknown(wanted: Wanted, fields: Collection[str]) -> tuple[str, ...]:
    """Return the named fields that are none of these."""
    known = {*fields}
    one_field = (msgspec.structs.replace(wanted, fields=(name,)) for name in wanted.fields)
    return tuple(one.fields[0] for one in one_field if known.isdisjoint(_names_of_fields(one)))


def resolve(workspace: Workspace, branch: str, wanted: Wanted) -> ResolvedTarget:
    """Return what is wanted with what names it in other stores than that of the branch.

    Raises: ``InvalidQuery`` for a pattern that cannot be taken out; ``NotFound`` for a record that is not there; what
    reading the named store raises.
    """
    if wanted.kind == "pattern":
        pattern_of(wanted.text, is_regex=wanted.is_regex)
        return ResolvedTarget(wanted)
    if wanted.kind == "entity":
        return ResolvedTarget(wanted, names=_names_anywhere(workspace, wanted.text))
    if wanted.kind == "change":
        return ResolvedTarget(wanted, changes=frozenset([wanted.text]))
    directory = workspace.folders.directory_of(branch)
    of = head.read(workspace.machine.fs, directory)
    named = _name_of(workspace.machine.fs, directory, of, wanted.seq)
    if named is None:
        raise NotFound(
            f"There is no record {wanted.seq} in {branch}.",
            hint=f"{shell('log')} lists the records. What a pruned record said can be taken out by a pattern or an id."
            f" A number that is the secret is a pattern by standard input: {shell('redact', '-')}.",
        )
    return ResolvedTarget(wanted, named, redacted_store.changes_of(workspace.machine.fs, directory, of, wanted.seq))


def _names_anywhere(workspace: Workspace, id_: str) -> frozenset[str]:
    """Return the ids that an entity has or had in any store that can be read."""
    fs, former = workspace.machine.fs, dict[str, set[str]]()
    for store in stores_of(workspace):
        with contextlib.suppress(KBError):  # it is named when it is redacted
            names = redacted_store.names_in(fs, store.directory, head.read(fs, store.directory))
            for key, olds in names.former.items():
                former.setdefault(key, set()).update(olds)
    return names_of([id_], former)


def stores_of(workspace: Workspace) -> list[CloneStore]:
    """Return every store of the clone: those of branches, and those in the trash."""
    trashed = [(_branch_of(workspace, one.path, one.name), one.path) for one in in_trash(workspace)]
    return [
        *(CloneStore(name, "branch", directory) for name, directory in branches.stores(workspace)),
        *(CloneStore(name, str(path), path) for name, path in trashed),
    ]


def _branch_of(workspace: Workspace, path: Path, name: str) -> str:
    with contextlib.suppress(KBError):
        return head.read(workspace.machine.fs, path).branch
    return layout.branch_of(path.with_name(name))


def _name_of(fs: Fs, directory: Path, of: Head, seq: int) -> tuple[str, int, str, str] | None:
    """Return what names a record in all copies of a store, also after a redaction; None where it is not there."""
    if not of.first_seq <= seq <= of.seq:
        return None
    part = max((one for one in of.segments if one.first_seq <= seq), key=lambda one: one.first_seq)
    last = None
    for last in scan.scan(fs, directory, of, after=part.start, until=seq):  # noqa: B007 - the last one is wanted
        continue
    if last is None or last.frame.seq != seq:
        return None
    said = msgspec.json.decode(last.frame.rec, type=_Stamps)
    return of.lineage, seq, said.at, said.epoch


def _names_of_fields(wanted: Wanted) -> frozenset[str]:
    """Return the names that claims have for fields; of a change, a name that another clone gave means just that."""
    found = set(wanted.fields)
    for one in wanted.fields:
        is_full = one in {MESSAGE, *CORE_FIELDS} or one.partition(".")[0] in OBJECT_FIELDS
        if wanted.kind != "change" or not is_full:
            found |= {f"{prefix}.{one}" for prefix in OBJECT_FIELDS}
    return frozenset(found)


def _look(workspace: Workspace, store: CloneStore, asked: ResolvedTarget) -> tuple[FoundStore | None, StoreSurvey]:
    fs, directory = workspace.machine.fs, store.directory
    of = head.read(fs, directory)
    found = StoreSurvey(fs, directory, of, asked.target_in(fs, directory, of))
    if found.is_empty:
        return None, found
    records = tuple(
        FoundRecord(seq, tuple(dict.fromkeys(one.words for one in places))) for seq, places in found.records.items()
    )
    shown = (records, found.snapshots(), found.quarantined(), found.also_in(), found.unused)
    return FoundStore(store.branch, store.place, *shown), found


def refuse_kept(workspace: Workspace, surveys: Collection[StoreSurvey]) -> bool:
    """Refuse what no store can lose; return whether changes of any store are known elsewhere, and keep their ids.

    Raises: ``InvalidQuery`` for a pattern that is in what the id of a change is taken of.
    """
    is_shared = redacted_files.has_change_files(workspace) or bool(backup_refs.noted(workspace))
    is_shared = is_shared or any(one.redactor.is_shared for one in surveys)
    for one in surveys if is_shared else ():
        try:
            one.refuse_kept()
        except InvalidQuery:
            raise
        except KBError:  # the store is named when its turn comes
            continue
    return is_shared


def documents_of(redactor: Redactor, wanted: Wanted) -> set[str]:
    """Return the documents that may hold it: all for a pattern, else those that stated what is taken out."""
    return redactor.sources if wanted.kind == "pattern" else {*redactor.paths}
