"""The clock of a batch, which all nodes have: that of the server.

Each node sees by itself that this clock jumps, and the ages of rows move with it once for all
nodes. The database counts the jumps that were made good, in all. A node is told that sum together
with each time. So a node that sees a jump knows whether another one has made it good since the
time that it compares with. Which node does it does not matter: one that is dead and not buried yet
keeps no jump from being made good.
"""

from koboshi.kernel.clocks import JUMP_MS, JumpWatch
from koboshi.kernel.transaction import Transaction
from koboshi.stores.postgres.times import StoreTime


class BatchClock:
    def __init__(self, time: StoreTime) -> None:
        self._time = time
        self._watch = JumpWatch(time, left=self._left_of)
        self._known_ms: int | None = None
        self._told_ms: int | None = None
        """The jumps that were made good, in all: with the time of the last batch that was
        committed, and with that of this one. None: not told yet."""
        self._own_ms = 0
        """The one that this batch makes good."""

    def begin(self) -> None:
        self._own_ms = 0

    def measured(self, server_ms: int, jumps_ms: int, begun: float) -> None:
        """The server has told both, in answer to what was sent at `begun`."""
        if self._time.measured(server_ms, begun):
            self._told_ms = jumps_ms

    def look(self, tx: Transaction) -> int:
        """The time of the batch; makes a jump of the clock good that no node has seen to."""
        self._watch.begin(tx)
        return tx.now_ms

    def committed(self) -> None:
        self._watch.committed()
        if self._told_ms is not None:
            self._told_ms += self._own_ms
        self._known_ms = self._told_ms

    def _left_of(self, tx: Transaction, jump_ms: int) -> int:
        """How much of a jump no node has made good."""
        if self._told_ms is None:
            return jump_ms
        others_ms = 0 if self._known_ms is None else self._told_ms - self._known_ms
        left_ms = jump_ms - others_ms
        if abs(left_ms) <= JUMP_MS:
            return 0
        # Another node that has seen it at the same time was first.
        if not tx.change("jump_note", jump_ms=left_ms, seen_ms=self._told_ms):
            return 0
        self._own_ms = left_ms
        return left_ms
