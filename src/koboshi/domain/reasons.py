"""Why something was not answered, in plain words, and what helps: the same sentences for the
command line, the page and the chat. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from koboshi.domain.boot import BREAKER_WORDS
from koboshi.domain.outbox import DeliveryState
from koboshi.domain.phrases import excerpt, failure
from koboshi.domain.recovery import DIED_EACH_TIME, Verdict
from koboshi.domain.retry import BY_HAND
from koboshi.domain.turn import TurnEvent, TurnState
from koboshi.domain.worker import Breaker

START = "start the gateway: `koboshi run`"
AGAIN = "write it again, if it is still wanted"
RETRY = "/retry in the chat tries it once more"
QUESTION_CHARS_MAX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why, and what to do about it; no remedy where nothing has to be done."""

    words: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble(Reason):
    """What is wrong now. `kind` names it for programs."""

    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwedPart:
    """A delivery, as far as its fate is explained. `trouble` is why its channel cannot be reached
    now, as far as that is known."""

    name: str
    state: str
    reason: str | None
    attempts: int
    channel: str
    is_running: bool
    trouble: str | None = None

    @property
    def is_stuck(self) -> bool:
        """Whether it was tried, or cannot be, or is held."""
        if self.state == DeliveryState.HELD:
            return True
        return self.state == DeliveryState.OWED and bool(self.attempts or self.trouble)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStanding:
    """A turn, as far as its fate is explained. `verdict` is None when it is closed."""

    name: str
    state: str
    event: str
    reason: str | None
    deaths: int
    channel: str
    barred: tuple[str, ...]
    """People whose messages are in it and who may not use the gateway, by their ids."""
    is_running: bool
    verdict: Verdict | None = None
    question: str | None = None
    """What it waits for."""
    message: str = ""
    """What a person said in it, by its name."""
    owed: OwedPart | None = None
    """The first part of what it says that has not arrived."""


# ── messages ────────────────────────────────────────────────────────────────────────────────────

_IGNORED = {
    "not-allowed": "its sender is not allowed to use this gateway",
    "blank": "there are no words in it",
    "nothing-said": "there are no words or files in it",
    "not-addressed": "it was said in a group, and not to the bot",
    "not-a-message": "it is an update of the platform, and no message",
    "not-from-a-person": "no person wrote it",
    "not-our-button": "it pressed a button that is not ours",
    "moved": "it only says that the group has moved",
    "edit": "it changes a message that was taken up already",
}
_DROPPED = {
    "cut": "the person cut the conversation with /stop or /new while it waited",
    "inbox-full": "too many messages were waiting in this chat, and its sender was told so",
    "question-closed": "it answered a question that was closed by then",
    "no-such-choice": "it picked what the open question does not offer",
    "person-not-allowed": "it answered a question of a turn that may not go on: a person whose "
    "message is in it is no longer allowed",
    "already-read": "the agent knew already what it reports",
    "turn-ended": "the turn that it was meant for had ended",
    "child-not-allowed": "the person whom the sub-agent worked for may not use the gateway now",
    "child-erased": "what the sub-agent worked on was erased",
    BY_HAND: "the operator dropped it while it waited",
    "not-wanted": "`notify` in the configuration says that people do not hear of such ends",
}


_ASKED_AGAIN = frozenset({"cut", "inbox-full", BY_HAND})
"""What was dropped for these can be asked again."""


def why_message(
    name: str, state: str, kind: str, reason: str | None, *, sender: str, channel: str
) -> Reason:
    """What became of a message that is in no turn, and is known by a name. One that waits is told
    by who is before it."""
    why = reason or ""
    match state:
        case "ignored":
            words = f"ignored: {_IGNORED.get(why, why)} ({why})"
            return Reason(words=words, remedy=_for_ignored(name, why, sender, channel))
        case "dropped":
            words = f"dropped: {_DROPPED.get(why, why)} ({why})"
            is_asked_again = kind == "message" and why in _ASKED_AGAIN
            return Reason(words=words, remedy=to_ask_again(name) if is_asked_again else "")
        case "handled" if kind == "report":
            return Reason(words="the person was told; no turn was opened for it")
        case "handled":
            words = "a command: it was carried out and answered when it arrived"
            return Reason(words=words)
        case other:
            return Reason(words=other)


def why_dropped(reason: str | None) -> str:
    """Why a message was dropped while it waited."""
    return _DROPPED.get(reason or "", reason or "no reason was given")


def to_ask_again(name: str) -> str:
    """How a message that was not answered is asked again without its sender."""
    return f"{AGAIN}; `koboshi inbox retry {name}`, or Retry on the page, asks it again"


def _for_ignored(name: str, why: str, sender: str, channel: str) -> str:
    match why:
        case "not-allowed":
            then = f"then `koboshi inbox retry {name}` asks this one"
            return f"{let_in((sender,), channel)}; {then}"
        case "not-addressed":
            return "in a group, name the bot or answer one of its messages"
        case _:
            return ""


def let_in(people: Sequence[str], channel: str) -> str:
    """How people are let in who are not allowed: by their ids, as the configuration and `koboshi
    pairing list` have them."""
    section = f"[channels.{channel.replace(':', '.')}]"
    named = " and ".join(people) or "their ids"
    return (
        "to let them in, ask them for the code that they were given in a private chat: "
        f"`koboshi pairing approve CODE`; or add {named} to `allow` of {section} in koboshi.toml "
        "and `koboshi restart`"
    )


# ── deliveries ──────────────────────────────────────────────────────────────────────────────────


def why_delivery(owed: OwedPart) -> Reason:
    """Where a delivery stands, why, and how to get it out."""
    tries = f"{owed.attempts} tries" if owed.attempts != 1 else "1 try"
    match owed.state:
        case DeliveryState.DRAFT:
            return Reason(words="shown while it is written")
        case DeliveryState.OWED if owed.trouble:
            words = f"not sent yet: {owed.channel} cannot be reached: {owed.trouble}"
            return Reason(words=words, remedy=_to_reach(owed))
        case DeliveryState.OWED if owed.attempts:
            words = _because(f"not sent yet, {tries} so far", owed.reason)
            return Reason(words=words, remedy=_to_reach(owed))
        case DeliveryState.OWED if owed.is_running:
            return Reason(words="it is sent next")
        case DeliveryState.OWED:
            return Reason(words="not sent yet: no gateway is running", remedy=START)
        case DeliveryState.SENDING if owed.is_running:
            return Reason(words="being sent now")
        case DeliveryState.SENDING:
            words = "the gateway died while sending it; it is not known whether it arrived"
            return Reason(words=words, remedy=f"{START}; it finds out before it sends it again")
        case DeliveryState.HELD:
            words = _because("held until the operator decides", owed.reason)
            return Reason(words=words, remedy=_to_let_go(owed))
        case DeliveryState.DELIVERED:
            return Reason(words="delivered" if owed.attempts < 2 else f"delivered after {tries}")
        case DeliveryState.REJECTED:
            words = _because("refused by the platform", owed.reason)
            return Reason(words=words, remedy=_to_send_again(owed))
        case DeliveryState.ABANDONED:
            words = _because("given up", owed.reason)
            return Reason(words=words, remedy=_to_send_again(owed))
        case other:
            return Reason(words=other)


def _to_reach(owed: OwedPart) -> str:
    begin = "it is sent by itself as soon as that works" if owed.is_running else START
    return (
        f"{begin}; `koboshi doctor --online` tries the channel, `koboshi outbox retry {owed.name}` "
        f"sends it at once, `koboshi outbox drop {owed.name}` gives it up"
    )


def _to_let_go(owed: OwedPart) -> str:
    return (
        f"`koboshi outbox release {owed.name}`, or Retry on the page, sends it, marked as a "
        f"possible duplicate; `koboshi outbox drop {owed.name}` gives it up"
    )


def _to_send_again(owed: OwedPart) -> str:
    return f"`koboshi outbox retry {owed.name}`, or Retry on the page, sends it again"


# ── turns ───────────────────────────────────────────────────────────────────────────────────────

_CLOSED = {
    TurnEvent.SETTLED: Reason(words="the answer was delivered"),
    TurnEvent.CUT: Reason(words="stopped by the person, with /stop or /new", remedy=AGAIN),
    TurnEvent.DROPPED: Reason(
        words="ended for good, with /drop, by an erasure or on the console", remedy=RETRY
    ),
    TurnEvent.INTERRUPTED: Reason(
        words="ended by a newer message",
        remedy=f"{AGAIN}; /busy queue lets messages wait for each other instead",
    ),
    TurnEvent.EXPIRED: Reason(
        words="its question was not answered in time, so it was closed", remedy=AGAIN
    ),
    TurnEvent.DECLINED: Reason(words="the person did not want it to go on", remedy=AGAIN),
}


def why_turn(turn: TurnStanding) -> Reason:
    """Why a turn is where it is: what it waits for, what keeps its words from arriving, or what
    ended it."""
    if turn.owed is not None and (turn.state != TurnState.WAITING or turn.owed.is_stuck):
        return _not_arrived(turn, turn.owed)
    if turn.verdict is None:
        closed = why_closed(turn.state, turn.event, turn.reason, turn.deaths)
        return or_by_hand(closed, turn.state, turn.message)
    words = turn.verdict.because
    if turn.question is not None and turn.verdict.rule == "question-open":
        words = why_asked(turn.question)
    return Reason(words=words, remedy=_to_go_on(turn, turn.verdict))


def why_asked(question: str) -> str:
    return f"it asked «{excerpt(question, QUESTION_CHARS_MAX)}» and waits for the answer"


def _not_arrived(turn: TurnStanding, owed: OwedPart) -> Reason:
    what = "its question" if turn.state == TurnState.WAITING else "the answer"
    found = why_delivery(owed)
    match owed.state:
        case DeliveryState.SENDING | DeliveryState.DRAFT | DeliveryState.HELD:
            words = f"{what} is stored, and {found.words}"
        case DeliveryState.OWED if owed.is_stuck:
            tries = f"{owed.attempts} tries" if owed.attempts != 1 else "1 try"
            why = owed.trouble or owed.reason or "no reason was given"
            words = f"{what} is stored, but {owed.channel} cannot be reached: {why} ({tries})"
        case DeliveryState.OWED:
            words = f"{what} is stored and on its way"
        case _:
            words = f"{what} did not arrive: {found.words}"
    return Reason(words=words, remedy=found.remedy)


def why_closed(state: str, event: str, reason: str | None, deaths: int) -> Reason:
    """What ended a turn. `deaths` are those in a row without a new step."""
    if event == TurnEvent.GAVE_UP and reason == DIED_EACH_TIME:
        words = (
            f"given up: the gateway died {deaths} times in a row over this, without getting any "
            "further; the person was told"
        )
        return Reason(words=words, remedy=f"{RETRY}; `koboshi logs` may say what killed it")
    if event in _CLOSED:
        return _CLOSED[TurnEvent(event)]
    words = failure(reason) if reason else event
    return Reason(words=words, remedy=RETRY if state == TurnState.FAILED else "")


def or_by_hand(closed: Reason, state: str, message: str) -> Reason:
    """What ended a turn, with the way to ask its message again, if it holds one."""
    if not message or state not in (TurnState.FAILED, TurnState.STOPPED):
        return closed
    way = f"`koboshi inbox retry {message}`, or Retry on the page, asks it again"
    return replace(closed, remedy=f"{closed.remedy}; {way}" if closed.remedy else way)


def _to_go_on(turn: TurnStanding, verdict: Verdict) -> str:
    here = f"`koboshi turns resume {turn.name}`, or /resume in the chat, goes on with it"
    match verdict.rule:
        case "question-open":
            begin = "" if turn.is_running else f"{START}, then "
            return f"{begin}answer in the chat or, for chats of the page, under Questions there"
        case "person-not-allowed":
            return let_in(turn.barred, turn.channel)
        case "channel-unknown":
            return f"configure {turn.channel} again and `koboshi restart`"
        case "boot-breaker":
            return f"{here}; `koboshi logs` may say what kills the gateway"
        case "policy-off" | "policy-ask":
            return f"{here}; /drop ends it"
        case _:
            return "" if turn.is_running else START


# ── what is wrong now ───────────────────────────────────────────────────────────────────────────


def what_is_wrong(
    *,
    breaker: Breaker,
    unreached: Mapping[str, str],
    held: int,
    store: str | None,
    gap: str | None = None,
    unheard: int = 0,
    restart: str | None = None,
) -> tuple[Trouble, ...]:
    """What keeps messages from being answered, whatever they say, or soon will; nothing if all is
    well."""
    found = []
    if store is not None:
        words = f"nothing can be written: {store}"
        found.append(
            Trouble(
                kind="store",
                words=words,
                remedy="nothing is lost; writing continues when that is fixed",
            )
        )
    for channel, why in unreached.items():
        words = f"{channel} cannot be reached: {why}"
        remedy = (
            "messages come in and deliveries go out as soon as it can be reached again; "
            "`koboshi doctor --online` tries it"
        )
        found.append(Trouble(kind="channel", words=words, remedy=remedy))
    if breaker is not Breaker.CLOSED:
        remedy = "/resume in the chat, or Resume on the page of a turn, goes on with it now"
        found.append(Trouble(kind="breaker", words=BREAKER_WORDS[breaker], remedy=remedy))
    if gap is not None:
        remedy = "`koboshi outbox list --open`, then `koboshi outbox release --all` settles it"
        found.append(Trouble(kind="gap", words=gap, remedy=remedy))
    if held:
        what, they = ("1 delivery is", "it") if held == 1 else (f"{held} deliveries are", "they")
        words = f"{what} held back, after a restore or because {they} may have arrived already"
        remedy = "`koboshi outbox release --all` sends what is held"
        found.append(Trouble(kind="held", words=words, remedy=remedy))
    if unheard:
        remedy = "`koboshi turns list --open` names them, `koboshi explain` says what helps"
        found.append(Trouble(kind="unheard", words=unheard_words(unheard), remedy=remedy))
    if restart is not None:
        found.append(Trouble(kind="restart", words=restart, remedy="`koboshi restart`"))
    return tuple(found)


def unheard_words(count: int) -> str:
    """What only the operator can be told of turns that were set aside."""
    turns = "1 turn was" if count == 1 else f"{count} turns were"
    return (
        f"{turns} set aside without a word in the chat: the person is no longer allowed, or the "
        "channel is not configured"
    )


def _because(words: str, reason: str | None) -> str:
    return f"{words}: {reason}" if reason else words
