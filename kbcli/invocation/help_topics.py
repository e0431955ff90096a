"""The topics of ``kb help`` on commands that lose data or override a refusal, which no message spells out.

``docs/durability.md`` shows the same texts. ``kbcore.errors.remedies.HELP_TOPICS`` says which command has which topic.
"""

from __future__ import annotations

from typing import Final

TOPICS: Final[dict[str, str]] = {
    "new-epoch": """\
Go on without records that are lost: kb doctor --new-epoch --branch NAME

The store gets a new id, and its log says which records are missing. They do not come back by it, and what
holds them, such as a backup, can only be looked at afterwards. First look for them: kb doctor --branch NAME
says what is missing; kb restore FILE --only NAME --replace brings a backup back; kb branch trash lists
stores that KB moved away. It asks at a terminal; elsewhere it needs --yes. A person decides this.
Of two copies of one store, it gives one of them an id of its own; run it in the copy.
""",
    "salvage": """\
Keep what is proven of a damaged journal: kb doctor --salvage --branch NAME

Every proven record is kept in its place, and the log says which are lost. The store is copied before. What
cannot be proven does not come back by it. If there is a backup, it is the better way:
kb restore FILE --only NAME --replace. Where records are missing besides, it asks, or needs --yes.
""",
    "rebuild-head": """\
Make a new head file out of the journal: kb doctor --rebuild-head --branch NAME

The head says up to where the journal was acknowledged. A new one says what the journal has, and what it
cannot prove: records that were acknowledged and are cut off are not missed any more. The store is copied
before. If files of different times were put back, put back files of one time instead.
""",
    "even-damaged": """\
Take a store that does not prove as it is: kb branch restore NAME --even-damaged
                                           kb doctor --adopt PATH --even-damaged

Nothing of it is repaired. Commands that meet the damage fail until it is: kb doctor says what can be done.
The present store of the branch goes to the trash, and kb branch restore brings it back.
""",
    "prune": """\
Give up old history: kb compact --prune-before SEQ --branch NAME

Sealed parts of the journal that end before that seq are deleted, for good. Facts stay as they are; earlier
states of them, and who wrote them, are out of reach. Where parts are missing already, no less can be given
up than the command names. Keep a backup before: kb backup FILE.
""",
    "empty-trash": """\
Delete stores that KB moved away: kb gc --empty-trash --older-than DAYS

What is deleted cannot be brought back. kb branch trash lists the stores, kb gc --empty-trash --dry-run says
which of them it would delete, and kb branch restore NAME brings one back before.
""",
    "redaction": """\
Take a secret out of every store: kb redact WHAT --yes

The values are gone for good, also from history. Without --yes it shows what would change: look at that
first. Revoke the secret before, since other clones and backups may hold it.
""",
    "force": """\
Do it although KB refuses: the option --force

kb revert takes the old values also where somebody changed them since, and leaves edges without an end; that
can be reverted. kb export, kb backup and kb dml compile overwrite a file that exists, and its
content is lost. The refusal says what is in the way: look at that first.
""",
}


def listed() -> str:
    """Return the names of the topics, for whoever asks for them."""
    return "".join(f"  kb help {name}\n" for name in ("agents", *TOPICS))
