"""The tour of ``kb demo``, as plain data, and the MCP client that it uses.

The example project is in ``kbcli.resources``.
"""
