"""Owns the databases: DuckDB tables folded from the journal, the text index, their cache, and the sandbox of SQL.

Offers a view of a branch at its head or at an earlier seq.
Never decides what is durable: every file of it can be deleted, and is rebuilt from the journal.
"""
