"""The runtime's own objects around a store and channels of the test's choice."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from anyio import Event

from koboshi.agent.summary import ContextLimits
from koboshi.commands.run import respond
from koboshi.control.context import ControlContext
from koboshi.control.handle import answer
from koboshi.control.socket import ControlSocket
from koboshi.domain.action import TurnLimits
from koboshi.domain.files import PICTURES
from koboshi.domain.ids import ProcessId, WorkerId
from koboshi.domain.memory import MEMORY_FOLDER, MemoryLimits
from koboshi.domain.outbox import DeliveryLimits
from koboshi.domain.slots import SlotLimits
from koboshi.domain.watch import ReportLimits
from koboshi.ports.channel import Channel
from koboshi.ports.clock import Clock
from koboshi.ports.model import Model
from koboshi.ports.parsers import ParserKind
from koboshi.ports.runners import UNCONFINED, Runners
from koboshi.ports.store import Store
from koboshi.ports.tool import Tools
from koboshi.ports.wakeups import Wakeups
from koboshi.processes.ends import ProcessEnds
from koboshi.processes.parsers.locked import LockedParsers, ParserStart
from koboshi.processes.runners import LocalRunners
from koboshi.processes.supervise import ProcessRetention, Supervise
from koboshi.processes.watch import WatchLogs
from koboshi.runtime.approval_cards import ApprovalCards
from koboshi.runtime.attachments import Attachments
from koboshi.runtime.calls import CallRunner
from koboshi.runtime.deliver import Deliver
from koboshi.runtime.dispatch import Dispatch
from koboshi.runtime.drafts import Drafts
from koboshi.runtime.drain import Drain
from koboshi.runtime.gateway import Gateway
from koboshi.runtime.goals import GoalLoop
from koboshi.runtime.heartbeat import Heartbeat
from koboshi.runtime.intake import Intake
from koboshi.runtime.memory_files import MemoryFiles
from koboshi.runtime.model_caller import ModelCaller
from koboshi.runtime.model_chain import FirstWell, ModelChain
from koboshi.runtime.picture_shelf import PictureShelf
from koboshi.runtime.progress import Progress
from koboshi.runtime.readings import Readings
from koboshi.runtime.recollection import Recollection
from koboshi.runtime.rescue import Rescue
from koboshi.runtime.schedules import ScheduleLoop
from koboshi.runtime.shipping import Shipping
from koboshi.runtime.slots import CommandSlots, Slots
from koboshi.runtime.turn import TurnRunner
from koboshi.tools.patterns import matcher
from koboshi.tools.skills import SkillFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits that tests change; the defaults are those of a gateway."""

    turns: TurnLimits = field(default_factory=TurnLimits)
    deliveries: DeliveryLimits = field(default_factory=DeliveryLimits)
    context: ContextLimits = field(default_factory=ContextLimits)
    turns_max: int = 16
    open_turns_max: int = 256
    commands_max: int = 64
    side_by_side_max: int = 16
    in_flight_max: int = 32
    question_age_ms_max: int = 24 * 3_600_000
    result_chars_max: int = 2_000
    rescue_seconds: float = 10
    drain_seconds: float = 0
    progress_seconds: float = 0
    """No progress notices, unless a test is about them."""

    @property
    def slots(self) -> SlotLimits:
        return SlotLimits(
            turns_max=self.turns_max,
            open_turns_max=self.open_turns_max,
            commands_max=self.commands_max,
        )


def _no_parser(_kind: ParserKind) -> ParserStart:
    return ParserStart(confinement=UNCONFINED, blocked="this test has no parsers")


def compose(
    home: Path,
    *,
    store: Store,
    worker_id: WorkerId,
    clock: Clock,
    wakeups: Wakeups,
    channels: Sequence[Channel],
    model: Model | ModelChain,
    tools: Tools,
    bounds: Bounds,
    runners: Runners | None = None,
    control: ControlSocket | None = None,
) -> Gateway:
    """A gateway as `app` builds it, without the parts that need a configuration file."""
    by_name = {channel.name: channel for channel in channels}
    runners = runners or LocalRunners(home / "processes")
    drain = Drain(wakeups=wakeups, seconds=bounds.drain_seconds)
    ends = ProcessEnds(
        processes=store.processes,
        runners=runners,
        clock=clock,
        matcher=matcher,
        redact=lambda text: text,
    )
    jobs = ControlContext(
        store=store,
        runners=runners,
        store_end=ends.store,
        output_of=lambda process_id, _: _no_output(process_id),
        is_running=True,
    )
    calls = CallRunner(
        store=store,
        tools=tools,
        result_chars_max=bounds.result_chars_max,
        side_by_side_max=bounds.side_by_side_max,
    )
    commands = CommandSlots(
        processes=store.processes,
        wakeups=wakeups,
        commands_max=bounds.commands_max,
        poll_seconds=5,
    )
    runner = TurnRunner(
        store=store,
        attachments=Attachments(store=store, channels=by_name, workdir=home, seconds=10),
        readings=Readings(
            store=store,
            parsers=LockedParsers(prepare=_no_parser),
            dictation=None,
            shelf=PictureShelf(folder=home / PICTURES),
            workdir=home,
            sees_pictures=False,
        ),
        recollection=Recollection(
            memories=store.memory,
            files=MemoryFiles(memories=store.memory, folder=home / MEMORY_FOLDER, clock=clock),
            limits=MemoryLimits(),
            workdir=home,
            skills=SkillFolder(folder=home / "skills"),
            may_use_skills=lambda standing: standing.role.is_owner,
        ),
        asking=ModelCaller(
            shelf=PictureShelf(folder=home / PICTURES),
            drafts=Drafts(channels=by_name),
            store=store,
            chain=model if isinstance(model, ModelChain) else ModelChain.of_one(store, model),
            clock=clock,
            system="",
            context=bounds.context,
            held_ms_max=5_000,
        ),
        tools=tools,
        calls=calls,
        wakeups=wakeups,
        clock=clock,
        shipping=Shipping(channels=by_name, home=home),
        log_size_of=runners.log_size,
        limits=bounds.turns,
        cards=ApprovalCards(clock=clock, age_ms_max=bounds.question_age_ms_max),
        poll_seconds=5,
        release_seconds=2,
        drain=drain,
        progress=Progress(
            store=store,
            clock=clock,
            drain=drain,
            channels=by_name,
            every_seconds=bounds.progress_seconds,
        ),
    )
    return Gateway(
        store=store,
        channels=channels,
        intake=Intake(store=store, clock=clock, respond=respond, output_of=_no_output),
        dispatch=Dispatch(
            store=store,
            wakeups=wakeups,
            runner=runner,
            worker_id=worker_id,
            slots=Slots(slots_max=bounds.turns_max, wakeups=wakeups, commands=commands),
            open_turns_max=bounds.open_turns_max,
            poll_seconds=5,
            drain=drain,
        ),
        schedules=ScheduleLoop(store=store, wakeups=wakeups, drain=drain, poll_seconds=5),
        agents=None,
        goals=GoalLoop(
            store=store,
            model=FirstWell(chain=model) if isinstance(model, ModelChain) else model,
            wakeups=wakeups,
            worker_id=worker_id,
            drain=drain,
            poll_seconds=5,
        ),
        deliver=Deliver(
            store=store,
            wakeups=wakeups,
            clock=clock,
            channels=by_name,
            worker_id=worker_id,
            limits=bounds.deliveries,
            in_flight_max=bounds.in_flight_max,
        ),
        rescue=Rescue(
            store=store,
            worker_id=worker_id,
            at_once=8,
            every_seconds=bounds.rescue_seconds,
            has_looked=Event(),
        ),
        supervise=Supervise(
            store=store,
            wakeups=wakeups,
            runners=runners,
            clock=clock,
            store_end=ends.store,
            retention=ProcessRetention(keep_ms=7 * 86_400_000, kept_max=500, sweep_seconds=3_600),
            poll_seconds=5,
        ),
        watch_logs=WatchLogs(
            store=store,
            wakeups=wakeups,
            clock=clock,
            runners=runners,
            limits=ReportLimits(),
            matcher=matcher,
            redact=lambda text: text,
            every_seconds=0.5,
            poll_seconds=5,
        ),
        heartbeat=Heartbeat(
            store=store,
            clock=clock,
            worker_id=worker_id,
            every_seconds=5,
            wakeups=wakeups,
            restart_asked=Event(),
        ),
        control=control or ControlSocket(home=home, answer=partial(answer, jobs)),
        drain=drain,
        clock=clock,
        wakeups=wakeups,
        on_stopping=lambda: None,
    )


async def _no_output(process_id: ProcessId) -> str:
    return f"the output of {process_id}"
