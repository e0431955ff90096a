"""The pure core: entities and edges, values, records, changesets, the schema, and folding operations into a state.

Plain data and functions of it. Nothing here reads a file, asks a database or knows the time.
"""
