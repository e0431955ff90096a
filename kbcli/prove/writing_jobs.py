"""The jobs that write, or that judge what was written."""

from __future__ import annotations

from typing import Final

from kbcli.prove.job import Job, JobStep, Script, bash
from kbcli.prove.reading_jobs import COLLEAGUE, GRAPH, history, opened, query, search, upsert

DECISION: Final = "Retry messages for a day"
_NODE: Final = "create_entities"


def _create(name: str, kind: str, *observations: str, client: str = "agent") -> JobStep:
    node = {"name": name, "entityType": kind, "observations": [*observations]}
    return JobStep(_NODE, {"entities": [node]}, client=client)


def _relate(*relations: tuple[str, str, str]) -> JobStep:
    made = [{"from": source, "relationType": kind, "to": target} for source, kind, target in relations]
    return JobStep("create_relations", {"relations": made})


def _observe(name: str, *observations: str) -> JobStep:
    return JobStep("add_observations", {"observations": [{"entityName": name, "contents": [*observations]}]})


def _forget(name: str, *observations: str) -> JobStep:
    return JobStep("delete_observations", {"deletions": [{"entityName": name, "observations": [*observations]}]})


def _delete_nodes(*names: str) -> JobStep:
    return JobStep("delete_entities", {"entityNames": [*names]})


_SUPERSEDE: Final = Job(
    "supersede",
    f"Record the decision '{DECISION}'; it supersedes ADR-0004.",
    holds=(DECISION, "superseded", "supersedes"),
    not_holds=("accepted status",),
    scripts={
        "kb": Script(
            (
                upsert(
                    {"id": "ADR-0005", "type": "adr", "title": DECISION, "status": "accepted"},
                    {"id": "ADR-0004", "status": "superseded"},
                    edges=[{"type": "supersedes", "from": "ADR-0005", "to": "ADR-0004"}],
                ),
            ),
            afterwards=(query(ids=["ADR-0004", "ADR-0005"], edges=True, fields=["title", "status"]),),
        ),
        "memory": Script(
            (
                _create("ADR-0005", "adr", DECISION, "status: accepted"),
                _relate(("ADR-0005", "supersedes", "ADR-0004")),
                _forget("ADR-0004", "status: accepted"),
                _observe("ADR-0004", "status: superseded"),
            ),
            afterwards=(opened("ADR-0004", "ADR-0005"),),
        ),
        "markdown": Script(
            (
                bash(
                    "printf -- '---\\nid: ADR-0005\\nstatus: accepted\\nlinks:\\n  - supersedes: ADR-0004\\n---\\n# "
                    f"{DECISION}\\n' > docs/decisions/0005-retry-a-day.md"
                    " && sed -i 's/^status: .*/status: superseded/' docs/decisions/0004-retry.md"
                ),
            ),
            afterwards=(bash("cat docs/decisions/000[45]*"),),
        ),
    },
)
_UNDO_HOUR: Final = Job(
    "undo-hour",
    "Undo all that you wrote in the last hour; keep what others wrote.",
    holds=("Retry failed messages three times", "Gothenburg is slow"),
    not_holds=("wrong idea", "Never retry"),
    scripts={
        "kb": Script(
            (history("revert", since="1h", dry_run=True), history("revert", since="1h")),
            before=(
                upsert({"type": "note", "title": "A wrong idea"}),
                upsert({"type": "note", "title": "Gothenburg is slow"}, client=COLLEAGUE),
                upsert({"id": "ADR-0004", "title": "Never retry"}),
                upsert({"type": "task", "title": "Follow the wrong idea"}),
            ),
            afterwards=(query(type="note", fields=["title"]), query(ids=["ADR-0004"]), query(type="task")),
        ),
        "memory": Script(impossible="It keeps neither times, authors nor earlier values."),
        "markdown": Script(
            (
                bash("git log --since=1.hour --author=Leila --format='%h %s'"),
                bash("git revert --no-edit $(git log --since=1.hour --author=Leila --format=%h) || git status --short"),
            ),
            before=(
                bash("echo '- A wrong idea' >> NOTES.md && git commit -qam 'A wrong idea'"),
                bash("echo '- [ ] TASK-9 Gothenburg is slow' >> TASKS.md && git -c user.name=tomas commit -qam slow"),
                bash("sed -i 's/^# .*/# Never retry/' docs/decisions/0004-retry.md && git commit -qam 'Never'"),
                bash("echo 'Follow the wrong idea' > docs/todo.md && git add docs && git commit -qm 'Follow it'"),
            ),
            afterwards=(bash("cat NOTES.md TASKS.md docs/decisions/0004-retry.md docs/todo.md"),),
        ),
    },
)
_SENTENCE: Final = "The carrier answers no calls before nine"
_REMEMBER: Final = Job(
    "remember",
    f"Remember: {_SENTENCE}.",
    holds=(_SENTENCE,),
    scripts={
        "kb": Script(
            (upsert({"type": "note", "title": _SENTENCE}),), afterwards=(query(text="carrier calls", fields=["title"]),)
        ),
        "memory": Script((_create("carrier-calls", "note", _SENTENCE),), afterwards=(search("carrier answers"),)),
        "markdown": Script((bash(f"echo '- {_SENTENCE}' >> NOTES.md"),), afterwards=(bash("cat NOTES.md"),)),
    },
)
_TASKS: Final = Job(
    "task-list",
    "Add tasks 'Design the window', 'Code the window' and 'Review the window', the last one on top; close TASK-1; show "
    "what is open.",
    facts=("Review the window", "Design the window", "Code the window", "Ask the depots"),
    holds=("Review the window", "done"),
    not_holds=("Design the window",),
    scripts={
        "kb": Script(
            (
                upsert(
                    {"type": "task", "title": "Design the window"},
                    {"type": "task", "title": "Code the window"},
                    {"type": "task", "title": "Review the window", "attributes": {"order": 0}},
                    {"id": "TASK-1", "status": "done"},
                ),
                query(type="task", where=["status!=done"], sort="order", fields=["title"]),
            ),
            afterwards=(
                query(type="task", where=["status!=done"], sort="order", fields=["title"], limit=1),
                query(ids=["TASK-1"], fields=["status"]),
            ),
        ),
        "memory": Script(
            (
                JobStep(
                    _NODE,
                    {
                        "entities": [
                            {"name": "TASK-3", "entityType": "task", "observations": ["Design the window", "order: 3"]},
                            {"name": "TASK-4", "entityType": "task", "observations": ["Code the window", "order: 4"]},
                            {"name": "TASK-5", "entityType": "task", "observations": ["Review the window", "order: 0"]},
                        ]
                    },
                ),
                _forget("TASK-1", "status: open"),
                _observe("TASK-1", "status: done"),
                search("task"),
            ),
            afterwards=(opened("TASK-1", "TASK-5"),),
            is_read=True,
        ),
        "markdown": Script(
            (
                bash(
                    "sed -i -e '1i - [ ] Review the window' -e 's/^- \\[ \\] \\(TASK-1.*\\)/- [x] \\1 (done)/'"
                    " -e '$a - [ ] Design the window\\n- [ ] Code the window' TASKS.md; grep '\\[ \\]' TASKS.md"
                ),
            ),
            afterwards=(bash("grep '\\[ \\]' TASKS.md | head -1; grep TASK-1 TASKS.md"),),
        ),
    },
)
_TEXT_OF_REQ_4: Final = (
    "Within five minutes of a failed attempt the recipient gets a message that says why it failed and when the next "
    "attempt is. Without it, every second failed delivery costs us a call."
)
_RENAME: Final = Job(
    "rename",
    "REQ-004 is called REQ-104 from now on, everywhere.",
    holds=("REQ-104", "SCN-004", "REQ-005", "waymark.notify.send"),
    not_holds=("REQ-004",),
    scripts={
        "kb": Script(
            (upsert(rename={"REQ-004": "REQ-104"}, sync=True),),
            afterwards=(
                bash("grep -rn 'REQ-004' docs --include=*.md --include=*.yaml | grep -v 'former_ids: '"),
                query(ids=["REQ-104"], impact=True, fields=["title"]),
            ),
        ),
        "memory": Script(
            (
                opened("REQ-004"),
                _create(
                    "REQ-104",
                    "req",
                    *("The recipient is told when a delivery failed", "status: open", "priority: must", "owner: leila"),
                    _TEXT_OF_REQ_4,
                ),
                _relate(
                    ("REQ-104", "specified_by", "SCN-004"),
                    ("REQ-104", "depends_on", "REQ-002"),
                    ("REQ-005", "depends_on", "REQ-104"),
                    ("waymark.notify.send", "implements", "REQ-104"),
                ),
                _delete_nodes("REQ-004"),
            ),
            afterwards=(opened("REQ-104"),),
        ),
        "markdown": Script(
            (
                bash("grep -rn 'REQ-004' . --exclude-dir=.git"),
                bash("grep -rl 'REQ-004' . --exclude-dir=.git | xargs sed -i 's/REQ-004/REQ-104/g'"),
            ),
            afterwards=(bash("cat docs/symbols.yaml docs/requirements/REQ-00[45]*"),),
        ),
    },
)
_ADD_TEST: Final = Job(
    "add-test",
    "There is a test now for REQ-004: TEST-006, 'a failed delivery is notified'. Does a must-have still lack one?",
    holds=("a failed delivery is notified", "REQ-004"),
    scripts={
        "kb": Script(
            (
                upsert(
                    {"id": "TEST-006", "type": "test", "title": "a failed delivery is notified", "status": "active"},
                    edges=[{"type": "verified_by", "from": "REQ-004", "to": "TEST-006"}],
                ),
                query(type="req", where=["priority=must"], lacks=["verified_by"], count=True),
            ),
            afterwards=(query(ids=["TEST-006"], edges=True, fields=["title"]),),
        ),
        "memory": Script(
            (
                _create("TEST-006", "test", "a failed delivery is notified", "status: active"),
                _relate(("REQ-004", "verified_by", "TEST-006")),
                search("priority: must"),
            ),
            afterwards=(opened("TEST-006"),),
            is_read=True,
        ),
        "markdown": Script(
            (
                bash(
                    "printf -- '---\\nid: TEST-006\\ntitle: a failed delivery is notified\\nstatus: active\\n---\\n'"
                    " > docs/tests/TEST-006-notified.md"
                    " && sed -i 's/^links:/links:\\n  - verified_by: [TEST-006]/' docs/requirements/REQ-004*"
                ),
                bash("grep -l 'priority: must' docs/requirements/*.md | xargs grep -L 'TEST-'"),
            ),
            afterwards=(bash("cat docs/tests/TEST-006*; grep -H TEST-006 docs/requirements/*"),),
        ),
    },
)
_BROKEN_RULE: Final = Job(
    "broken-rules",
    "You have added a requirement. Have you broken a rule of the project?",
    facts=("REQ-010", "specified_by", "verified_by"),
    not_facts=("REQ-004",),
    scripts={
        "kb": Script(
            (JobStep("kb_check", {"since": "1h", "session": "this"}),),
            before=(upsert({"id": "REQ-010", "type": "req", "title": "No ads", "status": "open", "priority": "must"}),),
        ),
        "memory": Script(impossible="It has no rules: what a must-have needs is written nowhere."),
        "markdown": Script(impossible="It has no rules: what a must-have needs is written nowhere."),
    },
)
_LOST_UPDATE: Final = Job(
    "lost-update",
    "Read ADR-0004, and reject it unless somebody has changed it meanwhile; say so then.",
    holds=("changed by a colleague",),
    not_holds=("rejected",),
    scripts={
        "kb": Script(
            (
                JobStep("kb_query", {"ids": ["ADR-0004"], "fields": ["title", "status"]}, takes={"seq": "seq"}),
                upsert({"id": "ADR-0004", "title": "changed by a colleague"}, client=COLLEAGUE),
                JobStep(
                    "kb_upsert",
                    {"entities": [{"id": "ADR-0004", "status": "rejected"}], "expected_seq": "{seq}"},
                    is_refused=True,
                ),
            ),
            afterwards=(query(ids=["ADR-0004"], fields=["title", "status"]),),
        ),
        "memory": Script(impossible="It has no versions: a write cannot depend on what was read."),
        "markdown": Script(
            (
                bash("cat docs/decisions/0004-retry.md; git status --short"),
                bash("sed -i 's/^# .*/# changed by a colleague/' docs/decisions/0004-retry.md", COLLEAGUE),
                bash(
                    "f=docs/decisions/0004-retry.md; git hash-object $f | grep -q $(git rev-parse HEAD:$f)"
                    " && sed -i 's/^status: .*/status: rejected/' $f || echo changed meanwhile"
                ),
            ),
            afterwards=(bash("cat docs/decisions/0004-retry.md"),),
        ),
    },
)
_DELETE: Final = Job(
    "delete",
    "Delete the note on late scans and the decision ADR-0004, with all that leads to them.",
    holds=("waymark.notify.send",),
    not_holds=("ADR-0004", "late scans at night"),
    scripts={
        "kb": Script(
            (
                JobStep(
                    "kb_query",
                    {"ids": ["ADR-0004", "NOTE-1"], "fields": ["version"]},
                    takes={"one": "entities.0.version", "two": "entities.1.version"},
                ),
                JobStep(
                    "kb_delete",
                    {
                        "entities": [
                            {"id": "ADR-0004", "expected_version": "{one}"},
                            {"id": "NOTE-1", "expected_version": "{two}"},
                        ],
                        "cascade": True,
                    },
                ),
            ),
            afterwards=(
                query(type="note"),
                query(type="adr", fields=["title"]),
                query(ids=["waymark.notify.send"], edges=True),
            ),
        ),
        "memory": Script((search("late scans at night"), _delete_nodes("ADR-0004", "NOTE-1")), afterwards=(GRAPH,)),
        "markdown": Script(
            (
                bash("grep -rn 'ADR-0004' . --exclude-dir=.git; grep -n 'late scans' NOTES.md"),
                bash("git rm -q docs/decisions/0004-retry.md && sed -i '/late scans at night/d' NOTES.md"),
            ),
            afterwards=(bash("cat NOTES.md; grep -rn 'ADR-0004' docs; grep -n notify docs/symbols.yaml"),),
        ),
    },
)
JOBS: Final = (
    *(_SUPERSEDE, _UNDO_HOUR, _REMEMBER, _TASKS, _RENAME),
    *(_ADD_TEST, _BROKEN_RULE, _LOST_UPDATE, _DELETE),
)
