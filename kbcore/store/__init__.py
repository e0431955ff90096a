"""The write path and the branches: a workspace, the store of each branch, planning and committing changesets, history.

Nothing changes what a branch says but a commit here. Files of documents are read in the room ``sync``, above.
"""
