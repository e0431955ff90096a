"""``kb push``: back up what clients wrote on a branch in a ref of a git remote."""

from __future__ import annotations

import typer

from kbcli.invocation.context import session_of
from kbcli.invocation.options import DryRun, Remote


def run(ctx: typer.Context, remote: Remote = "origin", *, dry_run: DryRun = False) -> int:
    """Back up what clients wrote on the branch in a ref of a remote.

    The ref is refs/kb/BRANCH. The changes that no committed file holds are added to what it has; none is taken out
    of it, and it is read back afterwards. What was redacted here is redacted there, and the commits with it are
    replaced. What `kb share` withholds is withheld here too. Nothing pushes by itself.
    """
    from kbcli.invocation import exits
    from kbcli.messages import shared
    from kbcore.share.backup_ref import push
    from kbcore.share.faults import FAULTS

    session = session_of(ctx)
    opened = session.open(dry_run=dry_run)
    pushed = push(opened.workspace, opened.branch, remote, dry_run=dry_run)
    if session.output.is_json:
        withheld = [{"change": one.change.id, "seq": one.seq, "reason": one.withheld} for one in pushed.withheld]
        document = {"dry_run": dry_run, "branch": opened.branch, "remote": remote, "ref": pushed.ref}
        numbers = {"commit": pushed.commit, "pushed": [*pushed.added], "changes": pushed.total}
        redacted = {"redacted": [*pushed.redacted], "keeps_history": pushed.keeps_history}
        session.output.document({**document, **numbers, **redacted, "withheld": withheld})
    else:
        for line in shared.pushed_lines(pushed, opened.branch, remote, dry_run=dry_run):
            session.output.say(line)
        if pushed.keeps_history:
            session.output.warn(shared.history_line(pushed, remote))
        for line in shared.fault_lines(pushed.withheld):
            session.output.warn(line)
    return exits.VIOLATIONS if any(one.withheld in FAULTS for one in pushed.withheld) else exits.DONE
