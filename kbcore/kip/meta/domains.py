"""The fields of knowledge of a branch: what belongs to each, and what belongs to none.

Definitions that no record holds belong to their domain all the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from kbcore.kip.elements import name_of
from kbcore.kip.vocabulary import Vocabulary
from kbcore.model.concepts import DOMAIN, IN_DOMAIN
from kbcore.model.graph import Node
from kbcore.view.view import View

_KEY: Final = 5
"""The most types and predicates listed for a domain: its most frequent."""
_MEMBERS: Final = (
    "select l.to_id as domain, l.from_id as id, n.type as type from link l join node n "  # noqa: S608 - constants
    "on n.id = l.from_id "
    f"where l.is_resolved and l.type = '{IN_DOMAIN}'"
)
_TYPES: Final = f"select domain, type, count(*) from ({_MEMBERS}) group by all"  # noqa: S608 - constants
_PREDICATES: Final = (
    f"select m.domain, l.type, count(*) from ({_MEMBERS}) m join link l on l.from_id = m.id "  # noqa: S608 - constants
    f"where l.is_resolved and l.type != '{IN_DOMAIN}' group by all"
)
_OUTSIDE: Final = (
    "select n.type, count(*) from node n where not exists "  # noqa: S608 - constants
    f"(from link l where l.is_resolved and l.type = '{IN_DOMAIN}' and l.from_id = n.id) group by all"
)
_DOMAINS: Final = "select id from node where type = ? order by id"


class Domain(msgspec.Struct, frozen=True):
    """A domain: how many concepts belong to it, of which types, and by which predicates they are linked."""

    node: Node
    name: str
    members: int
    types: tuple[str, ...]
    predicates: tuple[str, ...]


def domains(view: View, known: Vocabulary) -> list[Domain]:
    """Return the domains of a branch by their names."""
    stored = {node.id: node for node in view.nodes([key for (key,) in view.rows(_DOMAINS, [DOMAIN])])}
    nodes = {node.id: node for node in known.nodes if node.type == DOMAIN} | stored
    types: dict[str, Counter[str]] = {key: Counter() for key in nodes}
    for domain, kb_type, count in view.rows(_TYPES):
        if domain in types:
            types[domain][known.names.shown(kb_type)] += count
    for domain, kb_type in _unwritten(view, known):
        types[domain][known.names.shown(kb_type)] += 1
    predicates: dict[str, Counter[str]] = {key: Counter() for key in nodes}
    for domain, predicate, count in view.rows(_PREDICATES):
        if domain in predicates:
            predicates[domain][predicate] += count
    found = [
        Domain(node, name_of(node, known.names), types[key].total(), _most(types[key]), _most(predicates[key]))
        for key, node in nodes.items()
    ]
    return sorted(found, key=lambda one: (one.name, one.node.id))


def outside(view: View, known: Vocabulary) -> dict[str, int]:
    """Return how many concepts of each type belong to no domain; domains themselves, and those in no record, aside."""
    counts = {known.names.shown(kb_type): count for kb_type, count in view.rows(_OUTSIDE) if kb_type != DOMAIN}
    return dict(sorted(counts.items()))


def _unwritten(view: View, known: Vocabulary) -> Iterable[tuple[str, str]]:
    """Yield domain and type of what belongs there without a record that says so."""
    types: Mapping[str, str] = {node.id: node.type for node in known.nodes}
    written = {link.id for link in view.links([link.id for link in known.links]) if link.is_resolved}
    return [(one.to_id, types[one.from_id]) for one in known.links if one.id not in written]


def _most(counts: Counter[Any]) -> tuple[str, ...]:
    return tuple(name for name, _ in sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:_KEY])
