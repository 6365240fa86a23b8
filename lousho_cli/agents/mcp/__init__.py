"""Tools over the Model Context Protocol: what `[mcp.NAME]` sets, and the servers while a run uses them."""
