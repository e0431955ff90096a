"""Changes of people and agents as files that are committed with the code.

Offers: which changes are not shared, and why; writing them into files of a worktree. It never changes a file that is
there, and never a record.
"""
