"""Background processes of a home, their watchers, and what is said about them."""

from dataclasses import replace

from koboshi.domain.ids import ProcessId
from koboshi.domain.process import Birth, Process, ProcessState
from koboshi.domain.transcript import Effect, Note, Result, ResultStatus
from koboshi.domain.turn import Claim
from koboshi.domain.watch import (
    Finding,
    Watcher,
    WatcherKind,
    WatcherSpec,
)
from tests.harness.fake_time import SECOND_MS
from tests.harness.homes import Home, a_call

BIRTH = Birth(boot_id="boot", pid=4712, start_ticks=99)
EXIT = WatcherSpec(kind=WatcherKind.EXIT)
MATCH = WatcherSpec(kind=WatcherKind.MATCH, argument="ready")
EVERY = WatcherSpec(kind=WatcherKind.EVERY, argument="60")


async def begin(home: Home, claim: Claim, *watchers: WatcherSpec, command: str = "make") -> Process:
    """A background process whose call has its result."""
    (call_id,) = await home.propose(claim, a_call("terminal", effect=Effect.RESUMABLE))
    await home.start(claim, call_id)
    process = await home.store.processes.begin(
        claim, call_id, command=command, workdir=".", is_foreground=False, watchers=watchers
    )
    await home.store.processes.born(process.process_id, BIRTH)
    await home.finish(claim, call_id, '{"status":"running"}')
    return process


async def left_running(home: Home, *watchers: WatcherSpec, chat: str = "ann") -> Process:
    """A background process whose turn was answered, and the answer delivered."""
    claim = await home.work_on("start it", chat=chat)
    process = await begin(home, claim, *watchers)
    await home.answer(claim)
    await home.deliver(chat)
    return process


async def end(home: Home, process: Process, code: int = 0, output: str = "last words") -> None:
    await home.store.processes.ended(
        process.process_id,
        ProcessState.EXITED,
        exit_code=code,
        reason=f"it exited with code {code}",
        ended_ms=home.clock.now_ms(),
        output=output,
    )


async def watcher_of(home: Home, process: Process, kind: WatcherKind) -> Watcher:
    watchers = await home.store.processes.watchers(process.process_id)
    return next(each for each in watchers if each.kind is kind)


async def match(home: Home, process: Process, output: str = "ready", to: int | None = None) -> bool:
    """The watcher of matches finds something, up to this place of the log."""
    before = await watcher_of(home, process, WatcherKind.MATCH)
    stored = await home.store.processes.get(process.process_id)
    after = replace(
        before,
        log_offset=before.log_offset + 10 if to is None else to,
        reports=before.reports + 1,
    )
    seen = None if stored is None else stored.turn_log_size
    found = Finding(watcher=after, output=output, turn_log_size=seen)
    return await home.store.processes.report(before, found)


async def reports(home: Home, process: Process) -> list[tuple[str, str | None]]:
    views = await home.store.views.reports_of(process.process_id)
    return [(view.state, view.reason) for view in views]


async def heard_in(home: Home, turn_id: int) -> list[str]:
    bodies = await home.bodies(turn_id)  # type: ignore[arg-type]
    notes = [body for body in bodies if isinstance(body, Note) and body.cause.startswith("entry:")]
    return [note.text for note in notes]


async def told(home: Home, chat: str = "ann") -> list[str]:
    """What the person is told now, beside answers."""
    delivered = await home.deliver(chat)
    return [each.text for each in delivered if each.cause.startswith("report:")]


async def read_exit(home: Home, claim: Claim, process: Process) -> None:
    """A call shows the model how the process ended."""
    (call_id,) = await home.propose(claim, a_call("process"))
    await home.start(claim, call_id)
    result = Result(call_id=call_id, status=ResultStatus.OK, text="it ended")
    await home.store.turns.finish_call(claim, result, exits_read=[process.process_id])


async def outdated(home: Home, *, seconds: int = 3_600, kept: int = 100) -> list[ProcessId]:
    before_ms = home.clock.now_ms() - seconds * SECOND_MS
    return list(await home.store.processes.outdated(before_ms, kept, 10))
