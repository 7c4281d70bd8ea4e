"""What a turn that a schedule began may do, in a real gateway with its own tools."""

from functools import partial
from pathlib import Path

from tests.crash.stories import script
from tests.harness.client import Client
from tests.harness.home_file import number, opened
from tests.harness.polling import until
from tests.harness.process import GatewayProcess

ORDER = {"action": "create", "name": "news", "when": "every 2 hours", "prompt": "echo x"}
CHANGES = {"schedule": ORDER, "gateway_restart": {"reason": "because"}}
NEWEST = "turn_id = (SELECT max(turn_id) FROM turns)"
ASKED = f"SELECT count(*) FROM turns WHERE state = 'waiting' AND {NEWEST}"
SILENT = f"SELECT count(*) FROM turns WHERE state = 'done' AND event = 'silenced' AND {NEWEST}"
TOLD = f"SELECT count(*) FROM outbox WHERE {NEWEST}"


def counted(home: Path, sql: str) -> int:
    with opened(home) as connection:
        return number(connection, sql)


async def test_a_turn_of_a_schedule_changes_nothing_of_ours_without_approval_and_may_be_silent(
    home: Path,
) -> None:
    """TIME.md: it may not make or change schedules, nor restart the gateway, without approval; a
    quiet one that has nothing to report tells no person."""
    gateway = GatewayProcess(home)
    try:
        gateway.start()
        await gateway.wait_ready()
        person = Client(gateway, "ann")
        for place, (tool, arguments) in enumerate(CHANGES.items(), start=1):
            calls: dict[str, object] = {"calls": [{"tool": tool, "arguments": arguments}]}
            await person.say(f"/cron add in 2 hours {script(calls)}", f"add {tool}")
            await person.say(f"/cron run c{place}", f"run {tool}")
            waits = partial(counted, home, ASKED)
            await until(waits, f"{tool} is asked about", otherwise=lambda: gateway.log[-3000:])
            await person.say("/stop", f"stop {tool}")
        assert counted(home, "SELECT count(*) FROM schedules") == len(CHANGES)

        nothing = script({"calls": [{"tool": "nothing_to_report", "arguments": {}}]})
        await person.say(f"/cron add quiet in 2 hours {nothing}", "add quiet")
        await person.say("/cron run c3", "run quiet")
        silent = partial(counted, home, SILENT)
        await until(silent, "it ends in silence", otherwise=lambda: gateway.log[-3000:])
        assert counted(home, TOLD) == 0
        assert gateway.is_running
    finally:
        gateway.bury()
