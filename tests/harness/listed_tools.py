"""A tool as an MCP server lists it."""

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def a_tool(**fields: object) -> dict[str, object]:
    return {"name": "read", "description": "Reads.", "inputSchema": SCHEMA} | fields
