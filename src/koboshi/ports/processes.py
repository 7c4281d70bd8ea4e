"""Processes, as the tools and the loops use them."""

from collections.abc import Sequence
from typing import Protocol

from koboshi.domain.ids import (
    CallId,
    ProcessId,
    SessionId,
    TurnId,
)
from koboshi.domain.process import Birth, Process, ProcessState
from koboshi.domain.sandbox import Boundary
from koboshi.domain.turn import Claim
from koboshi.domain.watch import Finding, Watcher, WatcherSpec


class Processes(Protocol):
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
        """Store the intent to start a process for a call, with its watchers, before anything runs.
        A call has one process for ever: an existing one is returned as it is. Raises
        BackgroundFull, and nothing is written, if it is for the background and `background_max`
        commands of the session run there already."""
        ...

    async def born(self, process_id: ProcessId, birth: Birth) -> None: ...
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
        """How it ended, and the last of its output; a second end changes nothing. The report is
        filed in the same transaction: to the agent if it asked for that, else to the person, and to
        neither after a request to end it."""
        ...

    async def report(self, before: Watcher, found: Finding) -> bool:
        """Report a watcher's finding and move the watcher behind it, in one transaction. False, and
        nothing is written, when it may report nothing now, or was moved meanwhile: look again
        later."""
        ...

    async def forget(self, process_id: ProcessId) -> None:
        """Delete an ended process and its watchers."""
        ...

    async def ask_end(self, process_id: ProcessId) -> None:
        """Store the request to end it; the supervisor acts on that, also after a boot. For a lost
        one, it ends what may be left."""
        ...

    async def with_remains(self) -> tuple[ProcessId, ...]:
        """Lost processes with a request to end what may be left of them."""
        ...

    async def remains_ended(self, process_id: ProcessId) -> None:
        """Nothing of it is left that could be found."""
        ...

    async def find(self, turn_id: TurnId, call_id: CallId) -> Process | None: ...
    async def get(self, process_id: ProcessId) -> Process | None: ...

    async def of_session(self, session_id: SessionId, limit: int) -> tuple[Process, ...]:
        """The session's processes, newest first."""
        ...

    async def watchers(self, process_id: ProcessId) -> tuple[Watcher, ...]:
        """All watchers of a process, past ones included."""
        ...

    async def watched(self) -> tuple[tuple[Watcher, Process], ...]:
        """The active watchers of output, the longest unheard first."""
        ...

    async def of_turn(self, turn_id: TurnId) -> tuple[ProcessId, ...]:
        """The background processes that the turn has started."""
        ...

    async def outdated(self, before_ms: int, kept_max: int, limit: int) -> tuple[ProcessId, ...]:
        """Ended before that moment, or ended and more than are kept; oldest first."""
        ...

    async def stranded(self) -> tuple[ProcessId, ...]:
        """Begun for a turn that has closed since; unknown whether they were started."""
        ...

    async def commands_running(self) -> frozenset[tuple[TurnId, CallId]]:
        """The calls of all foreground commands that have no end, as far as we know."""
        ...

    async def alive(self) -> tuple[Process, ...]:
        """Every process of this home that has no end, as far as we know."""
        ...

    @property
    def home(self) -> str:
        """The home whose processes are here. Those of others are looked at there."""
        ...

    async def look_elsewhere(self, *, told_ms: int, lost_ms: int) -> int:
        """Look at processes of homes without a gateway. After `told_ms` the person is told once,
        and after `lost_ms` the process is lost. Returns of how many there was something to say."""
        ...
