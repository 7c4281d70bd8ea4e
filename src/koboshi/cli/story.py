"""What happened, in plain words: the journal, and where messages and deliveries stand. Pure."""

from collections.abc import Mapping, Sequence

from koboshi.domain.action import EMPTY_REPLY
from koboshi.domain.notes import MOVED_ON, RECOVERY
from koboshi.domain.phrases import failure
from koboshi.ports.views import DeliveryView, EntryView, JournalLine

_TURN = {
    "opened": "accepted",
    "claimed": "work began",
    "asked": "it waits for the answer",
    "replied": "the person answered",
    "declined": "the person did not want it to go on",
    "expired": "nobody answered in time, and it was let go",
    "answered": "the answer was stored",
    "settled": "done: nothing is left to deliver",
    "released": "set down, because the gateway was stopping",
    "postponed": "set down for a while",
    "interrupted": "ended by a newer message",
    "erred": "failed",
    "cut": "stopped by the person",
    "dropped": "ended for good",
    "resumed": "taken up again",
    "prompted": "it waits for a yes or a no",
    "parked": "set aside",
    "cleared": "ended",
    "gave-up": "given up",
}
_TAKEN_UP = {
    "crash": "taken up again after the gateway had died",
    "drain": "taken up again after a restart",
    "node-lost": "taken up again after its machine was lost",
    "person": "taken up again, because the person wanted it",
}
_NOTES = {
    RECOVERY: "the model was told of the interruption",
    MOVED_ON: "the model was told of the request that is not continued",
    EMPTY_REPLY: "the model was asked again, because its reply was empty",
}
_DELIVERY = {
    "delivered": "was delivered",
    "postponed": "was put off",
    "rejected": "was refused by the platform",
    "abandoned": "was given up",
}
_IGNORED = {
    "not-allowed": "its sender is not allowed to use this gateway",
    "blank": "there are no words in it",
}
_DROPPED = {
    "cut": "the person cut the conversation with /stop or /new while it waited",
    "inbox-full": "too many messages were waiting in this chat, and its sender was told so",
    "question-closed": "it answered a question that was closed by then",
    "no-such-choice": "it picked what the open question does not offer",
    "already-read": "the agent knew already what it reports",
    "turn-ended": "the turn that it was meant for had ended",
    "not-wanted": "`notify` in the configuration says that people do not hear of such ends",
}


def told(lines: Sequence[JournalLine]) -> list[tuple[int, str]]:
    """What the lines say, each with its time. A line that repeats its neighbour says nothing."""
    tools: dict[str, str] = {}
    story = []
    for line in lines:
        if line.subject == "call" and line.reason:
            call_id, _, tool = line.reason.partition(" ")
            tools[call_id] = tool
        words = _words(line, tools)
        if words:
            story.append((line.at_ms, words))
    return story


def _words(line: JournalLine, tools: Mapping[str, str]) -> str | None:
    match line.subject:
        case "turn":
            return _of_turn(line)
        case "step":
            return _of_step(line, tools)
        case "call":
            _, _, tool = (line.reason or "").partition(" ")
            return f"the tool {tool} began"
        case "delivery":
            words = _DELIVERY.get(line.event, line.event)
            return _with_reason(f"d{line.number} {words}", line.reason)
        case _:
            return _with_reason(f"{line.subject} {line.number}: {line.event}", line.reason)


def _of_turn(line: JournalLine) -> str:
    words = _TURN.get(line.event, line.event)
    match line.event:
        case "claimed":
            return f"{words} (boot {line.worker_id})"
        case "resumed":
            words = _TAKEN_UP.get(line.reason or "", words)
            return f"{words} (rule {line.rule})" if line.rule else words
        case "erred":
            return _with_reason(words, failure(line.reason or ""))
        case "postponed":
            return _with_reason(words, line.reason)
        case "prompted" | "parked" | "cleared" | "gave-up":
            by = f"{words} (rule {line.rule})" if line.rule else words
            return _with_reason(by, line.reason)
        case "declined" if line.reason == "other words":
            return f"{words}: they wrote something else, and that opened a turn of its own"
        case _:
            return words


def _of_step(line: JournalLine, tools: Mapping[str, str]) -> str | None:
    cause = line.reason or ""
    match line.event:
        case "answer":
            return None  # the turn's own line says so
        case "reply":
            return "the model replied"
        case "result":
            call_id = cause.removeprefix("call:")
            tool = tools.get(call_id)
            return f"the tool {tool} has its result" if tool else f"call {call_id} has its result"
        case "question":
            asks_itself = cause.startswith("verdict:")
            who = "the gateway asked the person whether to go on" if asks_itself else ""
            return who or "the model asked the person a question"
        case "note" if cause.startswith("entry:"):
            return "a report was passed on to the model"
        case "summary":
            return "what was said before was summed up for the model"
        case "note":
            return _NOTES.get(cause, "the model was told something")
        case _:
            return f"{line.event} was stored"


def fate_of_message(entry: EntryView) -> str:
    """What became of a message that is in no turn. One that waits is told by who is before it."""
    reason = entry.reason or ""
    match entry.state:
        case "ignored":
            return f"ignored: {_IGNORED.get(reason, reason)} ({reason})"
        case "dropped":
            return f"dropped: {_DROPPED.get(reason, reason)} ({reason})"
        case "handled" if entry.kind == "report":
            return "the person was told, and no turn"
        case "handled":
            return "a command: it was carried out and answered when it arrived"
        case state:
            return state


def fate_of_delivery(delivery: DeliveryView, *, is_running: bool) -> str:
    """Where a delivery stands, and why."""
    tries = f"{delivery.attempts} tries" if delivery.attempts != 1 else "1 try"
    match delivery.state:
        case "draft":
            return "shown while it grows; not yet owed"
        case "owed" if delivery.attempts:
            return _with_reason(f"owed; {tries} so far", delivery.reason)
        case "owed":
            return "owed; " + ("it is sent next" if is_running else "no gateway runs to send it")
        case "sending" if is_running:
            return "being sent now"
        case "sending":
            return "the gateway died while sending it; nobody knows whether it arrived"
        case "delivered":
            return f"delivered with {tries}"
        case "rejected":
            return _with_reason("refused by the platform", delivery.reason)
        case "abandoned":
            return _with_reason("given up", delivery.reason)
        case state:
            return state


def _with_reason(words: str, reason: str | None) -> str:
    return f"{words}: {reason}" if reason else words
