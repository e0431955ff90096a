"""The MCP server of KB: its tools over stdio, for agents."""
