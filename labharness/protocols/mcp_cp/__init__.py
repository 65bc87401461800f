"""MCP-CP messages, tool calls and context state. Nothing is built here yet."""
