"""Nodes, links and walks joined to a relation; and the sources that hold a bound element. Pure."""

from __future__ import annotations

from typing import Final

from kbcore.kip import algebra
from kbcore.kip.sql.relation import Bound, SqlRelation, closed
from kbcore.kip.sql.statement import SqlStatement
from kbcore.kip.vocabulary import PREDICATES
from kbcore.model.concepts import DEFINING, DOMAIN, SCHEMA_DOMAIN

LOOKED_UP: Final = ("id", "from_id", "to_id", "type")
"""Facts of a link that ``narrowing`` has looked up."""


def match_node(st: SqlStatement, relation: SqlRelation, step: algebra.MatchNode) -> None:
    """Join the nodes of a pattern."""
    old = relation.columns.get(step.variable)
    is_virtual = st.may_be_virtual(step) and (old is None or old.is_open or old.is_virtual)
    alias = st.fresh("n")
    constant: list[tuple[str, ...]] = [] if step.id is None else [()]
    table, stored = st.nodes(with_vocabulary=is_virtual), st.nodes(with_vocabulary=False)
    if step.ids is not None:
        table = stored = st.among(table, step.ids)
    relation.join(table, alias, (f"{alias}.id",), *constant, stored=stored)
    if step.type is not None:
        relation.where(f"{alias}.type = {st.bind(step.type)}")
    if step.id is not None:
        relation.where(f"{alias}.id = {st.bind(step.id)}")
    if step.name is not None:
        relation.where(f"{name_of(st, alias, step.type)} = {st.bind(step.name)}")
    found = Bound(f"{alias}.id", "node", relation, is_virtual=is_virtual).with_ids(step.ids)
    relation.bind(step.variable, found.as_found(alias, "", (step.type or "", step.name or "")))


def name_of(st: SqlStatement, alias: str, type_: str | None = None) -> str:
    """Return the name of a node; ``type_`` is its type as KB calls it, where that is known."""
    names = st.known.names
    if type_:
        return f"{alias}.id" if names.is_named_by_id(type_) else f"{alias}.name"
    native = st.bind(tuple(sorted(names.native)))
    return f"case when list_contains({native}, {alias}.type) then {alias}.id else {alias}.name end"


def match_link(st: SqlStatement, relation: SqlRelation, step: algebra.MatchLink) -> None:
    """Join the links of a pattern, and the elements at their ends."""
    is_virtual = _may_be_virtual(st, relation, step)
    alias = st.fresh("l")
    keys: list[tuple[str, ...]] = [(f"{alias}.id",)]
    if not st.has_kinds(step.predicates):
        keys.append((f"{alias}.from_id", f"{alias}.to_id"))
    if step.rows is not None:
        relation.join(st.constants(LOOKED_UP, step.rows), alias, *keys)
    else:
        table, stored = st.links(with_vocabulary=is_virtual), st.links(with_vocabulary=False)
        relation.join(table, alias, *keys, *([()] if step.id is not None else []), stored=stored)
        relation.where(f"{alias}.is_resolved")
        if step.id is not None:
            relation.where(f"{alias}.id = {st.bind(step.id)}")
        if step.predicates:
            relation.where(_is_one_of(st, f"{alias}.type", step.predicates))
    kinds = st.end_kinds(step.predicates)
    subject = Bound(f"{alias}.from_id", kinds[0], relation, is_virtual=is_virtual).with_ids(step.subject_ids)
    relation.bind(step.subject, subject)
    target = Bound(f"{alias}.to_id", kinds[1], relation, is_virtual=is_virtual).with_ids(step.object_ids)
    relation.bind(step.object, target)
    if step.predicate:
        relation.bind(step.predicate, Bound(f"{alias}.type", "name", relation))
    found = Bound(f"{alias}.id", "link", relation, is_virtual=is_virtual).with_ids(step.ids)
    relation.bind(step.variable, found.as_found("", "" if step.rows is not None else alias))


def _may_be_virtual(st: SqlStatement, relation: SqlRelation, step: algebra.MatchLink) -> bool:
    """Return whether the vocabulary may have a link of a pattern; its links lead from definitions to one domain."""
    if step.predicates and PREDICATES.isdisjoint(step.predicates):
        return False
    ends = [relation.columns.get(name) for name in (step.subject, step.object)]
    patterns = [("", "") if one is None or one.is_open else one.pattern for one in ends]
    is_definition = patterns[0][0] in {"", *DEFINING}
    is_domain = patterns[1][0] in {"", DOMAIN} and patterns[1][1] in {"", SCHEMA_DOMAIN}
    return is_definition and is_domain and (step.id is None or step.id in st.known.links)


def _is_one_of(st: SqlStatement, column: str, names: tuple[str, ...]) -> str:
    if len(names) == 1:
        return f"{column} = {st.bind(names[0])}"
    return f"{column} in ({', '.join(st.bind(name) for name in names)})"


def node_of(st: SqlStatement, bound: Bound) -> str:
    """Return the source that holds the node of a column, joined if need be; its columns are null for what is none."""
    if not bound.node:
        bound.node = st.fresh("n")
        table = st.nodes(with_vocabulary=bound.is_virtual)
        _look_up(st, bound, table, bound.node, is_certain=bound.kind == "node")
    return bound.node


def link_of(st: SqlStatement, bound: Bound) -> str:
    """Return the source that holds the link of a column, joined if need be; its columns are null for what is none."""
    if not bound.link:
        bound.link = st.fresh("l")
        table = st.links(with_vocabulary=bound.is_virtual)
        _look_up(st, bound, table, bound.link, is_certain=bound.kind == "link")
    return bound.link


def _look_up(st: SqlStatement, bound: Bound, table: str, alias: str, *, is_certain: bool) -> None:
    if bound.ids is not None:
        table = st.among(table, bound.ids)
    if is_certain and not bound.is_open:
        bound.home.join(table, alias, (f"{alias}.id",))
        bound.home.equate(f"{alias}.id", bound.sql)
    else:
        bound.home.left_join(table, alias, f"{alias}.id = {bound.sql}")


def walk(st: SqlStatement, relation: SqlRelation, step: algebra.WalkJoin) -> SqlRelation:
    """Return the relation joined with the ends of walks, which begin at an end that is bound, if there is one.

    Of a walk only its two ends and how many links it has so far are kept, the latter no further than counts: so cycles
    come to an end.
    """
    is_virtual = step.predicate in PREDICATES or not step.least
    table = st.links(with_vocabulary=is_virtual)
    of_predicate = f"l.is_resolved and l.type = {st.bind(step.predicate)}"
    firm = {name for name, one in relation.columns.items() if not one.is_open}
    is_reversed = step.subject not in firm and step.object in firm
    start, end = (step.object, step.subject) if is_reversed else (step.subject, step.object)
    near, far = ("to_id", "from_id") if is_reversed else ("from_id", "to_id")
    if start in firm:
        cte, relation = closed(st, relation, keep=(step.subject, step.object))
        column = relation.columns[start].sql.partition(".")[2]
        seeds = f"select distinct {column} as id from {cte}"  # noqa: S608 - fixed names
    elif not step.least:
        nodes = st.nodes(with_vocabulary=True)
        seeds = f"select id from {nodes} n union all select id from {table} l where is_resolved"  # noqa: S608 - fixed names
    else:
        seeds = f"select distinct {near} as id from {table} l where {of_predicate}"  # noqa: S608 - fixed names
    most = step.least if step.most is None else step.most
    taken = f"select {near}, {far} from {table} l where {of_predicate}"  # noqa: S608 - fixed names
    links = st.define(
        "e", ("near", "far"), st.constants(("near", "far"), step.rows)[1:-1] if step.rows is not None else taken
    )
    steps = "w.steps + 1" if step.most is not None else f"least(w.steps + 1, {most})"
    go_on = f" where w.steps < {most}" if step.most is not None else ""
    walked = st.define(
        "w",
        ("start", "far", "steps"),
        lambda name: (
            f"select id, id, 0 from ({seeds}) union select w.start, e.far, {steps} "  # noqa: S608 - fixed names
            f"from {name} w join {links} e on e.near = w.far{go_on}"
        ),
    )
    select = f"(select distinct start, far from {walked} where steps >= {step.least})"  # noqa: S608 - fixed names
    alias = st.fresh("w")
    relation.join(select, alias, (f"{alias}.start", f"{alias}.far"))
    kinds = st.end_kinds((step.predicate,)) if step.least else ("end", "end")
    for variable, column, kind in zip((start, end), ("start", "far"), kinds[:: -1 if is_reversed else 1], strict=True):
        ids = step.subject_ids if variable == step.subject else step.object_ids
        relation.bind(variable, Bound(f"{alias}.{column}", kind, relation, is_virtual=is_virtual).with_ids(ids))
    return relation
