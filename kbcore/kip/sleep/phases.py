"""The nine phases in the order in which they run; each keeps its number.

Duplicates are merged before domains are given, so that nothing is put into Unsorted whose other half has a domain.
"""

from __future__ import annotations

from typing import Final

from kbcore.kip.sleep import decay, domains, duplicates, events, finish, placing, similar, tasks
from kbcore.kip.sleep.phase import Phase

PHASES: Final = (
    Phase(1, "assess", "look at the memory"),
    Phase(2, "tasks", "archive what tasks name, list the rest", tasks.plan),
    Phase(similar.MERGING, "duplicates", "merge concepts of one name", duplicates.plan),
    Phase(3, "inbox", "move what has a domain out of Unsorted", placing.plan_inbox),
    Phase(4, "orphans", "put what belongs to no domain into one", placing.plan_orphans),
    Phase(5, "events", "mark events that grew old", events.plan),
    Phase(7, "decay", "lower the confidence of what was not confirmed", decay.plan),
    Phase(8, "domains", "archive empty domains", domains.plan),
    Phase(finish.NUMBER, "finish", "write down the cycle", finish.plan),
)
NUMBERS: Final = tuple(sorted(one.number for one in PHASES))
