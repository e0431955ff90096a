"""The history of a branch and how to undo it: log, show, diff, revert, rollback."""
