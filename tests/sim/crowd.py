"""The people of the simulation: what they write, and when they may use the gateway."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from koboshi.domain.ids import ChannelName
from tests.sim.model import PLANNED, STEADY
from tests.sim.plots import Plot

CHANNEL = ChannelName("fake:main")
OTHER = ChannelName("fake:other")
COMMANDS = ("/stop", "/new", "/status", "/stop all", "/retry", "/retry", "/resume", "/drop")
CUTS = ("/stop", "/new", "/new", "/stop all")
GROUP = "group"
TOPICS = ("", "7")
KNOCK = "let me in"
FIRST_BOT, SECOND_BOT = "4242", "1717"
BOT_CHANGES_S = 60.0
"""When another bot takes the place of the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Something that a person did."""

    at_s: float
    key: str
    chat: str
    text: str
    question: int | None = None
    choice: str | None = None
    sender: str = "ann"
    thread: str = ""
    channel: ChannelName = CHANNEL
    account: str = ""
    """The bot that it was said to, where there is more than one in the end."""
    number: int = 0
    """Its place among the updates of that bot."""

    @property
    def external_id(self) -> str:
        """What the platform calls it. Another bot's platform counts from the beginning."""
        return f"n{self.number}" if self.account else self.key

    @property
    def is_message(self) -> bool:
        return self.question is None and not self.text.startswith("/")

    @property
    def place(self) -> tuple[str, str, str]:
        return self.channel, self.chat, self.thread


@dataclass(slots=True)
class Circle:
    """Who may use the gateway, over all of its lives."""

    listed: set[str] = field(default_factory=lambda: {"ann"})
    """Those whom the configuration of the present life names."""
    changes: list[tuple[float, str, bool]] = field(default_factory=list)
    """When a right was given or taken, in order."""
    codes: list[str] = field(default_factory=list)
    """Codes that strangers got, and that the operator has not used."""
    codes_made: int = 0

    def note(self, at_s: float, person: str, is_allowed: bool) -> None:
        if self._states(person)[-1][1] != is_allowed:
            self.changes.append((at_s, person, is_allowed))

    def is_allowed(self, person: str) -> bool:
        return self._states(person)[-1][1]

    def is_always(self, person: str, allowed: bool, from_s: float, to_s: float) -> bool:
        """Whether the right did not change between two moments, and was so."""
        states = self._states(person)
        inside = [state for at_s, state in states if from_s < at_s <= to_s]
        before = [state for at_s, state in states if at_s <= from_s]
        return all(state is allowed for state in [before[-1], *inside])

    def was_ever(self, person: str, until_s: float) -> bool:
        return any(state for at_s, state in self._states(person) if at_s <= until_s)

    def next_code(self) -> str:
        code = f"{self.codes_made:08d}".translate(str.maketrans("01", "XY"))
        self.codes_made += 1
        self.codes.append(code)
        return code

    def _states(self, person: str) -> list[tuple[float, bool]]:
        mine = [(at_s, state) for at_s, who, state in self.changes if who == person]
        return [(-1.0, person == "ann"), *mine]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the operator does at a moment: lets in the one who has a code, or takes a right away."""

    at_s: float
    revoke: str = ""


def what_people_do(dice: random.Random, plot: Plot) -> list[Update]:
    """Messages and commands of some people in a minute or two."""
    match plot:
        case Plot.PEOPLE:
            updates = _in_a_group(dice)
        case Plot.CUTS:
            updates = _cut_short(dice)
        case Plot.AWAY:
            updates = _soon(dice)
        case Plot.DEADLY:
            updates = _deadly(dice)
        case Plot.SIDE:
            updates = _on_two_channels(dice)
        case Plot.STARVED:
            updates = _strict(dice)
        case Plot.BOT:
            updates = _to_two_bots(dice)
        case _:
            updates = _any(dice, plot)
    return sorted(updates, key=lambda update: update.at_s)


def what_the_operator_does(dice: random.Random, plot: Plot) -> list[Order]:
    """Bob is let in early, and loses his right and gets it back now and then."""
    if plot is not Plot.PEOPLE:
        return []
    orders = [Order(at_s=dice.uniform(1.0, 4.0))]
    at_s = 6.0
    for _ in range(dice.randint(1, 2)):
        at_s += dice.uniform(1.0, 15.0)
        orders.append(Order(at_s=at_s, revoke="bob"))
        at_s += dice.uniform(4.0, 25.0)
        orders.append(Order(at_s=at_s))
    return orders


def last_words(places: Iterable[tuple[str, str, str]], now_s: float) -> list[Update]:
    """Ann writes once more everywhere, so that what was set aside gives way."""
    return [
        Update(
            at_s=now_s + 1,
            key=f"z{number}",
            channel=ChannelName(channel),
            chat=chat,
            thread=thread,
            text=f"m{90 + number} do",
        )
        for number, (channel, chat, thread) in enumerate(sorted(places))
    ]


def _any(dice: random.Random, plot: Plot) -> list[Update]:
    chats = [f"chat{number}" for number in range(dice.randint(1, 3))]
    updates = []
    for number in range(dice.randint(3, 9)):
        chat, at_s = dice.choice(chats), dice.uniform(0.0, 60.0)
        thread = dice.choice(TOPICS) if plot is Plot.ROUGH else ""
        text = _words(dice, number, 0.4 if plot is Plot.ROUGH else 0.12)
        updates.append(Update(at_s=at_s, key=f"u{number}", chat=chat, text=text, thread=thread))
    return updates


def _in_a_group(dice: random.Random) -> list[Update]:
    """Ann and Cid are known, Bob is let in by a code, Eve is never; all write in the same group,
    and Bob knocks again in private when he may have lost his right."""
    knocks = [0.0, *(dice.uniform(8.0, 60.0) for _ in range(3))]
    updates = [
        Update(at_s=at_s, key=f"k{number}", chat="chat-bob", text=KNOCK, sender="bob")
        for number, at_s in enumerate(knocks)
    ]
    for number in range(dice.randint(6, 10)):
        sender = dice.choice(("ann", "ann", "bob", "bob", "bob", "cid", "eve"))
        is_group = dice.random() < 0.9
        updates.append(
            Update(
                at_s=dice.uniform(4.0, 50.0),
                key=f"u{number}",
                sender=sender,
                chat=GROUP if is_group else f"chat-{sender}",
                thread=dice.choice(TOPICS) if is_group else "",
                text=f"m{number} do {' '.join(dice.choices(STEADY, k=dice.randint(2, 5)))}",
            )
        )
    return updates


def _cut_short(dice: random.Random) -> list[Update]:
    """Work that goes on in the background, a cut behind it, and something new."""
    updates: list[Update] = []
    number = 0
    for place in range(dice.randint(1, 3)):
        chat, at_s = f"chat{place}", dice.uniform(0.0, 5.0)
        for _ in range(dice.randint(1, 2)):
            plan = " ".join(dice.choices(("job", "watch", "watch", "quiet", "run", "once"), k=2))
            cut_s = at_s + dice.choice((dice.uniform(0.3, 3.0), dice.uniform(4.0, 16.0)))
            texts = ((at_s, f"m{number} do {plan}"), (cut_s, dice.choice(CUTS)))
            later = (cut_s + dice.uniform(0.5, 10.0), f"m{number + 1} do none repeatable none")
            for when, text in (*texts, later):
                updates.append(Update(at_s=when, key=f"u{len(updates)}", chat=chat, text=text))
            number, at_s = number + 2, cut_s + dice.uniform(12.0, 30.0)
    return updates


def _soon(dice: random.Random) -> list[Update]:
    """All at once, each in a chat of its own, and then nothing: what is open when the gateway dies
    is open when it comes back."""
    return [
        Update(
            at_s=dice.uniform(0.0, 3.0),
            key=f"u{number}",
            chat=f"chat{number}",
            text=f"m{number} do {' '.join(dice.choices(STEADY, k=dice.randint(3, 5)))}",
        )
        for number in range(dice.randint(2, 4))
    ]


def _strict(dice: random.Random) -> list[Update]:
    """Things that must not be done twice, and commands whose runners may be killed."""
    words = ("once", "once", "twice", "resumable", "run", "job", "job wait", "watch", "guarded")
    return [
        Update(
            at_s=dice.uniform(0.0, 40.0),
            key=f"u{number}",
            chat=f"chat{number % 3}",
            text=f"m{number} do {' '.join(dice.choices(words, k=dice.randint(1, 3)))}",
        )
        for number in range(dice.randint(4, 8))
    ]


def _to_two_bots(dice: random.Random) -> list[Update]:
    """Some words to the first bot, and later some to the one that takes its place: as many, and so
    with the same numbers."""
    updates: list[Update] = []
    for account, begin_s in ((FIRST_BOT, 0.0), (SECOND_BOT, BOT_CHANGES_S)):
        moments = sorted(dice.uniform(begin_s, begin_s + 20.0) for _ in range(4))
        for number, at_s in enumerate(moments, start=1):
            name = len(updates)
            updates.append(
                Update(
                    at_s=at_s,
                    key=f"u{name}",
                    chat=f"chat{number % 2}",
                    text=f"m{name} do {dice.choice(STEADY)}",
                    account=account,
                    number=number,
                )
            )
    return updates


def _deadly(dice: random.Random) -> list[Update]:
    """Some of it kills the gateway that works on it, whenever that is tried."""
    updates = []
    for number in range(dice.randint(2, 4)):
        word = dice.choice(("deadly", "killer")) if number == 0 else dice.choice(STEADY)
        plan = " ".join((*dice.choices(STEADY, k=dice.randint(0, 2)), word))
        at_s, chat = dice.uniform(0.0, 20.0), f"chat{number}"
        updates.append(Update(at_s=at_s, key=f"u{number}", chat=chat, text=f"m{number} do {plan}"))
    return updates


def _on_two_channels(dice: random.Random) -> list[Update]:
    """Many chats, half of them on the other channel, with plain requests, and sometimes some
    before them that wait long for a command."""
    slow = dice.choice((0, 6))
    updates = []
    for number in range(slow + dice.randint(8, 12)):
        is_slow = number < slow
        plan = "slow" if is_slow else dice.choice(("", "", "none", "once"))
        updates.append(
            Update(
                at_s=dice.uniform(0.0, 3.0) if is_slow else dice.uniform(2.0, 40.0),
                key=f"u{number}",
                channel=CHANNEL if number % 2 else OTHER,
                chat=f"chat{number}",
                text=f"m{number} do {plan}".strip(),
            )
        )
    return updates


def _words(dice: random.Random, number: int, long_share: float) -> str:
    throw = dice.random()
    if throw < 0.1:
        return dice.choice(COMMANDS)
    plan = " ".join(dice.choices(PLANNED, k=dice.randint(0, 3)))
    if throw < 0.1 + long_share:
        plan += " long"
    prefix = "/queue " if throw > 0.95 else ""
    return f"{prefix}m{number} do {plan}".strip()
