"""The context of a command that writes: a view, the schema of its branch, and the elements that it has read so far.

An element is looked up once and is the same draft wherever the command names it again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from kbcore.config.settings import KipLimits
from kbcore.errors import KipRefused
from kbcore.ids import is_link_id, link_id
from kbcore.kip import find
from kbcore.kip import syntax as s
from kbcore.kip.elements import name_of
from kbcore.kip.errors import CONSTRAINT, DUPLICATE, NOT_FOUND, refused
from kbcore.kip.kml.drafts import LinkDraft, NodeDraft
from kbcore.kip.names import TypeNames
from kbcore.kip.run_statement import name_hint, prepared
from kbcore.kip.sql.projection import ValueSlice
from kbcore.kip.undefined_names import no_predicate, no_type
from kbcore.kip.vocabulary import TYPES, Vocabulary
from kbcore.model.concepts import DOMAIN, IN_DOMAIN, PREDICATE, SCHEMA_DOMAIN, TYPE, concept_id
from kbcore.model.graph import Link, Node
from kbcore.model.schema import Schema
from kbcore.text.escaping import in_quotes
from kbcore.view.view import View

Draft = NodeDraft | LinkDraft
_OF_VOCABULARY: Final = (IN_DOMAIN, concept_id(DOMAIN, SCHEMA_DOMAIN))
"""Predicate and object of every link of the vocabulary."""
_NEW_TYPE: Final = "A new type is a concept of the type $ConceptType; write it first."
_NEW_PREDICATE: Final = "A new predicate is a concept of the type $PropositionType; write it first."
_ALL: Final = ValueSlice()
_SEARCH: Final = "Look for it with SEARCH or FIND, or write it first."


class CommandDrafts:
    """The context of one command, and the drafts of what it names, by id."""

    def __init__(self, view: View, schema: Schema, limits: KipLimits, *, now: str = "") -> None:
        """``now`` is the time that NOW() means."""
        self.view = view
        self.now = now
        self.limits = limits
        self.schema = schema
        self.vocabulary: Vocabulary = prepared(view, schema).vocabulary
        self.names: TypeNames = self.vocabulary.names
        self.nodes: dict[str, NodeDraft] = {}
        self.links: dict[str, LinkDraft] = {}
        self.defined: dict[str, dict[str, NodeDraft]] = {TYPE: {}, PREDICATE: {}}
        """The types and predicates that the command itself defines, by name."""
        self._by_name: dict[tuple[str, str], NodeDraft] = {}
        self._read: dict[str, Node | None] = {}
        self._read_links: dict[str, Link | None] = {}
        self._called: dict[str, list[Node]] = {}

    @cached_property
    def core_nodes(self) -> Mapping[str, Node]:
        """The concepts of the vocabulary, by id."""
        return {node.id: node for node in self.vocabulary.nodes}

    @cached_property
    def core_links(self) -> Mapping[str, Link]:
        """The propositions of the vocabulary, by id."""
        return {link.id: link for link in self.vocabulary.links}

    def prefetch(self, named: Iterable[s.Matcher]) -> None:
        """Look up at once all concepts that a command is going to name."""
        ids: set[str] = set()
        names: dict[str, list[str]] = {}
        for matcher in named:
            if matcher.id:
                ids.add(matcher.id.value)
            elif matcher.type and matcher.name:
                kip_type, name = matcher.type.value, matcher.name.value
                known = self._candidates(kip_type, name)
                ids.update(known)
                names.setdefault(name, known)
        self.look_up(ids)
        open_ = [name for name, known in names.items() if len(known) > 1 and not any(map(self._read.get, known))]
        if open_:
            self._called |= {name: [] for name in open_}
            for node in self.view.named(open_):
                self._called[str(node.fields.get("name", node.id))].append(node)

    def look_up(self, keys: Iterable[str]) -> None:
        """Read at once all elements that are going to be asked for by these ids."""
        wanted = {key for key in keys if key not in self._read and key not in self._read_links}
        if not wanted:
            return
        links = sorted(filter(is_link_id, wanted))
        nodes = sorted(wanted.difference(links))
        self._read |= dict.fromkeys(nodes) | {node.id: node for node in self.view.nodes(nodes) if not node.is_hidden}
        self._read_links |= dict.fromkeys(links) | {link.id: link for link in self.view.links(links)}

    def stored_links(self, ids: Collection[str], at: int = 0) -> list[LinkDraft]:
        """Return the drafts of propositions that are stored and resolved, looked up at once."""
        self.look_up(ids)
        drafts = [self.proposition(key, at) for key in ids]
        return [draft for draft in drafts if draft is not None and draft.is_stored]

    def solutions(
        self, group: s.ClauseGroup, variables: Sequence[s.Variable], page: ValueSlice = _ALL
    ) -> list[dict[str, str | None]]:
        """Return the distinct bindings of variables in a WHERE. Raises: ``KipRefused``."""
        return find.solutions(
            self.view, self.schema, group, tuple(variables), limits=self.limits, page=page, now=self.now
        )

    def most(self, limit: s.Count | None, spare: int = 0) -> int | None:
        """Return how many rows a LIMIT asks for; None without one, and for more rows than a command may find."""
        return limit.value + spare if limit and limit.value <= self.limits.rows else None

    def kb_type(self, named: s.Text) -> str:
        """Return what KB calls a type. Raises: ``KipRefused`` (KIP_2001) for one that is not defined."""
        found = self.names.of_kip.get(named.value)
        if found is None and named.value not in self.defined[TYPE]:
            raise no_type(self.names, named, also=self.defined[TYPE], remedy=_NEW_TYPE)
        return found or named.value

    def check_predicate(self, named: s.Text) -> None:
        """Refuse a predicate that is not defined. Raises: ``KipRefused`` (KIP_2001)."""
        if named.value not in self.schema.edges and named.value not in self.defined[PREDICATE]:
            raise no_predicate([*self.schema.edges, *self.defined[PREDICATE]], named, remedy=_NEW_PREDICATE)

    def concept(self, matcher: s.Matcher) -> NodeDraft:
        """Return a concept that exists already, or comes to exist by the command.

        Raises: ``KipRefused``: KIP_3002 when there is none, KIP_2001 for its type.
        """
        found = self.known(matcher)
        if found is None:
            message = f"There is no concept {self.words(matcher)}."
            near = ""
            if matcher.type and matcher.name:
                near = name_hint(self.view, self.kb_type(matcher.type), matcher.name.value)
            raise refused(NOT_FOUND, message, at=matcher.at, hint=f"{near} {_SEARCH}".lstrip())
        return found

    def known(self, matcher: s.Matcher) -> NodeDraft | None:
        """Return the concept that a matcher of an id, or of a type and a name, means; None when there is none."""
        if matcher.id:
            return self.node(matcher.id.value, matcher.at)
        assert matcher.type and matcher.name, "the grammar demands both"  # noqa: S101, PT018 - narrows the types
        kb_type, name = self.kb_type(matcher.type), matcher.name.value
        draft = self._by_name.get((kb_type, name))
        if draft is None:
            node = self._by_type_and_name(matcher, kb_type, name)
            draft = self.node(node.id, matcher.at) if node else None
        if draft is not None:
            draft.name = name
            self._by_name[kb_type, name] = draft
        return draft

    def _by_type_and_name(self, matcher: s.Matcher, kb_type: str, name: str) -> Node | None:
        kip_type = self.names.shown(kb_type)
        candidates = self._candidates(kip_type, name)
        for key in candidates:
            node = self._node(key)
            if node is not None and node.type == kb_type and self._is_called(node, name, candidates[0]):
                return node
        if kb_type in TYPES and candidates[0] in self.core_nodes and self._node(candidates[0]) is None:
            return self.core_nodes[candidates[0]]
        if len(candidates) == 1:
            return None
        if name not in self._called:
            self._called[name] = self.view.named([name])
        found = [node for node in self._called[name] if node.type == kb_type]
        if len(found) > 1:
            ids = ", ".join(in_quotes(node.id) for node in found)
            message = f"Several concepts are {self.words(matcher)}: {ids}."
            raise refused(DUPLICATE, message, at=matcher.at, hint="Name the one that is meant by its id.")
        return found[0] if found else None

    def _is_called(self, node: Node, name: str, made_as: str) -> bool:
        """Return whether a concept has this name; one made under the id that KIP gives may lack it."""
        called = name_of(node, self.names)
        return called == name or node.id == made_as == called

    def _candidates(self, kip_type: str, name: str) -> list[str]:
        """Return the ids under which a concept of that type and name is looked for."""
        kb_type = self.names.of_kip.get(kip_type, kip_type)
        return [name] if self.names.is_named_by_id(kb_type) else [concept_id(kip_type, name), name]

    def _node(self, key: str) -> Node | None:
        self.look_up([key])
        return self._read.get(key)

    def node(self, key: str, at: int) -> NodeDraft | None:
        """Return the draft of a concept that exists, by its id."""
        if key not in self.nodes:
            stored = self._node(key)
            node = stored or self.core_nodes.get(key)
            if node is None:
                return None
            self.nodes[key] = NodeDraft(
                key, node.type, name_of(node, self.names), at, node, is_stored=stored is not None
            )
        return self.nodes[key]

    def new_concept(self, matcher: s.Matcher) -> NodeDraft:
        """Return the draft of a concept that does not exist yet. Raises: ``KipRefused``."""
        if matcher.id or not (matcher.type and matcher.name):
            return self.concept(matcher)
        kb_type, name = self.kb_type(matcher.type), matcher.name.value
        if not name.strip():
            raise misused("The name of a concept is empty.", matcher.name.at, "Give its name.")
        key = name if self.names.is_named_by_id(kb_type) else concept_id(matcher.type.value, name)
        taken = self._node(key)
        if taken is not None or is_link_id(key):
            what = f"a {self.names.shown(taken.type)}" if taken else "what links are called"
            message = f"{self.words(matcher)} would have the id {in_quotes(key)}, which is {what}."
            raise refused(DUPLICATE, message, at=matcher.at, hint="Choose another name.")
        draft = NodeDraft(key, kb_type, name, matcher.at)
        self.nodes[key] = self._by_name[kb_type, name] = draft
        return draft

    def link_by_id(self, key: s.Text) -> LinkDraft:
        """Return a proposition by its id. Raises: ``KipRefused`` (KIP_3002) when there is none."""
        found = self.proposition(key.value, key.at)
        if found is None:
            message = f"There is no proposition with the id {in_quotes(key.value)}."
            raise refused(NOT_FOUND, message, at=key.at, hint=_SEARCH)
        return found

    def proposition(self, key: str, at: int) -> LinkDraft | None:
        """Return the draft of a resolved proposition, by its id."""
        if not is_link_id(key):
            return None
        if key not in self.links:
            self.look_up([key])
            found = self._read_links[key]
            stored = found if found and found.is_resolved else None
            link = stored or self.core_links.get(key)
            if link is None:
                return None
            ends = link.from_id, link.to_id
            self.links[key] = LinkDraft(key, link.type, link.kind, *ends, at, link, is_stored=stored is not None)
        return self.links[key]

    def new_link(self, predicate: str, kind: str, ends: tuple[str, str], at: int) -> LinkDraft:
        """Return the draft of a proposition, resolved or not; what is resolved is looked up only in the end."""
        key = link_id(predicate, kind, *ends)
        if key not in self.links:
            self.links[key] = LinkDraft(key, predicate, kind, *ends, at)
        return self.links[key]

    def load_existing(self) -> None:
        """Look up which propositions that were named by their ends are resolved."""
        unknown = sorted(key for key, draft in self.links.items() if draft.old is None and not self._is_at_new(draft))
        self.look_up(unknown)
        for key in unknown:
            draft = self.links[key]
            draft.old = self._read_links[key]
            draft.is_stored = draft.old is not None
            if draft.old is None and (draft.type, draft.to_id) == _OF_VOCABULARY:
                draft.old = self.core_links.get(key)

    def _is_at_new(self, draft: LinkDraft) -> bool:
        """Return whether a link begins or ends at a concept that the command makes, so that it cannot exist yet."""
        ends = (self.nodes.get(draft.from_id), self.nodes.get(draft.to_id))
        return any(end is not None and end.old is None for end in ends)

    def element(self, key: str, at: int) -> Draft | None:
        """Return the draft of what exists under an id."""
        return self.proposition(key, at) if is_link_id(key) else self.node(key, at)

    def words(self, matcher: s.Matcher) -> str:
        """Return a matcher as a person reads it."""
        if matcher.id:
            return f"with the id {in_quotes(matcher.id.value)}"
        return " ".join(
            [
                text.value if text is matcher.type else in_quotes(text.value)
                for text in (matcher.type, matcher.name)
                if text
            ]
        )


def besides_kind(draft: Draft, attributes: dict[str, Any], at: int) -> dict[str, Any]:
    """Return attributes without the kind of a link that has one. Raises: ``KipRefused`` where that would change."""
    kind = draft.kind if isinstance(draft, LinkDraft) else ""
    if not kind or "kind" not in attributes:
        return attributes
    if attributes["kind"] != kind:
        message = f"The `kind` of a link is a part of what it is, and this one is {in_quotes(kind)}."
        raise misused(message, at, "Delete the link, and write another one.")
    return {key: value for key, value in attributes.items() if key != "kind"}


def misused(message: str, at: int, hint: str) -> KipRefused:
    """Return the error for a write that the schema does not allow."""
    return refused(CONSTRAINT, message, at=at, hint=hint)
