"""`terminal`: run a command under its runner, and wait for it or leave it running.

The command outlives the gateway. A call that was under way when the gateway died is taken up by
its id: it is never started a second time.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from msgspec import Meta, Struct

from koboshi.boundary.enclosure import Enclosure
from koboshi.boundary.view import View
from koboshi.domain import notes
from koboshi.domain.approval import Approval, seal_of
from koboshi.domain.errors import BackgroundFull
from koboshi.domain.ids import ProcessId, shown
from koboshi.domain.phrases import YES_NO
from koboshi.domain.process import Process, ProcessState
from koboshi.domain.resource_exhaustion import shortage_in
from koboshi.domain.sandbox import Boundary
from koboshi.domain.text import exactly
from koboshi.domain.transcript import Choice, Effect, Need
from koboshi.domain.watch import WatcherKind, WatcherSpec
from koboshi.ports.clock import Clock
from koboshi.ports.model import ToolSpec
from koboshi.ports.runners import CommandSpec, EndedBy, Ending, Life, Runners, Seen
from koboshi.ports.store import Processes
from koboshi.ports.tool import Load, ToolAnswer, ToolContext, ToolFailed
from koboshi.processes.ends import (
    NEVER_STARTED,
    StoreEnd,
    as_known,
    is_here,
    output_of,
    status_of,
    why_ended,
)
from koboshi.tools.asking import Asking, approval_of_command
from koboshi.tools.declared import complaint_about, decode_arguments, result_text, schema_of
from koboshi.tools.patterns import complaint_about_pattern

COMMAND_CHARS_MAX = 64_000
COMMAND_BYTES_MAX = 128_000  # what the system takes as one argument of a program
SLOW_SECONDS_MAX = 60.0
"""How much longer than its time limit a command may take to end."""
NOT_AS_ALLOWED = (
    "it was not started: where or how it would run has changed since it was allowed. Call it again "
    "if it is still needed"
)
PATTERNS_MAX = 10
PATTERN_CHARS_MAX = 500
CHECK_SECONDS_MIN = 15
CHECK_SECONDS_MAX = 7 * 86_400


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
    notify_on_complete: Annotated[
        bool, Meta(description="In the background: you are told when it has ended, and how.")
    ] = False
    watch_patterns: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=PATTERN_CHARS_MAX)], ...],
        Meta(
            max_length=PATTERNS_MAX,
            description=(
                "In the background: you are told of lines that match one of these regular "
                "expressions (RE2: no look-around, no back-references)."
            ),
        ),
    ] = ()
    check_every: (
        Annotated[
            float,
            Meta(
                ge=CHECK_SECONDS_MIN,
                le=CHECK_SECONDS_MAX,
                description="In the background: seconds until you are told how it goes, again and "
                "again, and how it ended.",
            ),
        ]
        | None
    ) = None
    outside: Annotated[
        bool,
        Meta(
            description="Ask the person to run it outside the boundary. Only where it cannot work "
            "inside; `reason` is then needed."
        ),
    ] = False
    reason: Annotated[
        str, Meta(max_length=1_000, description="Why, for the person who is asked.")
    ] = ""

    def __post_init__(self) -> None:
        if not self.command.strip():
            raise ValueError("`command` is blank")
        if len(self.command.encode("utf-8", "surrogatepass")) > COMMAND_BYTES_MAX:
            raise ValueError(f"`command` has more than {COMMAND_BYTES_MAX} bytes")
        if self.outside and not self.reason.strip():
            raise ValueError("`reason` is missing: say why it has to run outside")
        if "\0" in self.command or "\0" in self.workdir:
            raise ValueError("`command` and `workdir` cannot hold a NUL")
        is_watched = self.notify_on_complete or self.watch_patterns or self.check_every
        if is_watched and not self.background:
            raise ValueError(
                "`notify_on_complete`, `watch_patterns` and `check_every` are for `background`"
            )
        for pattern in self.watch_patterns:
            if complaint := complaint_about_pattern(pattern):
                raise ValueError(f"`watch_patterns`: {complaint}")

    @property
    def watchers(self) -> tuple[WatcherSpec, ...]:
        """What shall look at it."""
        found = []
        if self.notify_on_complete:
            found.append(WatcherSpec(kind=WatcherKind.EXIT))
        if self.watch_patterns:
            found.append(
                WatcherSpec(kind=WatcherKind.MATCH, argument="\n".join(self.watch_patterns))
            )
        if self.check_every:
            found.append(WatcherSpec(kind=WatcherKind.EVERY, argument=f"{self.check_every:g}"))
        return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalTool:
    processes: Processes
    runners: Runners
    clock: Clock
    asking: Asking
    """Before which commands a person is asked, and what holds them in."""
    workdir: str
    timeout_seconds: float
    background_seconds: float
    environment: Mapping[str, str]
    """What commands inherit anywhere."""
    enclosure: Enclosure
    """What stands around them."""
    store_end: StoreEnd
    background_max: int = 16
    """Commands of one session that may run in the background at once."""

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

    def load_of(self, arguments: str) -> Load:
        is_left = decode_arguments(TerminalArguments, arguments).background
        return Load.WORK if is_left else Load.COMMAND

    def complaint_about(self, arguments: str) -> str | None:
        complaint = complaint_about(TerminalArguments, arguments)
        if complaint is not None:
            return complaint
        wants_out = decode_arguments(TerminalArguments, arguments).outside
        return self.asking.complaint_about_leaving(wants_out=wants_out)

    def need_of(self, arguments: str) -> Need:
        asked = decode_arguments(TerminalArguments, arguments)
        return self.asking.need_of_command(asked.command, wants_out=asked.outside)

    def question_of(self, arguments: str) -> tuple[str, tuple[Choice, ...]]:
        approval = self._approval(decode_arguments(TerminalArguments, arguments))
        return f"{approval.lead}\n\n{exactly(approval.literal)}", YES_NO

    async def approval_of(self, arguments: str) -> Approval:
        return self._approval(decode_arguments(TerminalArguments, arguments))

    def _approval(self, asked: TerminalArguments) -> Approval:
        return approval_of_command(
            self.asking,
            asked.command,
            workdir=self._workdir_of(asked),
            is_background=asked.background,
            wants_out=asked.outside,
            reason=asked.reason,
        )

    def _is_outside(self, asked: TerminalArguments) -> bool:
        return self.asking.is_outside(wants_out=asked.outside)

    def _is_allowed(self, arguments: str, context: ToolContext) -> bool:
        """The last look before a command begins, in this life or a later one: what the person
        allowed is what begins, and what needs no person here still needs none."""
        if context.seal is None:
            return self.need_of(arguments) is Need.NOBODY
        approval = self._approval(decode_arguments(TerminalArguments, arguments))
        return seal_of(self.spec.name, arguments, approval) == context.seal

    async def run(self, arguments: str, context: ToolContext) -> ToolAnswer:
        asked = decode_arguments(TerminalArguments, arguments)
        if not self._is_allowed(arguments, context):
            raise ToolFailed(NOT_AS_ALLOWED)
        try:
            process = await self.processes.begin(
                context.claim,
                context.call_id,
                command=asked.command,
                workdir=self._workdir_of(asked),
                is_foreground=not asked.background,
                watchers=asked.watchers,
                background_max=self.background_max,
                boundary=self._boundary_of(asked),
            )
        except BackgroundFull as error:
            raise ToolFailed(
                f"it was not started: {error}, and there may be no more in one chat. `process` "
                "with `list` shows them, and with `kill` ends one; then start this one again"
            ) from error
        return await self._start(process, asked)

    async def resume(self, arguments: str, context: ToolContext) -> ToolAnswer:
        asked = decode_arguments(TerminalArguments, arguments)
        process = await self.processes.find(context.claim.turn_id, context.call_id)
        if process is None:
            # The row comes before the runner: without it, nothing was ever started.
            return await self.run(arguments, context)
        if not is_here(self.processes, process):
            return self._elsewhere(process)
        if process.ended_ms is not None:
            return await self._answer(process, asked)
        seen = as_known(process, self.runners.look(process.process_id))
        if seen.life is Life.UNBORN and not process.is_end_asked:
            # No runner was born, and none will be: this is the first start, not a second.
            if not self._is_allowed(arguments, context):
                return await self._failed(process, asked, NOT_AS_ALLOWED)
            self.runners.remove(process.process_id)
            return await self._start(process, asked)
        if seen.birth is not None:
            await self.processes.born(process.process_id, seen.birth)
        return await self._answer(process, asked)

    def _elsewhere(self, process: Process) -> ToolAnswer:
        """The command was started on another node. It is never started here, too."""
        if process.ended_ms is not None:
            is_lost = process.state is ProcessState.LOST
            return replace(answer_from_row(process), is_unknown=is_lost)
        words = notes.outcome_elsewhere(self.spec.name, process.node)
        return ToolAnswer(text=words, is_unknown=True)

    def _workdir_of(self, asked: TerminalArguments) -> str:
        named = asked.workdir
        if named == "~" or named.startswith("~/"):
            named = self.enclosure.home_of() + named[1:]
        path = os.path.normpath(os.path.join(self.workdir, named))
        # The agent makes links inside. A person who lets it out is shown where they lead.
        return os.path.realpath(path) if self._is_outside(asked) else path

    def _view_of(self, process: Process) -> View | None:
        """What the command sees; None if it runs on the host."""
        if process.boundary is Boundary.NONE:
            return None
        return self.enclosure.view_of(shown("session", process.session_id))

    def _boundary_of(self, asked: TerminalArguments) -> Boundary:
        """What keeps the command inside. A person has allowed those outside."""
        return Boundary.NONE if self._is_outside(asked) else self.enclosure.boundary

    def _seconds_of(self, asked: TerminalArguments) -> float:
        limit = self.background_seconds if asked.background else self.timeout_seconds
        return min(asked.timeout or limit, limit)

    async def _start(self, process: Process, asked: TerminalArguments) -> ToolAnswer:
        # The boundary was stored before the start. A restart may have changed what holds: then the
        # command does not run at all, instead of running with less around it.
        if process.boundary is not self._boundary_of(asked):
            words = f"it was to run inside {process.boundary}, which is not used any more"
            return await self._failed(process, asked, words)
        try:
            view = self._view_of(process)
            session = shown("session", process.session_id)
            started = self.enclosure.start(view, process.workdir, self.environment, session=session)
            spec = CommandSpec(
                command=process.command,
                workdir=process.workdir,
                environment=started.environment,
                timeout_seconds=self._seconds_of(asked),
                takes_input=asked.background,
                confinement=started.confinement,
            )
            birth = await self.runners.start(process.process_id, spec)
        except OSError as error:
            if shortage_in(error) is not None:
                raise  # it comes back: the call is taken up then, and the command begins
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
        await self.store_end(process.process_id, seen)
        return ended_answer(process.process_id, seen, "")

    async def _answer(self, process: Process, asked: TerminalArguments) -> ToolAnswer:
        process_id = process.process_id
        if asked.background:
            seen = self.runners.look(process_id)
        else:
            seen = await self.runners.wait(process_id, self._seconds_of(asked) + SLOW_SECONDS_MAX)
        seen = as_known(process, seen)
        if seen.life is Life.ALIVE:
            note = _what_is_reported(asked)
            text = result_text("running", process_id=shown("process", process_id), note=note)
            return ToolAnswer(text=text)
        if seen.life is Life.UNBORN and process.ended_ms is not None:
            is_lost = process.state is ProcessState.LOST and process.reason != NEVER_STARTED
            return replace(answer_from_row(process), is_unknown=is_lost)
        await self.store_end(process_id, seen)
        answer = ended_answer(
            process_id, seen, await output_of(self.runners, process_id, is_needed=True)
        )
        return replace(answer, is_unknown=seen.life is Life.LOST)


def _what_is_reported(asked: TerminalArguments) -> str:
    told = []
    if asked.watch_patterns:
        told.append("lines that match")
    if asked.check_every:
        told.append(f"how it goes, every {asked.check_every:g} s")
    if asked.notify_on_complete or asked.check_every:
        told.append("its end")
    if not told:
        return "nothing of it is reported to you, not even its end: look at it with `process`"
    return f"reported to you by itself: {', '.join(told)}; you need not wait for it"


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
