"""What an idle gateway costs, with a hundred thousand armed schedules and with none."""

from pathlib import Path
from time import monotonic

import apsw
import pytest

from tests.harness.client import Client
from tests.harness.many_schedules import COUNT, FAR_MS, FILL
from tests.harness.polling import until
from tests.harness.process import GatewayProcess
from tests.harness.tally import WANTS_ALL

WINDOW_S = 30.0 if WANTS_ALL else 4.0
WINDOWS_MAX = 8
RATIO_MAX = 1.2


async def set_up(home: Path, schedules: int) -> GatewayProcess:
    """A gateway that has come to rest, with so many schedules that are due in a hundred years."""
    gateway = GatewayProcess(home)
    gateway.start()
    await gateway.wait_ready()
    await Client(gateway, "ann").say("/help", "1")
    if not schedules:
        return gateway
    gateway.kill()
    database = apsw.Connection(str(home / "koboshi.db"), flags=apsw.SQLITE_OPEN_READWRITE)
    # What counts from an anchor needs no rules of zones, which a start would look at once.
    fill = FILL.replace("'cron', '0 7 * * *'", "'every', '3600'")
    database.execute(fill.format(count=schedules, far=FAR_MS))
    database.close()
    gateway.start()
    await gateway.wait_ready()
    return gateway


def spent_ns(gateway: GatewayProcess) -> int:
    """The time on a processor of all its threads."""
    tasks = Path(f"/proc/{gateway.pid}/task")
    return sum(int((each / "schedstat").read_text().split()[0]) for each in tasks.iterdir())


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_an_idle_gateway_costs_no_more_with_a_hundred_thousand_armed_schedules(
    tmp_path: Path,
) -> None:
    """Issue 18, must show: at most 1.2 times the processor time of one with none. Both are measured
    over the same seconds. What else the machine does can only make a window worse, so the best of
    some counts; a cost that grows with the schedules is in every window."""
    none = await set_up(tmp_path / "none", 0)
    many = await set_up(tmp_path / "many", COUNT)
    ratios: list[float] = []
    try:
        while len(ratios) < WINDOWS_MAX and min(ratios, default=9.0) > RATIO_MAX:
            begun_s, before = monotonic(), (spent_ns(none), spent_ns(many))
            await until(lambda at=begun_s: monotonic() - at > WINDOW_S, "a while passes")  # type: ignore[misc]
            without, armed = spent_ns(none) - before[0], spent_ns(many) - before[1]
            print(f"in {WINDOW_S} s: {without / 1e6:.1f} ms and {armed / 1e6:.1f} ms")
            ratios.append(armed / without)
    finally:
        none.bury()
        many.bury()
    assert min(ratios) <= RATIO_MAX
