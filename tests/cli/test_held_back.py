"""Turns that the boot breaker holds back, as the command line and the metrics of a real gateway
tell of them."""

from pathlib import Path

from tests.cli.metrics_page import page
from tests.cli.process import Gateway, gateway, koboshi, until

DEATHS = 5
ENDLESS = 'script: [{"text":"never said","sleep_ms":600000}]'
WORDS = "held back: the gateway keeps dying"


def works_on(one: Gateway, message: str) -> None:
    until(lambda: one.explained(message)["is_worked_on"], f"it works on {message}")


def test_what_the_breaker_holds_back_is_counted_as_work_nowhere(tmp_path: Path) -> None:
    """Issue 13, B8: red before, `status` said "running", `inbox list` "attached", and the metrics
    counted turns that no worker held."""
    home, told = tmp_path / "home", {"KOBOSHI__RECOVERY__BOOT_BREAKER": "true"}
    for death in range(DEATHS):
        with gateway(home, **told) as dying:
            works_on(dying, dying.say(f"chat-{death}", ENDLESS))
            dying.kill()
    with gateway(home, **told) as one:
        one.wait_serving()
        status = koboshi("status", home=home).out
        assert f"turns      {DEATHS} {WORDS}" in status
        assert koboshi("inbox", "list", home=home).out.count(f", {WORDS}: ") == DEATHS
        _, _, metrics = page(one)
        assert "koboshi_turns_running 0\n" in metrics
        assert f'koboshi_turns_waiting{{for="held-back"}} {DEATHS}\n' in metrics
        assert 'koboshi_turns_waiting{for="queued"} 0\n' in metrics
