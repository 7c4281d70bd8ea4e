"""A family in a home: turns that give work away, in random order, through deaths and cuts.

One seed is one history. What happens next is thrown; all comes to rest at the end, and the oracle
(`tests/harness/heard_children.py`) looks at the rows.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random

from koboshi.domain.child import ChildTask
from koboshi.domain.command import CommandName
from koboshi.domain.errors import Fenced
from koboshi.domain.ids import SessionId
from koboshi.domain.phrases import YES_NO
from koboshi.domain.transcript import Effect, Need, Reply, Result, ResultStatus
from koboshi.domain.turn import Claim
from tests.harness.fake_time import DAY_MS
from tests.harness.family import PATIENCE_MS
from tests.harness.homes import Home, a_call

CHATS = ("ann", "bob")
STEPS = 50
REST_ROUNDS = 200


@dataclass(slots=True)
class Family:
    home: Home
    dice: Random
    held: dict[SessionId, Claim] = field(default_factory=dict)
    history: list[str] = field(default_factory=list)
    deaths: int = 0

    async def live(self) -> None:
        deeds: list[Callable[[], Awaitable[None]]] = [
            *(self._speak, self._work, self._work, self._work, self._work),
            *(self._die, self._cut, self._press),
        ]
        for _ in range(STEPS):
            deed = self.dice.choice(deeds)
            self.history.append(deed.__name__)
            await deed()
        await self._rest()

    async def _speak(self) -> None:
        await self.home.say("hello", chat=self.dice.choice(CHATS))

    async def _work(self) -> None:
        """One step of one turn: it gives work away, asks, fails or answers."""
        for claim in await self.home.claims():
            self.held[claim.session_id] = claim
        if not self.held:
            return
        claim = self.held[self.dice.choice(sorted(self.held))]
        what = self.dice.choice(("delegate", "delegate", "answer", "answer", "fail", "ask"))
        self.history.append(f"{what} in s{claim.session_id}")
        try:
            await self._do(claim, what)
        except Fenced:
            self._let_go(claim)

    def _let_go(self, claim: Claim) -> None:
        """It is no longer ours; a newer claim on the same turn is."""
        if self.held.get(claim.session_id) == claim:
            del self.held[claim.session_id]

    async def _do(self, claim: Claim, what: str) -> None:
        turns = self.home.store.turns
        match what:
            case "delegate":
                for _ in range(self.dice.choice((1, 1, 3))):
                    await self._delegate(claim)
                return
            case "ask":
                need = self.dice.choice((Need.ANSWER, Need.APPROVAL))
                await self.home.ask(claim, need=need, choices=YES_NO)
            case "fail":
                await turns.fail(claim, "the model is gone")
            case _:
                await turns.answer(claim, Reply(text="done"), (), is_silent=True)
        self._let_go(claim)

    async def _delegate(self, claim: Claim) -> None:
        """The call may be carried out again by a later claim, if a death comes in between."""
        (call_id,) = await self.home.propose(claim, a_call("delegate", effect=Effect.REPEATABLE))
        if not await self.home.store.turns.start_call(claim, call_id):
            return
        task = ChildTask(name="n", task="t")
        made = await self.home.store.children.delegate(claim, call_id, task)
        if self.dice.random() < 0.3:
            await self._die()
            again = self.held.get(claim.session_id)
            if again is None:
                return
            claim = again
            twice = await self.home.store.children.delegate(claim, call_id, task)
            if made.child is not None:
                assert twice.child is not None
                assert twice.child.child_id == made.child.child_id, "a call has two children"
        status = ResultStatus.ERROR if made.child is None else ResultStatus.OK
        result = Result(call_id=call_id, status=status, text=made.refusal or "delegated")
        await self.home.store.turns.finish_call(claim, result)

    async def _die(self) -> None:
        """The gateway is killed, and the next boot takes up what was at work."""
        self.deaths += 1
        self.held.clear()
        await self.home.reopen()
        for turn_id in await self.home.store.turns.unowned(with_suspended=False):
            await self.home.store.turns.recover(turn_id)
        self.home.clock.move(PATIENCE_MS)
        for claim in await self.home.claims():
            self.held[claim.session_id] = claim

    async def _cut(self) -> None:
        if self.dice.random() < 0.4:
            name = self.dice.choice((CommandName.STOP, CommandName.NEW))
            chat = self.dice.choice(CHATS)
            await self.home.command(name, chat=chat)
            left = self.home.sql(
                "SELECT child_id FROM children AS c JOIN sessions AS s "
                f"ON s.session_id = c.session_id WHERE s.chat = '{chat}' AND c.ended_ms IS NULL"
            )
            assert not left, f"{left} outlive a cut"

    async def _press(self) -> None:
        """A person answers an open question, or one that is closed by now."""
        asked = self.home.sql(
            "SELECT o.question, s.chat FROM outbox AS o JOIN sessions AS s "
            "ON s.session_id = o.session_id WHERE o.question IS NOT NULL ORDER BY o.delivery_id"
        )
        if asked:
            question, chat = self.dice.choice(asked)
            choice = self.dice.choice(YES_NO).choice_id
            await self.home.say("", chat=str(chat), question=int(str(question)), choice=choice)

    async def _rest(self) -> None:
        """No person speaks any more: what is open comes to its end."""
        turns = self.home.store.turns
        for _ in range(REST_ROUNDS):
            for turn_id in await turns.unowned(with_suspended=True):
                await turns.recover(turn_id)
            self.home.clock.move(PATIENCE_MS)
            for claim in (*self.held.values(), *await self.home.claims()):
                try:
                    await turns.answer(claim, Reply(text="done"), (), is_silent=True)
                except Fenced:
                    continue
            self.held.clear()
            # Deliveries are not sent here, so an answered turn may not be closed.
            if not self.home.sql(
                "SELECT 1 FROM turns WHERE closed_ms IS NULL AND state <> 'answered'"
            ):
                return
            self.home.clock.move(DAY_MS)
            await turns.expire(100)
        raise AssertionError(f"it does not come to rest: {self.history}")
