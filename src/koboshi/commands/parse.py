"""Words → command, if they are one. Pure."""

from koboshi.commands.jobs import process_named
from koboshi.domain.command import Command, CommandName

_NAMES = {name.value: name for name in CommandName}


def parse_command(text: str) -> Command | None:
    """The command that the text is; None if it is a message.

    A command begins with a slash and a letter. A word with another slash in it is a path, which
    people talk about; and a slash that stands alone is just a slash.
    """
    said, *rest = text.split(maxsplit=1) or [""]
    if not said.startswith("/") or not said[1:2].isalpha() or "/" in said[1:]:
        return None
    # In a group, platforms let people name the bot they mean: `/help@koboshi_bot`.
    word = said[1:].partition("@")[0].rstrip(".,;:!?").casefold()
    name, argument = _NAMES.get(word), "".join(rest).strip()
    process_id = process_named(argument) if name is CommandName.JOBS else None
    return Command(name=name, said=said, argument=argument, process_id=process_id)
