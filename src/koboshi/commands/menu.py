"""The commands as a platform's own menu lists them: a word each, and a line."""

from koboshi.domain.command import CommandName

_LINES = {
    CommandName.NEW: "start a new conversation",
    CommandName.STOP: "stop what I am doing; /stop all also ends background processes",
    CommandName.STATUS: "what I am doing now",
    CommandName.WHY: "what happened to your last request, and why",
    CommandName.JOBS: "background processes, their output, and how to end them",
    CommandName.QUEUE: "send a message for after this turn",
    CommandName.STEER: "send a message to the running turn",
    CommandName.BUSY: "what messages do while I work: queue, steer or interrupt",
    CommandName.RESUME: "continue what was interrupted",
    CommandName.DROP: "drop what was interrupted",
    CommandName.RETRY: "ask again what failed",
    CommandName.APPROVE: "allow what I asked for",
    CommandName.DENY: "do not allow it; you can say what you want instead",
    CommandName.RULES: "what you always allow in this chat",
    CommandName.RESUME_POLICY: "whether I continue by myself after an interruption",
    CommandName.REMIND: "remind you later, such as: in 2 hours tea",
    CommandName.CRON: "what I do at set times",
    CommandName.GOAL: "work on something until it is done",
    CommandName.MEMORY: "what I remember; /memory undo takes the last change back",
    CommandName.RESTART: "start the gateway again; nothing is lost",
    CommandName.LISTEN: "what I hear in a group: all, or what is said to me",
    CommandName.AGENT: "which agent answers in this chat",
    CommandName.MODEL: "which model answers in this chat",
    CommandName.USAGE: "what this chat used: tokens and cost",
    CommandName.BUDGET: "how much of today's budget is used, and more of it",
    CommandName.WHOAMI: "who you are to me",
    CommandName.FORGET: "erase everything you said to me; I ask first",
    CommandName.HELP: "all commands, in more words",
}


def command_lines() -> tuple[tuple[str, str], ...]:
    """Every command as it is typed, and what it does."""
    return tuple((str(name), line) for name, line in _LINES.items())


def menu() -> tuple[tuple[str, str], ...]:
    """Every command, with underscores: that is what platforms take."""
    return tuple((name.replace("-", "_"), line) for name, line in _LINES.items())
