"""Background processes, as the owner of the home is asked about them."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from koboshi.control.neighbours import Neighbour
from koboshi.control.replies import Done, ProcessEnded, ProcessOutput, refusal
from koboshi.control.requests import SayInChat
from koboshi.domain.ids import ProcessId, SessionId, parse_shown
from koboshi.domain.process import ProcessState
from koboshi.domain.shutdown import Leave, nothing_against_it
from koboshi.domain.watch import last_lines
from koboshi.ports.runners import Life, Runners, Seen
from koboshi.ports.store import Store
from koboshi.ports.views import ProcessView
from koboshi.ports.wakeups import JOURNAL, Wakeups
from koboshi.processes.ends import is_here

LOG_CHARS_MAX = 200_000
GRACE_SECONDS = 2.0
SEEN_SECONDS = 4.0
"""How long the caller waits to see it end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlContext:
    store: Store
    runners: Runners
    store_end: Callable[[ProcessId, Seen], Awaitable[None]]
    output_of: Callable[[ProcessId, int], Awaitable[str]]
    is_running: bool
    """Whether a gateway looks after them; else this process does, for a moment."""
    leave: Callable[[Leave], None] | None = None
    """Asks the gateway to end; None where none runs."""
    why_not_restart: Callable[[], Awaitable[str]] = nothing_against_it
    """Why the gateway would not come back; empty if it would."""
    login_link: Callable[[], Awaitable[str | None]] = lambda: _no_link()
    """An address that lets one browser in, once; None where no page is served."""
    web_address: Callable[[], str | None] = lambda: None
    """Where the web channel listens; None if none does."""
    say: Callable[[SayInChat], Awaitable[Done]] = lambda _said: no_web_channel()
    """Stores what a person at the terminal says in a chat of the web channel."""
    channels: Callable[[], Mapping[str, str | None]] = dict
    """The channels that have to be reached, and why one cannot be."""
    heard: Callable[[], Mapping[str, str]] = dict
    """How well they hear their platforms, in words."""
    neighbours: Callable[[], tuple[Neighbour, ...]] = tuple
    finish_erasures: Callable[[], Awaitable[bool]] = lambda: _not_finished()
    """Deletes the files of people who were erased; False if something was in the way."""
    backups: Callable[[], tuple[str, ...]] = tuple
    """The backups in the home."""

    async def log(self, named: str, chars_max: int = LOG_CHARS_MAX) -> ProcessOutput | None:
        view = await self.find(named)
        if view is None:
            return None
        output = await self.output_of(view.process.process_id, chars_max)
        return ProcessOutput(
            process=view.process,
            route=view.route,
            watchers=view.watchers,
            output=last_lines(output, chars_max),
        )

    async def end(self, named: str) -> ProcessEnded | None:
        view = await self.find(named)
        if view is None:
            return None
        process_id = view.process.process_id
        was_ended = view.process.ended_ms is not None
        is_ours = is_here(self.store.processes, view.process)
        if not was_ended:
            await self.store.processes.ask_end(process_id)
            if not is_ours:
                return ProcessEnded(
                    was_ended=False,
                    process=view.process,
                    route=view.route,
                    watchers=view.watchers,
                )
            if self.is_running:
                seen = await self.runners.wait(process_id, SEEN_SECONDS)
            else:
                seen = await self.runners.end(process_id, grace_s=GRACE_SECONDS)
            if seen.life is not Life.ALIVE:
                await self.store_end(process_id, seen)
        elif view.process.state is ProcessState.LOST and is_ours:
            # What an earlier version has left of it, say, has no other way to be ended.
            await self.runners.end(process_id, grace_s=GRACE_SECONDS)
        after = await self.find(named) or view
        return ProcessEnded(
            was_ended=was_ended,
            process=after.process,
            route=after.route,
            watchers=after.watchers,
        )

    async def find(self, named: str) -> ProcessView | None:
        parsed = parse_shown(named)
        if parsed is None or parsed[0] != "process":
            return None
        return await self.store.views.process(ProcessId(parsed[1]))


async def _no_link() -> str | None:
    return None


async def _not_finished() -> bool:
    return False


async def no_web_channel() -> Done:
    words = "no gateway serves a web channel in this home; `koboshi run` does"
    return refusal("not-running", words)


async def until_written_to(
    store: Store, wakeups: Wakeups, poll_seconds: float, session_id: SessionId
) -> None:
    """Return when a person has written in the session, after now."""
    before = await store.inbox.messages_waiting(session_id)
    while True:
        seen = wakeups.count(JOURNAL)
        if await store.inbox.messages_waiting(session_id) > before:
            return
        await wakeups.wait(JOURNAL, poll_seconds, since=seen)
