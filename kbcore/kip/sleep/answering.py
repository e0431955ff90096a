"""The KIP commands that answer an item of the work list. Stored values are parameters, never text of KIP.

A parameter whose value is null is for the agent to fill in.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kbcore.kip.sleep.assess import UNSORTED_ID
from kbcore.model.graph import Node

_META: Final = 'WITH METADATA { source: "SleepCycle", author: "$system" }'


class AnswerOption(msgspec.Struct, frozen=True):
    """One way to answer: what it means, and the commands that say so, to be sent with these parameters."""

    means: str
    commands: tuple[str, ...]
    parameters: dict[str, Any]


def task(key: str, now: str) -> tuple[AnswerOption, ...]:
    """Return how a task ends, once what it asks for is done or cannot be."""
    end = (
        f"UPSERT {{ CONCEPT {{ {{id: :id}} "
        f"SET ATTRIBUTES {{ status: :status, completed_at: :now, result: :result }} }} }} {_META}"
    )
    given = {"id": key, "now": now, "result": None}
    return (
        AnswerOption("it is done; say with which result", (end,), {**given, "status": "completed"}),
        AnswerOption("it cannot be done; say why", (end,), {**given, "status": "failed"}),
    )


def duplicate(gone: Node, kept: Node, known: Any) -> tuple[AnswerOption, ...]:
    """Return what two concepts that look alike come to: one, or two that are distinguished for good."""
    merge = "MERGE CONCEPT ?gone INTO ?kept WHERE { ?gone {id: :gone} ?kept {id: :kept} }"
    distinguish = f"UPSERT {{ CONCEPT {{ {{id: :gone}} SET ATTRIBUTES {{ distinct_from: :distinct }} }} }} {_META}"
    before = known if isinstance(known, list) else []
    return (
        AnswerOption("they are one", (merge,), {"gone": gone.id, "kept": kept.id}),
        AnswerOption("they are two", (distinguish,), {"gone": gone.id, "distinct": [*before, kept.id]}),
    )


def event(key: str, now: str) -> tuple[AnswerOption, ...]:
    """Return how an event is consolidated, or put aside."""
    lasting = (
        "UPSERT { CONCEPT ?lasting { {type: :type, name: :name} SET ATTRIBUTES { description: :description } "
        'SET PROPOSITIONS { ("derived_from", {id: :id}) ("belongs_to_domain", {type: "Domain", name: :domain}) } } '
        'CONCEPT { {id: :id} SET ATTRIBUTES { consolidation_status: "completed", consolidated_at: :now } '
        'SET PROPOSITIONS { ("consolidated_to", ?lasting) } } } '
        'WITH METADATA { source: "SleepConsolidation", author: "$system", confidence: 0.8 }'
    )
    nothing = (
        "UPSERT { CONCEPT { {id: :id} "
        f'SET ATTRIBUTES {{ consolidation_status: "completed", consolidated_at: :now }} }} }} {_META}'
    )
    open_ = dict.fromkeys(("type", "name", "description", "domain"))
    return (
        AnswerOption("something of it lasts; write that", (lasting,), {"id": key, "now": now, **open_}),
        AnswerOption("nothing of it lasts", (nothing,), {"id": key, "now": now}),
    )


def unsorted(key: str) -> tuple[AnswerOption, ...]:
    """Return how a concept gets out of Unsorted."""
    join = (
        'UPSERT { CONCEPT { {id: :id} SET PROPOSITIONS { ("belongs_to_domain", {type: "Domain", name: :domain}) } } } '
        'WITH METADATA { source: "SleepReclassification", author: "$system", confidence: 0.85 }'
    )
    leave = 'DELETE PROPOSITIONS ?link WHERE { ?link ({id: :id}, "belongs_to_domain", {id: :unsorted}) }'
    return (
        AnswerOption(
            "it belongs to that domain, which must be there",
            (join, leave),
            {"id": key, "unsorted": UNSORTED_ID, "domain": None},
        ),
    )


def domain(key: str) -> tuple[AnswerOption, ...]:
    """Return what a domain that is too small or too large comes to."""
    keep = f"UPSERT {{ CONCEPT {{ {{id: :id}} SET ATTRIBUTES {{ keep: true }} }} }} {_META}"
    merge = 'MERGE CONCEPT ?gone INTO ?kept WHERE { ?gone {id: :id} ?kept {type: "Domain", name: :domain} }'
    return (
        AnswerOption("it stays as it is", (keep,), {"id": key}),
        AnswerOption("all of it belongs to another domain", (merge,), {"id": key, "domain": None}),
    )
