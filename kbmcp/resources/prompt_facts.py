"""The facts that a prompt brings along: what is known now of what it is about, within a budget of characters.

They are the answers of the tools, so that an agent continues with the same words, and never more than a page of them.
``seq`` is that of the head before anything was read: what is written meanwhile may be in the facts, but a write that
expects this seq is refused then, and cannot undo what its author has not seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kbcore.errors import InvalidQuery, NotFound, Problem
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import did_you_mean, is_it
from kbmcp.resources import resource_list
from kbmcp.tools import argument_models, check, history, logic, query
from kbmcp.tools.answers import Payload, cut_deep, fit, leading, length_of
from kbmcp.tools.call import Call
from kbmcp.tools.entity_parts import cut_entity
from kbmcp.tools.hints import in_tool_words, of_tools

if TYPE_CHECKING:
    from kbcore.view.view import View

Asked = Mapping[str, str]
"""The values that the user gave, by argument; none is empty."""

ENTITY_CHARS: Final = 1_800
"""The most characters of the entity that a prompt is about."""
_SHORT: Final = ["type", "title", "status", "priority", "source", "text_ref"]
_OF_RECORD: Final = ("seq", "at", "actor", "message", "summary")
_NOTE_CHARS: Final = 150
_ENVELOPE_CHARS: Final = 250
"""The most characters of the names of the repository and of the branch, with the text around them."""
_NEAREST: Final = 5
_ROWS: Final = 25
_RECORDS: Final = 10
_ACTORS: Final = 1_000
_COUNT: Final = "select count(*) from record where file <> '' and seq > ?"


def of_requirement(call: Call, asked: Asked, seq: int, room: int) -> Payload:
    """Return what is around a requirement, in so many characters. Raises: as the tools do."""
    key = asked["requirement"]
    links = call.read(lambda view: view.touching([key]))
    ends = sorted({end for link in links if link.is_resolved for end in (link.from_id, link.to_id)} - {key})[:_ROWS]
    rows = {"related": _few(call, ids=ends) if ends else [], **_violations(call, [key])}
    return _block(call, asked, seq, room, rows)


def of_decisions(call: Call, asked: Asked, seq: int, room: int) -> Payload:
    """Return the latest decisions, what one may hold, and an id that is free. Raises: as the tools do."""
    from kbcore.editing.creation import take_id
    from kbcore.editing.documents import WriteTarget
    from kbcore.model.schema_text import schema_json

    target = WriteTarget(call.workspace, call.branch, call.author, call.read, call.follows_head)
    whole = schema_json(call.workspace.schema)
    edges = {name: edge for name, edge in whole["edges"].items() if name in {"affects", "supersedes", "constrained_by"}}
    found = _query(call, type="adr", sort="-updated_at", fields=_SHORT, limit=_ROWS)
    rows = {
        "decisions": found["entities"],
        "decisions_total": found["total"],
        "schema": {"entities": {"adr": whole["entities"]["adr"]}, "edges": edges},
        "free_id": take_id(target, "adr", dry_run=True).id,
    }
    return _block(call, asked, seq, room, rows)


def of_changes(call: Call, asked: Asked, seq: int, room: int) -> Payload:
    """Return the latest records, or those since one, and what they come to. Raises: as the tools do."""
    since, point = _since(call, asked)
    actor = asked.get("actor", "")
    rows: Payload = call.read(lambda view: _records(view, since, actor))
    if not actor and rows["records"]:
        begin = rows["records"][-1]["seq"] - 1 if since is None else since
        if since is None:  # records are listed of which it is not proven what they changed
            begin = max(begin, call.read(lambda view: view.basis.history_from))
        wanted = argument_models.HistoryArguments(action="diff", seq=begin, limit=_ROWS)
        diff = history.history(call, wanted, [])
        rows["changed"] = {key: diff[key] for key in ("from", "to", "total")}
        rows["changed"] |= {key: [_briefly(one) for one in diff[key]] for key in ("entities", "edges")}
    rows |= {"since": point} if point else {}
    rows["records"] = [{name: one[name] for name in _OF_RECORD} for one in rows["records"]]
    return _block(call, asked, seq, room, rows | _violations(call, []))


def _briefly(change: Payload) -> Payload:
    """Return a change without the element before and after: its name, what happened, and which fields differ."""
    kept = {name: value for name, value in change.items() if name not in {"before", "after", "fields"}}
    return kept | ({"fields": list(change["fields"])} if "fields" in change else {})


def of_memory(call: Call, asked: Asked, seq: int, room: int) -> Payload:
    """Return the map of what is known: how many members each domain has. Raises: as the tools do."""
    from kbcore.kip.meta.describe import primer
    from kbcore.kip.vocabulary import vocabulary

    schema = call.workspace.schema
    shown: Payload = call.read(lambda view: primer(view, vocabulary(view.schema(schema))))
    domains = {one["name"]: one["members"] for one in shown["domain_map"] if one["members"]}
    share = max(0, room - _ENVELOPE_CHARS) // 2
    known = {"domains": _largest(domains, share), "outside_domains": _largest(shown["outside_domains"], share)}
    return _block(call, asked, seq, room, known)


def of_workspace(call: Call, asked: Asked, seq: int, room: int) -> Payload:
    """Return what the Prolog workspace has: how many clauses, which predicates and files. Raises: as the tools do."""
    found, listed = logic.symbols(call), logic.list_files(call)
    clauses = logic.snapshot(call)["clauseCount"]
    files = [one["filename"] for one in listed["files"]]
    return _block(call, asked, seq, room, {"clauses": clauses, "predicates": found["predicates"], "files": files})


def _largest(counts: Mapping[str, int], room: int) -> Payload:
    """Return the largest counts by name, as many as fit into so many characters."""
    rows = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    return dict(rows[: leading(rows, room)])


def of_gaps(call: Call, asked: Asked, seq: int, room: int) -> Payload:
    """Return what lacks the edges that it should have, and what the rules say.

    Raises: ``NotFound`` for a tag that nothing has, with those that are most like it; as the tools do.
    """
    about: Payload = {"tags": [asked["tag"]]} if "tag" in asked else {}
    if "tag" in asked:
        call.read(lambda view: _check_tag(view, asked["tag"]))
    if "requirement" in asked:
        about = {"ids": [asked["requirement"]]}
    wanted: list[Payload] = [
        {"type": "req", "lacks": ["specified_by"]},
        {"type": "req", "lacks": ["verified_by"]},
        {"type": "req", "lacks": ["^implements"]},
    ]
    if "ids" not in about:
        wanted += [{"type": "test", "lacks": ["^verified_by"]}, {"type": "symbol", "lacks": ["implements"]}]
    gaps = []
    for one in wanted:
        found = _query(call, **one, **about, fields=_SHORT, limit=_ROWS)
        gaps.append({"query": {**one, **about}, "total": found["total"], "first": found["entities"]})
    return _block(call, asked, seq, room, {"gaps": gaps, **_violations(call, about.get("ids", []))})


def _check_tag(view: View, tag: str) -> None:
    """Refuse a tag that nothing has: no gap of it would read as if nothing were missing. Raises: ``NotFound``."""
    from kbcore.query import Query
    from kbcore.query.empty_result import filters_of

    [found] = filters_of(view, Query(tags=(tag,)))
    if found.unknown:
        raise NotFound(f"Nothing has the tag {in_quotes(tag)}.", hint=is_it(found.near))


def entity(call: Call, key: str) -> Payload:
    """Return what is known of an entity, briefly. Raises: ``NotFound``, with the ids that are most like it."""
    from kbcore.query.data_names import near_ids

    try:
        return _cut(resource_list.RESOURCES["entity"].read(call, key), call)
    except NotFound as error:
        near = call.read(lambda view: near_ids(view.rows, key, _NEAREST))
        raise NotFound(error.message, hint=is_it(near) or error.remedy) from error


def _cut(shown: Payload, call: Call) -> Payload:
    """Return the answer about one entity within its budget: only the names of its edges, and long values cut."""
    if length_of(shown) <= ENTITY_CHARS:
        return shown
    whole = {name: value for name, value in shown["entities"][0].items() if name != "edges"}
    edges = [{name: edge[name] for name in ("type", "from", "to")} for edge in shown["edges"]]
    found, cuts = cut_entity(whole, ENTITY_CHARS // 2)
    brief = {name: shown[name] for name in ("branch", "seq")} | {"entities": [found], "edges": edges}
    for one in cuts:
        one.pop("shown", None)
    brief |= {"cut": [one["field"] for one in cuts][:_ROWS]} if cuts else {}
    note = of_tools("It is cut: {kb_query} with this id in `ids` and `edges` gives all of it.")
    return fit(brief, [("edges", brief)], ENTITY_CHARS - 100) | {"note": in_tool_words(note, is_dotted=call.is_dotted)}


def _query(call: Call, **arguments: Any) -> Payload:
    return query.query(call, argument_models.QueryArguments(**arguments), [])


def _few(call: Call, **arguments: Any) -> list[Payload]:
    found: list[Payload] = _query(call, **arguments, fields=_SHORT, limit=_ROWS)["entities"]
    return found


def _violations(call: Call, ids: list[str]) -> Payload:
    from kbcore.checks import run_checks

    def on(view: View) -> Payload:
        report = run_checks(call.workspace, view, branch=call.branch, ids=ids)
        return {
            "violations": [check.violation_json(call, one) for one in report.violations[:_ROWS]],
            "violations_total": len(report.violations),
            "rules": dict(Counter(one.rule for one in report.violations)),
            "rules_not_run": [run.id for run in report.rules if run.status == "not_run"],
        }

    return {name: value for name, value in call.answer(on).items() if name != "seq"}


def _records(view: View, since: int | None, actor: str) -> Payload:
    from kbcore.query import completion
    from kbcore.store.history.log import RecordFilter, log
    from kbcore.store.history.when import When

    found = log(view, RecordFilter(actor=actor), limit=_RECORDS if since is None else _ROWS)
    if actor and not found:
        near = did_you_mean(actor, completion.actors(view, "", most=_ACTORS).values)
        raise NotFound(f"{in_quotes(actor)} has written no record here.", hint=near)
    if actor:
        total = len(RecordFilter(actor=actor, since=When("", seq=since or 0)).seqs(view))
    else:
        total = view.rows(_COUNT, [since or 0])[0][0]
    return {"records": [record for record in found if record["seq"] > (since or 0)], "records_total": total}


def _since(call: Call, asked: Asked) -> tuple[int | None, str]:
    """Return the record after which the review begins, and which point that is in words. Raises: ``InvalidQuery``."""
    from kbcore.store.history import moment
    from kbcore.store.history.when import point_in

    if "since" not in asked:
        return None, ""
    try:
        point = point_in(call.workspace, call.branch, asked["since"])
        return call.store.read(lambda view: (moment.after(view, point), moment.said_of(view, point, is_since=True)))
    except InvalidQuery as error:
        problem = Problem("$.since", "bad_value", error.message, error.remedy)
        raise InvalidQuery(error.message, hint=error.remedy, details=[problem], says_first=True) from error


def _block(call: Call, asked: Asked, seq: int, room: int, facts: Payload) -> Payload:
    """Return the facts as one document that names its branch and seq, cut to so many characters."""
    shown = {"repository": call.repository, "branch": call.branch, "seq": seq, "asked": dict(asked), **facts}
    lists: list[tuple[str, Payload]] = [(name, shown) for name in facts if isinstance(facts[name], list)]
    lists += [("first", gap) for gap in facts.get("gaps", [])]
    lists += [(name, shown["changed"]) for name in ("entities", "edges") if "changed" in shown]
    fitted = fit(shown, lists, room - _NOTE_CHARS) if lists else shown
    if "omitted" in fitted and "predicates" not in facts:
        fitted["note"] = in_tool_words(
            of_tools("The lists are cut, as `omitted` counts: {kb_query}, {kb_check} and {kb_history} give the rest."),
            is_dotted=call.is_dotted,
        )
    whole: Payload = cut_deep(fitted, room)
    return whole
