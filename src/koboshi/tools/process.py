"""`process`: look after commands that run in the background. It answers truthfully for processes of
any earlier boot."""

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta, Struct

from koboshi.domain.ids import ProcessId, parse_shown, shown
from koboshi.domain.phrases import excerpt
from koboshi.domain.process import Process
from koboshi.domain.text import head_and_tail, plain
from koboshi.domain.transcript import Choice, Effect, Need
from koboshi.ports.clock import Clock
from koboshi.ports.model import ToolSpec
from koboshi.ports.runners import Life, Runners
from koboshi.ports.store import Processes
from koboshi.ports.tool import ToolAnswer, ToolContext, ToolFailed
from koboshi.tools.declared import complaint_about, decode_arguments, result_text, schema_of
from koboshi.tools.terminal import ended_answer, output_of, status_of, store_end

LISTED_MAX = 50
TAIL_CHARS = 4_000
LINES_DEFAULT = 200
WAIT_SECONDS_MAX = 300.0
GRACE_SECONDS = 5.0
LOG_BYTES_MAX = 5_500_000

Action = Literal["list", "poll", "log", "wait", "kill", "write"]


class ProcessArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    action: Annotated[Action, Meta(description="What to do.")]
    process_id: Annotated[str, Meta(max_length=20, description="As `terminal` gave it.")] = ""
    offset: Annotated[int, Meta(ge=0, description="`log`: the first line.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=2_000, description="`log`: how many lines.")] = (
        LINES_DEFAULT
    )
    timeout: Annotated[float, Meta(ge=0, description="`wait`: seconds.")] = 60.0
    text: Annotated[str, Meta(max_length=32_000, description="`write`: what to type.")] = ""

    def __post_init__(self) -> None:
        if self.action != "list" and not self.process_id:
            raise ValueError("`process_id` is missing")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessTool:
    processes: Processes
    runners: Runners
    clock: Clock

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
        asked = decode_arguments(ProcessArguments, arguments)
        return Effect.ONCE if asked.action == "write" else Effect.NONE

    def need_of(self, arguments: str) -> Need:  # noqa: ARG002  (the contract's)
        return Need.NOBODY

    def question_of(self, arguments: str) -> tuple[str, tuple[Choice, ...]]:
        raise RuntimeError(f"nobody is asked about {arguments}")

    def complaint_about(self, arguments: str) -> str | None:
        return complaint_about(ProcessArguments, arguments)

    async def run(self, arguments: str, context: ToolContext) -> ToolAnswer:
        asked = decode_arguments(ProcessArguments, arguments)
        if asked.action == "list":
            return await self._list(context)
        process = await self._find(asked.process_id, context)
        if process is None:
            return ToolAnswer(text=result_text("not_found", process_id=asked.process_id))
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
                return await self._write(process, asked)
        raise ToolFailed(f"there is no action {asked.action}")

    async def resume(self, arguments: str, context: ToolContext) -> ToolAnswer:
        raise RuntimeError(f"call {context.call_id} ({arguments}) can not be taken up")

    async def _find(self, named: str, context: ToolContext) -> Process | None:
        """A process of this session; those of others are not there."""
        parsed = parse_shown(named)
        if parsed is None or parsed[0] != "process":
            return None
        process = await self.processes.get(ProcessId(parsed[1]))
        is_ours = process is not None and process.session_id == context.claim.session_id
        return process if is_ours else None

    async def _list(self, context: ToolContext) -> ToolAnswer:
        rows = await self.processes.of_session(context.claim.session_id, LISTED_MAX)
        listed = [
            {
                "process_id": shown("process", row.process_id),
                "status": row.state if row.ended_ms is not None else self._status(row),
                "command": excerpt(row.command, 200),
                "exit_code": row.exit_code,
                "uptime_seconds": self._uptime(row),
            }
            for row in rows
            if not row.is_foreground
        ]
        return ToolAnswer(text=result_text("ok", processes=listed))

    def _status(self, process: Process) -> str:
        return status_of(self.runners.look(process.process_id))

    def _uptime(self, process: Process) -> int:
        return max(0, (process.ended_ms or self.clock.now_ms()) - process.started_ms) // 1000

    async def _poll(self, process: Process) -> ToolAnswer:
        seen = self.runners.look(process.process_id)
        if seen.life is not Life.ALIVE:
            return await self._ended(process)
        log = self.runners.read_log(process.process_id, -TAIL_CHARS, TAIL_CHARS)
        return ToolAnswer(
            text=result_text(
                "running",
                process_id=shown("process", process.process_id),
                command=excerpt(process.command, 500),
                uptime_seconds=self._uptime(process),
                output=plain(log.content.decode("utf-8", "replace")),
            )
        )

    async def _log(self, process: Process, asked: ProcessArguments) -> ToolAnswer:
        seen = self.runners.look(process.process_id)
        log = self.runners.read_log(process.process_id, 0, LOG_BYTES_MAX)
        lines = plain(log.content.decode("utf-8", "replace")).splitlines()
        first = max(0, len(lines) - asked.limit) if asked.offset is None else asked.offset
        chosen = lines[first : first + asked.limit]
        reads_end = seen.life is not Life.ALIVE and first + len(chosen) >= len(lines)
        if seen.life is not Life.ALIVE:
            await store_end(self.processes, self.clock, process.process_id, seen)
        ending = seen.ending
        return ToolAnswer(
            text=result_text(
                status_of(seen),
                process_id=shown("process", process.process_id),
                exit_code=None if ending is None else ending.exit_code,
                total_lines=len(lines),
                offset=first,
                dropped_bytes=log.dropped,
                output=head_and_tail("\n".join(chosen), 60_000),
            ),
            exits_read=(process.process_id,) if reads_end else (),
        )

    async def _wait(self, process: Process, asked: ProcessArguments) -> ToolAnswer:
        seconds = min(asked.timeout, WAIT_SECONDS_MAX)
        seen = await self.runners.wait(process.process_id, seconds)
        if seen.life is not Life.ALIVE:
            return await self._ended(process)
        clamped = {"note": f"waiting is limited to {WAIT_SECONDS_MAX:.0f} seconds at a time"}
        return ToolAnswer(
            text=result_text(
                "timeout",
                process_id=shown("process", process.process_id),
                waited_seconds=seconds,
                **(clamped if asked.timeout > seconds else {}),
            )
        )

    async def _kill(self, process: Process) -> ToolAnswer:
        if self.runners.look(process.process_id).life is not Life.ALIVE:
            return await self._ended(process, already=True)
        await self.processes.ask_end(process.process_id)
        await self.runners.end(process.process_id, grace_s=GRACE_SECONDS)
        return await self._ended(process)

    async def _write(self, process: Process, asked: ProcessArguments) -> ToolAnswer:
        if self.runners.look(process.process_id).life is not Life.ALIVE:
            return await self._ended(process)
        was_taken = await self.runners.write(process.process_id, asked.text.encode())
        named = shown("process", process.process_id)
        return ToolAnswer(text=result_text("written" if was_taken else "refused", process_id=named))

    async def _ended(self, process: Process, *, already: bool = False) -> ToolAnswer:
        seen = self.runners.look(process.process_id)
        await store_end(self.processes, self.clock, process.process_id, seen)
        output = head_and_tail(output_of(self.runners, process.process_id), TAIL_CHARS)
        answer = ended_answer(process.process_id, seen, output)
        if not already:
            return answer
        text = answer.text.replace('"status":', '"was":', 1)
        return ToolAnswer(
            text='{"status":"already_exited",' + text[1:], exits_read=answer.exits_read
        )
