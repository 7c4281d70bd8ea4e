"""What a person writes on Telegram, and the label of a text that may be there twice."""

import json

LABEL = "may be a duplicate"


def script(*items: dict[str, object]) -> str:
    return f"script: {json.dumps(items)}"


LONG = "\n\n".join(f"Paragraph {number} " + "word " * 180 for number in range(12))
