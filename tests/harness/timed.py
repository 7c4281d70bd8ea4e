"""Schedules and goals in a home of a test: made, fired and looked at."""

from dataclasses import dataclass
from typing import Any

from koboshi.commands.run import respond
from koboshi.domain.command import Command, CommandName
from koboshi.domain.ids import ScheduleId, SessionId, TurnId
from koboshi.domain.outbox import Delivery, DeliveryState, Settle
from koboshi.domain.schedule import (
    Late,
    Occasion,
    Order,
    Overlap,
    Schedule,
    ScheduleKind,
    WorkPlace,
    default_late,
)
from koboshi.domain.transcript import Reply
from koboshi.domain.wish import MakeSchedule, TimedWish, WishOutcome
from koboshi.ports.store import Arrival
from koboshi.ports.views import TurnView
from tests.harness.fake_time import START_MS
from tests.harness.homes import Home

MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
AT, EVERY, CRON = ScheduleKind.AT, ScheduleKind.EVERY, ScheduleKind.CRON
LIMIT = 64
# 15 January 2027, 08:00 UTC, is where the clock of the tests stands.
IN_AN_HOUR = "2027-01-15T09:00:00+00:00"
assert START_MS == 1_800_000_000_000
EXPRESSIONS = {AT: IN_AN_HOUR, EVERY: "3600", CRON: "0 9 * * *"}


def an_order(kind: ScheduleKind = EVERY, expression: str = "", **more: Any) -> Order:
    return Order(
        **{
            "name": f"my {kind}",
            "kind": kind,
            "expression": expression or EXPRESSIONS[kind],
            "zone": "",
            "prompt": "" if more.get("command") else "look at the news",
            "late": default_late(kind),
            **more,
        }
    )


@dataclass(slots=True)
class Clockwork:
    """A chat with schedules."""

    home: Home
    session_id: SessionId
    keys: int = 0

    async def wish(self, wish: TimedWish, *, by: str = "", person: str = "ann") -> WishOutcome:
        self.keys += 1
        key = by or f"call:{self.keys}"
        return await self.home.store.schedules.wish(self.session_id, person, wish, key)

    async def make(self, order: Order | None = None, *, person: str = "ann") -> Schedule:
        outcome = await self.wish(MakeSchedule(order=order or an_order()), person=person)
        assert outcome.schedule is not None, outcome.words
        return outcome.schedule

    async def fire(self) -> list[str]:
        """What the rules said of everything that is due, oldest first."""
        fired = await self.home.store.schedules.fire(LIMIT)
        return [rule for _, rule in fired.decided]

    async def get(self, schedule: Schedule | ScheduleId) -> Schedule:
        found = await self.view(schedule)
        return found[0]

    async def get_only(self) -> Schedule:
        (view,) = await self.home.store.schedules.views(limit=2)
        return view.schedule

    async def view(self, schedule: Schedule | ScheduleId) -> tuple[Schedule, tuple[Occasion, ...]]:
        known = schedule.schedule_id if isinstance(schedule, Schedule) else schedule
        view = await self.home.store.schedules.view(known, occasions=100)
        assert view is not None
        return view.schedule, view.occasions

    async def verdicts(self, schedule: Schedule | ScheduleId) -> list[tuple[str, str, int]]:
        """The occasions, oldest first: verdict, rule, count."""
        _, occasions = await self.view(schedule)
        return [(str(each.verdict), each.rule, each.count) for each in reversed(occasions)]

    async def turns(self) -> list[TurnView]:
        return await self.home.turns()

    async def answer_all(self, text: str = "done") -> list[TurnId]:
        """Every turn that can be claimed is answered, with what follows from it."""
        answered: list[TurnId] = []
        while claims := await self.home.claims():
            for claim in claims:
                await self.home.store.turns.answer(claim, Reply(text=text), (text,))
                answered.append(claim.turn_id)
        return answered

    async def fail_all(self, reason: str = "the provider could not be reached") -> int:
        count = 0
        while claims := await self.home.claims():
            for claim in claims:
                await self.home.store.turns.fail(claim, reason)
                count += 1
        return count

    async def told(self) -> list[str]:
        """What the chat is told now."""
        return [each.text for each in await self.home.deliver()]


async def a_clockwork(home: Home) -> Clockwork:
    """A chat that has talked once, and is idle."""
    await home.answer(await home.work_on("hello"))
    await home.deliver()
    return Clockwork(home=home, session_id=await home.session_id())


def aside_of(home: Home) -> SessionId:
    ((session_id,),) = home.sql("SELECT session_id FROM sessions WHERE aside <> ''")
    return SessionId(int(str(session_id)))


async def said_in(home: Home, session_id: SessionId) -> list[Delivery]:
    """The open deliveries of a session; they arrive."""
    told = []
    while delivery := await home.store.outbox.claim(session_id, home.worker.worker_id):
        assert isinstance(delivery, Delivery)
        arrived = Settle(state=DeliveryState.DELIVERED, platform_id=f"p{delivery.delivery_id}")
        await home.store.outbox.settle(delivery, home.worker.worker_id, arrived)
        told.append(delivery)
    return told


async def types(home: Home, text: str, *, person: str = "ann", chat: str = "ann") -> str:
    """A person types a command; what they are told."""
    name, _, argument = text.removeprefix("/").partition(" ")
    command = Command(name=CommandName(name), said=text, argument=argument)
    inbound = home.inbound(text, person=person, chat=chat)
    await home.accept(Arrival(inbound=inbound, command=command), respond=respond)
    return (await home.deliver(chat))[-1].text


LATE, OVERLAP, PLACE = Late, Overlap, WorkPlace
