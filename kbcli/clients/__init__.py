"""The files of MCP clients: where they are, what KB puts there (server, hooks, instructions), how it goes again."""
