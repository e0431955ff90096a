"""The facts that a prompt brings along: what is known now of what it is about, within a budget of characters.

They are the answers of the tools, so that an agent goes on with the same words, and never more than a page of them.
``seq`` is that of the head before anything was read: what is written meanwhile may be in the facts, but a write that
expects this seq is refused then, and cannot undo what its author has not seen.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kbcore.errors import InvalidQuery, NotFound, Problem
from kbcore.suggest import did_you_mean, is_it
from kbcore.visible import in_quotes
from kbmcp import auditing, checking, reading, resources, wire
from kbmcp.calls import Call
from kbmcp.hints import in_tool_words
from kbmcp.replies import Payload, cut_deep, fit

if TYPE_CHECKING:
    from kbcore.view.view import View

Asked = Mapping[str, str]
"""What the user gave, by argument; nothing is empty."""

BLOCK_CHARS: Final = 16_000
"""What the facts of one prompt may take, beside the entity that it is about."""
_SHORT: Final = ["type", "title", "status", "priority", "source", "text_ref"]
_NEAREST: Final = 5
_ROWS: Final = 25
_RECORDS: Final = 10
_ACTORS: Final = 1_000
_NUMBERED: Final = re.compile(r"(.*?)([0-9]+)$")


def of_requirement(call: Call, asked: Asked, seq: int) -> Payload:
    """Return what is around a requirement. Raises: as the tools do."""
    key = asked["requirement"]
    links = call.read(lambda view: view.touching([key]))
    ends = sorted({end for link in links if link.stands for end in (link.from_id, link.to_id)} - {key})[:_ROWS]
    return _block(call, asked, seq, {"related": _few(call, ids=ends) if ends else [], **_violations(call, [key])})


def of_decisions(call: Call, asked: Asked, seq: int) -> Payload:
    """Return the latest decisions, what one may hold, and an id that is free. Raises: as the tools do."""
    from kbcore.schema_text import schema_json

    whole = schema_json(call.workspace.schema)
    edges = {name: edge for name, edge in whole["edges"].items() if name in {"affects", "supersedes", "constrained_by"}}
    found = _query(call, type="adr", sort="-updated_at", fields=_SHORT, limit=_ROWS)
    rows = {
        "decisions": found["entities"],
        "decisions_total": found["total"],
        "schema": {"entities": {"adr": whole["entities"]["adr"]}, "edges": edges},
        "free_id": call.read(lambda view: _free_id([row[0] for row in view.rows(_ADRS)])),
    }
    return _block(call, asked, seq, rows)


def of_changes(call: Call, asked: Asked, seq: int) -> Payload:
    """Return the latest records, or those since one, and what they come to. Raises: as the tools do."""
    since = _since(call, asked)
    actor = asked.get("actor", "")
    rows: Payload = call.read(lambda view: _records(view, since, actor))
    if not actor and rows["records"]:
        begin = rows["records"][-1]["seq"] - 1 if since is None else since
        if since is None:  # records are listed of which it is not proven what they changed
            begin = max(begin, call.read(lambda view: view.basis.history_from))
        wanted = wire.HistoryArguments(action="diff", seq=begin, limit=_ROWS)
        diff = auditing.history(call, wanted, [])
        rows["changed"] = {key: diff[key] for key in ("from", "to", "total", "entities", "edges")}
    return _block(call, asked, seq, rows | _violations(call, []))


def of_memory(call: Call, asked: Asked, seq: int) -> Payload:
    """Return the primer of KIP: who the agent is, and the map of what it knows. Raises: as the tools do."""
    from kbcore.kip.meta.describe import primer
    from kbcore.kip.vocabulary import vocabulary

    schema = call.workspace.schema
    shown: Payload = call.read(lambda view: primer(view, vocabulary(view.schema(schema))))
    return _block(call, asked, seq, {"primer": cut_deep(shown, BLOCK_CHARS - 1_000)})


def of_gaps(call: Call, asked: Asked, seq: int) -> Payload:
    """Return what lacks the edges that it should have, and what the rules say. Raises: as the tools do."""
    about: Payload = {"tags": [asked["tag"]]} if "tag" in asked else {}
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
    return _block(call, asked, seq, {"gaps": gaps, **_violations(call, about.get("ids", []))})


def entity(call: Call, key: str) -> Payload:
    """Return what is known of an entity. Raises: ``NotFound``, with the ids that are most like it."""
    from kbcore.query.known import near_ids

    try:
        return resources.RESOURCES["entity"].read(call, key)
    except NotFound as error:
        near = call.read(lambda view: near_ids(view.rows, key, _NEAREST))
        raise NotFound(error.message, hint=is_it(near) or error.hint) from error


_COUNT: Final = "select count(*) from record where file <> '' and seq > ? and ? in ('', actor)"
_ADRS: Final = "select id from node where type = 'adr' order by id"


def _free_id(ids: Sequence[str]) -> str:
    """Return the id that follows the others, by the prefix that most of them have."""
    found = [match for key in ids if (match := _NUMBERED.fullmatch(key))]
    if not found:
        return "ADR-1"
    prefix = Counter(match[1] for match in found).most_common(1)[0][0]
    last = max((match[2] for match in found if match[1] == prefix), key=int)
    return f"{prefix}{int(last) + 1:0{len(last)}}"


def _query(call: Call, **arguments: Any) -> Payload:
    return reading.query(call, wire.QueryArguments(**arguments), [])


def _few(call: Call, **arguments: Any) -> list[Payload]:
    found: list[Payload] = _query(call, **arguments, fields=_SHORT, limit=_ROWS)["entities"]
    return found


def _violations(call: Call, ids: list[str]) -> Payload:
    from kbcore.checks import run_checks

    report = call.read(lambda view: run_checks(call.workspace, view, branch=call.branch, ids=ids))
    return {
        "violations": [checking.violation_json(call, one) for one in report.violations[:_ROWS]],
        "violations_total": len(report.violations),
        "rules": dict(Counter(one.rule for one in report.violations)),
        "rules_not_run": [run.id for run in report.rules if run.status == "not_run"],
    }


def _records(view: View, since: int | None, actor: str) -> Payload:
    from kbcore import completing
    from kbcore.history.log import log

    found = log(view, actor=actor, limit=_RECORDS if since is None else _ROWS)
    if actor and not found:
        near = did_you_mean(actor, completing.actors(view, "", most=_ACTORS).values)
        raise NotFound(f"{in_quotes(actor)} has written no record here.", hint=near)
    total = view.rows(_COUNT, [since or 0, actor])[0][0]
    return {"records": [record for record in found if record["seq"] > (since or 0)], "records_total": total}


def _since(call: Call, asked: Asked) -> int | None:
    """Return the record after which the review begins. Raises: ``InvalidQuery``."""
    from kbcore.history.moment import is_seq

    if "since" not in asked:
        return None
    text, head = asked["since"].strip(), call.store.head().seq
    if is_seq(text) and int(text) <= head:
        return int(text)
    hint = "Take the seq of a record, or leave it out for the latest records."
    message = f"`since` is the number of a record, from 0 to {head}, not {in_quotes(text)}."
    raise InvalidQuery(message, hint=hint, details=[Problem("$.since", "bad_value", message, hint)])


def _block(call: Call, asked: Asked, seq: int, facts: Payload) -> Payload:
    """Return the facts as one document that says what it speaks of, cut to its budget."""
    shown = {"repository": call.repository, "branch": call.branch, "seq": seq, "asked": dict(asked), **facts}
    lists: list[tuple[str, Payload]] = [(name, shown) for name in facts if isinstance(facts[name], list)]
    lists += [("first", gap) for gap in facts.get("gaps", [])]
    lists += [(name, shown["changed"]) for name in ("entities", "edges") if "changed" in shown]
    fitted = fit(shown, lists, BLOCK_CHARS)
    if "omitted" in fitted:
        fitted["note"] = in_tool_words(
            "The lists are cut, as `omitted` counts: {kb_query}, {kb_check} and {kb_history} give the rest.",
            is_dotted=call.is_dotted,
        )
    whole: Payload = cut_deep(fitted, BLOCK_CHARS + 1_000)
    return whole
