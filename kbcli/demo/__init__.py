"""The tour of ``kb demo``, as plain data, and the MCP client that it talks with.

The example project is in ``kbcli.resources``.
"""
