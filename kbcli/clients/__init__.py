"""The configuration files of MCP clients: where they are, what KB's entry in them is, and how it gets there."""
