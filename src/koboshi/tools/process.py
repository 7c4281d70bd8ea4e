"""`process`: look after commands that run in the background. It answers truthfully for processes of
any earlier boot."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Literal

from anyio import create_task_group, to_thread
from msgspec import Meta, Struct

from koboshi.domain.approval import Approval
from koboshi.domain.ids import ProcessId, SessionId, parse_shown, shown
from koboshi.domain.phrases import YES_NO, excerpt
from koboshi.domain.process import Process
from koboshi.domain.text import exactly, head_and_tail, plain
from koboshi.domain.transcript import Choice, Effect, Need
from koboshi.domain.watch import WatcherState
from koboshi.ports.clock import Clock
from koboshi.ports.model import ToolSpec
from koboshi.ports.runners import Life, Runners, Seen
from koboshi.ports.store import Processes
from koboshi.ports.tool import Load, ToolAnswer, ToolContext, ToolFailed
from koboshi.processes.ends import StoreEnd, as_known, is_here, output_of, status_of
from koboshi.tools.asking import Asking, approval_of_input
from koboshi.tools.declared import complaint_about, decode_arguments, result_text, schema_of
from koboshi.tools.terminal import answer_from_row, ended_answer

LISTED_MAX = 50
TAIL_CHARS = 4_000
TAIL_BYTES = 20_000
LOG_CHARS = 60_000
LINES_DEFAULT = 200
WAIT_SECONDS_MAX = 300.0
GRACE_SECONDS = 5.0
LOG_BYTES_MAX = 8_000_000
"""More than a log keeps."""
LOG_BYTES_SHOWN = 100_000

Action = Literal["list", "poll", "log", "wait", "kill", "write"]


class ProcessArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    action: Annotated[Action, Meta(description="What to do.")]
    process_id: Annotated[str, Meta(max_length=20, description="As `terminal` gave it.")] = ""
    offset: Annotated[int, Meta(ge=0, description="`log`: the first line.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=2_000, description="`log`: how many lines.")] = (
        LINES_DEFAULT
    )
    timeout: Annotated[float, Meta(ge=0, description="`wait`: seconds.")] = 60.0
    text: Annotated[
        str, Meta(max_length=32_000, description="`write`: what to type, line ends and all.")
    ] = ""

    def __post_init__(self) -> None:
        if self.action != "list" and not self.process_id:
            raise ValueError("`process_id` is missing")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessTool:
    processes: Processes
    runners: Runners
    clock: Clock
    store_end: StoreEnd
    until_written_to: Callable[[SessionId], Awaitable[None]]
    """Returns when a person has written in the session."""
    booted_ms: int
    asking: Asking = field(default_factory=Asking)
    """Before which input a person is asked."""

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name="process",
            description=(
                "Look after commands in the background: list, poll, log, wait, kill, write (to its "
                "standard input)."
            ),
            parameters=schema_of(ProcessArguments),
        )

    def effect_of(self, arguments: str) -> Effect:
        match decode_arguments(ProcessArguments, arguments).action:
            case "write":
                return Effect.ONCE
            case "kill":
                return Effect.REPEATABLE
            case "list" | "poll" | "log" | "wait":
                return Effect.NONE

    def load_of(self, arguments: str) -> Load:
        waits = decode_arguments(ProcessArguments, arguments).action == "wait"
        return Load.WAIT if waits else Load.WORK

    def need_of(self, arguments: str) -> Need:
        """The strictest need: `need_now` knows the process."""
        asked = decode_arguments(ProcessArguments, arguments)
        if asked.action != "write":
            return Need.NOBODY
        return self.asking.need_of_input(asked.text, is_outside=True)

    async def need_now(self, arguments: str) -> Need:
        asked = decode_arguments(ProcessArguments, arguments)
        if asked.action != "write":
            return Need.NOBODY
        process = await self._named(asked.process_id)
        if process is None:
            return Need.NOBODY  # there is nothing to write to
        return self.asking.need_of_input(asked.text, is_outside=process.is_outside)

    def question_of(self, arguments: str) -> tuple[str, tuple[Choice, ...]]:
        asked = decode_arguments(ProcessArguments, arguments)
        return f"May I type this into {asked.process_id}?\n\n{exactly(asked.text)}", YES_NO

    async def approval_of(self, arguments: str) -> Approval:
        asked = decode_arguments(ProcessArguments, arguments)
        process = await self._named(asked.process_id)
        command = "" if process is None else process.command
        return approval_of_input(self.asking, asked.process_id, command, asked.text)

    def complaint_about(self, arguments: str) -> str | None:
        return complaint_about(ProcessArguments, arguments)

    async def run(self, arguments: str, context: ToolContext) -> ToolAnswer:
        asked = decode_arguments(ProcessArguments, arguments)
        if asked.action == "list":
            return await self._list(context)
        process = await self._find(asked.process_id, context)
        if process is None:
            return ToolAnswer(text=result_text("not_found", process_id=asked.process_id))
        if not is_here(self.processes, process):
            return await self._elsewhere(process, asked)
        if _is_starting(process) and asked.action != "kill":
            # To look at it would settle that it never begins. Only its own call may do that.
            return self._running(process, "starting")
        match asked.action:
            case "poll":
                return await self._poll(process)
            case "log":
                return await self._log(process, asked)
            case "wait":
                return await self._wait(process, asked)
            case "kill":
                return await self._kill(process)
            case "write":
                return await self._write(process, asked, context)
        raise ToolFailed(f"there is no action {asked.action}")

    async def resume(self, arguments: str, context: ToolContext) -> ToolAnswer:
        raise RuntimeError(f"call {context.call_id} ({arguments}) cannot be taken up")

    async def _elsewhere(self, process: Process, asked: ProcessArguments) -> ToolAnswer:
        """A process of another node: its row is all that is known here."""
        if process.ended_ms is not None:
            return answer_from_row(process)
        note = f"it runs on the node {process.node}, and cannot be reached from here"
        if asked.action == "kill":
            await self.processes.ask_end(process.process_id)
            note = (
                f"it runs on the node {process.node}, and is ended there, now or when that is back"
            )
        return self._running(process, "elsewhere", note=note)

    async def _find(self, named: str, context: ToolContext) -> Process | None:
        """A process of this session; those of others are not there."""
        process = await self._named(named)
        is_ours = process is not None and process.session_id == context.claim.session_id
        return process if is_ours else None

    async def _named(self, named: str) -> Process | None:
        parsed = parse_shown(named)
        if parsed is None or parsed[0] != "process":
            return None
        return await self.processes.get(ProcessId(parsed[1]))

    async def _list(self, context: ToolContext) -> ToolAnswer:
        """An overview. It is no reading of an exit: what a process said at its end is not in it."""
        session_id = context.claim.session_id
        rows = {row.process_id: row for row in await self.processes.alive()}
        rows |= {
            row.process_id: row for row in await self.processes.of_session(session_id, LISTED_MAX)
        }
        ours = [
            row
            for row in sorted(rows.values(), key=_running_and_new_first)
            if row.session_id == session_id and not row.is_foreground
        ]
        listed = [await self._listed(row) for row in ours[:LISTED_MAX]]
        return ToolAnswer(text=result_text("ok", processes=listed))

    async def _listed(self, row: Process) -> dict[str, object]:
        watchers = await self.processes.watchers(row.process_id)
        armed = [watcher.kind for watcher in watchers if watcher.state is WatcherState.ARMED]
        return {
            "process_id": shown("process", row.process_id),
            "status": self._status(row),
            "command": excerpt(row.command, 200),
            "exit_code": row.exit_code,
            "uptime_seconds": self._uptime(row),
            "reports_to_you": armed,
            **self._recovered(row),
        }

    def _recovered(self, row: Process) -> dict[str, object]:
        """What is said of one that has outlived the gateway that started it."""
        return {"recovered": True} if row.started_ms < self.booted_ms else {}

    def _status(self, process: Process) -> str:
        if process.ended_ms is not None or _is_starting(process):
            return process.state
        if not is_here(self.processes, process):
            return "elsewhere"
        return status_of(self._look(process))

    def _look(self, process: Process) -> Seen:
        return as_known(process, self.runners.look(process.process_id))

    def _uptime(self, process: Process) -> int:
        return max(0, (process.ended_ms or self.clock.now_ms()) - process.started_ms) // 1000

    async def _poll(self, process: Process) -> ToolAnswer:
        seen = self._look(process)
        if seen.life is not Life.ALIVE:
            return await self._ended(process, seen)
        log = await to_thread.run_sync(_tail_of_log, self.runners, process.process_id)
        output = head_and_tail(plain(log.decode("utf-8", "replace")), TAIL_CHARS)
        return self._running(process, "running", output=output)

    async def _log(self, process: Process, asked: ProcessArguments) -> ToolAnswer:
        seen = self._look(process)
        if seen.life is Life.UNBORN or seen.has_no_files:
            return await self._ended(process, seen)
        log, dropped = await to_thread.run_sync(_kept_log, self.runners, process.process_id)
        lines = log.removesuffix(b"\n").split(b"\n") if log else []
        first = max(0, len(lines) - asked.limit) if asked.offset is None else asked.offset
        chosen = b"\n".join(lines[first : first + asked.limit])
        # The end of what was asked for is kept, unless it was asked for by its beginning.
        is_tail = asked.offset is None
        chosen = chosen[-LOG_BYTES_SHOWN:] if is_tail else chosen[:LOG_BYTES_SHOWN]
        fields: dict[str, object] = {
            "total_lines": len(lines),
            "offset": first,
            "dropped_bytes": dropped,
        }
        output = head_and_tail(plain(chosen.decode("utf-8", "replace")), LOG_CHARS)
        if seen.life is Life.ALIVE:
            return self._running(process, "running", **fields, output=output)
        await self.store_end(process.process_id, seen)
        return ended_answer(process.process_id, seen, output, more=fields)

    async def _wait(self, process: Process, asked: ProcessArguments) -> ToolAnswer:
        seconds = min(asked.timeout, WAIT_SECONDS_MAX)
        is_interrupted = False
        async with create_task_group() as tasks:

            async def listen() -> None:
                nonlocal is_interrupted
                await self.until_written_to(process.session_id)
                is_interrupted = True
                tasks.cancel_scope.cancel()

            tasks.start_soon(listen)
            await self.runners.wait(process.process_id, seconds)
            tasks.cancel_scope.cancel()
        seen = self._look(process)
        if seen.life is not Life.ALIVE:
            return await self._ended(process, seen)
        if is_interrupted:
            note = "the person has written: come to an end, and they are answered"
            return self._running(process, "interrupted", note=note)
        clamped = {"note": f"waiting is limited to {WAIT_SECONDS_MAX:.0f} seconds at a time"}
        return self._running(
            process,
            "timeout",
            waited_seconds=seconds,
            **(clamped if asked.timeout > seconds else {}),
        )

    async def _kill(self, process: Process) -> ToolAnswer:
        seen = self._look(process)
        if seen.life in (Life.ENDED, Life.UNBORN):
            return await self._ended(process, seen, was_before=True)
        await self.processes.ask_end(process.process_id)
        # Of a lost one, what outlived its runner is ended.
        was_lost = seen.life is Life.LOST
        seen = as_known(process, await self.runners.end(process.process_id, grace_s=GRACE_SECONDS))
        if seen.life is Life.ALIVE:
            return self._running(process, "running", note="it was asked to end, and has not yet")
        return await self._ended(process, seen, was_before=was_lost)

    async def _write(
        self, process: Process, asked: ProcessArguments, context: ToolContext
    ) -> ToolAnswer:
        if self.asking.holds and process.is_outside and self.asking.approval == "never":
            raise ToolFailed(
                "it runs outside the boundary, and no person is asked: it takes no input"
            )
        seen = self._look(process)
        if seen.life is not Life.ALIVE:
            return await self._ended(process, seen)
        # When the call was judged, there may have been no such process yet.
        need = self.asking.need_of_input(asked.text, is_outside=process.is_outside)
        if need is not Need.NOBODY and context.seal is None:
            raise ToolFailed("it was not asked about. Call it again")
        if await self.runners.write(process.process_id, asked.text.encode()):
            return self._running(process, "written")
        note = "it takes no input, or did not read all of it in time"
        return self._running(process, "refused", note=note)

    def _running(self, process: Process, status: str, **more: object) -> ToolAnswer:
        text = result_text(
            status,
            process_id=shown("process", process.process_id),
            command=excerpt(process.command, 200),
            pid=None if process.birth is None else process.birth.pid,
            uptime_seconds=self._uptime(process),
            **self._recovered(process),
            **more,
        )
        return ToolAnswer(text=text)

    async def _ended(self, process: Process, seen: Seen, *, was_before: bool = False) -> ToolAnswer:
        if seen.life is Life.UNBORN and process.ended_ms is not None:
            return answer_from_row(process, was_before=was_before)
        await self.store_end(process.process_id, seen)
        output = await output_of(self.runners, process.process_id, TAIL_CHARS)
        command = {"command": excerpt(process.command, 200), **self._recovered(process)}
        return ended_answer(process.process_id, seen, output, was_before=was_before, more=command)


def _running_and_new_first(process: Process) -> tuple[bool, int]:
    return process.ended_ms is not None, -process.process_id


def _is_starting(process: Process) -> bool:
    return process.ended_ms is None and process.birth is None


def _tail_of_log(runners: Runners, process_id: ProcessId) -> bytes:
    with _in_words():
        return runners.read_log(process_id, -TAIL_BYTES, TAIL_BYTES).content


def _kept_log(runners: Runners, process_id: ProcessId) -> tuple[bytes, int]:
    """All that is kept of its output, and how many bytes are not. The log has a head and a tail:
    what is between them is a line that says how much is missing."""
    kept, dropped, offset = bytearray(), 0, 0
    with _in_words():
        while len(kept) < LOG_BYTES_MAX:
            log = runners.read_log(process_id, offset, LOG_BYTES_MAX - len(kept))
            if log.dropped:
                dropped += log.dropped
                kept += f"\n… {log.dropped} bytes left out …\n".encode()
            kept += log.content
            offset = log.offset + len(log.content)
            if not log.content or offset >= log.total:
                break
    return bytes(kept), dropped


@contextmanager
def _in_words() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ToolFailed(f"its output cannot be read: {error}") from error
