"""Changes of people and agents as files that are committed with the code, and what brings them together.

Offers: which changes are not shared, and why; writing them into files of a worktree, and packing these; merging and
separating them; their backup in a remote; numbers on all that. What a change says never changes: a file is
written once or replaced by a pack, and a merge, a separation or a commit of files is a record of its own.
"""
