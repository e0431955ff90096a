"""Watch: the store of the branch that is checked out follows the files of its worktree while they change."""
