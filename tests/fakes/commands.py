"""Commands that run nowhere: the runners and the rows of processes, in memory, with the promises of
`ports.runners` and `ports.store`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import anyio

from koboshi.domain.errors import BackgroundFull, Fenced
from koboshi.domain.ids import CallId, ProcessId, SessionId, TurnId, WatcherId
from koboshi.domain.process import Birth, Process, ProcessState
from koboshi.domain.sandbox import Boundary
from koboshi.domain.turn import Claim
from koboshi.domain.watch import Finding, Watcher, WatcherSpec, WatcherState
from koboshi.ports.runners import CommandSpec, EndedBy, Ending, Life, LogSlice, Seen
from koboshi.processes.ends import ProcessEnds
from koboshi.tools.patterns import matcher

NOW_MS = 1_763_240_400_000
BIRTH = Birth(boot_id="this-boot", pid=4242, start_ticks=99)


class FakeClock:
    def __init__(self) -> None:
        self.ms = NOW_MS

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000


def exited(code: int = 0) -> Ending:
    return Ending(by=EndedBy.ITSELF, exit_code=code, signal=None, ended_ms=NOW_MS)


def ended_by(by: EndedBy, *, signal: int | None = None, error: str = "") -> Ending:
    return Ending(by=by, exit_code=None, signal=signal, ended_ms=NOW_MS, error=error)


@dataclass(slots=True)
class Command:
    """What the files of one process tell."""

    life: Life
    spec: CommandSpec | None = None
    ending: Ending | None = None
    is_other_boot: bool = False
    log: bytes = b""
    typed: bytes = b""
    is_stubborn: bool = False
    """It does not end when it is asked to."""
    settled: anyio.Event = field(default_factory=anyio.Event)


@dataclass(slots=True)
class FakeRunners:
    """`head_max` and `tail_max` bytes of each log are kept."""

    commands: dict[ProcessId, Command] = field(default_factory=dict)
    starts: list[ProcessId] = field(default_factory=list)
    waits: list[float | None] = field(default_factory=list)
    swept: list[ProcessId] = field(default_factory=list)
    """Those whose left-overs were ended."""
    head_max: int = 1_000_000
    tail_max: int = 4_000_000
    error_at_start: OSError | None = None
    ends_at_start: Ending | None = None
    is_voided_at_start: bool = False
    error_at_log: OSError | None = None

    def place(
        self,
        process_id: ProcessId,
        life: Life,
        *,
        ending: Ending | None = None,
        is_other_boot: bool = False,
        log: bytes = b"",
    ) -> None:
        """A process of an earlier life of the gateway."""
        self.commands[process_id] = Command(
            life, ending=ending, is_other_boot=is_other_boot, log=log
        )

    def finish(self, process_id: ProcessId, ending: Ending, log: bytes = b"") -> None:
        command = self.commands[process_id]
        command.life, command.ending, command.log = Life.ENDED, ending, command.log + log
        command.settled.set()

    def lose(self, process_id: ProcessId, *, is_other_boot: bool = False) -> None:
        command = self.commands[process_id]
        command.life, command.is_other_boot = Life.LOST, is_other_boot
        command.settled.set()

    async def start(self, process_id: ProcessId, spec: CommandSpec) -> Birth | None:
        if self.error_at_start is not None:
            raise self.error_at_start
        if process_id in self.commands:
            raise FileExistsError(f"process {process_id} is there already")
        if self.is_voided_at_start:
            self.commands[process_id] = Command(Life.UNBORN)
            return None
        self.starts.append(process_id)
        self.commands[process_id] = Command(Life.ALIVE, spec)
        if self.ends_at_start is not None:
            self.finish(process_id, self.ends_at_start)
        return BIRTH

    def look(self, process_id: ProcessId) -> Seen:
        command = self.commands.setdefault(process_id, Command(Life.UNBORN))
        return Seen(
            life=command.life,
            birth=None if command.life is Life.UNBORN else BIRTH,
            ending=command.ending,
            is_other_boot=command.is_other_boot,
        )

    async def wait(self, process_id: ProcessId, at_most_s: float | None = None) -> Seen:
        self.waits.append(at_most_s)
        if self.look(process_id).life is Life.ALIVE:
            with anyio.move_on_after(at_most_s):
                await self.commands[process_id].settled.wait()
        return self.look(process_id)

    async def end(self, process_id: ProcessId, *, grace_s: float) -> Seen:
        seen = self.look(process_id)
        if seen.life is Life.LOST:
            self.swept.append(process_id)
        if seen.life is Life.ALIVE and not self.commands[process_id].is_stubborn:
            self.finish(process_id, ended_by(EndedBy.REQUEST, signal=15))
        return self.look(process_id)

    def read_log(self, process_id: ProcessId, offset: int, limit: int) -> LogSlice:
        if self.error_at_log is not None:
            raise self.error_at_log
        log = self.commands[process_id].log if process_id in self.commands else b""
        total = len(log)
        asked = min(max(offset + total if offset < 0 else offset, 0), total)
        tail_begin = max(self.head_max, total - self.tail_max)
        is_in_gap = self.head_max <= asked < tail_begin
        begin = tail_begin if is_in_gap else asked
        end = min(begin + limit, total if begin >= tail_begin else self.head_max)
        return LogSlice(offset=begin, content=log[begin:end], total=total, dropped=begin - asked)

    def log_size(self, process_id: ProcessId) -> int:
        return len(self.commands[process_id].log) if process_id in self.commands else 0

    async def write(self, process_id: ProcessId, content: bytes) -> bool:
        command = self.commands[process_id]
        if command.spec is None or not command.spec.takes_input:
            return False
        command.typed += content
        return True

    def remove(self, process_id: ProcessId) -> None:
        if process_id in self.commands and self.commands[process_id].life is Life.ALIVE:
            raise ValueError(f"process {process_id} is alive")
        self.commands.pop(process_id, None)


@dataclass(slots=True)
class FakeProcesses:
    """The rows of processes. `is_fenced` makes every claim void."""

    clock: FakeClock
    rows: dict[ProcessId, Process] = field(default_factory=dict)
    is_fenced: bool = False
    asked: dict[ProcessId, tuple[WatcherSpec, ...]] = field(default_factory=dict)
    last_words: dict[ProcessId, str] = field(default_factory=dict)
    home: str = ""

    async def look_elsewhere(self, *, told_ms: int, lost_ms: int) -> int:
        """There is no other home."""
        return 0

    async def begin(
        self,
        claim: Claim,
        call_id: CallId,
        *,
        command: str,
        workdir: str,
        is_foreground: bool,
        watchers: Sequence[WatcherSpec] = (),
        background_max: int | None = None,
        boundary: Boundary = Boundary.NONE,
        agent: str = "",
    ) -> Process:
        assert not agent, "commands are no agents"
        if self.is_fenced:
            raise Fenced(f"the claim on turn {claim.turn_id} is no longer valid")
        present = await self.find(claim.turn_id, call_id)
        if present is not None:
            return present
        jobs = [row for row in self.rows.values() if not (row.is_foreground or row.ended_ms)]
        if not is_foreground and background_max is not None and len(jobs) >= background_max:
            raise BackgroundFull(f"{len(jobs)} commands run in the background already")
        process = Process(
            process_id=ProcessId(len(self.rows) + 1),
            session_id=claim.session_id,
            generation=claim.generation,
            turn_id=claim.turn_id,
            call_id=call_id,
            command=command,
            workdir=workdir,
            is_foreground=is_foreground,
            state=ProcessState.STARTING,
            birth=None,
            exit_code=None,
            reason=None,
            started_ms=self.clock.now_ms(),
            ended_ms=None,
            is_end_asked=False,
            exit_read_by=None,
            turn_log_size=None,
            boundary=boundary,
        )
        self.rows[process.process_id] = process
        self.asked[process.process_id] = tuple(watchers)
        return process

    async def commands_running(self) -> frozenset[tuple[TurnId, CallId]]:
        running = (row for row in self.rows.values() if row.is_foreground and not row.ended_ms)
        return frozenset((row.turn_id, row.call_id) for row in running)

    async def born(self, process_id: ProcessId, birth: Birth) -> None:
        if self.rows[process_id].state is ProcessState.STARTING:
            self._set(process_id, state=ProcessState.RUNNING, birth=birth)

    async def ended(
        self,
        process_id: ProcessId,
        state: ProcessState,
        *,
        exit_code: int | None,
        reason: str,
        ended_ms: int,
        output: str = "",
    ) -> None:
        if self.rows[process_id].ended_ms is None:
            self.last_words[process_id] = output
            self._set(
                process_id, state=state, exit_code=exit_code, reason=reason, ended_ms=ended_ms
            )

    async def ask_end(self, process_id: ProcessId) -> None:
        if self.rows[process_id].ended_ms is None:
            self._set(process_id, is_end_asked=True)

    async def with_remains(self) -> tuple[ProcessId, ...]:
        return ()

    async def remains_ended(self, process_id: ProcessId) -> None:
        pass

    async def find(self, turn_id: TurnId, call_id: CallId) -> Process | None:
        rows = self.rows.values()
        return next((row for row in rows if (row.turn_id, row.call_id) == (turn_id, call_id)), None)

    async def get(self, process_id: ProcessId) -> Process | None:
        return self.rows.get(process_id)

    async def of_session(self, session_id: SessionId, limit: int) -> tuple[Process, ...]:
        rows = [row for row in reversed(self.rows.values()) if row.session_id == session_id]
        return tuple(rows[:limit])

    async def report(self, before: Watcher, found: Finding) -> bool:
        raise NotImplementedError

    async def forget(self, process_id: ProcessId) -> None:
        del self.rows[process_id]

    async def watchers(self, process_id: ProcessId) -> tuple[Watcher, ...]:
        return tuple(
            Watcher(
                watcher_id=WatcherId(place),
                process_id=process_id,
                kind=spec.kind,
                argument=spec.argument,
                state=WatcherState.ARMED,
                log_offset=0,
                reports=0,
            )
            for place, spec in enumerate(self.asked.get(process_id, ()), start=1)
        )

    async def watched(self) -> tuple[tuple[Watcher, Process], ...]:
        return ()

    async def of_turn(self, turn_id: TurnId) -> tuple[ProcessId, ...]:
        return tuple(row.process_id for row in self.rows.values() if row.turn_id == turn_id)

    async def outdated(self, before_ms: int, kept_max: int, limit: int) -> tuple[ProcessId, ...]:
        return ()

    async def stranded(self) -> tuple[ProcessId, ...]:
        return ()

    async def alive(self) -> tuple[Process, ...]:
        return tuple(row for row in self.rows.values() if row.ended_ms is None)

    def _set(self, process_id: ProcessId, **facts: object) -> None:
        changes: Mapping[str, object] = facts
        self.rows[process_id] = replace(self.rows[process_id], **changes)  # type: ignore[arg-type]


def ends_of(processes: FakeProcesses, runners: FakeRunners, clock: FakeClock) -> ProcessEnds:
    return ProcessEnds(
        processes=processes,
        runners=runners,
        clock=clock,
        matcher=matcher,
        redact=lambda text: text,
    )
