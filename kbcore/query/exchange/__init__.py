"""Exports in the formats of other tools, which profiles of ``sources`` read again.

It offers ``written``, which returns the files of a format and what they do not hold. It never reads the view or writes
a file; times, sources and metadata are in no format.
"""
