"""Owns changes of facts that documents state: it edits the files and records what they say then, in one record.

It never writes a file that is not what was read, nor one that would afterwards state anything else than was asked for.
"""
