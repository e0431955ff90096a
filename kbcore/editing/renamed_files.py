"""The files that name an entity, and their content after renames of it: each says the same by the other id."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from kbcore.editing.documents import (
    Extractors,
    WriteTarget,
    facts_of,
    is_markdown,
    meaning,
    read_document,
    refused,
    require_checked_out,
    require_whole,
)
from kbcore.editing.file_edits import FileEdit
from kbcore.editing.frontmatter import CannotEdit, edited
from kbcore.errors import (
    DerivedFact,
    NotSynced,
)
from kbcore.errors.remedies import kb
from kbcore.extract.facts import Facts
from kbcore.model.graph import CLIENT, FILE, FORMER_IDS, FORMER_KEY, Link, Node, SyncedFile
from kbcore.model.read_set import NOTHING
from kbcore.sync.begun_renames import BegunRename, begun, read_begun
from kbcore.sync.locate import SYNC_FIRST, unrecorded, unrecorded_words
from kbcore.text.escaping import in_quotes
from kbcore.view.view import View


class FilesNaming(NamedTuple):
    """The files that name an entity, as they are recorded."""

    id: str
    document: str
    """The file that defines the entity; "" where none does."""
    paths: Sequence[str]
    sources: Mapping[str, SyncedFile]


def files_naming(view: View, key: str, node: Node | None, links: Iterable[Link] | None = None) -> FilesNaming:
    """Return the files that state an entity, if it is there, or one of its edges: these, or all."""
    if links is None:
        links = view.gather(msgspec.structs.replace(NOTHING, touching=frozenset({key}))).links.values()
    stating = {*node.owners.values()} if node else set[str]()
    paths = sorted({*stating, *(one.src for link in links for one in link.statements)} - {CLIENT})
    return FilesNaming(key, node.path if node else "", paths, {one.path: one for one in view.sources(paths)})


class IdRename(msgspec.Struct, frozen=True):
    """One rename: from which id to which, and the former ids that the entity has afterwards."""

    old: str
    new: str
    former: tuple[str, ...]
    """Set in the document that defines the entity if that is Markdown, else in the store."""
    expected_seq: int | None = None
    """The entity must not have changed after it."""


class ReadFile(NamedTuple):
    """A file that names an entity, and its content after the renames.

    ``is_written``: it has that content already, from a run that was ended before its record.
    """

    edit: FileEdit
    is_written: bool

    @property
    def changes(self) -> bool:
        """Return whether its content is another one afterwards."""
        return self.edit.after != self.edit.before


def content_hash(content: bytes) -> str:
    """Return the SHA-256 of a file's content, as records have it."""
    return hashlib.sha256(content).hexdigest()


def read_and_edited(
    target: WriteTarget, extractors: Extractors, steps: Sequence[tuple[FilesNaming, IdRename]]
) -> list[ReadFile]:
    """Return each file that names an entity of these renames, with its content after all of them, one after the other.

    The files that state the entities come first: where a crash leaves the others as they were, the ids in them are
    former ones. What the same renames wrote before such a crash is as it is to be.
    """
    own = {files.document for files, _ in steps}
    if any(files.paths for files, _ in steps):
        require_checked_out(target)
    noted = _noted_before(target, [step for _, step in steps])
    written = {item for one in noted for item in one.written.items()}
    read: dict[str, ReadFile] = {}
    for files, step in steps:
        for path in sorted(files.paths, key=lambda path: path != files.document):
            one = read.get(path) or _read_recorded(target, files, path, written)
            after = _edited(extractors, files, path, step, one.edit.after)
            read[path] = one._replace(edit=msgspec.structs.replace(one.edit, after=after))
    new = {step.new for _, step in steps} - {one.new for one in noted}
    for key, path in unrecorded(target.read, sorted(new)).items():
        raise NotSynced(unrecorded_words(in_quotes(key), path), hint=SYNC_FIRST)
    return sorted(read.values(), key=lambda one: one.edit.path not in own)


def _noted_before(target: WriteTarget, steps: Sequence[IdRename]) -> list[BegunRename]:
    """Return those of these renames that an earlier run began and did not record."""
    workspace = target.workspace
    noted = read_begun(workspace.machine.fs, workspace.folders.cache_dir, workspace.repo.worktree)
    ids = {(step.old, step.new) for step in steps}
    return [one for one in noted if (one.old, one.new) in ids]


def begun_renames(steps: Sequence[tuple[FilesNaming, IdRename]], read: Sequence[ReadFile]) -> list[BegunRename]:
    """Return the note on each rename, with those of the files that it writes or wrote which name its entity."""
    edits = [one.edit for one in read if one.changes or one.is_written]
    return [
        begun(step.old, step.new, step.former, ((edit.path, edit.after) for edit in edits if edit.path in files.paths))
        for files, step in steps
    ]


def states_former_ids(extractors: Extractors, files: FilesNaming) -> bool:
    """Return whether the former ids belong into the document that defines the entity."""
    return bool(files.document) and is_markdown(extractors, files.document)


def _read_recorded(
    target: WriteTarget, files: FilesNaming, path: str, written: Collection[tuple[str, str]]
) -> ReadFile:
    """Return a file that names an entity as it is, which is as it is recorded, or as an earlier run wrote it.

    Raises: ``NotSynced``.
    """
    before = read_document(target.workspace, path)
    source = files.sources.get(path)
    hash_ = content_hash(before)
    is_recorded = source is not None and source.hash == hash_
    is_written = not is_recorded and (path, hash_) in written
    if not is_recorded and not is_written:
        raise NotSynced(f"{path} names {in_quotes(files.id)}, and states something else than the records.")
    return ReadFile(FileEdit(path, before, before), is_written)


def _edited(extractors: Extractors, files: FilesNaming, path: str, step: IdRename, before: bytes) -> bytes:
    """Return the content of a file after which it names the entity by its new id, and says the same otherwise."""
    old, new = step.old, step.new
    facts = facts_of(extractors, path, before)
    require_whole(path, facts)
    lines = sorted(_lines(facts, old))
    refusal: DerivedFact | None = None
    meant, swap = _meant(facts, files.document == path, step, in_file=states_former_ids(extractors, files)), {old: new}
    read: Facts | None = None
    try:
        text = before.decode()
    except UnicodeDecodeError as error:
        raise refused(path, 0, "it is not UTF-8.", "Save it as UTF-8.") from error
    # First the lines that state it alone: what the text of a document says stays as it was written.
    for among in (lines, range(1, text.count("\n") + 2)):
        try:
            after = _with_former(_swapped(text, old, new, among), path, files, step, extractors).encode()
        except CannotEdit as error:
            hint = _by_hand(path, files, step, extractors) or f"Edit {in_quotes(path)} and {kb('sync', lead='run')}."
            refusal = refused(path, error.line, f"{error.reason}.", hint)
            continue
        found = _without_texts(facts_of(extractors, path, after))
        if meaning(found) == meaning(meant, swap):
            return after
        read = read or found
    reason = (
        f"KB cannot put {in_quotes(new)} in the place of {in_quotes(old)} here: it would change what else is stated."
    )
    wrong = _changed_part(meant, read, swap) if read else Facts()
    line = _line(wrong) or (lines[0] if lines else 0)
    change = f"Change it in {in_quotes(path)} by hand: a sync reads that as another entity."
    run = kb("sync", lead="run")
    if any(one.fields.get(FILE) == path for one in wrong.entities):
        change = f"Rename it in the code of {in_quotes(path)}, and {run}: it stays the same, with what is stated of it."
    elif wrong.links:
        change = f"Name {in_quotes(new)} in this link by hand, and {run}: it is unresolved then. Then rename again."
    raise refusal or refused(path, line, reason, _by_hand(path, files, step, extractors) or change)


def _changed_part(meant: Facts, read: Facts, swap: Mapping[str, str]) -> Facts:
    """Return the first entity or link, as it was, that a text with other ids does not state any more as it is meant."""

    def parts(facts: Facts) -> list[Facts]:
        single = [Facts(entities=(one,)) for one in facts.entities] + [Facts(links=(one,)) for one in facts.links]
        return sorted(single, key=_line)

    said = [meaning(one) for one in parts(read)]
    return next((one for one in parts(meant) if meaning(one, swap) not in said), Facts())


def _line(facts: Facts) -> int:
    """Return the first line that states an entity or a link, 0 for none."""
    return min([*(one.line for one in facts.entities), *(one.line for one in facts.links)], default=0)


def _by_hand(path: str, files: FilesNaming, step: IdRename, extractors: Extractors) -> str:
    """Return how to rename by an edit of the document that defines the entity; "" where it has no place for that."""
    if path != files.document or not states_former_ids(extractors, files):
        return ""
    keys = f"`id: {step.new}` and `{FORMER_KEY}: [{', '.join(step.former)}]`"
    return (
        f"Write {keys} into the front matter of {in_quotes(path)} in one edit, then {kb('sync', lead='run')}: that "
        "renames the entity, with what clients stated of it."
    )


def _lines(facts: Facts, key: str) -> set[int]:
    """Return the lines in which a file names an entity, counted from 1."""
    found = {one.line for one in facts.entities if one.id == key}
    links = (
        one for one in _without_texts(facts).links if key == one.subject or (key == one.target and not one.is_path)
    )
    return {*found, *(one.line for one in links)} - {0}


def _without_texts(facts: Facts) -> Facts:
    """Return facts without the links that running text holds: it stays as it was written."""
    return msgspec.structs.replace(facts, links=tuple(one for one in facts.links if not one.in_text))


def _swapped(text: str, old: str, new: str, among: Sequence[int]) -> str:
    """Return a text with one word in place of another on some of its lines, counted from 1."""
    word = re.compile(rf"(?<![\w-]){re.escape(old)}(?![\w-]|[./:#]\w)")
    lines = text.split("\n")
    for number in among:
        if 0 < number <= len(lines):
            lines[number - 1] = word.sub(lambda _: new, lines[number - 1])
    return "\n".join(lines)


def _with_former(text: str, path: str, files: FilesNaming, step: IdRename, extractors: Extractors) -> str:
    """Return the text with the former ids in its front matter, if it is the document that defines the entity."""
    if path != files.document or not states_former_ids(extractors, files):
        return text
    facts = facts_of(extractors, path, text.encode())
    stated = next((one for one in facts.entities if one.id == step.new), None)
    lines = {name.removeprefix("attributes."): line for name, line in stated.lines.items()} if stated else {}
    return edited(text, {FORMER_KEY: list(step.former) or None}, lines)


def _meant(facts: Facts, is_own: bool, step: IdRename, *, in_file: bool) -> Facts:
    """Return what a file is to say afterwards, with the ids as they are."""
    entities = []
    for one in facts.entities:
        fields = dict(one.fields)
        if one.id == step.old and is_own and in_file:
            fields.pop(FORMER_IDS, None)
            fields |= {FORMER_IDS: list(step.former)} if step.former else {}
        entities.append(msgspec.structs.replace(one, fields=fields))
    return msgspec.structs.replace(_without_texts(facts), entities=tuple(entities))
