"""`schedule`: the agent makes, shows and changes standing orders of the person.

The tool is repeatable by its call id: a kill behind its commit does not make two.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Annotated, Literal

from msgspec import Meta, Struct

from koboshi.domain import time_words
from koboshi.domain.due import NotATime
from koboshi.domain.ids import ScheduleId, parse_shown
from koboshi.domain.phrases import YES_NO, excerpt
from koboshi.domain.schedule import (
    NAME_CHARS_MAX,
    PROMPT_CHARS_MAX,
    Late,
    Order,
    Schedule,
    ScheduleEvent,
    ScheduleKind,
    WorkPlace,
    default_late,
)
from koboshi.domain.transcript import Choice, Effect, Need
from koboshi.domain.when import read_when
from koboshi.domain.wish import (
    ChangeSchedule,
    MakeSchedule,
    MoveSchedule,
    ScheduleWish,
    WishOutcome,
    WishStatus,
    why_too_often,
)
from koboshi.ports.clock import Clock
from koboshi.ports.model import ToolSpec
from koboshi.ports.schedules import Schedules
from koboshi.ports.tool import ToolAnswer, ToolContext, ToolFailed
from koboshi.tools.declared import complaint_about, decode_arguments, result_text, schema_of

LISTED_MAX = 50
_EVENTS = {
    "pause": ScheduleEvent.PAUSED,
    "resume": ScheduleEvent.RESUMED,
    "remove": ScheduleEvent.REMOVED,
}
_WHEN = (
    "When: `in 2 hours`, `tomorrow 9:00`, `2026-11-20 09:00`, `every 30 minutes`, "
    "`every weekday at 7:00`, or `cron 0 7 * * 1-5`; local times are those of the person."
)


class ScheduleArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    action: Annotated[
        Literal["create", "list", "change", "pause", "resume", "remove"],
        Meta(description="What to do."),
    ]
    id: Annotated[str, Meta(max_length=20, description="Which one, as in c3; not for create.")] = ""
    name: Annotated[str, Meta(max_length=NAME_CHARS_MAX, description="A short name.")] = ""
    when: Annotated[str, Meta(max_length=200, description=_WHEN)] = ""
    prompt: Annotated[
        str,
        Meta(max_length=PROMPT_CHARS_MAX, description="What you will be asked to do at that time."),
    ] = ""
    place: Annotated[
        Literal["here", "fresh", "thread", ""],
        Meta(
            description="`here`: in this conversation; `fresh`: beside it, with a context of its "
            "own; `thread`: in a thread of its own, where the platform has threads."
        ),
    ] = ""
    late: Annotated[
        Literal["run", "ask", "skip", ""], Meta(description="What to do if it is much too late.")
    ] = ""
    quiet: Annotated[
        bool | None, Meta(description="You may then say nothing if there is nothing to report.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleTool:
    schedules: Schedules
    clock: Clock
    zone_named: Callable[[str], tzinfo]
    is_scheduled: bool = False
    """The turn was begun by a schedule: then a person allows each change."""

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name="schedule",
            description=(
                "Make, list, change, pause, resume or remove what you do for the person later or "
                "again and again: reminders and recurring work. The person is told what you made."
            ),
            parameters=schema_of(ScheduleArguments),
        )

    def effect_of(self, arguments: str) -> Effect:
        return Effect.NONE if _action(arguments) == "list" else Effect.REPEATABLE

    def need_of(self, arguments: str) -> Need:
        is_asked = self.is_scheduled and _action(arguments) != "list"
        return Need.APPROVAL if is_asked else Need.NOBODY

    def question_of(self, arguments: str) -> tuple[str, tuple[Choice, ...]]:
        return f"A schedule wants to change schedules: {excerpt(arguments, 300)} May I?", YES_NO

    def complaint_about(self, arguments: str) -> str | None:
        return complaint_about(ScheduleArguments, arguments)

    async def run(self, arguments: str, context: ToolContext) -> ToolAnswer:
        try:
            asked = decode_arguments(ScheduleArguments, arguments)
        except ValueError as error:
            raise ToolFailed(str(error)) from None
        if asked.action == "list":
            return await self._list(context)
        turn_id = context.claim.turn_id
        zone_name = await self.schedules.zone_of_turn(turn_id)
        wish = await self._wish(asked, zone_name)
        by = f"call:{turn_id}/{context.call_id}"
        outcome = await self.schedules.wish(context.claim.session_id, "", wish, by, turn_id=turn_id)
        if outcome.status in (WishStatus.REFUSED, WishStatus.NOT_FOUND):
            raise ToolFailed(outcome.words)
        return ToolAnswer(text=self._told(outcome))

    async def resume(self, arguments: str, context: ToolContext) -> ToolAnswer:
        return await self.run(arguments, context)

    async def _wish(self, asked: ScheduleArguments, zone_name: str) -> ScheduleWish:
        if asked.action == "create":
            return MakeSchedule(order=self._order(asked, zone_name))
        schedule_id = _named(asked.id)
        if asked.action != "change":
            return MoveSchedule(schedule_id=schedule_id, event=_EVENTS[asked.action])
        view = await self.schedules.view(schedule_id, occasions=0)
        if view is None:
            raise ToolFailed(f"there is no schedule {asked.id}")
        return ChangeSchedule(
            schedule_id=schedule_id, order=self._changed(view.schedule.order, asked, zone_name)
        )

    def _order(self, asked: ScheduleArguments, zone_name: str) -> Order:
        kind, expression = self._time(asked.when, zone_name)
        order = Order(
            name=asked.name or excerpt(asked.prompt, NAME_CHARS_MAX),
            kind=kind,
            expression=expression,
            zone=zone_name,
            prompt=asked.prompt,
            place=WorkPlace(asked.place or "here"),
            late=Late(asked.late) if asked.late else default_late(kind),
            quiet=bool(asked.quiet),
        )
        return _not_too_often(order)

    def _changed(self, order: Order, asked: ScheduleArguments, zone_name: str) -> Order:
        if asked.when:
            kind, expression = self._time(asked.when, zone_name)
            order = replace(order, kind=kind, expression=expression, zone=zone_name)
        if asked.prompt and order.command:
            raise ToolFailed("it runs a command; only the person can change that")
        return _not_too_often(
            replace(
                order,
                name=asked.name or order.name,
                prompt=asked.prompt or order.prompt,
                place=WorkPlace(asked.place) if asked.place else order.place,
                late=Late(asked.late) if asked.late else order.late,
                quiet=order.quiet if asked.quiet is None else asked.quiet,
            )
        )

    def _time(self, when: str, zone_name: str) -> tuple[ScheduleKind, str]:
        try:
            found = read_when(when, self.clock.now_ms(), self.zone_named(zone_name))
        except NotATime as error:
            raise ToolFailed(str(error)) from None
        if found.rest:
            raise ToolFailed(f"`when` has more than a time in it: {found.rest}")
        return found.kind, found.expression

    def _told(self, outcome: WishOutcome) -> str:
        schedule = outcome.schedule
        zone = self.zone_named(schedule.order.zone if schedule else "")
        times = [time_words.moment(each, zone) for each in outcome.times]
        name = {"id": schedule.shown} if schedule else {}
        return result_text(str(outcome.status), **name, next=times, told=outcome.words)

    async def _list(self, context: ToolContext) -> ToolAnswer:
        views = await self.schedules.views(context.claim.session_id, limit=LISTED_MAX)
        listed = [self._line(view.schedule) for view in views]
        zone = self.zone_named(await self.schedules.zone_of_turn(context.claim.turn_id))
        now = time_words.moment(self.clock.now_ms(), zone)
        return ToolAnswer(text=result_text("ok", now=now, schedules=listed))

    def _line(self, schedule: Schedule) -> dict[str, object]:
        zone = self.zone_named(schedule.order.zone)
        words = time_words.listed(schedule, zone)
        return {"id": schedule.shown, "line": words, "prompt": schedule.order.prompt}


def _action(arguments: str) -> str:
    try:
        found = json.loads(arguments)
    except (ValueError, RecursionError):
        return ""
    return str(found.get("action")) if isinstance(found, dict) else ""


def _named(text: str) -> ScheduleId:
    named = parse_shown(text.strip())
    if named is None or named[0] != "schedule":
        raise ToolFailed("`id` names no schedule; `list` shows them, as in c3")
    return ScheduleId(named[1])


def _not_too_often(order: Order) -> Order:
    refusal = why_too_often(order)
    if refusal is not None:
        raise ToolFailed(refusal)
    return order
