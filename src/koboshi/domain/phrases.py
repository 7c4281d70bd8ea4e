"""Every sentence that the gateway says to a person: one line, plain words, what to do next."""

from collections.abc import Sequence
from datetime import UTC, datetime

from koboshi.domain.ids import DeliveryId, ProcessId, shown
from koboshi.domain.transcript import Choice

NO = Choice(choice_id="no", label="No")
YES_NO = (Choice(choice_id="yes", label="Yes"), NO)
ALWAYS = Choice(choice_id="always", label="Yes, and always for this command in this chat")

REPLY_CUT = "(Cut here: the reply reached the longest that it may be. Write “go on” for the rest.)"
DUPLICATE_LABEL = "(may be a duplicate: my connection broke while I was sending this)\n"


def excerpt(text: str, limit: int = 80) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def several(request: str, more: int) -> str:
    """What was asked, where some more messages are answered with it."""
    return f"{excerpt(request, 60)} (and {more} more)"


def clock_words(at_ms: int) -> str:
    """A moment as people read it."""
    return datetime.fromtimestamp(at_ms / 1000, tz=UTC).strftime("%d %b %H:%M UTC")


def disk_full() -> str:
    return (
        "My disk is full. I finish what I can, and take new messages again when there is room. "
        "Nothing that you have sent is lost."
    )


def offer_stale(request: str, at: str) -> str:
    return f"I was interrupted at {at} while working on «{excerpt(request)}». Shall I continue?"


def offer_worn_out(request: str) -> str:
    return (
        f"I was interrupted many times while working on «{excerpt(request)}». Shall I keep trying?"
    )


def offer_unknown(request: str, tool: str) -> str:
    return (
        f"I was interrupted while `{tool}` ran for «{excerpt(request)}», and I cannot tell "
        "whether it went through. I will not repeat it by myself. Shall I go on and check?"
    )


def offer_policy(request: str, at: str) -> str:
    return f"I was interrupted at {at} in «{excerpt(request)}». Shall I continue?"


def gave_up_deaths(request: str, deaths: int) -> str:
    return (
        f"I am sorry: I was stopped {deaths} times in a row while working on "
        f"«{excerpt(request)}» and have given it up. Nothing else is affected. "
        "/retry tries it once more, /drop lets it rest."
    )


def gave_up_stale(request: str) -> str:
    return (
        f"I was interrupted while working on «{excerpt(request)}» long ago and gave it up. "
        "/retry tries it once more."
    )


def failed(request: str, reason: str) -> str:
    why = excerpt(reason, 300).rstrip(".")
    return f"I could not finish «{excerpt(request)}»: {why}. /retry tries it once more."


FAILURES = {
    "worn-out": "I was interrupted too often",
    "empty-reply": "the model sent an empty answer twice",
    "too-many-steps": "it took too many steps",
    "contradiction": "what I had stored about it does not fit together; the log says more",
}


def failure(reason: str) -> str:
    return FAILURES.get(reason, reason)


def expired(question: str) -> str:
    return f"«{excerpt(question)}» was not answered in time, so I have closed it."


def too_late() -> str:
    return "That question is no longer open: your choice came too late. Write to me if it matters."


NO_RULING = {
    "not-an-owner": "Only an owner of this gateway can allow or refuse that. Nothing has changed.",
    "asked-elsewhere": "I have asked the owners about that, in their private chats with me and on "
    "the page, where the whole of it is shown. It is answered there.",
    "sender-not-allowed": "I do not go on with that: a person who wrote in it may not use me any "
    "more. Nothing has changed.",
}
"""What is said to a person whose words do not decide about an approval, by `NoRuling`."""


def owner_is_asked(*, has_chats: bool) -> str:
    where = "in their private chat with me, and on the page" if has_chats else "on the page"
    return f"This needs an owner. I have asked ({where}), and go on when there is an answer."


def asked_for_others(channel: str, chat: str, people: Sequence[str]) -> str:
    """What stands above an approval for owners who do not read along. Ids, not names: those prove
    nothing."""
    who = excerpt(", ".join(people), 200)
    return f"In chat {chat} on {channel}, for {who}, the agent wants to do this:"


def ruled(*, is_yes: bool) -> str:
    return "Allowed, exactly as shown." if is_yes else "Refused. The agent is told."


def members_now(names: Sequence[str]) -> str:
    who = excerpt(", ".join(names), 1_000)
    return (
        f"Since this version there are owners and members. These people were let in by a code and "
        f"are members now: {who}. Members talk to me; they answer no approvals, and their commands "
        "stay inside the boundary. `koboshi people role CHANNEL PERSON owner` makes one an owner."
    )


NO_YES_HERE = {
    "too-long-here": "It is too long to approve here: you cannot have seen all of it. Approve it "
    "on the page, under Questions, or say no and let it be put into a file. It is still open.",
    "not-shown-here": "My question has not arrived here, so you cannot have seen what a yes would "
    "allow. The page shows it, under Questions, and takes your answer; a no counts here as well. "
    "It is still open.",
}
"""What is said to a person whose yes to an approval does not count in their chat, by
`NotAnAnswer`."""


def no_spoken_ruling() -> str:
    return (
        "A recording or a file answers no approval: press a button, or write yes or no. The "
        "question is still open, and I hear this afterwards."
    )


def no_such_choice() -> str:
    return "That question has no such choice; it is still open."


def no_choice_now(request: str) -> str:
    return (
        f"I do not go on with «{excerpt(request)}»: a person who wrote in it may not use me any "
        "more. Nothing has changed; write what you want of it, and I go on with that."
    )


def set_aside(request: str) -> str:
    return (
        f"I have set «{excerpt(request)}» aside: a person who wrote in it may not use me any more. "
        "Write what you want of it, and I go on with that."
    )


def set_aside_by_policy(request: str) -> str:
    what = f"«{excerpt(request)}»" if request.strip() else "what you sent"
    return (
        f"I was interrupted and have set {what} aside, because I do not go on by myself here. "
        "/resume goes on with it, /drop ends it."
    )


def left_unfinished(request: str) -> str:
    what = f"«{excerpt(request)}»" if request.strip() else "what I did before"
    return (
        f"I was interrupted and have left {what} unfinished. Write it again if you still want it."
    )


def declined() -> str:
    return "All right, I have let it go."


def restarting() -> str:
    return "I am being restarted. What I cannot finish now goes on afterwards."


def after_restart() -> str:
    return "Queued: I am being restarted and will answer afterwards."


def back(seconds: float, resumed: int) -> str:
    took = f"I am back: the restart took {seconds:.1f} s."
    return (
        f"{took} {resumed} interrupted turns go on."
        if resumed > 1
        else (f"{took} One interrupted turn goes on." if resumed else took)
    )


def pairing_code(code: str, minutes: int) -> str:
    return (
        f"I do not know you yet. Give this code to the operator of this gateway: {code}. It is "
        f"good for {minutes} minutes, and they let you in with `koboshi pairing approve {code}`."
    )


def paired() -> str:
    return "You have been let in. What you write from now on reaches me; /help says what I can do."


def queued(ahead: int) -> str:
    return "Queued: I will answer after this one." if ahead < 2 else f"Queued: {ahead} before it."


def steering() -> str:
    return "I will take that in at my next step, or answer it afterwards if there is none."


def unreachable(process_id: ProcessId, command: str, node: str) -> str:
    """The node of a background process is away, and nothing is known of the process."""
    return (
        f"⚠ {shown('process', process_id)} (`{excerpt(command)}`) cannot be reached: it runs on "
        f"{node}, which is away. You will hear how it ended when {node} is back."
    )


def still_working(span: str, doing: str) -> str:
    return f"Still working, {span}, {doing}."


def answer_in_file() -> str:
    return "This answer is long. The whole of it is in this file."


def answer_cut(left: str) -> str:
    """`left` is what is not shown."""
    return (
        f"This answer is too long for messages: {len(left)} characters more are not shown. "
        f"Ask me to go on from «{excerpt(left, 60)}» for the rest."
    )


def reminder(text: str) -> str:
    return f"Reminder: {text}"


LOST_SHOWN_MAX = 5


def undelivered(lost: Sequence[DeliveryId]) -> str:
    """Deliveries of a chat that were given up, and how they can still be had."""
    names = [shown("delivery", each) for each in lost]
    listed = ", ".join(names[:LOST_SHOWN_MAX])
    if len(names) > LOST_SHOWN_MAX:
        listed += f" and {len(names) - LOST_SHOWN_MAX} more"
    if len(names) == 1:
        begin, them = "One message of mine", "it"
    else:
        begin, them = f"{len(names)} messages of mine", "one"
    return (
        f"{begin} could not be delivered: {listed}. Ask me again for what is missing, or let the "
        f"operator of this gateway send {them} again: `koboshi outbox retry {names[0]}`."
    )


def call_cut(tokens_max: int) -> str:
    return (
        f"the reply was longer than the {tokens_max:,} tokens that the budget reserves for one "
        "(budget.reply_tokens), and was cut in the middle of a call"
    )
