"""The verbs of the chain of models: bench one, lift that, and put a turn on another."""

from koboshi.domain.chain import Bench, LinkFailure, benched
from koboshi.domain.ids import ChannelName
from koboshi.domain.route import Route
from koboshi.domain.trouble import TROUBLE_RULES
from koboshi.domain.turn import Claim
from koboshi.kernel.claims import is_held
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import first_text, text
from koboshi.kernel.keys import model_key, of_sessions
from koboshi.kernel.loading import fenced
from koboshi.kernel.model_rows import bench_of, benches_in, usage_of
from koboshi.kernel.transaction import Keys, Readers, Reading, Transaction, Writer
from koboshi.ports.models import ChainStanding, ChatUsage


class ModelVerbs:
    def __init__(self, writer: Writer, readers: Readers, context: VerbContext) -> None:
        self._writer = writer
        self._readers = readers
        self._context = context

    async def standing(self, claim: Claim | None) -> ChainStanding:
        def look(tx: Reading) -> ChainStanding:
            on = None
            if claim is not None:
                on = first_text(tx.row("turn_model", turn_id=claim.turn_id))
            rows = tx.rows("benches_here", node=self._context.node)
            return ChainStanding(benches=tuple(map(bench_of, rows)), now_ms=tx.now_ms, on=on)

        return await self._readers.read(look)

    async def benches(self) -> tuple[Bench, ...]:
        return await self._readers.read(benches_in)

    async def usage(self, since_ms: int) -> tuple[ChatUsage, ...]:
        def look(tx: Reading) -> tuple[ChatUsage, ...]:
            rows = tx.rows("usage_of_all", since_ms=since_ms)
            return tuple(
                ChatUsage(
                    route=Route(
                        channel=ChannelName(text(row[0])), chat=text(row[1]), thread=text(row[2])
                    ),
                    line=usage_of(row[3:]),
                )
                for row in rows
            )

        return await self._readers.read(look)

    async def bench(self, failure: LinkFailure) -> Bench:
        def operation(tx: Transaction) -> Bench:
            node = self._context.node if TROUBLE_RULES[failure.trouble].is_of_node else ""
            row = tx.row("bench", model=failure.model, node=node)
            before = None if row is None else bench_of(row)
            made = benched(before, failure, node, tx.now_ms)
            tx.change(
                "bench_set",
                model=made.model,
                node=made.node,
                trouble=made.trouble,
                reason=made.reason,
                tries=made.tries,
                since_ms=made.since_ms,
                until_ms=made.until_ms,
                now=tx.now_ms,
            )
            return made

        keys = Keys(chats=(model_key(failure.model),))
        return await self._writer.write("models.bench", operation, keys)

    async def lift(self, model: str) -> None:
        def operation(tx: Transaction) -> None:
            tx.change("bench_lift", model=model, node=self._context.node)

        await self._writer.write("models.lift", operation, Keys(chats=(model_key(model),)))

    async def put_on(self, claim: Claim, model: str, because: str) -> None:
        def operation(tx: Transaction) -> None:
            if not is_held(tx, claim):
                raise fenced(claim)
            tx.change(
                "turn_model_set",
                turn_id=claim.turn_id,
                model=model,
                because=because,
                now=tx.now_ms,
            )

        await self._writer.write("models.put_on", operation, of_sessions(claim.session_id))
