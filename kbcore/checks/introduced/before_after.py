"""The state before and after a change of few elements, asked by key; and the edges that the change made suspect.

A side is what a view answers with the changed elements put as they are on that side. Nothing is scanned, and what SQL
would have to load first is left alone where possible.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from typing import Literal

from kbcore.model.content import code_digests, content_of
from kbcore.model.graph import Link, Node, SyncedFile, is_proposed
from kbcore.model.proposals import ANY, OF_NODE, accepted_changes, may_be_proposed
from kbcore.model.schema import MENTIONS, Schema
from kbcore.model.state import Changes
from kbcore.rules import orphans
from kbcore.rules.edge_confirmation import OF_CODE, ORDERING, SuspectEdge, earlier_rows, possibly_carried, suspect_edges
from kbcore.rules.look_ups import COLUMNS, Edge, Look, edge_of
from kbcore.rules.rule import BranchFiles
from kbcore.view.database import among
from kbcore.view.history import NODES
from kbcore.view.tables import IS_MENTION, Likeness
from kbcore.view.view import View


class _Read:
    """Facts that both sides share: what was read of the view of links that did not change."""

    def __init__(self, view: View, changes: Changes) -> None:
        self.links: dict[tuple[str, str], list[Edge]] = {}
        changed = {one.key for one in changes.links}
        new = {one.key for one in changes.nodes if one.before is None or one.after is None}
        others = [link for link in view.touching(sorted(new)) if link.id not in changed] if new else []
        self.alone = new - {end for link in others for end in (link.from_id, link.to_id)}
        """Ids that came or went, and at which no link is but the changed ones."""


class ViewSide:
    """One side of the changes. ``view`` is of the state before or after them; ``tree`` gives the branch's files."""

    def __init__(
        self,
        view: View,
        changes: Changes,
        name: Literal["before", "after"],
        read: _Read,
        tree: Callable[[], BranchFiles],
        *,
        waiting: Collection[str],
    ) -> None:
        self._view = view
        self._waiting = waiting
        """Entities that are only proposed on this side: what an edge at one says is left out."""
        self._tree = tree
        self._read = read
        self._nodes: dict[str, Node | None] = {one.key: getattr(one, name) for one in changes.nodes}
        links: dict[str, Link | None] = {one.key: getattr(one, name) for one in changes.links}
        self._links = {key: edge_of(link) if link and self._counts(link) else None for key, link in links.items()}
        self._sources: dict[str, SyncedFile | None] = {one.key: getattr(one, name) for one in changes.sources}

    def _counts(self, link: Link) -> bool:
        return not is_proposed(link) and {link.from_id, link.to_id}.isdisjoint(self._waiting)

    def nodes(self, ids: Collection[str]) -> dict[str, Node]:
        """Return the nodes with these ids, as far as they exist."""
        found = {id_: node for id_ in ids if (node := self._nodes.get(id_)) is not None}
        rest = [id_ for id_ in ids if id_ not in self._nodes]
        return found | {one.id: one for one in self._view.nodes(rest) if not is_proposed(one)} if rest else found

    def links(self, ids: Collection[str]) -> dict[str, Edge]:
        """Return the links with these ids, as far as they exist."""
        found = {id_: edge for id_ in ids if (edge := self._links.get(id_)) is not None}
        rest = [id_ for id_ in ids if id_ not in self._links and id_.startswith("link:")]
        others = [one for one in self._view.links(rest) if self._counts(one)] if rest else ()
        return found | {link.id: edge_of(link) for link in others}

    def out_of(self, ids: Collection[str], type_: str = "") -> list[Edge]:
        """Return the links that lead from these ids, resolved or not; of one type, or of any."""
        return self._at("from_id", ids, type_)

    def into(self, ids: Collection[str], type_: str = "") -> list[Edge]:
        """Return the links that lead to these ids, resolved or not; of one type, or of any."""
        return self._at("to_id", ids, type_)

    def _at(self, column: Literal["from_id", "to_id"], ids: Collection[str], type_: str) -> list[Edge]:
        known = self._read.links
        rest = sorted({id_ for id_ in ids if id_ not in self._read.alone and (column, id_) not in known})
        if rest:
            wanted = set(rest)

            def is_at(link: Link) -> bool:
                return getattr(link, column) in wanted

            # A second condition, on the type, would have the database leave the index alone.
            condition, params = among(rest)
            found: defaultdict[str, list[Edge]] = defaultdict(list)
            columns = (*COLUMNS, "metadata")
            for *row, metadata in self._view.cells("link", columns, (f"{column} {condition}", params), is_at):
                edge = Edge(*row)
                if edge.id not in self._links and not (not edge.files and may_be_proposed(metadata)):
                    found[getattr(edge, column)].append(edge)
            known |= {(column, id_): found[id_] for id_ in rest}
        edges = [edge for id_ in set(ids) for edge in known.get((column, id_), ())]
        edges += [edge for edge in self._links.values() if edge is not None and getattr(edge, column) in ids]
        if self._waiting:
            edges = [edge for edge in edges if {edge.from_id, edge.to_id}.isdisjoint(self._waiting)]
        return [edge for edge in edges if edge.type == type_] if type_ else edges

    def has_edges(self) -> bool:
        """Return whether any link is resolved that is no link in the text of a document."""
        if any(edge is not None and _counts(edge) for edge in self._links.values()):
            return True
        # So many rows of the base may be replaced by what came after it.
        most = 1 + self._view.tail_rows + len(self._links)
        condition = f"is_resolved and not {IS_MENTION} limit {most}"
        rows = self._view.cells("link", ("id",), (condition, ()), lambda link: _counts(edge_of(link)))
        return any(id_ not in self._links for (id_,) in rows)

    def sources(self, paths: Collection[str]) -> list[SyncedFile]:
        """Return the source files with these paths, as far as they were read."""
        named = {path for path in paths if path}
        found = [one for path in sorted(named) if (one := self._sources.get(path)) is not None]
        rest = sorted(named - self._sources.keys())
        return [*found, *self._view.sources(rest)] if rest else found

    def missing(self, paths: Collection[str]) -> set[str]:
        """Return those of these paths at which there is no file of the repository."""
        return self._tree().missing(paths) if paths else set()

    def alike(self, likeness: Likeness, keys: Collection[str]) -> list[Node]:
        """Return the nodes that have one of these texts in common."""
        alike = self._view.alike(likeness, sorted(keys))
        found = [node for node in alike if node.id not in self._nodes and not is_proposed(node)]
        changed = (node for node in self._nodes.values() if node is not None)
        return [*found, *(node for node in changed if not {*keys}.isdisjoint(likeness.keys(node)))]


class Sides:
    """Both sides of what the record at a seq of a view changed, without what is only proposed on a side."""

    def __init__(
        self,
        view: View,
        changes: Changes,
        seq: int,
        schema: Schema,
        tree: Callable[[], BranchFiles],
        *,
        has_proposals: bool = False,
    ) -> None:
        waiting = _proposed_ids(view) if has_proposals else frozenset[str]()
        others = waiting - {one.key for one in changes.nodes}
        after = others | {one.key for one in changes.nodes if is_proposed(one.after)}
        before = others | {one.key for one in changes.nodes if is_proposed(one.before)}
        changes = accepted_changes(changes)
        self._view = view
        self._changes = changes
        self._schema = schema
        self._seq = seq
        read = _Read(view, changes)
        self._after = ViewSide(view, changes, "after", read, tree, waiting=after)
        self._before = ViewSide(view, changes, "before", read, tree, waiting=before)

    def after(self) -> Look:
        """Return what the rules look at after the change."""
        return Look(self._after, self._changes, self._schema, self._made_suspect, self._has_or_had_edges)

    def before(self) -> Look:
        """Return what they look at before it. What was suspect already is left out of the other side."""
        return Look(self._before, self._changes, self._schema, list, self._has_or_had_edges)

    def _has_or_had_edges(self) -> bool:
        if self._after.has_edges() or self._before.has_edges():
            return True
        return not self._view.past.is_known_empty("link") and orphans.had_edges(self._view.rows)

    def _made_suspect(self) -> list[SuspectEdge]:
        turned = {
            one.key: one.before
            for one in self._changes.nodes
            if one.before is not None and one.after is not None and content_of(one.before) != content_of(one.after)
        }
        targets = self._reworded() | turned
        changed = {one.key for one in self._changes.links}
        edges = [
            edge
            for edge in (self._after.into(targets) if targets else ())
            if edge.is_resolved and edge.type not in ORDERING and edge.id not in changed and edge.from_id not in turned
        ]
        found, unclear = [], [(edge, False) for edge in self._of_changed_code() if edge.id not in changed]
        if not (edges or unclear):
            return []
        nodes = self._after.nodes({edge.from_id for edge in edges})
        paths = {path for edge in edges for path in edge.files} | {node.path for node in nodes.values()}
        said = {one.path: one.version for one in self._after.sources(paths)}
        read = {one.path: one.version for one in self._before.sources({one.path for one in targets.values()})}
        carried = possibly_carried(self._view.rows, {edge.id: edge.version for edge in edges})
        for edge in edges:
            target, node = targets[edge.to_id], nodes.get(edge.from_id)
            files = [*edge.files, *([node.path] if node else [])]
            last = max([node.version if node else 0, *(said.get(path, 0) for path in files)])
            is_own = last <= edge.version and edge.id not in carried
            if is_own and edge.to_id in turned and max(target.version, read.get(target.path, 0)) <= edge.version:
                found.append(self._suspect(edge, edge.version))
            else:
                unclear.append((edge, is_own))
        return found + self._by_history(unclear, targets) if unclear else found

    def _of_changed_code(self) -> list[Edge]:
        """Return the edges that hold for the code of a symbol as it was, where it is another one now."""
        recoded = {
            one.key
            for one in self._changes.nodes
            if one.before
            and one.after
            and (was := code_digests(one.before)) is not None
            and was != code_digests(one.after)
        }
        edges = self._after.out_of(recoded) if recoded else ()
        return [edge for edge in edges if edge.is_resolved and edge.type in OF_CODE]

    def _reworded(self) -> dict[str, Node]:
        """Return the entities whose documents, which define nothing else, have another text, as they were before."""
        paths = {
            one.key
            for one in self._changes.sources
            if one.before is not None
            and one.after is not None
            and one.before.hash != one.after.hash
            and one.after.extractor.startswith("markdown/")
        }
        if not paths:
            return {}
        after = self._after.nodes(self._view.stated_by(sorted(paths))[0]).values()
        defined = Counter(node.path for node in after)
        ids = {node.id for node in after if node.path in paths and defined[node.path] == 1}
        return self._before.nodes(ids)

    def _suspect(self, edge: Edge, confirmed_seq: int) -> SuspectEdge:
        return SuspectEdge(
            edge.id, edge.type, edge.kind, edge.from_id, edge.to_id, edge.files, confirmed_seq, self._seq, text_path=""
        )

    def _by_history(self, unclear: list[tuple[Edge, bool]], targets: dict[str, Node]) -> list[SuspectEdge]:
        """Return those of these edges that are suspect and were not before.

        Of each it is known whether it was certainly last confirmed by its own version. Then it was suspect before if
        its target did not say any more what it said at that version; a few more are found by looking at both states.
        """
        past = self._past({edge.to_id for edge, is_own in unclear if is_own})

        def was_as_confirmed(edge: Edge) -> bool:
            target = targets[edge.to_id]
            return content_of(_at(past[edge.to_id], edge.version, target)) == content_of(target)

        likely = [edge.id for edge, is_own in unclear if not is_own or was_as_confirmed(edge)]
        now = [one for one in suspect_edges(self._view.rows, likely) if not one.unproven] if likely else []
        if not now:
            return []
        was = {one.id for one in suspect_edges(self._view.rows, [one.id for one in now], seq=self._seq - 1)}
        return [one for one in now if one.id not in was]

    def _past(self, ids: Collection[str]) -> dict[str, list[Node]]:
        """Return the earlier versions of nodes, the newest first, under each id that they had."""
        if not ids:
            return {}
        found: dict[str, list[Node]] = {id_: [] for id_ in ids}
        for id_, *row in earlier_rows(self._view.rows, ids, NODES.columns):
            found[id_].append(NODES.element(row))
        return found


def _proposed_ids(view: View) -> frozenset[str]:
    """Return the entities of a view that are only proposed."""
    return frozenset(row[0] for row in view.cells("node", ("id",), (f"{ANY} and {OF_NODE}", ()), is_proposed))


def _counts(edge: Edge) -> bool:
    """Return what ``has_edges`` asks of each link; in SQL, ``is_resolved and not IS_MENTION``."""
    return edge.is_resolved and not (edge.type == MENTIONS and edge.files)


def _at(versions: Iterable[Node], seq: int, newest: Node) -> Node:
    """Return the one of an entity's versions that was in force at a seq; ``newest`` where none is known."""
    return next((one for one in versions if one.version <= seq), newest)
