"""`terminal`: run a command under its runner, and wait for it or leave it running.

The command outlives the gateway. A call that was under way when the gateway died is taken up by
its id: it is never started a second time.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from anyio import to_thread
from msgspec import Meta, Struct

from koboshi.domain.ids import ProcessId, shown
from koboshi.domain.phrases import YES_NO
from koboshi.domain.process import Process, ProcessState
from koboshi.domain.text import head_and_tail, plain, visible
from koboshi.domain.transcript import Choice, Effect, Need
from koboshi.ports.clock import Clock
from koboshi.ports.model import ToolSpec
from koboshi.ports.runners import CommandSpec, EndedBy, Ending, Life, Runners, Seen
from koboshi.ports.store import Processes
from koboshi.ports.tool import ToolAnswer, ToolContext
from koboshi.tools.danger import danger_in
from koboshi.tools.declared import complaint_about, decode_arguments, result_text, schema_of

COMMAND_CHARS_MAX = 32_000
COMMAND_CHARS_SHOWN = 8_000
OUTPUT_CHARS_MAX = 30_000
LOG_BYTES_READ = 200_000
SLOW_SECONDS_MAX = 60.0
"""How much longer than its time limit a command may take to end."""
NEVER_STARTED = "it was never started"


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
        how = " in the background" if asked.background else ""
        # What is approved is what is seen: nothing in it hides, or turns text around.
        command = head_and_tail(visible(asked.command), COMMAND_CHARS_SHOWN)
        where = visible(self._workdir_of(asked))
        return f"May I run this{how} in {where}?{why}\n\n{command}", YES_NO

    async def run(self, arguments: str, context: ToolContext) -> ToolAnswer:
        asked = decode_arguments(TerminalArguments, arguments)
        process = await self.processes.begin(
            context.claim,
            context.call_id,
            command=asked.command,
            workdir=self._workdir_of(asked),
            is_foreground=not asked.background,
        )
        return await self._start(process, asked)

    async def resume(self, arguments: str, context: ToolContext) -> ToolAnswer:
        asked = decode_arguments(TerminalArguments, arguments)
        process = await self.processes.find(context.claim.turn_id, context.call_id)
        if process is None:
            # The row comes before the runner: without it, nothing was ever started.
            return await self.run(arguments, context)
        if process.ended_ms is not None:
            return await self._answer(process, asked)
        seen = self.runners.look(process.process_id)
        if seen.life is Life.UNBORN and not process.is_end_asked:
            # No runner was born, and none will be: this is the first start, not a second.
            self.runners.remove(process.process_id)
            return await self._start(process, asked)
        if seen.birth is not None:
            await self.processes.born(process.process_id, seen.birth)
        return await self._answer(process, asked)

    def _workdir_of(self, asked: TerminalArguments) -> str:
        return os.path.normpath(os.path.join(self.workdir, os.path.expanduser(asked.workdir)))

    def _seconds_of(self, asked: TerminalArguments) -> float:
        limit = self.background_seconds if asked.background else self.timeout_seconds
        return min(asked.timeout or limit, limit)

    async def _start(self, process: Process, asked: TerminalArguments) -> ToolAnswer:
        spec = CommandSpec(
            command=process.command,
            workdir=process.workdir,
            environment=self.environment,
            timeout_seconds=self._seconds_of(asked),
            takes_input=asked.background,
        )
        try:
            birth = await self.runners.start(process.process_id, spec)
        except OSError as error:
            return await self._failed(process, asked, str(error))
        if birth is not None:
            await self.processes.born(process.process_id, birth)
        return await self._answer(process, asked)

    async def _failed(self, process: Process, asked: TerminalArguments, error: str) -> ToolAnswer:
        """The answer for a command whose runner did not start. Whatever is left of it never will:
        looking settles that."""
        seen = self.runners.look(process.process_id)
        if seen.life is not Life.UNBORN:
            return await self._answer(process, asked)
        ending = Ending(
            by=EndedBy.START,
            exit_code=None,
            signal=None,
            ended_ms=self.clock.now_ms(),
            error=error,
        )
        seen = Seen(life=Life.ENDED, ending=ending)
        await store_end(self.processes, self.clock, process.process_id, seen)
        return ended_answer(process.process_id, seen, "")

    async def _answer(self, process: Process, asked: TerminalArguments) -> ToolAnswer:
        process_id = process.process_id
        if asked.background:
            seen = self.runners.look(process_id)
        else:
            seen = await self.runners.wait(process_id, self._seconds_of(asked) + SLOW_SECONDS_MAX)
        if seen.life is Life.ALIVE:
            note = "its end is not reported: look at it with `process`"
            text = result_text("running", process_id=shown("process", process_id), note=note)
            return ToolAnswer(text=text)
        if seen.life is Life.UNBORN and process.ended_ms is not None:
            is_lost = process.state is ProcessState.LOST and process.reason != NEVER_STARTED
            return replace(answer_from_row(process), is_unknown=is_lost)
        await store_end(self.processes, self.clock, process_id, seen)
        answer = ended_answer(process_id, seen, await output_of(self.runners, process_id))
        return replace(answer, is_unknown=seen.life is Life.LOST)


async def store_end(processes: Processes, clock: Clock, process_id: ProcessId, seen: Seen) -> None:
    """Store how a process ended, as its runner's record or the lack of one tells."""
    ending = seen.ending
    if seen.life is Life.ALIVE:
        return
    if ending is None:
        await processes.ended(
            process_id,
            ProcessState.LOST,
            exit_code=None,
            reason=why_ended(seen),
            ended_ms=clock.now_ms(),
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


def why_ended(seen: Seen) -> str:
    """In words, how a process ended."""
    ending = seen.ending
    if seen.life is Life.UNBORN:
        return NEVER_STARTED
    if ending is None and seen.is_other_boot:
        return "the machine was restarted while it ran; how far it got is unknown"
    if ending is None:
        return "it was killed together with its runner; how far it got is unknown"
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
    if seen.life is Life.UNBORN:
        return "failed_start"
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


async def output_of(
    runners: Runners, process_id: ProcessId, chars_max: int = OUTPUT_CHARS_MAX
) -> str:
    """Its output, as a person would have seen it, head and tail."""
    content = await to_thread.run_sync(_ends_of_log, runners, process_id)
    return head_and_tail(plain(content.decode("utf-8", "replace")), chars_max)


def _ends_of_log(runners: Runners, process_id: ProcessId) -> bytes:
    half = LOG_BYTES_READ // 2
    try:
        head = runners.read_log(process_id, 0, half)
        end_of_head = head.offset + len(head.content)
        if end_of_head >= head.total:
            return head.content
        tail = runners.read_log(process_id, max(end_of_head, head.total - half), half)
    except OSError as error:
        # How it ended is worth more than what it said.
        return f"(its output can not be read: {error})".encode()
    missing = tail.offset - end_of_head
    gap = f"\n… {missing} bytes left out …\n".encode() if missing else b""
    return head.content + gap + tail.content


def ended_answer(
    process_id: ProcessId,
    seen: Seen,
    output: str,
    *,
    was_before: bool = False,
    more: Mapping[str, object] | None = None,
) -> ToolAnswer:
    """The result for a process that has ended: the model has read its exit with it."""
    ending, status = seen.ending, status_of(seen)
    fields: dict[str, object] = {"process_id": shown("process", process_id), **(more or {})}
    if ending is not None and ending.exit_code is not None:
        fields["exit_code"] = ending.exit_code
    if ending is not None and ending.signal is not None:
        fields["signal"] = ending.signal
    if status != "exited":
        fields["reason"] = why_ended(seen)
    return _read_exit(process_id, status, {**fields, "output": output}, was_before=was_before)


def answer_from_row(process: Process, *, was_before: bool = False) -> ToolAnswer:
    """The result for a process that has ended and whose files are gone."""
    fields: dict[str, object] = {
        "process_id": shown("process", process.process_id),
        "exit_code": process.exit_code,
        "reason": process.reason,
        "note": "its output is no longer kept",
    }
    return _read_exit(process.process_id, process.state, fields, was_before=was_before)


def _read_exit(
    process_id: ProcessId, status: str, fields: Mapping[str, object], *, was_before: bool
) -> ToolAnswer:
    first = {"was": status} if was_before else {}
    text = result_text("already_exited" if was_before else status, **first, **fields)
    return ToolAnswer(text=text, exits_read=(process_id,))
