"""Owns the files of a branch: journal, head file, snapshots, lock, and the second witness.

Offers append, read, recovery, proof, compaction and backups of them.
Never interprets a payload: it is opaque bytes here.
"""
