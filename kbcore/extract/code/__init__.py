"""Owns the reading of source code: its symbols, its tests, and what its comments link to.

Offers the extractor ``code``, and the one reader of marks in comments. The parsers are an optional package.
Never executes code, and never opens a socket or starts a process.
"""
