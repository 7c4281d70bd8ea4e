"""Text for Telegram: Markdown as models write it becomes text and message entities.

Nothing here raises for any text. What is too large or too deeply nested to be parsed in well under
a second is shown as it was written (`parser.is_parsable`, `parser.NESTING_MAX`).
"""

from koboshi.channels.common.formatting.formatted import clean, units
from koboshi.channels.common.formatting.markdown import page_of
from koboshi.channels.common.formatting.parts import split
from koboshi.channels.telegram.entities import Entity, Rendered, clip, finished, literally, plain

__all__ = ["Entity", "Rendered", "clip", "literally", "plain", "render", "split", "units"]


def render(markdown: str) -> Rendered:
    """Show a Markdown text with what Telegram has.

    The text has no whitespace around it and is empty only if `markdown` has nothing but whitespace
    and control characters.
    """
    return finished(page_of(clean(markdown)).shown)
