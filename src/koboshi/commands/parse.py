"""Words → command, if they are one. Pure."""

from koboshi.commands.jobs import process_named
from koboshi.commands.time import plain_order
from koboshi.domain.command import Command, CommandName
from koboshi.domain.session import Busy

_NAMES = {name.value: name for name in CommandName}


_BUSY = {CommandName.QUEUE: Busy.QUEUE, CommandName.STEER: Busy.STEER}


def message_in(command: Command) -> tuple[str, Busy | None] | None:
    """The message that a command carries, and what it does while a turn runs; None if it carries
    none. The words of `/queue` and `/steer` are a message of the person like any other, and so are
    those of a `/cron add` whose time only a model understands."""
    if (order := plain_order(command)) is not None:
        return order, None
    busy = None if command.name is None else _BUSY.get(command.name)
    return None if busy is None or not command.argument else (command.argument, busy)


def parse_command(text: str) -> Command | None:
    """The command that the text is; None if it is a message.

    A command begins with a slash and a letter. A word with another slash in it is a path, and a
    lone slash is just a slash.
    """
    said, *rest = text.split(maxsplit=1) or [""]
    if not said.startswith("/") or not said[1:2].isalpha() or "/" in said[1:]:
        return None
    # In a group, platforms let people name the bot they mean: `/help@koboshi_bot`.
    word = said[1:].partition("@")[0].rstrip(".,;:!?").casefold().replace("_", "-")
    name, argument = _NAMES.get(word), "".join(rest).strip()
    process_id = process_named(argument) if name is CommandName.JOBS else None
    return Command(name=name, said=said, argument=argument, process_id=process_id)
