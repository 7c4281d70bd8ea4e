"""Every sentence that the gateway says to the model. They begin with `[koboshi]`."""

from koboshi.domain.recovery import Interruption

MARK = "[koboshi]"

RECOVERY = "recovery"
"""The cause of the one note that a resumed turn gets for each epoch that ended early."""
MOVED_ON = "moved-on"


_WHAT_HAPPENED = {
    Interruption.NONE: "The gateway set this work aside",
    Interruption.CRASH: "The gateway stopped without warning while you were working on this",
    Interruption.DRAIN: "The gateway was restarted while you were working on this",
    Interruption.NODE_LOST: "The node that worked on this was lost",
}


def recovery(interruption: Interruption, *, has_new_message: bool, is_interactive: bool) -> str:
    """Said once to a resumed turn: what happened, and how to go on."""
    words = [f"{MARK} {_WHAT_HAPPENED[interruption]}; it is back now."]
    words.append("What has a result above was done: do not repeat it.")
    if has_new_message:
        words.append("The person has written again: answer that first, then finish what is open.")
    elif is_interactive:
        words.append("Go on from the last step and finish.")
    else:
        words.append("Nobody can answer questions here: finish the work with what you have.")
    return " ".join(words)


def outcome_unknown(tool: str, *, started: str) -> str:
    """The result of a call that was under way and must not be repeated."""
    return (
        f"{MARK} {tool} was started at {started} and its outcome is unknown: the gateway stopped "
        "while it ran. It may have completed, completed partly, or not run. Do not repeat it; "
        "first check its effect, and if you can not, ask the person."
    )


def stopped(by: str) -> str:
    """The result of a call that has none because its turn was ended."""
    return f"{MARK} not finished: {by}"


def not_repeated(tool: str) -> str:
    """The result of a call that was proposed again after it was cut short."""
    return (
        f"{MARK} {tool} was not started: the same call ran before in this request, and its outcome "
        "is unknown or the gateway died while it ran. Check its effect if you can, and tell the "
        "person what you know. If they want it done again, they can say so in a new message."
    )


def empty_reply() -> str:
    return f"{MARK} Your last reply was empty. Answer the person in words."


def not_in_record(steps: int) -> str:
    """Said to the model that sums up."""
    return f"{MARK} {steps} earlier steps are not in this record."


def left_out(before: str) -> str:
    """The summary of what could not be summed up; `before` is the summary that it follows."""
    words = "Earlier conversation left out: it was too long to be shown, and no summary was made."
    return f"{before}\n{words}" if before else words


def unfinished(request: str) -> str:
    """Said to the turn that follows one that was interrupted and is not continued."""
    return (
        f"{MARK} An earlier request was interrupted and is not being continued: «{request}». "
        "Mention it if it matters to what the person says now."
    )


def report(headline: str, output: str) -> str:
    """What a process has to say: what is the matter, and then its output as data. A program that
    prints our mark does not speak for us."""
    said = f"{headline}\n{output or '(no output)'}"
    return f"{MARK} {said.replace(MARK, '(koboshi)')}"


def headline_in(text: str) -> str:
    """The first line of such a report."""
    return text.removeprefix(MARK).strip().partition("\n")[0].removesuffix(":")


def message_age(age: str) -> str:
    return f"{MARK} The message is {age} old; the gateway could not take it up earlier."


def unknown_tool(tool: str, known: str) -> str:
    return f'{MARK} there is no tool "{tool}"; there are: {known}'


def tool_changed(tool: str) -> str:
    """The result of a call that was judged when its tool was another, or out of sight."""
    return (
        f"{MARK} {tool} was not started: what is known about it has changed since you called it. "
        "Call it again if it is still needed."
    )


def tool_failed(tool: str, error: str) -> str:
    return f"{MARK} {tool} failed: {error}"


def file_not_had(path: str, why: str) -> str:
    return f"{MARK} The file {path} could not be fetched: {why}."
