"""Views in memory for tests of rules and queries.

It offers a DuckDB filled with a small graph, a large branch, or a history folded in many ways.
"""
