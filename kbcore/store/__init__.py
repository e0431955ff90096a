"""Owns the write path and the branches: only a commit here changes what a branch says.

Offers a workspace, the store of each branch, planning and committing changesets, and history.
Never reads the files of documents: the room ``sync``, above, does.
"""
