"""Rows that depend on the wall clock, and what a jump of that clock does to them.

There are two kinds. An age (of a delivery, a question, an idle turn, a browser) counts from a
stored moment. When the wall clock jumps while the gateway runs, these moments move with it, so no
age changes. Codes of strangers that end later than any can are deleted (`pairings_expire`). The
moments of rules and erasures are only shown. A wait ends at a moment that is stored with its
length. No wait has more left than its length, so a clock that was set back makes no wait longer.

The writer compares the wall clock with the monotonic clock at the beginning of each transaction,
and moves the ages in that transaction. So no decision mixes moments of two scales.

While the gateway is down there is no second clock. The next boot knows the last heartbeat. If it is
in the future, the clock was set back by at least the difference, and the ages move back with it. If
it is in the past, the difference counts as downtime; but a delivery gets one attempt in each boot
before it expires (`ending_of`).
"""

from collections.abc import Callable

from koboshi.kernel.decode import first_number, number
from koboshi.kernel.keys import lock_found
from koboshi.kernel.transaction import Transaction
from koboshi.ports.clock import Clock
from koboshi.ports.wakeups import GOALS, OUTBOX, OUTBOX_SOONER, SCHEDULES, TURNS

JUMP_MS = 2_000
"""Smaller steps of the clock are ignored."""
BETWEEN_LOOKS_MS = 100
LOOKS_MAX = 5


class JumpWatch:
    """Notices that the wall clock and the monotonic clock drift apart."""

    def __init__(
        self, clock: Clock, left: Callable[[Transaction, int], int] = lambda _, jump_ms: jump_ms
    ) -> None:
        """`left` says how much of a jump is for this process to make good."""
        self._clock = clock
        self._left = left
        self._apart_ms: int | None = None
        self._seen_ms: int | None = None

    def begin(self, tx: Transaction) -> None:
        """Give the transaction its time, and move the ages if the clock jumped since the last
        committed transaction."""
        tx.now_ms, self._seen_ms = self._look()
        if self._apart_ms is None:
            return
        jump_ms = self._seen_ms - self._apart_ms
        if abs(jump_ms) > JUMP_MS and (left_ms := self._left(tx, jump_ms)):
            move_ages(tx, left_ms)
            cap_waits(tx)
            tx.hints.update((OUTBOX, OUTBOX_SOONER, TURNS, SCHEDULES, GOALS))

    def committed(self) -> None:
        """The transaction that `begin` saw is committed."""
        self._apart_ms = self._seen_ms

    def _look(self) -> tuple[int, int]:
        """The wall clock, and its distance from the monotonic clock. Both are read at one moment: a
        thread that was interrupted between the two reads them again."""
        looks = 0
        while True:
            looks += 1
            before_ms = self._clock.monotonic() * 1_000
            now_ms = self._clock.now_ms()
            took_ms = self._clock.monotonic() * 1_000 - before_ms
            if took_ms < BETWEEN_LOOKS_MS or looks == LOOKS_MAX:
                return now_ms, now_ms - round(before_ms)


def move_ages(tx: Transaction, jump_ms: int) -> None:
    """Move the stored moments by the jump of the wall clock, so that no age changes."""
    lock_found(tx, "keys_of_ages")
    tx.change("ages_move_outbox", jump_ms=jump_ms)
    tx.change("ages_move_questions", jump_ms=jump_ms)
    tx.change("ages_move_turns", jump_ms=jump_ms)
    tx.change("ages_move_beats", jump_ms=jump_ms)
    tx.change("ages_move_browsers", jump_ms=jump_ms)
    tx.change("ages_move_goals", jump_ms=jump_ms)
    tx.change("ages_move_agents", jump_ms=jump_ms)
    if jump_ms < 0:
        tx.change("ages_move_retries", jump_ms=jump_ms)
        # A due time is a moment and no age. Behind a clock that went back, it is reckoned from now.
        tx.change("schedules_recheck")


def cap_waits(tx: Transaction) -> None:
    """Shorten each wait that has more left than its length: the clock was set back."""
    capped = tx.change("waits_cap_quiet", now=tx.now_ms)
    for turn_id, key in tx.rows("waits_cap_turns", now=tx.now_ms):
        if tx.try_lock(number(key)):
            capped += tx.change("wait_cap_turn", turn_id=turn_id, now=tx.now_ms)
    for delivery_id, key in tx.rows("waits_cap_outbox", now=tx.now_ms):
        if tx.try_lock(number(key)):
            capped += tx.change("wait_cap_delivery", delivery_id=delivery_id, now=tx.now_ms)
    tx.change("quiet_expire", now=tx.now_ms)
    tx.change("waits_cap_browsers", now=tx.now_ms)
    tx.change("waits_cap_benches", now=tx.now_ms)
    tx.change("waits_cap_goals", now=tx.now_ms)
    if capped:
        tx.hints.update((OUTBOX, OUTBOX_SOONER, TURNS))


def come_back(tx: Transaction) -> None:
    """Check the clock at the start of a boot, before it has its row. The time since the last
    heartbeat is downtime, a jump of the clock, or both."""
    beat_ms = first_number(tx.row("worker_last_beat"))
    away_ms = 0 if beat_ms is None else tx.now_ms - beat_ms
    if away_ms < 0:
        move_ages(tx, away_ms)
    cap_waits(tx)
