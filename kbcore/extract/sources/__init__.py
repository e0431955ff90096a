"""Owns the documents that a project describes by ``sources``: formats, patterns, profiles, and what an entry states.

Offers an extractor for each entry of ``sources`` in ``.kb/config.json``.
Never reads or writes a disk, but for the profiles that KB ships.
"""
