"""What the owner of a home needs of its configuration: processes, reports, pairing, limits."""

from koboshi.app.boot_config import redactor_of
from koboshi.clock import SystemClock
from koboshi.config import Config
from koboshi.control.context import ControlContext
from koboshi.domain.backlog import BacklogLimits
from koboshi.domain.child import ChildLimits
from koboshi.domain.goal import GoalLimits
from koboshi.domain.ids import ProcessId
from koboshi.domain.memory import MemoryLimits
from koboshi.domain.people import PairingLimits
from koboshi.domain.watch import ReportLimits
from koboshi.ports.runners import Seen
from koboshi.ports.store import Store
from koboshi.processes.ends import ProcessEnds, output_of
from koboshi.processes.runners import LocalRunners
from koboshi.runtime.erasing import Erasing
from koboshi.stores.sqlite.migrate import BACKUPS_NAME
from koboshi.tools.patterns import matcher

PROCESSES_NAME = "processes"


def ends_of(config: Config, store: Store, runners: LocalRunners, clock: SystemClock) -> ProcessEnds:
    return ProcessEnds(
        processes=store.processes,
        runners=runners,
        clock=clock,
        matcher=matcher,
        redact=redactor_of(config),
    )


def control_context_of(
    config: Config, store: Store, clock: SystemClock, *, is_running: bool
) -> ControlContext:
    """The processes of a home, for its owner."""
    runners = LocalRunners(config.home / PROCESSES_NAME)

    async def output(process_id: ProcessId, chars_max: int) -> str:
        return redactor_of(config)(await output_of(runners, process_id, chars_max))

    async def store_end(process_id: ProcessId, seen: Seen) -> None:
        await ends_of(config, store, runners, clock).store(process_id, seen)

    return ControlContext(
        store=store,
        runners=runners,
        store_end=store_end,
        output_of=output,
        is_running=is_running,
        finish_erasures=erasing_of(config, store).finish,
        backups=lambda: tuple(sorted(map(str, (config.home / BACKUPS_NAME).glob("*.db")))),
    )


def erasing_of(config: Config, store: Store) -> Erasing:
    return Erasing(store=store, workdir=config.gateway.workdir, home=config.home)


def report_limits(config: Config) -> ReportLimits:
    limits = config.limits
    return ReportLimits(
        every_ms=limits.report_seconds * 1000,
        session_max=limits.reports_per_session_max,
        total_max=limits.reports_max,
    )


def memory_limits(config: Config) -> MemoryLimits:
    memory = config.memory
    return MemoryLimits(memory_chars=memory.memory_chars, user_chars=memory.user_chars)


def goal_limits(config: Config) -> GoalLimits:
    limits = config.limits
    return GoalLimits(steps_max=limits.goal_steps_max, tokens_max=limits.goal_tokens_max)


def child_limits(config: Config) -> ChildLimits:
    limits = config.limits
    return ChildLimits(
        at_once=limits.children_at_once_max,
        open_max=limits.children_open_max,
        made_max=limits.children_made_max,
        depth_max=limits.children_depth_max,
    )


def pairing_limits(config: Config) -> PairingLimits:
    limits = config.limits
    return PairingLimits(
        code_ms=limits.pairing_code_seconds * 1000,
        codes_max=limits.pairing_codes_max,
        wrong_max=limits.pairing_guesses_max,
        silence_ms=limits.pairing_silence_seconds * 1000,
        ignored_max=limits.strangers_kept_max,
    )


def backlog_limits(config: Config) -> BacklogLimits:
    limits = config.limits
    return BacklogLimits(
        messages_max=limits.backlog_messages_max, chars_max=limits.backlog_chars_max
    )
