"""Words that make the scripted model do something."""

import json


def script(*items: dict[str, object]) -> str:
    return f"script: {json.dumps(items)}"


def calls(*tools: str, text: str = "", **arguments: object) -> dict[str, object]:
    """One reply that calls these tools."""
    made = [{"tool": tool, "arguments": arguments} for tool in tools]
    return {"calls": made, **({"text": text} if text else {})}


def says(text: str) -> dict[str, object]:
    return {"text": text}
