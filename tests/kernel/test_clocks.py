"""Issue 12, A5: a jump of the clock is told from time that passes."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from koboshi.kernel.clocks import JUMP_MS, JumpWatch
from koboshi.kernel.transaction import Row
from koboshi.stores.sqlite.transaction import SqliteTransaction
from tests.harness.fake_time import DAY_MS, FakeClock


class Recorded(SqliteTransaction):
    """Notes by how much the ages were moved."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.hints = set()
        self.moved: list[int] = []

    def change(self, query: str, **values: str | int | None) -> int:
        if query == "ages_move_outbox":
            assert isinstance(values["jump_ms"], int)
            self.moved.append(values["jump_ms"])
        return 0

    def rows(self, query: str, **values: str | int | None) -> list[Row]:
        return []


@given(st.lists(st.tuples(st.integers(0, 10**8), st.integers(-(10**11), 10**11)), max_size=20))
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_ages_move_by_exactly_what_the_clock_jumped(steps: list[tuple[int, int]]) -> None:
    """Time that passes is no jump, however much of it."""
    clock, tx = FakeClock(), Recorded()
    watch = JumpWatch(clock)
    watch.begin(tx)
    watch.committed()
    for passed_ms, jump_ms in steps:
        clock.move(passed_ms)
        clock.wall_ms += jump_ms
        tx.moved.clear()
        watch.begin(tx)
        watch.committed()
        if abs(jump_ms) > JUMP_MS + 1:
            (moved,) = tx.moved
            assert abs(moved - jump_ms) <= 1, "milliseconds are rounded"
        elif abs(jump_ms) < JUMP_MS:
            assert tx.moved == []


def test_a_jump_counts_until_it_is_committed() -> None:
    """A transaction that was rolled back has moved nothing."""
    clock, tx = FakeClock(), Recorded()
    watch = JumpWatch(clock)
    watch.begin(tx)
    watch.committed()
    clock.wall_ms -= DAY_MS
    watch.begin(tx)
    watch.begin(tx)
    watch.committed()
    watch.begin(tx)

    assert tx.moved == [-DAY_MS, -DAY_MS]
