"""Owns the pure core: entities and edges, values, records, changesets, the schema, and the state.

Offers plain data and functions of it, such as folding operations into a state.
Never reads a file, a database or the clock.
"""
