"""Reading an agent's spool: whole lines, at most four commits a second, from the stored place."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from anyio import sleep, to_thread

from koboshi.domain.agent_talk import Heard, Settled, ToldMore
from koboshi.domain.ids import ProcessId
from koboshi.domain.turn import Claim
from koboshi.ports.agents import AgentLanguage
from koboshi.ports.clock import Clock
from koboshi.ports.store import Store
from koboshi.ports.wires import Wires

COMMIT_EVERY_S = 0.25
LOOK_EVERY_S, LOOK_EVERY_S_MAX = 0.02, 0.25
READ_BYTES = 1 << 20
ITEMS_MAX = 250
"""How much of what an agent said is stored in one commit; words that were joined are one."""


class AgentLineTooLong(Exception):
    """The agent wrote a line that is longer than any message may be."""


@dataclass(slots=True, kw_only=True)
class AgentReader:
    """Reads one process. Nothing here is needed after a crash: the place is in the store."""

    store: Store
    wires: Wires
    clock: Clock
    language: AgentLanguage
    process_id: ProcessId
    line_bytes_max: int
    cost_of: Callable[[int, int], int] | None = None
    """What tokens in and out are counted as; None: there is no budget."""
    committed_at: float = -1.0
    rest: list[Heard] = field(default_factory=list)
    """What was understood and is not stored yet: it begins where the last commit ended."""
    rest_end: int = 0
    looked_at: int = 0
    """How far the spool was looked through: what lies below and is not stored has no end yet."""

    async def read(self, offset: int, claim: Claim | None, *, is_alive: bool) -> bool:
        """Store what was written from the offset on. False if there is no whole line yet. Raises
        AgentLineTooLong, and Fenced if the claim is lost."""
        pause = self.committed_at + COMMIT_EVERY_S - self.clock.monotonic()
        if is_alive and self.committed_at >= 0 and pause > 0:
            await sleep(pause)  # what comes meanwhile shares the commit
        found = await self._found(offset, is_alive=is_alive)
        if found is None:
            return False
        heard, end = found
        # One agent that says much at once does not hold up the commits of others.
        heard, rest = heard[:ITEMS_MAX], heard[ITEMS_MAX:]
        after = rest[0].offset if rest else end
        if self.cost_of is not None and any(isinstance(each, Settled) for each in heard):
            heard = await to_thread.run_sync(_billed, heard, self.cost_of)  # may load a library
        place = await self.store.agents.take(
            self.process_id, offset, after, heard, claim, is_alive=is_alive
        )
        self.committed_at = self.clock.monotonic()
        is_whole = place == after
        self.rest, self.rest_end = (rest, end) if is_whole else ([], 0)
        if place is None:
            return False
        await to_thread.run_sync(self.wires.forget, self.process_id, place)
        return True

    async def _found(self, offset: int, *, is_alive: bool) -> tuple[list[Heard], int] | None:
        """What was said from there on, and where it ends; None if there is no whole line yet."""
        if self.rest and self.rest[0].offset == offset:
            return self.rest, self.rest_end
        content = await to_thread.run_sync(self._lines_from, offset)
        if content:
            # Beside the others: what an agent writes may take long to be understood.
            heard = await to_thread.run_sync(self.language.hear, offset, content)
            return heard, offset + len(content)
        if is_alive:
            return None
        half = await to_thread.run_sync(self.wires.read, self.process_id, offset, READ_BYTES)
        if not half:
            return None  # else it is the last line of an agent that died, and has no end
        words = f"{len(half)} bytes"
        told = ToldMore(offset=offset, session="", kind="half-line", text=words)
        return [told], offset + len(half)

    def _lines_from(self, offset: int) -> bytes:
        """Whole lines from there on, or nothing."""
        limit = min(READ_BYTES, self.line_bytes_max + 1)
        while True:
            content = self.wires.read(self.process_id, offset, limit)
            end = content.rfind(b"\n") + 1
            if end:
                return content[:end]
            if len(content) < limit:
                self.looked_at = offset + len(content)
                return b""
            if limit > self.line_bytes_max:
                raise AgentLineTooLong
            limit = min(limit * 4, self.line_bytes_max + 1)


def _billed(heard: list[Heard], cost_of: Callable[[int, int], int]) -> list[Heard]:
    """With what each prompt is counted as in the budget."""
    return [
        replace(each, cost=cost_of(each.tokens_in, each.tokens_out))
        if isinstance(each, Settled) and each.tokens_in + each.tokens_out > 0
        else each
        for each in heard
    ]
