"""Start the MCP server of KB on a repository; the host installs the package that `pyproject.toml` names."""

from kbmcp.server import main

main()
