"""A person who does errands in one chat, whatever happens to the gateway."""

import random
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Protocol

from anyio import Event, current_time, move_on_after, sleep

from koboshi.torture.errands import MARK, Errand, ErrandKind, errands_of
from koboshi.torture.faults import CLOSED
from koboshi.torture.seen import SeenEvent, SeenSent
from koboshi.torture.web_client import LOST, Connection, NotNow, Unknown

PATIENCE_S = 3.0
"""Who has heard nothing for so long says /resume: a turn that died twice would wait longer."""
RESUMES_MAX = 2
"""It begins the counts of a turn anew: what takes longer than any life would never be given up."""
PATIENCE_AT_END_S = 0.4
JOBS_S_MAX = 20.0
RETRY_S = 0.01
OFFER = "I was interrupted"
"""How the gateway begins to ask whether it shall go on."""


REPORTED = ("[koboshi] Background process ", "Background process ", "It exited with code ")
"""How the agent and the person are told of the end of a command."""


class GatewayPlace(Protocol):
    """Where the gateway is, over all of its lives."""

    @property
    def is_closing(self) -> bool: ...

    @property
    def connection(self) -> Connection | None: ...

    async def comes_up(self) -> Connection: ...

    def hear(self) -> None: ...

    def recover(self, errand: Errand) -> None: ...


@dataclass(slots=True, kw_only=True)
class TorturePerson:
    """One chat. What was sent and told is kept for the check."""

    chat: str
    place: GatewayPlace
    dice: random.Random
    sent: list[SeenSent] = field(default_factory=list)
    told: list[SeenEvent] = field(default_factory=list)
    repeats: int = 0
    errands: int = 0
    orders: int = 0
    waits_for: str = ""
    unfinished: list[str] = field(default_factory=list)
    questions: list[SeenEvent] = field(default_factory=list)
    """Those that were not answered yet."""
    jobs_heard: set[str] = field(default_factory=set)
    """Marks of background commands whose end was heard, by the agent or by the person."""
    jobs_begun: set[str] = field(default_factory=set)
    """Marks of those that the agent said to run."""
    states: dict[str, str] = field(default_factory=dict)
    """The newest state of each turn that was told of."""
    news: Event = field(default_factory=Event)

    async def do_errands(self) -> None:
        """One errand after the other, until it is said that it is enough."""
        while not self.place.is_closing:
            self.errands += 1
            await self._do(errands_of(self.dice, f"{self.chat}x{self.errands:05d}"))
            await sleep(self.dice.uniform(0, 0.1))
        await self._hear_of_jobs()

    async def keep_following(self) -> None:
        """Follow the chat from its start until cancelled, going on behind the last event."""
        while True:
            connection = await self.place.comes_up()
            try:
                async with aclosing(connection.events(self.chat, self._last_place())) as events:
                    async for told in events:
                        self._take(told)
            except (*LOST, NotNow):
                await sleep(RETRY_S)

    async def say(self, errand: Errand, *, question: int = 0, choice: str = "") -> SeenSent:
        """Post until it is acknowledged, always with the same key."""
        key = f"{len(self.sent)}"
        sent = SeenSent(chat=self.chat, key=key, errand=errand)
        self.sent.append(sent)
        while sent.message is None:
            connection = await self.place.comes_up()
            try:
                sent.message = await connection.post(self.chat, key, errand.text, question, choice)
            except (*LOST, NotNow):
                self.repeats += 1
                await sleep(RETRY_S)
        return sent

    async def order(self, text: str) -> SeenSent:
        """Say a command of the chat."""
        self.orders += 1
        mark = f"{self.chat}o{self.orders:05d}"
        return await self.say(Errand(kind=ErrandKind.ORDER, mark=mark, text=text))

    async def hears_reply(self, sent: SeenSent) -> SeenEvent:
        """Wait for the reply to a command."""
        cause = f"command:{(sent.message or '')[1:]}"
        while True:
            for told in reversed(self.told):
                if told.cause == cause:
                    return told
            await self.news.wait()

    def give_up(self, why: str) -> None:
        """The wait is over."""
        if self.waits_for:
            self.unfinished.append(f"{self.waits_for}: {why}")
            self.waits_for = ""

    def _take(self, told: SeenEvent) -> None:
        self.told.append(told)
        if told.kind == "turn":
            self.states[told.turn] = told.state
        if told.kind in ("step", "notice", "answer") and told.text.startswith(REPORTED):
            self.jobs_heard.update(MARK.findall(told.text))
        if told.kind == "question" and told.question:
            self.questions.append(told)
        self.news.set()
        self.news = Event()
        self.place.hear()

    def _last_place(self) -> int | None:
        return self.told[-1].place if self.told else None

    async def _do(self, errands: list[Errand]) -> None:
        self.waits_for = ", ".join(errand.mark for errand in errands)
        try:
            sent = [await self.say(errand) for errand in errands]
            for each in sent:
                turn = await self._see_through(each)
                if each.errand.kind is ErrandKind.JOB and self.states[turn] == "done":
                    self.jobs_begun.add(each.errand.mark)
        except Unknown as unknown:
            self.unfinished.append(f"{self.waits_for}: nothing is known of it ({unknown})")
        self.waits_for = ""

    async def _hear_of_jobs(self) -> None:
        """Wait for the end of every background command that was begun."""
        with move_on_after(JOBS_S_MAX):
            while not self.jobs_begun <= self.jobs_heard:
                await self.news.wait()

    async def _see_through(self, sent: SeenSent) -> str:
        """Wait for the end of a message, and do what a person does on the way. Returns its turn."""
        errand, begun = sent.errand, current_time()
        turn: str | None = None
        heard, heard_at, has_stopped, resumes = len(self.told), begun, False, 0
        while turn is None or self.states.get(turn) not in CLOSED:
            await self._hear_more(0.2 if turn else 0.02)
            turn = turn or await self._turn_of(sent)
            await self._answer_questions(sent)
            now = current_time()
            if len(self.told) != heard:
                heard, heard_at = len(self.told), now
            if has_waited(errand, now - begun) or self.place.is_closing:
                self.place.recover(errand)
            patience = PATIENCE_AT_END_S if self.place.is_closing else PATIENCE_S
            if errand.stop_after_s is not None and not has_stopped:
                if turn and now >= begun + errand.stop_after_s:
                    has_stopped = True
                    await self.order("/stop")
            elif now > heard_at + patience and self.place.connection is not None:
                heard_at = now
                resumes += 1
                if resumes <= RESUMES_MAX or self.place.is_closing:
                    await self.order("/resume")
        return turn

    async def _hear_more(self, within_s: float) -> None:
        with move_on_after(within_s):
            await self.news.wait()

    async def _turn_of(self, sent: SeenSent) -> str | None:
        connection = self.place.connection
        if connection is None or sent.message is None:
            return None
        try:
            return await connection.turn_of(self.chat, sent.message)
        except (*LOST, NotNow):
            return None

    async def _answer_questions(self, sent: SeenSent) -> None:
        while self.questions:
            told = self.questions.pop()
            label = self._choice_for(sent.errand, told)
            chosen = next(each for each, words in told.choices if words.casefold() == label)
            reply = Errand(kind=ErrandKind.REPLY, mark=f"{self.chat}q{told.question}", text="")
            await self.say(reply, question=told.question, choice=chosen)

    def _choice_for(self, errand: Errand, told: SeenEvent) -> str:
        """The agent gets what is planned; the gateway may go on, and may not do anything twice."""
        if told.text.startswith(OFFER):
            return "yes"
        is_planned = errand.kind is ErrandKind.QUESTION and errand.mark in told.text
        return errand.choice if is_planned else "no"


def has_waited(errand: Errand, for_s: float) -> bool:
    """Whether the model is to answer again."""
    return errand.recovers_after_s is not None and for_s >= errand.recovers_after_s
