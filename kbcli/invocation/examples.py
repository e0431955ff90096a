"""Examples for the help of commands: what people do most, as they would type it. Each line is parsed by the tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

EXAMPLES: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "init": (
        ("kb init", "set up KB, with its git hooks"),
        ("kb init --no-hooks", "without them"),
        ("kb init --dry-run", "see which documents it finds"),
    ),
    "sources": (("kb sources", "see what is read, and what is not"),),
    "sources detect": (("kb sources detect", "find documents that came later"),),
    "sources try": (
        ("kb sources try docs/adr/0001.md", "see what one document says"),
        ("kb sources try x.md --profile eip", "by settings that are not configured"),
    ),
    "sync": (
        ("kb sync", "take in what has changed"),
        ("kb sync --dry-run docs/adr", "see what one folder would change"),
    ),
    "watch": (("kb watch --check", "keep the violations on screen while you write"),),
    "results": (
        ("kb results build/junit.xml", "record the verdicts of a run"),
        ("kb results 'reports/**/*.xml' --commit HEAD~1", "of several reports, for another commit"),
        ("kb results --watch", "whenever the tests have run again"),
    ),
    "status": (("kb status", "see whether a sync would find something"),),
    "query": (
        ("kb query req --lacks verified_by", "requirements without a test"),
        ("kb query --text 'log in' --status open", "what is open and mentions it"),
        ("kb query --where 'priority=must OR priority=should' --count", "how many are one or the other"),
        ("kb query --from REQ-1 --depth 2", "what can be reached from there in two steps"),
    ),
    "show": (
        ("kb show REQ-1", "an entity, its edges and what happened to it"),
        ("kb show 12", "the twelfth record, before and after"),
    ),
    "kip": (
        ("kb kip", "a prompt, with history and completion"),
        ("kb kip 'DESCRIBE PRIMER'", "one command"),
        ("kb kip -f notes.kip --dry-run", "see whether a file of commands would do"),
    ),
    "prolog": (
        ("kb prolog", "a prompt, with history and completion"),
        ("kb prolog -g \"depends_on('REQ-1', X)\"", "all solutions of one goal"),
        ("kb prolog -f rules.pl -g 'reach(A, B)' --json", "with the clauses of a file, for a program"),
        ("kb prolog -g ':assert likes(ann, wine).'", "add a clause to the branch"),
    ),
    "prolog install": (("kb prolog install", "an engine for a machine without SWI-Prolog"),),
    "prolog engines": (("kb prolog engines", "see which engine is used, and what is missing"),),
    "dml run": (
        ("kb dml run research.dml --param Topic=tea", "with the model of KB_DML_MODEL"),
        ("kb dml run kb:review --workspace . --param diff=x.diff", "a program that KB ships"),
        ("kb dml run kb:sleep --allow kb_sleep --allow execute_kip --record", "one that may write"),
        ("kb dml run notes.dml --tools tools.py --json", "with tools of your own, for a program"),
    ),
    "dml tools": (("kb dml tools --tools tools.py", "see what a program may call"),),
    "dml check": (
        ("kb dml check research.dml", "see what is wrong before it is run"),
        ("kb dml check agents/*.dml --tools tools.py --fail-on warning", "in CI, with the tools that there are"),
        ("kb dml check - --json < research.dml", "in an editor"),
    ),
    "dml compile": (("kb dml compile research.md", "write research.dml by a model"),),
    "sleep": (
        ("kb sleep --dry-run", "see what a cycle would do"),
        ("kb sleep --phase 4 --phase 9", "give a domain to what has none, and write that down"),
    ),
    "new": (
        ("kb new req --title 'Log in with a passkey'", "write its document, with the next free id"),
        ("kb new adr", "write it in the editor"),
        ("kb new symbol --title login --id src/auth.py#login", "an entity of the store"),
    ),
    "confirm": (
        ("kb confirm REQ-1", "all suspect edges of one entity"),
        ("kb confirm REQ-1 verified_by TEST-2", "one edge"),
    ),
    "set": (
        ("kb set REQ-1 status=done owner=ann", "two fields, as one record"),
        ("kb set REQ-1 tags+=web --dry-run", "see how a list would change"),
        ("kb set REQ-1 owner=", "remove a field"),
    ),
    "rename": (("kb rename REQ-1 REQ-AUTH-1 --dry-run", "see which files would change, and how"),),
    "link": (
        ("kb link REQ-1 verified_by TEST-2", "state an edge"),
        ("kb link REQ-1 relates_to:see_also REQ-2", "one with a kind"),
    ),
    "unlink": (("kb unlink REQ-1 verified_by TEST-2", "remove an edge that a client stated"),),
    "id next": (
        ("kb id next req", "the next free id of requirements, reserved for an hour"),
        ("kb id next req --prefix REQ-AUTH-", "of a series of its own"),
    ),
    "share": (
        ("kb share --dry-run", "see which changes would be written into which files"),
        ("kb share", "write and stage them, to be committed with the code"),
    ),
    "share pack": (
        ("kb share pack --before 90d --dry-run", "see what would be packed"),
        ("kb share pack --before 2026-01-31", "pack what is older than that day, to be committed"),
    ),
    "push": (("kb push", "to refs/kb/BRANCH of origin"), ("kb push --dry-run", "see how many changes it lacks")),
    "fetch": (("kb fetch", "in a new clone: all that was pushed of the branch"),),
    "merge": (
        ("kb merge feature --dry-run", "see what would come from a branch"),
        ("kb merge feature", "bring it into the branch that is checked out"),
    ),
    "resolve": (
        ("kb resolve", "list what is contested, with the values by number"),
        ("kb resolve REQ-1 title --take 2", "the second value holds"),
    ),
    "apply": (
        ("kb apply changes.yaml --dry-run", "see what a file would change"),
        ("kb apply - < changes.json", "from another program"),
        ("kb apply export.json --import", "with the times and authors that `kb export` wrote"),
    ),
    "delete": (
        ("kb delete REQ-9 --dry-run", "see what would be removed"),
        ("kb delete --edge REQ-1 verified_by TEST-2", "remove one edge"),
    ),
    "review": (
        ("kb review", "see what agents propose, as a diff"),
        ("kb review REQ-9 --accept", "accept an entity and its edges"),
        ("kb review --session S --reject", "reject all of one session"),
        ("kb review -i", "decide one by one"),
    ),
    "check": (
        ("kb check", "run all rules"),
        ("kb check --rule must-coverage --fail-on warning", "one rule, strictly"),
        ("kb check --against origin/main", "before a merge: what both sides decided, each in its own way"),
    ),
    "coverage": (
        ("kb coverage --by tag", "how far each topic is"),
        ("kb coverage --lacks verified --fail-under verified=80", "what has no test, as a gate for CI"),
    ),
    "matrix": (
        ("kb matrix req specified_by covered_by --to test --holes", "requirements without a scenario that has a test"),
        ("kb matrix req ^implements --format csv", "which symbols implement each requirement"),
    ),
    "report": (
        ("kb report --out report.html", "one file, to look at or to send"),
        ("kb report --since v1.2 --format md --out -", "what changed since a release, for the summary of a job"),
    ),
    "ui": (
        ("kb ui", "look at the branch"),
        ("kb ui --no-open --port 8710", "print the address, for a browser that is elsewhere on this machine"),
    ),
    "impact": (
        ("kb impact REQ-1", "what a change of it affects, and which tests to run"),
        ("kb impact src/shop.py:42", "the same of the symbol around a line"),
    ),
    "prime": (
        ("kb prime", "the branch, what changed, what is open"),
        ("kb prime --for src/shop.py:42", "the same, and what binds the symbol around a line"),
        ("kb prime --diff --budget 400", "what binds the uncommitted changes"),
    ),
    "graph": (("kb graph REQ-1 --depth 2", "what is around it, as Mermaid"),),
    "log": (
        ("kb log REQ-1", "what happened to one entity"),
        ("kb log --oneline --source mcp --since 2026-01-31", "what agents did since then"),
    ),
    "diff": (
        ("kb diff 12", "what changed after record 12"),
        ("kb diff 2026-01-31 2026-02-28", "what changed in a month"),
    ),
    "revert": (
        ("kb revert 12", "undo one record; `kb log` shows which"),
        ("kb revert v1", "undo the record that the commit of the tag has"),
        ("kb revert --actor bot --since yesterday", "undo all that bot wrote since then"),
    ),
    "rollback": (
        ("kb rollback 12", "bring back the state at record 12"),
        ("kb rollback yesterday --dry-run", "see what that would change"),
    ),
    "branch list": (("kb branch list", "the branches that have a store"),),
    "branch ensure": (("kb branch ensure feature --from main", "give a branch the records of another"),),
    "branch trash": (("kb branch trash --verify", "prove each store in the trash"),),
    "branch restore": (("kb branch restore feature", "bring a store back from the trash"),),
    "branch diff": (("kb branch diff main feature", "what a branch changed"),),
    "gc": (("kb gc --dry-run", "see which stores would be removed"),),
    "compact": (("kb compact", "make opening a long history quicker"),),
    "export": (
        ("kb export all.json", "everything, as a changeset"),
        ("kb export - --format jsonl", "a line for each, for another program"),
        ("kb export old.json --at 12", "the state at record 12"),
        ("kb export --fleet", "what is new, for questions to many repositories"),
    ),
    "fleet init": (
        ("kb fleet init s3://acme-kb/fleet", "have this repository export to a bucket"),
        ("kb fleet init /srv/fleet --repo acme/pay", "to a folder, under a name of its own"),
    ),
    "fleet impact": (("kb fleet impact acme/pay:REQ-1 --elsewhere", "what depends on it in other repositories"),),
    "fleet": (("kb fleet coverage --place /srv/fleet --by owner", "what every repository lacks, by owner"),),
    "fleet sql": (
        ("kb fleet sql 'select repo, count(*) from entity group by repo'", "any question, with KB_FLEET set"),
    ),
    "redact": (
        ("kb redact - < secret.txt", "see which records hold a secret"),
        ("kb redact REQ-7 --field title --yes", "take the titles of REQ-7 out of all records"),
        ("kb redact 41 --yes", "take out the values of record 41"),
    ),
    "backup": (
        ("kb backup ../kb.backup", "all branches, with their history"),
        ("kb backup main.backup --only main", "one branch"),
    ),
    "restore": (
        ("kb restore ../kb.backup --dry-run", "prove a backup, and see what would be done"),
        ("kb restore ../kb.backup --only main --replace", "one branch; the present store is moved to the trash"),
    ),
    "verify": (("kb verify", "prove every record, for example before a backup"),),
    "doctor": (("kb doctor", "find out why something does not work"),),
    "hooks install": (("kb hooks install", "keep the store in step with what git checks out"),),
    "hooks status": (("kb hooks status", "see which hooks run KB"),),
    "agents install": (
        ("kb agents install codex", "show what would be written for Codex"),
        ("kb agents install claude-code --write", "set up Claude Code for this project"),
        ("kb agents install --skill --write", "write the skill that clients share"),
    ),
    "agents check": (("kb agents check", "see whether what is installed is as it should be"),),
    "uninstall": (("kb uninstall", "see what goes and what stays, and be asked"),),
    "config list": (("kb config list", "every setting, and which of them the file states"),),
    "config get": (("kb config get kip.rowLimit", "one setting"),),
    "config set": (
        ("kb config set rules.orphans off", "a rule that shall not run"),
        ("kb config set extractors.manifest.paths '[\"docs/symbols.yaml\"]'", "a list, as JSON"),
    ),
    "config unset": (("kb config unset rules.orphans", "the default of the rule again"),),
    "schema": (("kb schema req", "the fields of a requirement"),),
    "demo": (("kb demo --into kb-demo", "set up an example project, and explore it"),),
    "prove": (
        ("kb prove --system kb", "what the jobs cost with KB"),
        ("kb prove --job undo-hour", "one job, with each system"),
        ("kb prove --job 1 --client codex", "one job, done by Codex with its own model"),
    ),
}
"""By the full name of the command: a line, and what it is for."""

_REMOVED: Final = "git deletes a branch, and `kb gc` moves the stores of deleted branches to the trash."
INSTEAD_BELOW: Final[Mapping[str, Mapping[str, str]]] = {
    "branch": {
        **dict.fromkeys(("delete", "remove", "rm"), _REMOVED),
        **dict.fromkeys(("ls", "show"), "`kb branch` lists the branches."),
        **dict.fromkeys(("create", "new", "add"), "git makes a branch, and the first command on it its store."),
    },
    "prolog": {"": "Give a goal with -g, as in `kb prolog -g 'member(X, [1, 2])'`."},
    "hooks": {
        **dict.fromkeys(("ls", "list", "show"), "`kb hooks` lists them."),
        **dict.fromkeys(("remove", "rm", "delete"), "`kb hooks uninstall` removes them."),
        **dict.fromkeys(("add", "init"), "`kb hooks install` installs them."),
    },
    "config": {
        **dict.fromkeys(("ls", "show"), "`kb config` lists the settings."),
        **dict.fromkeys(("remove", "rm", "delete"), "`kb config unset` removes one."),
    },
}
"""The message for a word that is no command of a group, where another command does what it means."""

SYNONYMS: Final[dict[str, str]] = {
    **dict.fromkeys(("upsert", "put"), "apply"),
    "import": "apply restore",
    "edit": "set apply",
    **dict.fromkeys(("add", "create"), "new"),
    **dict.fromkeys(("find", "get", "list", "ls", "search", "select"), "query"),
    **dict.fromkeys(("history", "blame"), "log"),
    **dict.fromkeys(("remove", "rm"), "delete"),
    **dict.fromkeys(("lint", "test", "validate"), "check"),
    **dict.fromkeys(("refresh", "scan", "update", "pull"), "sync"),
    **dict.fromkeys(("cat", "view"), "show"),
    **dict.fromkeys(("move", "mv"), "rename"),
    "reset": "rollback",
    "undo": "revert",
    "fsck": "verify",
    "setup": "init",
    "server": "mcp",
    "types": "schema",
    "settings": "config",
    "branches": "branch",
    "commit": "sync apply",
    "dump": "export",
}
"""Words that other programs have for a command, and the commands that do it here."""
INSTEAD: Final[dict[str, str]] = {
    "version": "`kb --version` shows it.",
    "clone": "Git clones the repository, and `kb sync` reads its files.",
    "completion": "`kb --install-completion` sets it up for the shell.",
}
"""Words for what is not a command of KB, and what does it instead."""
