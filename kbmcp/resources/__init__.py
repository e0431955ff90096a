"""MCP without tools: resources, subscriptions to them, prompts, and the instructions."""
