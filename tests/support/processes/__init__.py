"""Programs as processes of their own: starting, talking to, limiting and ending them.

It offers ``kb``, servers of MCP and workers. It never looks into a store.
"""
