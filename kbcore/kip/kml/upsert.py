"""UPSERT: blocks in the order of the text, each on what those before it wrote; nothing reaches the store from here.

With WHERE the blocks are applied once for each row that it finds, in the order of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

import msgspec

from kbcore import limits
from kbcore.ids import is_link_id, link_id
from kbcore.kip import syntax as s
from kbcore.kip.errors import DUPLICATE, NOT_FOUND, REFERENCE, RESOURCE, VALUE_TYPE, VERSION, refused
from kbcore.kip.kml.command_drafts import CommandDrafts, Draft, besides_kind, misused
from kbcore.kip.kml.drafts import MERGED_FROM, MERGED_VALUES, RESOLVE, LinkDraft, NodeDraft
from kbcore.kip.kml.intent import Intent
from kbcore.kip.kml.update import check_confidence, check_metadata_key
from kbcore.model.concepts import DEFINING, PREDICATE, TYPE
from kbcore.text.escaping import escape_controls, in_quotes

_ROW: Final = s.Variable("row_of_where")
_ANY: Final = s.ConceptPattern(_ROW, s.Matcher(type=s.Text(TYPE), name=s.Text(TYPE)))
"""Something that is there once in every store, for the rows of a WHERE of which no variable is asked for."""
_BEFORE: Final = "Put the block that defines the handle in front of its use, or bind it in WHERE."


class _MergedValue(msgspec.Struct, forbid_unknown_fields=True):
    """An entry of ``MERGED_VALUES``."""

    id: str
    attributes: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    kept_keys: list[str] = []


_OF_BLOCK: Final[Mapping[str, tuple[Any, str, str]]] = {
    MERGED_FROM: (list[str], "is not as MERGE writes it", "Leave it out, or state it as a capsule has it."),
    MERGED_VALUES: (list[_MergedValue], "is not as MERGE writes it", "Leave it out, or state it as a capsule has it."),
    RESOLVE: (
        dict[str, int | Literal["keep"]],
        "maps contested fields to the numbers of their values",
        'For example {"title": 2}, or {"deleted": "keep"}.',
    ),
}
"""Metadata of blocks that KB reads itself: its shape, what is wrong with another one, and the remedy."""


class UpsertReceipt(msgspec.Struct):
    """The ids of what blocks wrote, and of the links of their SET PROPOSITIONS, in their order, repeats kept."""

    concepts: list[str] = []
    propositions: list[str] = []


def apply_upserts(work: CommandDrafts, command: s.Upserts) -> Intent:
    """Carry a command out on its drafts. Raises: ``KipRefused`` with the offset of the place."""
    work.prefetch(named_in(command))
    receipt = UpsertReceipt()
    written = 0
    for upsert in command.upserts:
        rows = _rows(work, upsert)
        written += len(rows) * _size(upsert)
        if written > limits.MAX_KIP_APPLIED:
            excess = f"The command would write {written} blocks and links, row by row of its WHERE"
            message = f"{excess}; the limit is {limits.MAX_KIP_APPLIED}."
            raise refused(RESOURCE, message, at=upsert.at, hint="Narrow WHERE down, and send several commands.")
        for row in rows:
            _Blocks(work, upsert, row, receipt).apply()
    done = {
        "blocks": len(command.upserts),
        "upsert_concept_nodes": receipt.concepts,
        "upsert_proposition_links": receipt.propositions,
    }
    return Intent(lambda _: done)


def _size(upsert: s.Upsert) -> int:
    """Return how many blocks and links one row of WHERE writes."""
    return sum(1 + (len(block.links) if isinstance(block, s.ConceptBlock) else 0) for block in upsert.blocks)


def named_in(node: Any) -> Iterator[s.Matcher]:
    """Yield the concepts that blocks name by id, or by type and name."""
    if isinstance(node, s.Matcher):
        yield node
    elif isinstance(node, tuple):
        for one in node:
            yield from named_in(one)
    elif isinstance(node, s.Upserts | s.Upsert | s.ConceptBlock | s.Proposition | s.WrittenLink | s.SetProposition):
        for name in ("upserts", "blocks", "identity", "fact", "links", "subject", "object", "target"):
            yield from named_in(getattr(node, name, None))


def _rows(work: CommandDrafts, upsert: s.Upsert) -> list[Mapping[str, Draft]]:
    """Return what the variables of WHERE mean, row by row; without WHERE, one row of nothing."""
    if upsert.where is None:
        return [{}]
    bound = {one.name for one in _variables(upsert.where)}
    handles = {block.handle.name: block.handle for block in upsert.blocks if block.handle}
    for name in sorted(bound & handles.keys()):
        message = f"?{name} is bound in WHERE, and a block takes it as its handle."
        hint = "Give the block a handle of its own; to change what WHERE finds, use UPDATE."
        raise refused(DUPLICATE, message, at=handles[name].at, hint=hint)
    used: dict[str, s.Variable] = {}
    for one in _variables(upsert.blocks):
        if one.name not in handles:
            used.setdefault(one.name, one)
    if not used:
        # The blocks are the same for every row: what matters is whether there is one.
        found = work.solutions(msgspec.structs.replace(upsert.where, clauses=(*upsert.where.clauses, _ANY)), [_ROW])
        return [{} for _ in found]
    rows = work.solutions(upsert.where, list(used.values()))
    work.look_up(value for row in rows for value in row.values() if value)
    return [{name: _bound(work, one, row[name]) for name, one in used.items()} for row in rows]


def _variables(node: Any) -> Iterator[s.Variable]:
    """Yield the variables of blocks, or of a WHERE, in the order of the text."""
    if isinstance(node, s.Variable):
        yield node
    elif isinstance(node, tuple):
        for one in node:
            yield from _variables(one)
    elif isinstance(node, msgspec.Struct):
        for name in node.__struct_fields__:
            if name != "handle":
                yield from _variables(getattr(node, name))


def _bound(work: CommandDrafts, variable: s.Variable, value: str | None) -> Draft:
    if value is None:
        message = f"?{variable.name} is open in a row that WHERE finds, and nothing can be linked to that."
        hint = f"Bind it outside of OPTIONAL and UNION, or add FILTER(IS_NOT_NULL(?{variable.name}))."
        raise refused(REFERENCE, message, at=variable.at, hint=hint)
    found = work.element(value, variable.at)
    if found is None:
        message = f"?{variable.name} is {in_quotes(value)}, the name of a predicate; a link leads to elements."
        raise refused(REFERENCE, message, at=variable.at, hint="Use a variable that means concepts or propositions.")
    return found


class _Blocks:
    """The blocks of one UPSERT, applied once; ``handles`` grows with them."""

    def __init__(self, work: CommandDrafts, upsert: s.Upsert, row: Mapping[str, Draft], receipt: UpsertReceipt) -> None:
        self.work = work
        self.blocks = upsert.blocks
        self.metadata = _metadata(upsert.metadata)
        self.handles: dict[str, Draft] = dict(row)
        self.receipt = receipt

    def apply(self) -> None:
        for block in self.blocks:
            draft: Draft
            metadata = self.metadata | _metadata(block.metadata, is_block=True)
            choices = metadata.pop(RESOLVE, {})
            if isinstance(block, s.ConceptBlock):
                draft = self.concept(block, metadata)
                self.receipt.concepts.append(draft.id)
            else:
                draft = self.proposition(block, metadata)
                self.receipt.propositions.append(draft.id)
            draft.edits.choose(choices)
            if block.handle:
                self.define(block.handle, draft)

    def define(self, handle: s.Variable, draft: Draft) -> None:
        known = self.handles.get(handle.name)
        if known is not None and known.id != draft.id:
            message = f"?{handle.name} means something else already."
            raise refused(DUPLICATE, message, at=handle.at, hint="Give each block a handle of its own.")
        self.handles[handle.name] = draft

    def concept(self, block: s.ConceptBlock, metadata: dict[str, Any]) -> NodeDraft:
        work = self.work
        draft = work.known(block.identity) or work.new_concept(block.identity)
        draft.at = block.at
        check_version(draft, block.expected_version)
        draft.edits.set_members(block.attributes.as_json() if block.attributes else {}, metadata)
        _place(draft, block)
        if draft.type in DEFINING:
            work.defined[draft.type][draft.name] = draft
        # A handle of its own block is known to the block's entries.
        if block.handle and block.handle.name not in self.handles:
            self.handles[block.handle.name] = draft
        for entry in block.links:
            work.check_predicate(entry.predicate)
            target = self.target(entry.target)
            link = self.stated(entry.predicate, draft, target, kind="", at=entry.at)
            link.edits.metadata |= metadata | _metadata(entry.metadata)
            link.is_stated = True
            self.receipt.propositions.append(link.id)
        return draft

    def proposition(self, block: s.Proposition, metadata: dict[str, Any]) -> LinkDraft:
        attributes = block.attributes.as_json() if block.attributes else {}
        if isinstance(block.fact, s.LinkId):
            draft = self.work.link_by_id(block.fact.id)
            attributes = besides_kind(draft, attributes, block.at)
        else:
            subject, target, kind = self.ends(block.fact, attributes)
            draft = self.stated(block.fact.predicate, subject, target, kind=kind, at=block.at)
        draft.at = block.at
        if block.expected_version is not None:
            self.work.load_existing()
        check_version(draft, block.expected_version)
        draft.edits.set_members(attributes, metadata)
        _place(draft, block)
        draft.is_stated = True
        return draft

    def ends(self, fact: s.WrittenLink, attributes: dict[str, Any]) -> tuple[Draft, Draft, str]:
        """Return the ends of a fact, and its kind, taken out of the attributes where the predicate needs one."""
        self.work.check_predicate(fact.predicate)
        definition = self.work.schema.edges.get(fact.predicate.value)
        kind = attributes.pop("kind", "") if definition and definition.needs_kind else ""
        if not isinstance(kind, str):
            raise misused("The `kind` of a link is a text.", fact.at, 'For example {kind: "see_also"}.')
        return self.target(fact.subject), self.target(fact.object), kind

    def stated(self, predicate: s.Text, subject: Draft, target: Draft, *, kind: str, at: int) -> LinkDraft:
        """Return the draft of a link between two elements."""
        self.check_self(predicate, subject, target, at)
        definition = self.work.schema.edges.get(predicate.value)
        if definition and definition.needs_kind and not kind:
            kind = self.only_kind(predicate, subject, target, at)
        return self.work.new_link(predicate.value, kind, (subject.id, target.id), at)

    def check_self(self, predicate: s.Text, subject: Draft, target: Draft, at: int) -> None:
        if subject.id != target.id:
            return
        definition = self.work.schema.edges.get(predicate.value)
        own = self.work.defined[PREDICATE].get(predicate.value)
        is_acyclic = own.edits.attributes.get("acyclic") is True if own else False
        if is_acyclic or (definition and definition.acyclic):
            message = f"{in_quotes(predicate.value)} must not form a cycle, and this link ends where it begins."
            raise misused(message, at, "Link two different elements.")

    def only_kind(self, predicate: s.Text, subject: Draft, target: Draft, at: int) -> str:
        """Return the kind of the one link of a predicate between two elements, where a predicate has kinds."""
        links = self.work.view.touching([subject.id]) if subject.old else []
        kinds = {
            one.kind for one in links if (one.type, one.from_id, one.to_id) == (predicate.value, subject.id, target.id)
        }
        kinds |= {
            one.kind
            for one in self.work.links.values()
            if (one.type, one.from_id, one.to_id) == (predicate.value, subject.id, target.id)
        }
        if len(kinds) > 1:
            message = f"Several links {in_quotes(predicate.value)} lead there: {', '.join(sorted(kinds))}."
            raise refused(DUPLICATE, message, at=at, hint="Name the one that is meant by its id.")
        if not kinds:
            hint = f'Write it as PROPOSITION {{ (…, "{predicate.value}", …) SET ATTRIBUTES {{ kind: "see_also" }} }}.'
            raise misused(f"A link {in_quotes(predicate.value)} needs a `kind`.", at, hint)
        return kinds.pop()

    def target(self, target: s.Target) -> Draft:
        """Return what a link leads to or begins at: it must exist, or be written by a block before."""
        match target:
            case s.Variable(name, at):
                if name not in self.handles:
                    later = any(block.handle and block.handle.name == name for block in self.blocks)
                    why = "is the handle of a later block" if later else "is bound by nothing"
                    raise refused(REFERENCE, f"?{name} {why}.", at=at, hint=_BEFORE)
                return self.handles[name]
            case s.Matcher():
                return self.work.concept(target)
            case s.LinkId(key):
                return self.work.link_by_id(key)
            case s.WrittenLink():
                return self.resolved(target)

    def resolved(self, fact: s.WrittenLink) -> LinkDraft:
        """Return a link that exists, by its ends."""
        subject, target, kind = self.ends(fact, {})
        definition = self.work.schema.edges.get(fact.predicate.value)
        if definition and definition.needs_kind:
            kind = self.only_kind(fact.predicate, subject, target, fact.at)
        draft = self.work.proposition(link_id(fact.predicate.value, kind, subject.id, target.id), fact.at)
        if draft is None:
            message = f"There is no link {in_quotes(fact.predicate.value)} between these two."
            hint = "Links are not created implicitly: write it in a PROPOSITION block before, and use its handle."
            raise refused(NOT_FOUND, message, at=fact.at, hint=hint)
        return draft


def _place(draft: Draft, block: s.Block) -> None:
    """Note where the block sets what."""
    draft.edits.place("attributes", block.attributes.members if block.attributes else ())
    draft.edits.place("metadata", block.metadata.members if block.metadata else ())


def _metadata(given: s.Object | None, *, is_block: bool = False) -> dict[str, Any]:
    """Return metadata as JSON; those of a block may carry what did not win in merges, as a capsule has it."""
    values = given.as_json() if given else {}
    for member in given.members if given else ():
        if is_block and member.key in _OF_BLOCK:
            _check_shape(member.key, values[member.key], member.at)
            continue
        check_metadata_key(member.key, member.at)
        check_confidence(member.key, values[member.key], member.at)
    return values


def _check_shape(key: str, given: Any, at: int) -> None:
    """Refuse metadata of ``_OF_BLOCK`` that have another shape. Raises: ``KipRefused`` (KIP_2003)."""
    shape, what, hint = _OF_BLOCK[key]
    try:
        msgspec.convert(given, shape)
    except msgspec.ValidationError as error:
        message = f"`{key}` {what}: {escape_controls(str(error))}."
        raise refused(VALUE_TYPE, message, at=at, hint=hint) from error


def check_version(draft: Draft, expected: s.Count | None) -> None:
    """Refuse a block whose element is not at the version that it expects. Raises: ``KipRefused`` (KIP_3005)."""
    if expected is None or draft.version == expected.value:
        draft.has_seen |= expected is not None
        return
    what = "proposition" if is_link_id(draft.id) else "concept"
    now = f"is at version {draft.version}" if draft.version else "does not exist yet (version 0)"
    message = f"The {what} {in_quotes(draft.id)} {now}, not at {expected.value}."
    hint = "Read it again, decide again, and send EXPECT VERSION with its `_version`."
    raise refused(VERSION, message, at=expected.at, hint=hint, data={"id": draft.id, "version": draft.version})
