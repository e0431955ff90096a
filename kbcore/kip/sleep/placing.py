"""Phases 3 and 4: what waits in Unsorted, and what belongs to no domain at all.

Where the settings name a domain for its type or one of its tags, it goes there; where it was put into another
domain already, it leaves Unsorted; else it stays there for an agent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kbcore.kip.sleep.assess import ARCHIVED_ID, ORPHANS, UNSORTED_ID
from kbcore.kip.sleep.memory import Memory
from kbcore.kip.sleep.phase import LATER, PhaseResult
from kbcore.kip.sleep.writing import join, leave, stamp
from kbcore.model.concepts import ARCHIVED, DOMAIN, UNSORTED, concept_id

RECLASSIFIED: Final = "SleepReclassification"
RESOLVED: Final = "OrphanResolution"
_BY_RULE: Final = 0.85
_ORPHAN_BY_RULE: Final = 0.7
_UNPLACED: Final = 0.5
"""The confidence that a concept belongs where it was put."""

_INBOX: Final = f"""select n.id, n.type, coalesce(n.tags, []), u.id,
  (select count(*) from member o where o.from_id = n.id and o.to_id not in ('{UNSORTED_ID}', '{ARCHIVED_ID}'))
from mine n join member u on u.from_id = n.id and u.to_id = '{UNSORTED_ID}'
where len(u.files) = 0 and len(n.files) = 0 order by n.id
"""  # noqa: S608 - constants
_ORPHANS: Final = f"select n.id, n.type, coalesce(n.tags, []) {ORPHANS} order by n.id"
_STATED: Final = f"""select count(*) from mine n
where n.type <> '{DOMAIN}' and len(n.files) > 0 and n.id not in (select from_id from member)
"""  # noqa: S608 - constants
_NAMED: Final = "select name, min(id) from node where type = 'Domain' and name in (select unnest($3::varchar[]))"
FILES: Final = "stated by files"


def plan_inbox(memory: Memory) -> PhaseResult:
    """Return what leaves Unsorted without a decision."""
    step = PhaseResult(memory.work())
    rules = _Rules(memory, step)
    rows = memory.ask(_INBOX)
    leaving: list[str] = []
    for key, kind, tags, link, others in rows:
        domain = "" if others else rules.domain(kind, tags)
        if not others and not domain:
            step.leave("to be decided")
        elif step.room < 2 + len(leaving):
            step.leave(LATER)
        else:
            leaving.append(link)
            step.count("concepts moved out of Unsorted")
            if domain:
                join(step, key, domain, stamp(RECLASSIFIED, _BY_RULE))
    leave(step, leaving)
    return step


def plan_orphans(memory: Memory) -> PhaseResult:
    """Return where everything goes that belongs to no domain."""
    step = PhaseResult(memory.work())
    rules = _Rules(memory, step)
    rows = memory.ask(_ORPHANS)
    for key, kind, tags in rows[: step.room]:
        domain = rules.domain(kind, tags)
        sure = _ORPHAN_BY_RULE if domain else _UNPLACED
        join(step, key, domain or UNSORTED_ID, stamp(RESOLVED, sure))
        step.count("orphans put into a domain by rule" if domain else "orphans put into Unsorted")
    step.leave(LATER, len(rows) - step.items)
    step.leave(FILES, memory.ask(_STATED)[0][0])
    return step


class _Rules:
    """The domains that the settings name, by type and by tag, as far as there are such domains."""

    def __init__(self, memory: Memory, step: PhaseResult) -> None:
        settings = memory.settings
        wanted = {*settings.domain_of_type.values(), *settings.domain_of_tag.values()}
        known: dict[str, str] = {}
        if wanted:
            known = dict(memory.ask(f"{_NAMED} group by name", sorted(wanted)))
            known |= {name: concept_id(DOMAIN, name) for name in (UNSORTED, ARCHIVED) if name in wanted}
        step.issues += [
            f"The settings name the domain {name}, and there is none." for name in sorted(wanted - {*known})
        ]
        self._types = {kind: known[name] for kind, name in settings.domain_of_type.items() if name in known}
        self._tags = {tag: known[name] for tag, name in settings.domain_of_tag.items() if name in known}

    def domain(self, kind: str, tags: Iterable[str]) -> str:
        """Return the id of the domain for a type and tags, "" where the settings name none; Unsorted is none."""
        places = (self._types.get(kind), *(self._tags.get(tag) for tag in tags))
        found = next((place for place in places if place), "")
        return "" if found == UNSORTED_ID else found
