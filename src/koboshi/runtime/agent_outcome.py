"""How a turn of a foreign agent ends: with its answer, or given up with the reason."""

import structlog
from anyio import to_thread

from koboshi.domain import agent_words
from koboshi.domain.agent import AgentMessage, AgentStanding, GiveUpAgent
from koboshi.domain.ids import ChannelName, ProcessId
from koboshi.domain.transcript import Reply
from koboshi.domain.turn import Claim
from koboshi.ports.runners import Runners
from koboshi.ports.store import Store
from koboshi.ports.wires import Wires
from koboshi.processes.ends import StoreEnd, as_known, output_of
from koboshi.runtime.shipping import Shipping

log = structlog.get_logger()

LAST_WORDS_CHARS = 600


async def conclude(
    store: Store,
    shipping: Shipping,
    claim: Claim,
    channel: ChannelName,
    agent: str,
    said: str,
    prompt: AgentMessage,
) -> None:
    """The agent has answered its prompt."""
    failure = None if prompt.error is None else f"the agent says: {prompt.error}"
    if prompt.stop == "cancelled":
        failure = "the agent stopped working on it"
    if failure is not None:
        await store.turns.fail(claim, failure)
        log.warning("turn_failed", reason=failure)
        return
    reply = Reply(
        text=agent_words.answer_text(said, prompt.stop or ""),
        model=agent,
        tokens_in=prompt.tokens_in,
        tokens_out=prompt.tokens_out,
    )
    parts, file = await shipping.ship(channel, claim.turn_id, reply.text)
    await store.turns.answer(claim, reply, parts, file=file)
    log.info("turn_answered", agent=agent, parts=len(parts))


async def give_up(
    store: Store,
    runners: Runners,
    claim: Claim,
    standing: AgentStanding,
    move: GiveUpAgent,
    start_seconds: float,
) -> None:
    """The turn fails, with the reason and the last words of the process."""
    process, reason = standing.process, move.reason
    if move.awaited is not None:
        has_history = standing.has_history
        reason = agent_words.silent(standing.agent, reason, start_seconds, has_history=has_history)
    if process is not None and (process.is_drained or move.ends_it):
        row = await store.processes.get(process.process_id)
        how = "" if row is None or row.reason is None else f": {row.reason}"
        said = await output_of(runners, process.process_id, LAST_WORDS_CHARS)
        words = f" Its last words: {said.strip()}" if said.strip() else ""
        reason = f"{reason.removesuffix('.')}{how}.{words}"
    ended = process.process_id if process is not None and move.ends_it else None
    await store.agents.give_up(claim, ended, move.rule, reason)
    log.warning("turn_failed", reason=reason, rule=move.rule)


async def drain(
    store: Store,
    runners: Runners,
    wires: Wires,
    store_end: StoreEnd,
    process_id: ProcessId,
    prompt: AgentMessage | None,
) -> None:
    """An agent has ended, and all that it wrote is stored: so is its end."""
    row = await store.processes.get(process_id)
    seen = await to_thread.run_sync(runners.look, process_id)
    if row is not None:
        seen = as_known(row, seen)
        await store_end(process_id, seen)
    begun = prompt is not None and (
        seen.has_no_files
        or await to_thread.run_sync(wires.fed, process_id, prompt.number) is not None
    )
    await store.agents.drained(process_id, begun=begun)
