"""`terminal`: run a command under its runner, and wait for it or leave it running.

The command outlives the gateway. A call that was under way when the gateway died is taken up by
its id: it is never started a second time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta, Struct

from koboshi.domain.ids import ProcessId, shown
from koboshi.domain.phrases import YES_NO, excerpt
from koboshi.domain.process import Process, ProcessState
from koboshi.domain.text import head_and_tail, plain
from koboshi.domain.transcript import Choice, Effect, Need
from koboshi.ports.clock import Clock
from koboshi.ports.model import ToolSpec
from koboshi.ports.runners import CommandSpec, EndedBy, Life, Runners, Seen
from koboshi.ports.store import Processes
from koboshi.ports.tool import ToolAnswer, ToolContext
from koboshi.tools.danger import danger_in
from koboshi.tools.declared import complaint_about, decode_arguments, result_text, schema_of

COMMAND_CHARS_MAX = 32_000
OUTPUT_CHARS_MAX = 30_000
LOG_BYTES_READ = 2_000_000


class TerminalArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    command: Annotated[
        str,
        Meta(min_length=1, max_length=COMMAND_CHARS_MAX, description="Run by a POSIX shell."),
    ]
    workdir: Annotated[
        str, Meta(max_length=4_096, description="Where; the usual place if left out.")
    ] = ""
    timeout: Annotated[float, Meta(gt=0, description="Seconds until it is ended.")] | None = None
    background: Annotated[bool, Meta(description="Leave it running and go on.")] = False

    def __post_init__(self) -> None:
        if not self.command.strip():
            raise ValueError("`command` is blank")
        if "\0" in self.command or "\0" in self.workdir:
            raise ValueError("`command` and `workdir` can not hold a NUL")


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalTool:
    processes: Processes
    runners: Runners
    clock: Clock
    approval: str
    """`never`, `dangerous` or `always`: before which commands a person is asked."""
    workdir: str
    timeout_seconds: float
    background_seconds: float
    environment: Mapping[str, str]

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name="terminal",
            description=(
                "Run a shell command. Without `background` the result has its exit code and "
                "output. With it, it keeps running and `process` looks after it."
            ),
            parameters=schema_of(TerminalArguments),
        )

    def effect_of(self, arguments: str) -> Effect:  # noqa: ARG002  (the same for all commands)
        return Effect.RESUMABLE

    def complaint_about(self, arguments: str) -> str | None:
        return complaint_about(TerminalArguments, arguments)

    def need_of(self, arguments: str) -> Need:
        asked = decode_arguments(TerminalArguments, arguments)
        if self.approval == "always":
            return Need.APPROVAL
        if self.approval == "dangerous" and danger_in(asked.command):
            return Need.APPROVAL
        return Need.NOBODY

    def question_of(self, arguments: str) -> tuple[str, tuple[Choice, ...]]:
        asked = decode_arguments(TerminalArguments, arguments)
        danger = danger_in(asked.command)
        why = f" It {danger}." if danger else ""
        where = asked.workdir or self.workdir
        return f"May I run this in {where}?{why}\n\n{excerpt(asked.command, 2_000)}", YES_NO

    async def run(self, arguments: str, context: ToolContext) -> ToolAnswer:
        asked = decode_arguments(TerminalArguments, arguments)
        process = await self.processes.begin(
            context.claim,
            context.call_id,
            command=asked.command,
            workdir=asked.workdir or self.workdir,
            is_foreground=not asked.background,
        )
        await self._start(process, asked)
        return await self._answer(process, asked)

    async def resume(self, arguments: str, context: ToolContext) -> ToolAnswer:
        asked = decode_arguments(TerminalArguments, arguments)
        process = await self.processes.find(context.claim.turn_id, context.call_id)
        if process is None:
            # The row comes before the runner: without it, nothing was ever started.
            return await self.run(arguments, context)
        if process.ended_ms is None and self.runners.look(process.process_id).life is Life.UNBORN:
            # No runner was born, and none will be: this is the first start, not a second.
            self.runners.remove(process.process_id)
            await self._start(process, asked)
        return await self._answer(process, asked)

    async def _start(self, process: Process, asked: TerminalArguments) -> None:
        limit = self.background_seconds if asked.background else self.timeout_seconds
        spec = CommandSpec(
            command=process.command,
            workdir=process.workdir,
            environment=self.environment,
            timeout_seconds=min(asked.timeout or limit, limit),
            takes_input=asked.background,
        )
        birth = await self.runners.start(process.process_id, spec)
        if birth is not None:
            await self.processes.born(process.process_id, birth)

    async def _answer(self, process: Process, asked: TerminalArguments) -> ToolAnswer:
        process_id = process.process_id
        if asked.background:
            seen = self.runners.look(process_id)
            if seen.life is Life.ALIVE:
                text = result_text("running", process_id=shown("process", process_id))
                return ToolAnswer(text=text)
        else:
            seen = await self.runners.wait(process_id)
        await store_end(self.processes, self.clock, process_id, seen)
        output = output_of(self.runners, process_id)
        return ended_answer(process_id, seen, output)


async def store_end(processes: Processes, clock: Clock, process_id: ProcessId, seen: Seen) -> None:
    """Store how a process ended, as its runner's record or the lack of one tells."""
    ending = seen.ending
    if seen.life is Life.ALIVE:
        return
    if ending is None:
        reason = "never started" if seen.life is Life.UNBORN else lost_because(seen)
        now_ms = clock.now_ms()
        await processes.ended(
            process_id, ProcessState.LOST, exit_code=None, reason=reason, ended_ms=now_ms
        )
        return
    was_killed = ending.by in (EndedBy.REQUEST, EndedBy.TIMEOUT) or ending.signal is not None
    await processes.ended(
        process_id,
        ProcessState.KILLED if was_killed else ProcessState.EXITED,
        exit_code=ending.exit_code,
        reason=why_ended(seen),
        ended_ms=ending.ended_ms,
    )


def lost_because(seen: Seen) -> str:
    if seen.is_other_boot:
        return "the machine was restarted while it ran"
    return "it was killed together with its runner, without a record"


def why_ended(seen: Seen) -> str:
    """In words, how a process ended."""
    ending = seen.ending
    if ending is None:
        return lost_because(seen)
    match ending.by:
        case EndedBy.REQUEST:
            return "it was ended on request"
        case EndedBy.TIMEOUT:
            return "it ran longer than its time limit"
        case EndedBy.START:
            return f"it could not be started: {ending.error}"
        case EndedBy.ITSELF if ending.signal is not None:
            return f"it was killed by signal {ending.signal}"
        case EndedBy.ITSELF:
            return f"it exited with code {ending.exit_code}"


def status_of(seen: Seen) -> str:
    """The first word of a result about a process."""
    ending = seen.ending
    if seen.life is Life.ALIVE:
        return "running"
    if ending is None:
        return "lost"
    match ending.by:
        case EndedBy.TIMEOUT:
            return "timed_out"
        case EndedBy.START:
            return "failed_start"
        case EndedBy.REQUEST:
            return "killed"
        case EndedBy.ITSELF:
            return "exited" if ending.signal is None else "killed"


def output_of(runners: Runners, process_id: ProcessId) -> str:
    """Its output, as a person would have seen it, head and tail."""
    head = runners.read_log(process_id, 0, LOG_BYTES_READ // 2)
    content = head.content
    if head.total > len(content):
        tail = runners.read_log(process_id, -(LOG_BYTES_READ // 2), LOG_BYTES_READ // 2)
        kept = tail.content[max(0, len(content) - tail.offset) :]
        missing = head.total - len(content) - len(kept)
        if missing > 0:
            content += f"\n… {missing} bytes left out …\n".encode()
        content += kept
    return head_and_tail(plain(content.decode("utf-8", "replace")), OUTPUT_CHARS_MAX)


def ended_answer(process_id: ProcessId, seen: Seen, output: str) -> ToolAnswer:
    """The result for a process that has ended: the model has read its exit with it."""
    ending = seen.ending
    fields: dict[str, object] = {"process_id": shown("process", process_id)}
    if ending is not None and ending.exit_code is not None:
        fields["exit_code"] = ending.exit_code
    if ending is not None and ending.signal is not None:
        fields["signal"] = ending.signal
    if status_of(seen) != "exited":
        fields["reason"] = why_ended(seen)
    text = result_text(status_of(seen), **fields, output=output)
    return ToolAnswer(text=text, exits_read=(process_id,), is_unknown=seen.life is Life.LOST)
