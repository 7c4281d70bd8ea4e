"""Rows that rest on the clock on the wall, and what a jump of that clock does to them.

Two kinds of rows do. An age (of a delivery, of an open question, of a turn that nobody works on) is
counted from a moment that is stored. When the clock on the wall jumps while we run, these moments
jump with it, so that nothing gets older or younger by it. A wait ends at a moment that is stored
together with its length. No wait ever has more left than its length: a clock that was set back
makes none longer.

The writer compares the clock on the wall with the monotonic one at the beginning of each
transaction, and moves the ages in that very transaction. So no decision that is taken inside a
transaction ever sees a moment of the one scale and a time of the other.

While we are down, no second clock is there. The next boot knows the last heartbeat: if that is
still to come, the clock was set back by at least the difference, and ages move back with it. If it
is long ago, that is a downtime as far as anybody can tell, and it counts; but a delivery gets one
try of each boot before it expires (`ending_of`).
"""

from koboshi.kernel.decode import number
from koboshi.kernel.keys import lock_found
from koboshi.kernel.transaction import Transaction
from koboshi.ports.clock import Clock
from koboshi.ports.wakeups import OUTBOX, OUTBOX_SOONER, TURNS

JUMP_MS = 2_000
"""A smaller step of the clock, and one that is made in small steps, is as good as none."""
BETWEEN_LOOKS_MS = 100
LOOKS_MAX = 5


class JumpWatch:
    """Notices that the clock on the wall went another way than the monotonic one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._apart_ms: int | None = None
        self._seen_ms: int | None = None

    def begin(self, tx: Transaction) -> None:
        """Give the transaction its time, and move the ages if the clock jumped since the last
        transaction that was committed."""
        tx.now_ms, self._seen_ms = self._look()
        if self._apart_ms is None:
            return
        jump_ms = self._seen_ms - self._apart_ms
        if abs(jump_ms) > JUMP_MS:
            move_ages(tx, jump_ms)
            cap_waits(tx)
            tx.hints.update((OUTBOX, OUTBOX_SOONER, TURNS))

    def committed(self) -> None:
        """What the transaction saw is in the database."""
        self._apart_ms = self._seen_ms

    def _look(self) -> tuple[int, int]:
        """The time on the wall, and how far it is from the monotonic one. Both are read at one
        moment: a thread that is made to wait between the two looks again."""
        looks = 0
        while True:
            looks += 1
            before_ms = self._clock.monotonic() * 1_000
            now_ms = self._clock.now_ms()
            took_ms = self._clock.monotonic() * 1_000 - before_ms
            if took_ms < BETWEEN_LOOKS_MS or looks == LOOKS_MAX:
                return now_ms, now_ms - round(before_ms)


def move_ages(tx: Transaction, jump_ms: int) -> None:
    """The clock on the wall jumped, and nothing got older or younger by it."""
    lock_found(tx, "keys_of_ages")
    tx.change("ages_move_outbox", jump_ms=jump_ms)
    tx.change("ages_move_questions", jump_ms=jump_ms)
    tx.change("ages_move_turns", jump_ms=jump_ms)
    tx.change("ages_move_beats", jump_ms=jump_ms)


def cap_waits(tx: Transaction) -> None:
    """No wait has more left than its length. What a clock made shorter is due at once."""
    capped = tx.change("waits_cap_quiet", now=tx.now_ms)
    for turn_id, key in tx.rows("waits_cap_turns", now=tx.now_ms):
        if tx.try_lock(number(key)):
            capped += tx.change("wait_cap_turn", turn_id=turn_id, now=tx.now_ms)
    for delivery_id, key in tx.rows("waits_cap_outbox", now=tx.now_ms):
        if tx.try_lock(number(key)):
            capped += tx.change("wait_cap_delivery", delivery_id=delivery_id, now=tx.now_ms)
    tx.change("quiet_expire", now=tx.now_ms)
    if capped:
        tx.hints.update((OUTBOX, OUTBOX_SOONER, TURNS))


def come_back(tx: Transaction) -> None:
    """The first look of a boot at the clock, before it has a row of its own. The time since the
    last heartbeat is a downtime, a jump of the clock, or both."""
    row = tx.row("worker_last_beat")
    away_ms = 0 if row is None else tx.now_ms - number(row[0])
    if away_ms < 0:
        move_ages(tx, away_ms)
    cap_waits(tx)
