"""The jobs that only read."""

from __future__ import annotations

from typing import Any, Final

from kbcli.prove.job import AGENT, Job, JobStep, Script, bash

COLLEAGUE: Final = "tomas"
"""Another client, whose calls are not counted."""
_NO_TIMES: Final = "It keeps neither times nor authors."


def query(**arguments: Any) -> JobStep:
    """Return a call of ``kb_query``."""
    return JobStep("kb_query", arguments)


def history(action: str, **arguments: Any) -> JobStep:
    """Return a call of ``kb_history``."""
    return JobStep("kb_history", {"action": action, **arguments})


def upsert(*entities: dict[str, Any], client: str = AGENT, **rest: Any) -> JobStep:
    """Return a call of ``kb_upsert``."""
    return JobStep("kb_upsert", {**({"entities": [*entities]} if entities else {}), **rest}, client=client)


def search(words: str) -> JobStep:
    """Return a search in the memory server."""
    return JobStep("search_nodes", {"query": words})


def opened(*names: str) -> JobStep:
    """Return a call that reads nodes of the memory server."""
    return JobStep("open_nodes", {"names": [*names]})


GRAPH: Final = JobStep("read_graph", {})
MUST_WITHOUT_TEST: Final = Job(
    "must-without-test",
    "Which must-haves lack a test?",
    facts=("REQ-004",),
    not_facts=("REQ-001", "REQ-002", "REQ-007", "REQ-008"),
    scripts={
        "kb": Script((query(type="req", where=["priority=must"], lacks=["verified_by"], fields=["title"]),)),
        "memory": Script((search("priority: must"),), is_read=True),
        "markdown": Script((bash("grep -l 'priority: must' docs/requirements/*.md | xargs grep -L 'TEST-'"),)),
    },
)
BINDS_FILE: Final = Job(
    "what-binds-file",
    "I am about to edit src/timeline.rs. What binds it?",
    facts=(
        *("REQ-001", "REQ-003", "ADR-0002", "TEST-003"),
        *("does not change the story", "by the time of the scan", "Vans send their late scans at night"),
    ),
    scripts={
        "kb": Script((query(context={"paths": ["src/timeline.rs"], "budget": 600}),)),
        "memory": Script(
            (search("src/timeline.rs"), opened("REQ-001", "REQ-003", "ADR-0002", "TEST-003")),
        ),
        "markdown": Script(
            (
                bash("grep -n -B5 -A8 'src/timeline.rs' docs/symbols.yaml NOTES.md"),
                bash("grep -rhE -A3 '^id: (REQ-001|REQ-003|ADR-0002|TEST-003)$|^# Order a' docs"),
            )
        ),
    },
)
IMPACT: Final = Job(
    "what-breaks",
    "What breaks if I change REQ-002?",
    facts=("REQ-001", "REQ-003", "REQ-004", "REQ-005", "REQ-008", "waymark.ingest.accept", "TEST-002"),
    scripts={
        "kb": Script((query(ids=["REQ-002"], impact=True, fields=["title"]),)),
        "memory": Script((search("REQ-002"), opened("REQ-001", "REQ-003", "REQ-004", "REQ-008")), is_read=True),
        "markdown": Script(
            (
                bash("grep -rn -B12 'REQ-002' docs --include=*.yaml | grep -E 'id:|REQ-002'; grep -rl REQ-002 docs"),
                bash("sed -n '/^links/,/^---/p' docs/requirements/REQ-002*; grep -rlE 'REQ-00(1|3|4|8)' docs"),
            ),
            is_read=True,
        ),
    },
)
TESTS_TO_RUN: Final = Job(
    "tests-to-run",
    "I have changed src/ingest.rs. Which tests do I run?",
    facts=("TEST-002",),
    scripts={
        "kb": Script((query(ids=["src/ingest.rs"], impact=True, type="test", fields=["title"]),)),
        "memory": Script((search("src/ingest.rs"),), is_read=True),
        "markdown": Script((bash("grep -A8 'src/ingest.rs' docs/symbols.yaml"),), is_read=True),
    },
)
QUESTION: Final = Job(
    "question",
    "How long may we keep personal data of a recipient?",
    facts=("REQ-007", "90 days after delivery"),
    scripts={
        "kb": Script(
            (
                JobStep(
                    "kb_query",
                    {"text": "How long may we keep personal data of a recipient?", "limit": 3, "fields": ["title"]},
                    takes={"first": "entities.0.id", "second": "entities.1.id"},
                ),
                query(context={"ids": ["{first}", "{second}"], "budget": 400}),
            )
        ),
        "memory": Script((search("personal data"), search("recipient")), is_read=True),
        "markdown": Script(
            (
                bash("grep -rniE 'personal data|how long|keep|delete|forg[eo]t' docs README.md | head -20"),
                bash("cat docs/requirements/REQ-007*"),
            ),
            is_read=True,
        ),
    },
)
REASON: Final = Job(
    "reason",
    "Why does waymark.timeline.of sort by the time of the scan?",
    facts=("the only one that the recipient can check",),
    scripts={
        "kb": Script(
            (query(**{"from": "waymark.timeline.of"}, follow=["constrained_by"], body=True, fields=["title", "body"]),)
        ),
        "memory": Script((search("waymark.timeline.of"), opened("ADR-0002"))),
        "markdown": Script(
            (
                bash("grep -A14 'id: waymark.timeline.of' docs/symbols.yaml"),
                bash("cat $(grep -l 'ADR-0002' docs/decisions/*.md)"),
            )
        ),
    },
)
SINCE_YESTERDAY: Final = Job(
    "since-yesterday",
    "What has changed since yesterday?",
    facts=("The depot in Lund has moved", "TASK-1", "done"),
    not_facts=("Vans send their late scans",),
    scripts={
        "kb": Script(
            (history("diff", since="yesterday"),),
            before=(
                upsert(
                    {"type": "note", "title": "The depot in Lund has moved"},
                    {"id": "TASK-1", "status": "done"},
                    client=COLLEAGUE,
                ),
            ),
        ),
        "memory": Script(impossible=_NO_TIMES),
        "markdown": Script(
            (bash("git log --since=yesterday -p -U0 --format='%h %an %s'"),),
            before=(
                bash("echo '- The depot in Lund has moved' >> NOTES.md"),
                bash("sed -i 's/^- \\[ \\] TASK-1 \\(.*\\)/- [x] TASK-1 \\1 (done)/' TASKS.md"),
                bash("git -c user.name=tomas commit -qam 'Lund has moved'"),
            ),
        ),
    },
)
AUTHOR: Final = Job(
    "who-and-why",
    "Who accepted ADR-0004, and why?",
    facts=("tomas", "Ines agreed"),
    scripts={
        "kb": Script((history("who", id="ADR-0004", field="status"),)),
        "memory": Script(impossible=_NO_TIMES),
        "markdown": Script((bash("git log --format='%h %an %ad %s' -- docs/decisions/0004*"),)),
    },
)
AS_IT_WAS: Final = Job(
    "as-it-was",
    "What was the title of ADR-0004 yesterday?",
    facts=("Retry failed messages three times",),
    not_facts=("Retry failed messages for a day",),
    scripts={
        "kb": Script(
            (query(ids=["ADR-0004"], at="yesterday", fields=["title"]),),
            before=(upsert({"id": "ADR-0004", "title": "Retry failed messages for a day"}, client=COLLEAGUE),),
        ),
        "memory": Script(impossible="It keeps no earlier values."),
        "markdown": Script(
            (bash("git show $(git log -1 --before=yesterday --format=%h):docs/decisions/0004-retry.md"),),
            before=(
                bash("sed -i 's/three times/for a day/' docs/decisions/0004-retry.md"),
                bash("git -c user.name=tomas commit -qam 'For a day'"),
            ),
        ),
    },
)
RESUME: Final = Job(
    "resume",
    "Your context was compacted. What is open, and what have you changed in this session?",
    facts=("Measure the retention job", "Ask the depots", "Send a message once"),
    scripts={
        "kb": Script(
            (
                query(type="task", where=["status!=done"], sort="order", fields=["title"]),
                history("diff", since="1d", session="this"),
            ),
            before=(upsert({"type": "adr", "title": "Send a message once", "status": "proposed"}),),
        ),
        "memory": Script(impossible="The tasks are found, but nothing says what this session has written."),
        "markdown": Script(
            (bash("cat TASKS.md; git log --since=1.hour -p --format='%h %s'; git status --short"),),
            before=(
                bash(
                    "printf -- '---\\nid: ADR-0005\\nstatus: proposed\\n---\\n# Send a message once\\n'"
                    " > docs/decisions/0005-once.md"
                ),
                bash("git add docs && git commit -qm 'Propose to send a message once'"),
            ),
        ),
    },
)
GAPS: Final = Job(
    "gaps",
    "Which requirements lack a scenario, a test or code?",
    facts=("REQ-004", "REQ-005", "REQ-008", "REQ-009"),
    scripts={
        "kb": Script((query(coverage=True, fields=["status"]),)),
        "memory": Script((search("req"),), is_read=True),
        "markdown": Script(
            (
                bash("for k in SCN- TEST-; do echo without $k:; grep -L $k docs/requirements/*.md; done"),
                bash(
                    "for i in $(sed -n 's/^id: //p' docs/requirements/*.md);"
                    " do grep -q $i docs/symbols.yaml || echo no code: $i; done"
                ),
            )
        ),
    },
)
JOBS: Final = (
    *(MUST_WITHOUT_TEST, BINDS_FILE, IMPACT, TESTS_TO_RUN, QUESTION, REASON),
    *(SINCE_YESTERDAY, AUTHOR, AS_IT_WAS, RESUME, GAPS),
)
