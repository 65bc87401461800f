"""MCP-CP messages, tools, contexts and conditions, without I/O; nothing serves them yet."""
