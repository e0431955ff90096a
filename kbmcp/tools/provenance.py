"""The provenance of the rows of an answer, in the shortest form: ``by``, ``source`` and ``at``.

What is the same for all rows of an answer is said once. A row lacks what the answer says already: a file that is the
document of an entity among the rows, or a source that only names the client in ``by``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from kbmcp.tools.answers import Payload

if TYPE_CHECKING:
    from kbcore.model.graph import Link, Node
    from kbcore.store.history.authorship import LastWriter
    from kbcore.view.view import View

_DAY_CHARS: Final = 10
_NAMES: Final = ("by", "source", "at")


def add_provenance(
    view: View, entities: Sequence[tuple[Node, Payload]], edges: Sequence[tuple[Link, Payload]]
) -> Payload:
    """Add to each row who said it, through what and when; return what is the same for all of them."""
    from kbcore.store.history.authorship import last_writers

    if not entities and not edges:
        return {}
    writers = last_writers(view, [node for node, _ in entities])
    documents = {node.path for node, _ in entities}
    said = [(row, _of_entity(node, row, writers.get(node.id))) for node, row in entities]
    said += [(row, _of_edge(link, documents)) for link, row in edges]
    first = said[0][1]
    each = {name: one for name, one in first.items() if len(said) > 1 and all(has.get(name) == one for _, has in said)}
    for row, members in said:
        row |= {name: one for name, one in members.items() if name not in each}
    return each


def _of_entity(node: Node, row: Payload, writer: LastWriter | None) -> Payload:
    actor, through = writer or ("", "")
    source = node.path or through or node.source
    is_known = source in {row.get("text_ref"), _source_of(actor)}
    return _members(actor, "" if is_known else source, node.updated_at)


def _of_edge(link: Link, documents: Collection[str]) -> Payload:
    """Return who said an edge; not the file where it is that of an entity among the rows."""
    files = [one.src for one in link.statements if one.src]
    if files:
        return _members("", "" if files[0] in documents else files[0], link.created_at)
    source = link.statements[0].source
    return _members(link.created_by, "" if source == _source_of(link.created_by) else source, link.created_at)


def _source_of(actor: str) -> str:
    """Return the source of what an agent of this name and version writes."""
    return f"mcp:{actor.partition('/')[0]}"


def _members(by: str, source: str, at: str) -> Payload:
    return {name: one for name, one in zip(_NAMES, (by, source, at[:_DAY_CHARS]), strict=True) if one}
